/** Transfers of both sides: simulated where a plan has changed, and no longer than they are shown. */

import { type Engine, Refused } from "./engine";
import type { Plan } from "./plan";
import { NotStarted, type Timing, timingOf, type Transfer, transferOf } from "./transfer";

export const SIDES = ["a", "b"] as const;
export type Name = (typeof SIDES)[number];

/** A transfer, or why there is none. */
export type Outcome = Transfer | Refused;

const FIRST_NS = 0.5e9;
/** The last packets of a call have arrived this long after its end. */
const CALL_NS = 1e9;
/** A run that was too short is followed by one this number of times as long. */
const LONGER = 2;
/** So far behind the end of a transfer the drawings go, and a little more. */
const SHOWN = 1.05;
/** Segment events of a side that are drawn: a move is to be answered in 50 ms, and a screen has fewer pixels. */
const MOST_EVENTS = 24_000;
/** A run is long enough unless this number of times as much room is left. */
const WORTH_IT = 1.5;

interface Known {
  readonly plan: string;
  readonly seed: number;
  readonly untilNs: number;
  readonly outcome: Outcome;
  readonly events: number;
}

export class Simulations {
  private readonly known: Partial<Record<Name, Known>> = {};
  private untilNs = FIRST_NS;

  constructor(private readonly engine: Engine) {}

  /**
   * The outcome of each plan: until the slower transfer ends, because later traffic cannot change them; or,
   * of transfers with more events than MOST_EVENTS, their beginning.
   */
  of(plans: Partial<Record<Name, Plan>>, seed: number): Partial<Record<Name, Outcome>> {
    const given = SIDES.flatMap((side) => (plans[side] === undefined ? [] : [{ side, plan: plans[side] }]));
    for (let untilNs = this.untilNs; ; ) {
      const found = given.map(({ side, plan }) => ({ side, ...this.simulated(side, plan, seed, untilNs) }));
      const end = Math.max(0, ...found.map(({ outcome }) => endNs(outcome)));
      const room = MOST_EVENTS / Math.max(1, ...found.map(({ events }) => events));
      const isWhole = SHOWN * end <= untilNs || given.every(({ plan }) => shortened(plan, untilNs) === plan);
      const hasBegun = found.every(({ outcome }) => !(outcome instanceof NotStarted));
      if (isWhole || (hasBegun && room < WORTH_IT)) {
        // The next setting is likely to take about as long.
        this.untilNs = isWhole ? nextNs(end, untilNs) : untilNs * Math.min(1, WORTH_IT * room);
        const shown = found.map(({ side, outcome }) => [side, isWhole ? outcome : cut(outcome, untilNs)] as const);
        return Object.fromEntries(shown);
      }
      untilNs *= hasBegun ? Math.min(LONGER, room) : LONGER;
    }
  }

  private simulated(side: Name, plan: Plan, seed: number, untilNs: number): Known {
    const text = JSON.stringify(plan);
    const before = this.known[side];
    const isSame = before?.plan === text && before.seed === seed;
    // A longer run of a complete transfer shows the same.
    if (isSame && (before.untilNs === untilNs || (before.untilNs > untilNs && endNs(before.outcome) < Infinity))) return before;
    let [outcome, events]: [Outcome, number] = [new Refused(""), 0];
    try {
      const records = this.engine.simulate(JSON.stringify(shortened(plan, untilNs)), seed, true);
      events = records.table("segments").length;
      outcome = transferOf(records);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      outcome = error;
    }
    return (this.known[side] = { plan: text, seed, untilNs, outcome, events });
  }
}

/** The times of a plan's transfer and of a neighbor, by its application's number. Throws Refused. */
export function timed(engine: Engine, plan: Plan, seed: number, neighbor?: number, isUpload = false): Timing {
  const [first] = plan.applications;
  // Alone it ends the run; next to other traffic later events are not needed.
  const isAlone = plan.applications.length === 1;
  const endsItself = isAlone && first?.clients === 1 && first.count === 1;
  const callNs = neighbor === undefined ? 0 : (plan.applications[neighbor]?.length_ns ?? -CALL_NS) + CALL_NS;
  for (let untilNs = endsItself ? plan.duration_ns : Math.max(FIRST_NS, callNs); ; untilNs *= LONGER) {
    const shorter = shortened(plan, untilNs);
    const records = engine.simulate(JSON.stringify(shorter), seed, false);
    const timing = timingOf(records, neighbor, !isUpload);
    const isDone = timing.completionNs !== null || (isAlone && callNs > 0);
    if (shorter === plan || (isDone && (neighbor === undefined || timing.neighbor?.timeNs != null))) return timing;
  }
}

/** The plan with an earlier end. */
function shortened(plan: Plan, untilNs: number): Plan {
  return untilNs >= plan.duration_ns ? plan : { ...plan, duration_ns: Math.round(untilNs) };
}

/** A transfer that is not complete there ends at `untilNs`. */
function cut(outcome: Outcome, untilNs: number): Outcome {
  return outcome instanceof Refused || outcome.completionNs !== null ? outcome : { ...outcome, cutNs: untilNs, completionNs: undefined };
}

function nextNs(end: number, untilNs: number): number {
  return end > 0 && end < Infinity ? 1.25 * end : untilNs;
}

function endNs(outcome: Outcome): number {
  if (outcome instanceof Refused) return outcome instanceof NotStarted ? Infinity : 0;
  return outcome.completionNs == null ? Infinity : outcome.startNs + outcome.completionNs;
}
