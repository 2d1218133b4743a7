/** The completion time of transfers of every size, for both settings: it goes up in steps, a round trip each. */

import { type Colours, LEFT, RIGHT, roundNumbers, Surface } from "./canvas";
import type { Name } from "./simulations";
import { bytes, ms } from "./words";

/** Sizes from 1 kB to 10 MB, alike in ratio. */
export const SIZES: readonly number[] = Array.from({ length: 121 }, (_, index) => Math.round(1000 * 10 ** (index / 30)));

/** An observed transfer. */
export interface Dot {
  readonly bytes: number;
  readonly completionNs: number;
}

/** Completion times in ns by the index of the size; null: not before the end of the run; undefined: not computed yet. */
export type Times = (number | null)[];

export class SizeChart {
  readonly surface: Surface;

  constructor(canvas: HTMLCanvasElement) {
    this.surface = new Surface(canvas);
  }

  /** `plain`: the times without the TLS handshake, where there is one. */
  draw({ a, b }: Record<Name, Times>, plain: Record<Name, Times>, size: number, colours: Colours, cursor: number | undefined, dots: readonly Dot[]): void {
    const { surface } = this;
    surface.begin();
    const { context, width, height } = surface;
    const [top, bottom] = [10, height - 22];
    const known = [...a, ...b, ...plain.a, ...plain.b, ...dots.map(({ completionNs }) => completionNs)].filter((time) => time !== null);
    if (known.length === 0) return;
    const [low, high] = [Math.min(...known) / 1.2, Math.max(...known) * 1.2];
    const y = (timeNs: number): number => bottom - (Math.log(timeNs / low) / Math.log(high / low)) * (bottom - top);
    for (const decade of [1e3, 1e4, 1e5, 1e6, 1e7]) {
      surface.rule(this.x(decade), top, this.x(decade), bottom, colours.grid);
      surface.text(bytes(decade), this.x(decade), bottom + 15, colours.faint, decade === 1e7 ? "right" : "center");
    }
    for (const time of roundNumbers(low, high)) {
      surface.rule(LEFT, y(time), width - RIGHT, y(time), colours.grid);
      surface.text(time < 1e9 ? `${time / 1e6} ms` : `${time / 1e9} s`, LEFT - 5, y(time) + 4, colours.text, "right");
    }
    surface.clipped(0, bottom + 2, () => {
      this.line(plain.a, y, colours.a, [], 0.8);
      this.line(plain.b, y, colours.b, [6, 3], 0.8);
      this.line(a, y, colours.a, []);
      this.line(b, y, colours.b, [6, 3]);
      surface.rule(this.x(size), top, this.x(size), bottom, colours.faint);
      if (cursor !== undefined) surface.rule(this.x(SIZES[cursor] ?? 0), top, this.x(SIZES[cursor] ?? 0), bottom, colours.text);
      context.fillStyle = colours.text;
      for (const { bytes: size, completionNs } of dots) context.fillRect(this.x(size) - 2.5, y(completionNs) - 2.5, 5, 5);
    });
  }

  /** The index of the size that is nearest to a place on the canvas. */
  indexAt(x: number): number {
    const share = (x - LEFT) / (this.surface.width - LEFT - RIGHT);
    return Math.max(0, Math.min(SIZES.length - 1, Math.round(share * (SIZES.length - 1))));
  }

  private x(size: number): number {
    return LEFT + (Math.log10(size / 1e3) / 4) * (this.surface.width - LEFT - RIGHT);
  }

  private line(times: Times, y: (timeNs: number) => number, colour: string, dash: number[], width = 2): void {
    const { context } = this.surface;
    context.beginPath();
    let isDrawn = false;
    times.forEach((time, index) => {
      if (time !== null) context[isDrawn ? "lineTo" : "moveTo"](this.x(SIZES[index] ?? 0), y(time));
      isDrawn = time !== null;
    });
    context.setLineDash(dash);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
    context.setLineDash([]);
  }
}

/** Both times of a size, the time that the faster one saves, and the times without the TLS handshake. */
export function comparison(index: number, { a, b }: Record<Name, Times>, plain: Record<Name, Times>): string {
  const [one, other] = [a[index] ?? null, b[index] ?? null];
  const without = (["a", "b"] as const).flatMap((side) => {
    const time = plain[side][index];
    return typeof time === "number" ? [`${side.toUpperCase()} ${ms(time)}`] : [];
  });
  const times = [["A", one], ["B", other]].map(([name, time]) => `${name} ${typeof time === "number" ? ms(time) : "not complete"}`);
  const saved = one === null || other === null || one === other ? "" : `: ${one > other ? "B" : "A"} is ${ms(Math.abs(one - other))} faster`;
  const rest = without.length === 0 ? "" : ` Without the TLS handshake: ${without.join(", ")}.`;
  return `${bytes(SIZES[index] ?? 0)}: ${times.join(", ")}${saved}.${rest}`;
}
