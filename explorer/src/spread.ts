/** Completion times of many seeds: their median and band, a chart of them, and both sides compared in words. */

import { type Colors, LEFT, nearest, Surface } from "./canvas";
import { NO_NEIGHBOR } from "./settings";
import type { Name } from "./simulations";
import type { Neighbor, Timing } from "./transfer";
import { count, ms } from "./words";

/** Seeds that are simulated where something is random, at most; 1 is the first. */
export const SEEDS = 50;

/** Completion times in ns of the same transfer with several seeds; null: not before the end of the run. */
export type Sample = readonly (number | null)[];

/** A share of a sample lies at or below this; Infinity: that transfer is not complete. */
export function quantile(sample: Sample, share: number): number {
  const sorted = Float64Array.from(sample, (time) => time ?? Infinity).sort();
  const at = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)] ?? NaN, sorted[Math.ceil(at)] ?? NaN];
  return low === high ? low : low + (at % 1) * (high - low);
}

export const median = (sample: Sample): number => quantile(sample, 0.5);

export function completions(timings: readonly Timing[]): Sample {
  return timings.map(({ completionNs }) => completionNs);
}

/** Whether the seed makes a difference. */
export function varies(timings: readonly Timing[]): boolean {
  return timings.some(({ completionNs, neighbor }) => completionNs !== timings[0]?.completionNs || JSON.stringify(neighbor) !== JSON.stringify(timings[0]?.neighbor));
}

const time = (ns: number): string => (Number.isFinite(ns) ? ms(ns) : "not complete");

/** The verdict over all seeds. `one` and `other`: names of the settings. */
export function compared(one: string, other: string, { a, b }: Record<Name, readonly Timing[]>): string {
  const both = Math.min(a.length, b.length);
  const [timesA, timesB] = [completions(a.slice(0, both)), completions(b.slice(0, both))];
  const said = [[one, timesA], [other, timesB]] as const;
  const sides = said.map(([name, sample]) => `${name}: median ${time(median(sample))} (80%: ${time(quantile(sample, 0.1))} to ${time(quantile(sample, 0.9))}).`);
  const differences = timesA.map((timeA, index) => {
    const timeB = timesB[index] ?? Infinity;
    return timeA === timeB || (timeA === null && timeB === Infinity) ? 0 : (timeA ?? Infinity) - timeB;
  });
  const [faster, slower] = [differences.filter((ns) => ns > 0).length, differences.filter((ns) => ns < 0).length];
  const [name, wins] = faster >= slower ? ["B", faster] : ["A", slower];
  const middle = (name === "B" ? 1 : -1) * median(differences);
  const by = Number.isFinite(middle) && middle > 0 ? `, by ${ms(middle)} in the median` : "";
  return `${sides.join(" ")} ${name} is faster in ${wins} of ${both} runs${by}.`;
}

/** What a neighbor's flow pays for A and B; "" if there is none. */
export function harm(name: string, a: readonly Timing[], b: readonly Timing[], alone: readonly Timing[]): string {
  const of = (timings: readonly Timing[]): Neighbor[] => timings.flatMap(({ neighbor }) => (neighbor === null ? [] : [neighbor]));
  const [withA, withB, without] = [of(a), of(b), of(alone)];
  const [first] = withA;
  if (name === NO_NEIGHBOR || first === undefined || withB.length === 0 || without.length === 0) return "";
  const figures = [withA, withB, without].map((found) => median(found.map(({ timeNs }) => timeNs)));
  const [nsA, nsB, nsAlone] = figures as [number, number, number];
  const difference = nsB - nsA;
  const cost =
    Math.abs(difference) < 5e4 || !Number.isFinite(difference)
      ? "no difference between A and B"
      : `${difference > 0 ? "B" : "A"} costs it ${ms(Math.abs(difference))} more (${Math.round((100 * Math.abs(difference)) / Math.min(nsA, nsB))}%)`;
  if (first.packets === null) return `The neighbor's ${name} takes ${time(nsA)} with A, ${time(nsB)} with B, ${time(nsAlone)} without either: ${cost}.`;
  const late = (found: readonly Neighbor[]): number => Math.round(median(found.map(({ late }) => late)));
  return `The neighbor's call has a longest delay of ${time(nsA)} with A, ${time(nsB)} with B, ${time(nsAlone)} without either: ${cost}. Of ${count(first.packets, "packet")} ${late(withA)} come too late or never with A, ${late(withB)} with B.`;
}

const [EDGE, ROW] = [4, 17];
const REACH = 10;

export class SpreadChart extends Surface {
  private times: readonly (readonly [Sample, number])[] = [];

  /** `seeds`: the one that the ladders show, and the one pointed at. */
  draw({ a, b }: Record<Name, readonly Timing[]>, colors: Colors, seeds: readonly (number | undefined)[]): void {
    this.times = [[completions(a), EDGE + ROW / 2], [completions(b), EDGE + 1.5 * ROW]];
    const known = this.times.flatMap(([sample]) => sample.filter((one) => one !== null));
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const right = high + 0.03 * (high - low) + 1;
    this.begin({ fromNs: low - 0.03 * (high - low), toNs: right });
    if (known.length === 0) return;
    this.timeAxis(EDGE, this.height - 20, colors);
    const { context } = this;
    for (const [row, [sample, y]] of this.times.entries()) {
      const color = row === 0 ? colors.a : colors.b;
      this.text(row === 0 ? "A" : "B", LEFT - 5, y + 4, color, "right");
      const [from, middle, to] = [0.1, 0.5, 0.9].map((share) => this.x(Math.min(right, quantile(sample, share)))) as [number, number, number];
      context.fillStyle = colors.panel;
      context.fillRect(from, y - 7, to - from, 14);
      context.fillStyle = color;
      for (const [index, one] of sample.entries()) {
        if (one === null) continue;
        context.fillRect(this.x(one) - 0.75, y - 5, 1.5, 10);
        if (!seeds.includes(index + 1)) continue;
        context.beginPath();
        context.arc(this.x(one), y, 5, 0, 2 * Math.PI);
        context.fill();
      }
      this.rule(middle, y - 8, middle, y + 8, colors.ink);
    }
  }

  /** The seed whose time is nearest to a place, if one is near. */
  nearest(x: number, y: number): number | undefined {
    const all = this.times.flatMap(([sample, at]) => sample.flatMap((one, index) => (one === null ? [] : [{ seed: index + 1, x: this.x(one), y: at }])));
    return nearest(all, REACH, (one) => Math.hypot(one.x - x, (one.y - y) / 2))?.seed;
  }
}

/** Both times with a seed. */
export function example(seed: number, a: number | null | undefined, b: number | null | undefined): string {
  const saved = typeof a !== "number" || typeof b !== "number" || a === b ? "" : `: ${a > b ? "B" : "A"} is ${ms(Math.abs(a - b))} faster`;
  return `Seed ${seed}: A ${time(a ?? Infinity)}, B ${time(b ?? Infinity)}${saved}`;
}
