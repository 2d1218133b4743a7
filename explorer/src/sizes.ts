/** The completion time of transfers of every size, for both settings: it goes up in steps, a round trip each. */

import { type Colors, DASH, LEFT, LogSurface, RIGHT, roundNumbers, TOP } from "./canvas";
import type { Name } from "./simulations";
import { median, quantile, type Sample } from "./spread";
import { bytes, ms } from "./words";

/** Sizes from 1 kB to 10 MB, alike in ratio; fewer where each is simulated with several seeds. */
export const SIZES: readonly number[] = Array.from({ length: 121 }, (_, index) => Math.round(1000 * 10 ** (index / 30)));
export const FEWER_SIZES: readonly number[] = SIZES.filter((_, index) => index % 4 === 0);

/** An observed transfer. */
export interface Dot {
  readonly bytes: number;
  readonly completionNs: number;
}

/** Completion times by the index of the size, as far as they are computed: one for each seed. */
export type Times = (number | null)[][];

export class SizeChart extends LogSurface {
  private sizes: readonly number[] = SIZES;

  /** `plain`: the times without the TLS handshake, where there is one. */
  draw(sizes: readonly number[], { a, b }: Record<Name, Times>, plain: Record<Name, Times>, size: number, colors: Colors, cursor: number | undefined, dots: readonly Dot[]): void {
    this.sizes = sizes;
    this.begin();
    const known = [...[a, b, plain.a, plain.b].flat(2), ...dots.map(({ completionNs }) => completionNs)].filter((time) => time !== null);
    if (known.length === 0) return;
    const [low, high] = [Math.min(...known) / 1.2, Math.max(...known) * 1.2];
    const decades = [1e3, 1e4, 1e5, 1e6, 1e7].map((size) => [size, bytes(size)] as const);
    const times = roundNumbers(low, high).map((time) => [time, time < 1e9 ? `${time / 1e6} ms` : `${time / 1e9} s`] as const);
    this.logAxes([1e3, 1e7], [low, high], decades, times, colors);
    this.clipped(0, this.bottom + 2, () => {
      for (const [times, color] of [[a, colors.a], [b, colors.b]] as const) this.band(times, color);
      for (const [times, width] of [[plain, 0.8], [{ a, b }, 2]] as const) {
        this.line(times.a, colors.a, [], width);
        this.line(times.b, colors.b, DASH, width);
      }
      for (const [at, color] of [[size, colors.soft], [sizes[cursor ?? -1], colors.ink]] as const) if (at !== undefined) this.rule(this.across(at), TOP, this.across(at), this.bottom, color);
      this.context.fillStyle = colors.ink;
      for (const { bytes: size, completionNs } of dots) this.context.fillRect(this.across(size) - 2.5, this.up(completionNs) - 2.5, 5, 5);
    });
  }

  /** The index of the size that is nearest to a place on the canvas. */
  indexAt(x: number): number {
    const share = (x - LEFT) / (this.width - LEFT - RIGHT);
    return Math.max(0, Math.min(this.sizes.length - 1, Math.round(share * (this.sizes.length - 1))));
  }

  private line(times: Times, color: string, dash: readonly number[], width: number): void {
    const { context } = this;
    context.beginPath();
    let isDrawn = false;
    times.forEach((sample, index) => {
      const time = median(sample);
      if (Number.isFinite(time)) context[isDrawn ? "lineTo" : "moveTo"](this.across(this.sizes[index] ?? 0), this.up(time));
      isDrawn = Number.isFinite(time);
    });
    this.stroke(color, width, dash);
  }

  /** Between the 10th and the 90th percentile of several seeds. */
  private band(times: Times, color: string): void {
    const { context } = this;
    const full = times.flatMap((sample, index) => (sample.length > 1 ? [[this.across(this.sizes[index] ?? 0), sample] as const] : []));
    const edge = (sample: Sample, share: number): number => Math.max(0, this.up(Math.min(1e12, quantile(sample, share))));
    context.beginPath();
    for (const [x, sample] of full) context.lineTo(x, edge(sample, 0.1));
    for (const [x, sample] of full.reverse()) context.lineTo(x, edge(sample, 0.9));
    context.globalAlpha = 0.2;
    context.fillStyle = color;
    context.fill();
    context.globalAlpha = 1;
  }
}

/** Both times of a size, the time that the faster one saves, and the times without the TLS handshake; medians of several seeds. */
export function comparison(index: number, sizes: readonly number[], { a, b }: Record<Name, Times>, plain: Record<Name, Times>): string {
  const [one, other] = [median(a[index] ?? []), median(b[index] ?? [])];
  const without = (["a", "b"] as const).flatMap((side) => {
    const time = median(plain[side][index] ?? []);
    return Number.isFinite(time) ? [`${side.toUpperCase()} ${ms(time)}`] : [];
  });
  const times = ([["A", one], ["B", other]] as const).map(([name, time]) => `${name} ${Number.isNaN(time) ? "not simulated yet" : Number.isFinite(time) ? ms(time) : "not complete"}`);
  const saved = !Number.isFinite(one - other) || one === other ? "" : `: ${one > other ? "B" : "A"} is ${ms(Math.abs(one - other))} faster`;
  const rest = without.length === 0 ? "" : ` Without the TLS handshake: ${without.join(", ")}.`;
  const seeds = a[index]?.length ?? 0;
  return `${bytes(sizes[index] ?? 0)}${seeds > 1 ? `, medians of ${seeds} seeds` : ""}: ${times.join(", ")}${saved}.${rest}`;
}
