/** Real paths by RTT and rate, and where the knobs are among them. */

import { type Colors, DASH, LogSurface, nearest, roundNumbers, TOP } from "./canvas";
import type { Side } from "./settings";

export interface PathDot {
  readonly rttMs: number;
  readonly rateBps: number;
  readonly words: string;
}

/** As near as a pointer must come to a dot, in pixels. */
const REACH = 12;

export class Cloud extends LogSurface {
  private dots: readonly PathDot[] = [];

  constructor(
    canvas: HTMLCanvasElement,
    private readonly mssBytes: number,
  ) {
    super(canvas);
  }

  /** `here`: the path that the knobs have. */
  draw(dots: readonly PathDot[], here: { rtt_ms: number; rate_bps: number }, sides: readonly [Side, Side], colors: Colors, chosen: PathDot | undefined): void {
    this.dots = dots;
    const [x, y] = [extent([...dots.map(({ rttMs }) => rttMs), here.rtt_ms]), extent([...dots.map(({ rateBps }) => rateBps), here.rate_bps])];
    this.begin();
    const rates = roundNumbers(...y).filter((value) => /^[15]/.test(String(value)));
    this.logAxes(x, y, roundNumbers(...x).map((rtt) => [rtt, `${rtt} ms`]), rates.map((rate) => [rate, (rate / 1e6).toLocaleString("en")]), colors);
    this.clipped(TOP, this.bottom, () => {
      const { context } = this;
      context.fillStyle = colors.soft;
      for (const dot of dots) context.fillRect(this.across(dot.rttMs) - 1.5, this.up(dot.rateBps) - 1.5, 3, 3);
      // Paths on the line carry just the window in each RTT; those above it wait for ACKs.
      for (const [index, { iw }] of sides.entries()) {
        if (iw === 0) continue;
        context.beginPath();
        for (const rtt of x) context.lineTo(this.across(rtt), this.up((iw * this.mssBytes * 8e3) / rtt));
        this.stroke(index === 0 ? colors.a : colors.b, 2, index === 0 ? [] : DASH);
      }
      const [across, up] = [this.across(here.rtt_ms), this.up(here.rate_bps)];
      this.rule(across - 8, up, across + 8, up, colors.ink);
      this.rule(across, up - 8, across, up + 8, colors.ink);
      if (chosen === undefined) return;
      context.beginPath();
      context.arc(this.across(chosen.rttMs), this.up(chosen.rateBps), 6, 0, 2 * Math.PI);
      this.stroke(colors.alarm, 2);
    });
  }

  /** The index of the dot that is nearest to a place on the canvas, if one is near. */
  nearest(x: number, y: number): number | undefined {
    return nearest(this.dots.keys(), REACH, (index) => Math.hypot(this.across(this.dots[index]!.rttMs) - x, this.up(this.dots[index]!.rateBps) - y));
  }
}

/** A little more than the positive values span. */
function extent(values: number[]): [number, number] {
  const positive = values.filter((value) => value > 0);
  return positive.length === 0 ? [1, 10] : [Math.min(...positive) / 1.3, Math.max(...positive) * 1.3];
}
