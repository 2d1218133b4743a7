/** A canvas' context that writes SVG: as much of it as the drawings use. */

const round = (number: number): string => String(Math.round(number * 100) / 100);

/** For text in SVG and in its attributes. */
export function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

export class SvgContext {
  strokeStyle = "";
  fillStyle = "";
  lineWidth = 1;
  globalAlpha = 1;
  textAlign = "left";
  font = "";
  lineJoin = "";
  private readonly parts: string[] = [];
  private path = "";
  private dash = "";
  private clipped = "";
  private clips = 0;

  /** `name` begins the names of its clip paths. */
  constructor(
    private readonly real: CanvasRenderingContext2D,
    private readonly name: string,
  ) {}

  toString(): string {
    return this.parts.join("\n");
  }

  // What was drawn before is not there, and SVG has no pixels.
  setTransform(): void {}
  clearRect(): void {}
  save(): void {}
  restore(): void {
    this.clipped = "";
  }

  beginPath(): void {
    this.path = "";
  }
  moveTo(x: number, y: number): void {
    this.path += `M${round(x)} ${round(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `${this.path === "" ? "M" : "L"}${round(x)} ${round(y)}`;
  }
  rect(x: number, y: number, width: number, height: number): void {
    this.path += `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}z`;
  }
  /** Whole circles only. */
  arc(x: number, y: number, radius: number): void {
    this.path += `M${round(x - radius)} ${round(y)}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
  }
  clip(): void {
    const id = `${this.name}-${this.clips++}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.clipped = ` clip-path="url(#${id})"`;
  }
  setLineDash(dash: number[]): void {
    this.dash = dash.length === 0 ? "" : ` stroke-dasharray="${dash.join(" ")}"`;
  }

  stroke(): void {
    if (this.path !== "") this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${this.dash}${this.clipped}/>`);
  }
  fill(): void {
    this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}" fill-opacity="${this.globalAlpha}"${this.clipped}/>`);
  }
  /** Leaves the path as it is, as a canvas does. */
  fillRect(...[x, y, width, height]: [number, number, number, number]): void {
    const { path } = this;
    this.beginPath();
    this.rect(x, y, width, height);
    this.fill();
    this.path = path;
  }
  fillText(words: string, x: number, y: number): void {
    this.text(words, x, y, `fill="${this.fillStyle}"`);
  }
  strokeText(words: string, x: number, y: number): void {
    this.text(words, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"`);
  }
  measureText(words: string): TextMetrics {
    return this.real.measureText(words);
  }

  private text(words: string, x: number, y: number, how: string): void {
    const anchor = { center: "middle", right: "end" }[this.textAlign] ?? "start";
    this.parts.push(`<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" ${how}${this.clipped}>${escaped(words)}</text>`);
  }
}
