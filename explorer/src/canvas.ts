/** The common part of the drawings: a canvas as sharp as the screen, the time axis, and the page's colors. */

import { placeAt, type Steps } from "./steps";
import { SvgContext } from "./svg";

/** The span of time that all drawings show. */
export interface View {
  fromNs: number;
  toNs: number;
  /** Nothing is drawn behind it. */
  untilNs?: number | undefined;
}

const NAMES = ["ink", "soft", "line", "panel", "paper", "a", "b", "alarm", "tls"] as const;
export type Colors = Record<(typeof NAMES)[number], string>;

/** Of the theme, as the page shows them. */
export function colors(): Colors {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`)])) as Colors;
}

export const [LEFT, RIGHT] = [60, 14];

/** A drawing's surface, in CSS pixels. */
export class Surface {
  context: CanvasRenderingContext2D;
  width = 0;
  height = 0;

  constructor(readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("this browser draws no canvas");
    this.context = context;
  }

  /** Clears it, at the size that the page gives it. */
  begin(): void {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.canvas;
    [this.width, this.height] = [clientWidth, clientHeight];
    const [wide, high] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (this.canvas.width !== wide) this.canvas.width = wide;
    if (this.canvas.height !== high) this.canvas.height = high;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = "12px system-ui, sans-serif";
    this.context.lineJoin = "round";
  }

  /** What `draw` draws here, as SVG. */
  recorded(draw: () => void): string {
    const { context } = this;
    const svg = new SvgContext(context, this.canvas.id);
    this.context = svg as unknown as CanvasRenderingContext2D;
    draw();
    this.context = context;
    return String(svg);
  }

  x(timeNs: number, view: View): number {
    return LEFT + ((timeNs - view.fromNs) / (view.toNs - view.fromNs)) * (this.width - LEFT - RIGHT);
  }

  /** Shades the times between two places. */
  shade(from: number, to: number, color: string): void {
    this.context.globalAlpha = 0.15;
    this.context.fillStyle = color;
    this.context.fillRect(Math.min(from, to), 0, Math.abs(to - from), this.height);
    this.context.globalAlpha = 1;
  }

  timeAt(x: number, view: View): number {
    return view.fromNs + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (view.toNs - view.fromNs);
  }

  /** Draws within the frame and the time in view only. */
  clipped(top: number, bottom: number, view: View | undefined, draw: () => void): void {
    const right = Math.min(this.width - RIGHT, view?.untilNs === undefined ? Infinity : this.x(view.untilNs, view));
    this.context.save();
    this.context.beginPath();
    this.context.rect(LEFT, top, Math.max(0, right - LEFT), bottom - top);
    this.context.clip();
    draw();
    this.context.restore();
  }

  /** A line that keeps each value until the next time. On one half pixel only the extent of the values is drawn. */
  steps({ timeNs, values }: Steps, view: View, y: (value: number) => number, color: string, dash: number[]): void {
    const { context } = this;
    const from = Math.max(0, placeAt(timeNs, view.fromNs));
    if (from >= timeNs.length) return;
    context.beginPath();
    let [column, low, high, last] = [NaN, 0, 0, values[from]!];
    context.moveTo(this.x(timeNs[from]!, view), y(last));
    for (let index = from; index < timeNs.length && timeNs[index]! <= view.toNs; index++) {
      const value = values[index]!;
      const here = Math.round(2 * this.x(timeNs[index]!, view)) / 2;
      if (here === column) {
        [low, high, last] = [Math.min(low, value), Math.max(high, value), value];
        continue;
      }
      if (low < high) this.column(column, y(low), y(high), y(last));
      context.lineTo(here, y(last));
      context.lineTo(here, y(value));
      [column, low, high, last] = [here, value, value, value];
    }
    if (low < high) this.column(column, y(low), y(high), y(last));
    context.lineTo(this.x(view.toNs, view), y(last));
    context.setLineDash(dash);
    context.lineWidth = 2;
    context.strokeStyle = color;
    context.stroke();
    context.setLineDash([]);
  }

  private column(x: number, ...ys: number[]): void {
    for (const y of ys) this.context.lineTo(x, y);
  }

  text(words: string, x: number, y: number, color: string, align: CanvasTextAlign = "left"): void {
    this.context.fillStyle = color;
    this.context.textAlign = align;
    this.context.fillText(words, x, y);
  }

  /** Words that stay legible on lines. */
  label(words: string, x: number, y: number, { paper, ink }: Colors, align: CanvasTextAlign = "left"): void {
    const { context } = this;
    context.textAlign = align;
    context.strokeStyle = paper;
    context.lineWidth = 4;
    context.strokeText(words, x, y);
    this.text(words, x, y, ink, align);
  }

  /** A straight line one pixel wide. */
  rule(x0: number, y0: number, x1: number, y1: number, color: string): void {
    const { context } = this;
    context.strokeStyle = color;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
    context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
    context.stroke();
  }

  /** Vertical grid lines from `top` to `bottom`, with times in ms below. */
  timeAxis(view: View, top: number, bottom: number, { line, soft }: Colors): void {
    const room = Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 80));
    const { context } = this;
    context.strokeStyle = line;
    context.lineWidth = 1;
    const times = ticks(view.fromNs / 1e6, view.toNs / 1e6, room);
    for (const at of times) {
      const x = Math.round(this.x(at * 1e6, view)) + 0.5;
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, bottom);
      context.stroke();
      const unit = at === times.at(-1) ? " ms" : "";
      this.text(at.toLocaleString("en") + unit, x, bottom + 15, soft, unit === "" || x < this.width - 40 ? "center" : "right");
    }
  }
}

/** Round numbers from `low` to `high`, about `most` of them. */
export function ticks(low: number, high: number, most: number): number[] {
  const raw = (high - low) / Math.max(1, most);
  if (!(raw > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10);
  const found: number[] = [];
  for (let index = Math.ceil(low / step); index * step <= high; index++) found.push(Number((index * step).toPrecision(12)));
  return found;
}

/** 1, 2 and 5 times powers of ten between two numbers. */
export function roundNumbers(low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const factor of [1, 2, 5]) if (factor * power >= low && factor * power <= high) found.push(factor * power);
  }
  return found;
}
