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

export const [LEFT, RIGHT, TOP] = [60, 14, 10];
/** Of the lines of B. */
export const DASH = [6, 3] as const;

/** A drawing's surface, in CSS pixels, and the part of the time that it shows. */
export class Surface {
  context: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  view: View = { fromNs: 0, toNs: 1 };

  constructor(readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("this browser draws no canvas");
    this.context = context;
  }

  /** Clears it, at the size that the page gives it. */
  begin(view = this.view): void {
    this.view = view;
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

  /** The lower edge of a chart, above the words of its axis. */
  get bottom(): number {
    return this.height - 22;
  }

  x(timeNs: number): number {
    const { fromNs, toNs } = this.view;
    return LEFT + ((timeNs - fromNs) / (toNs - fromNs)) * (this.width - LEFT - RIGHT);
  }

  timeAt(x: number): number {
    const { fromNs, toNs } = this.view;
    return fromNs + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (toNs - fromNs);
  }

  /** Shades the times between two places. */
  shade(from: number, to: number, color: string): void {
    this.context.globalAlpha = 0.15;
    this.context.fillStyle = color;
    this.context.fillRect(Math.min(from, to), 0, Math.abs(to - from), this.height);
    this.context.globalAlpha = 1;
  }

  /** Draws within the frame and the time in view only. */
  clipped(top: number, bottom: number, draw: () => void): void {
    const { untilNs } = this.view;
    const right = Math.min(this.width - RIGHT, untilNs === undefined ? Infinity : this.x(untilNs));
    this.context.save();
    this.context.beginPath();
    this.context.rect(LEFT, top, Math.max(0, right - LEFT), bottom - top);
    this.context.clip();
    draw();
    this.context.restore();
  }

  stroke(color: string, width: number, dash: readonly number[] = []): void {
    const { context } = this;
    [context.strokeStyle, context.lineWidth] = [color, width];
    context.setLineDash([...dash]);
    context.stroke();
  }

  /** A line that keeps each value until the next time. On one half pixel only the extent of the values is drawn. */
  steps({ timeNs, values }: Steps, y: (value: number) => number, color: string, dash: readonly number[]): void {
    const { context, view } = this;
    const from = Math.max(0, placeAt(timeNs, view.fromNs));
    if (from >= timeNs.length) return;
    context.beginPath();
    let [column, low, high, last] = [NaN, 0, 0, values[from]!];
    const extent = (): void => {
      if (low < high) for (const value of [low, high, last]) context.lineTo(column, y(value));
    };
    context.moveTo(this.x(timeNs[from]!), y(last));
    for (let index = from; index < timeNs.length && timeNs[index]! <= view.toNs; index++) {
      const value = values[index]!;
      const here = Math.round(2 * this.x(timeNs[index]!)) / 2;
      if (here === column) {
        [low, high, last] = [Math.min(low, value), Math.max(high, value), value];
        continue;
      }
      extent();
      context.lineTo(here, y(last));
      context.lineTo(here, y(value));
      [column, low, high, last] = [here, value, value, value];
    }
    extent();
    context.lineTo(this.x(view.toNs), y(last));
    this.stroke(color, 2, dash);
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
    [context.strokeStyle, context.lineWidth] = [paper, 4];
    context.setLineDash([]);
    context.strokeText(words, x, y);
    this.text(words, x, y, ink, align);
  }

  /** A straight line one pixel wide. */
  rule(x0: number, y0: number, x1: number, y1: number, color: string, dash?: readonly number[]): void {
    const { context } = this;
    context.beginPath();
    context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
    context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
    this.stroke(color, 1, dash);
  }

  /** Vertical grid lines from `top` to `bottom`, with times in ms below. */
  timeAxis(top: number, bottom: number, { line, soft }: Colors): void {
    const { fromNs, toNs } = this.view;
    const times = ticks(fromNs / 1e6, toNs / 1e6, Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 80)));
    for (const at of times) {
      const x = this.x(at * 1e6);
      this.rule(x, top, x, bottom, line);
      const unit = at === times.at(-1) ? " ms" : "";
      this.text(at.toLocaleString("en") + unit, x, bottom + 15, soft, unit === "" || x < this.width - 40 ? "center" : "right");
    }
  }

  /** The time below and horizontal grid lines of values from 0 to a little more than `most`; returns where a value is. */
  axes(most: number, label: (value: number) => string, colors: Colors): (value: number) => number {
    const { bottom, width } = this;
    const y = (value: number): number => bottom - (value / (most * 1.06)) * (bottom - TOP);
    this.timeAxis(TOP, bottom, colors);
    for (const value of ticks(0, most, Math.max(2, Math.floor((bottom - TOP) / 30)))) {
      this.rule(LEFT, y(value), width - RIGHT, y(value), colors.line);
      this.text(label(value), LEFT - 5, y(value) + 4, colors.ink, "right");
    }
    return y;
  }
}

type Range = readonly [low: number, high: number];

/** A surface whose axes are logarithmic. */
export class LogSurface extends Surface {
  private ranges: { readonly x: Range; readonly y: Range } = { x: [1, 10], y: [1, 10] };

  /** Its grid, a word for each line. */
  logAxes(x: Range, y: Range, lines: readonly (readonly [number, string])[], rows: readonly (readonly [number, string])[], { line, soft, ink }: Colors): void {
    this.ranges = { x, y };
    let free = 0;
    for (const [value, words] of lines) {
      const at = this.across(value);
      this.rule(at, TOP, at, this.bottom, line);
      const half = this.context.measureText(words).width / 2;
      const middle = Math.min(at, this.width - half);
      if (middle - half < free) continue;
      this.text(words, middle, this.bottom + 15, soft, "center");
      free = middle + half + 6;
    }
    for (const [value, words] of rows) {
      this.rule(LEFT, this.up(value), this.width - RIGHT, this.up(value), line);
      this.text(words, LEFT - 5, this.up(value) + 4, ink, "right");
    }
  }

  across(value: number): number {
    return LEFT + share(value, this.ranges.x) * (this.width - LEFT - RIGHT);
  }

  up(value: number): number {
    return this.bottom - share(value, this.ranges.y) * (this.bottom - TOP);
  }
}

function share(value: number, [low, high]: Range): number {
  return Math.log(value / low) / Math.log(high / low);
}

/** The item nearest to a pointer, if one is within `reach`. */
export function nearest<T>(items: Iterable<T>, reach: number, distance: (item: T) => number): T | undefined {
  let [best, least]: [T | undefined, number] = [undefined, reach];
  for (const item of items) {
    const away = distance(item);
    if (away < least) [best, least] = [item, away];
  }
  return best;
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
