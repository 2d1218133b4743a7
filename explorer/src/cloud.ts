/** Real paths by RTT and rate, and where the knobs are among them. */

import { type Colors, LEFT, RIGHT, roundNumbers, Surface } from "./canvas";
import type { Side } from "./settings";

export interface PathDot {
  readonly rttMs: number;
  readonly rateBps: number;
  readonly words: string;
}

/** As near as a pointer must come to a dot, in pixels. */
const REACH = 12;
const TOP = 10;

export class Cloud {
  readonly surface: Surface;
  private dots: readonly PathDot[] = [];
  private range: { x: [number, number]; y: [number, number] } = { x: [1, 10], y: [1, 10] };

  constructor(
    canvas: HTMLCanvasElement,
    private readonly mssBytes: number,
  ) {
    this.surface = new Surface(canvas);
  }

  /** `here`: the path that the knobs have. */
  draw(dots: readonly PathDot[], here: { rtt_ms: number; rate_bps: number }, sides: readonly [Side, Side], colors: Colors, chosen: PathDot | undefined): void {
    this.dots = dots;
    this.range = {
      x: extent([...dots.map(({ rttMs }) => rttMs), here.rtt_ms]),
      y: extent([...dots.map(({ rateBps }) => rateBps), here.rate_bps]),
    };
    const { surface } = this;
    surface.begin();
    const { context, width, height } = surface;
    const bottom = height - 22;
    for (const rtt of roundNumbers(...this.range.x)) {
      surface.rule(this.x(rtt), TOP, this.x(rtt), bottom, colors.line);
      surface.text(`${rtt} ms`, this.x(rtt), bottom + 15, colors.soft, "center");
    }
    for (const rate of roundNumbers(...this.range.y).filter((value) => /^[15]/.test(String(value)))) {
      surface.rule(LEFT, this.y(rate), width - RIGHT, this.y(rate), colors.line);
      surface.text(rateWords(rate), LEFT - 5, this.y(rate) + 4, colors.ink, "right");
    }
    surface.clipped(TOP, bottom, undefined, () => {
      context.fillStyle = colors.soft;
      for (const dot of dots) context.fillRect(this.x(dot.rttMs) - 1.5, this.y(dot.rateBps) - 1.5, 3, 3);
      for (const [index, { iw }] of sides.entries()) if (iw > 0) this.filled(iw, index === 0 ? colors.a : colors.b, index === 0 ? [] : [6, 3]);
      context.lineWidth = 2;
      context.strokeStyle = colors.ink;
      const [x, y] = [this.x(here.rtt_ms), this.y(here.rate_bps)];
      surface.rule(x - 8, y, x + 8, y, colors.ink);
      surface.rule(x, y - 8, x, y + 8, colors.ink);
      if (chosen === undefined) return;
      context.beginPath();
      context.arc(this.x(chosen.rttMs), this.y(chosen.rateBps), 6, 0, 2 * Math.PI);
      context.strokeStyle = colors.alarm;
      context.lineWidth = 2;
      context.stroke();
    });
  }

  /** The paths that carry just a window in each RTT: those above it wait for ACKs. */
  private filled(segments: number, color: string, dash: number[]): void {
    const { context } = this.surface;
    const rate = (rttMs: number): number => (segments * this.mssBytes * 8e3) / rttMs;
    const [low, high] = this.range.x;
    context.beginPath();
    context.moveTo(this.x(low), this.y(rate(low)));
    context.lineTo(this.x(high), this.y(rate(high)));
    context.setLineDash(dash);
    context.lineWidth = 2;
    context.strokeStyle = color;
    context.stroke();
    context.setLineDash([]);
  }

  private x(rttMs: number): number {
    return LEFT + share(rttMs, this.range.x) * (this.surface.width - LEFT - RIGHT);
  }

  private y(rateBps: number): number {
    const bottom = this.surface.height - 22;
    return bottom - share(rateBps, this.range.y) * (bottom - TOP);
  }

  /** The index of the dot that is nearest to a place on the canvas, if one is near. */
  nearest(x: number, y: number): number | undefined {
    let [best, distance]: [number | undefined, number] = [undefined, REACH];
    for (const [index, { rttMs, rateBps }] of this.dots.entries()) {
      const away = Math.hypot(this.x(rttMs) - x, this.y(rateBps) - y);
      if (away < distance) [best, distance] = [index, away];
    }
    return best;
  }
}

export function rateWords(rateBps: number): string {
  return rateBps < 1e9 ? `${Number((rateBps / 1e6).toPrecision(3))} Mb/s` : `${Number((rateBps / 1e9).toPrecision(3))} Gb/s`;
}

function share(value: number, [low, high]: [number, number]): number {
  return Math.log(value / low) / Math.log(high / low);
}

/** A little more than the positive values span. */
function extent(values: number[]): [number, number] {
  const positive = values.filter((value) => value > 0);
  return positive.length === 0 ? [1, 10] : [Math.min(...positive) / 1.3, Math.max(...positive) * 1.3];
}
