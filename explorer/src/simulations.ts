/** Transfers of both sides: simulated where a plan has changed, and no longer than they are shown. */

import { type Engine, Refused } from "./engine";
import type { Plan } from "./plan";
import { completionNs, NotStarted, type Transfer, transferOf } from "./transfer";

export const SIDES = ["a", "b"] as const;
export type Name = (typeof SIDES)[number];

/** A transfer, or why there is none. */
export type Outcome = Transfer | Refused;

const FIRST_NS = 2e9;
/** A run that was too short is followed by one so many times as long. */
const LONGER = 4;
/** So far behind the end of a transfer the drawings go, and a little more. */
const SHOWN = 1.05;

interface Known {
  readonly plan: string;
  readonly seed: number;
  readonly untilNs: number;
  readonly outcome: Outcome;
}

export class Simulations {
  private readonly known: Partial<Record<Name, Known>> = {};
  private untilNs = FIRST_NS;

  constructor(private readonly engine: Engine) {}

  /** The outcome of each plan. What other traffic does after the transfers is not simulated: it cannot change them. */
  of(plans: Partial<Record<Name, Plan>>, seed: number): Partial<Record<Name, Outcome>> {
    const given = SIDES.flatMap((side) => (plans[side] === undefined ? [] : [{ side, plan: plans[side] }]));
    for (let untilNs = this.untilNs; ; untilNs *= LONGER) {
      const outcomes = given.map(({ side, plan }) => [side, this.outcome(side, plan, seed, untilNs)] as const);
      const end = Math.max(0, ...outcomes.map(([, outcome]) => endNs(outcome)));
      const isWhole = given.every(({ plan }) => shortened(plan, untilNs) === plan);
      if (!isWhole && SHOWN * end > untilNs) continue;
      // The next setting is likely to take about as long.
      if (end > 0 && end < Infinity) this.untilNs = 2 ** Math.ceil(Math.log2(2 * end));
      return Object.fromEntries(outcomes);
    }
  }

  /** The completion time of a plan's transfer; null: not before the end of the run. Throws Refused. */
  completionNs(plan: Plan, seed: number): number | null {
    for (let untilNs = this.untilNs; ; untilNs *= LONGER) {
      const shorter = shortened(plan, untilNs);
      const time = completionNs(this.engine.simulate(JSON.stringify(shorter), seed, false));
      if (time !== null || shorter === plan) return time;
    }
  }

  private outcome(side: Name, plan: Plan, seed: number, untilNs: number): Outcome {
    const text = JSON.stringify(plan);
    const before = this.known[side];
    if (before?.plan === text && before.seed === seed && before.untilNs >= untilNs) return before.outcome;
    const outcome = this.simulated(shortened(plan, untilNs), seed);
    this.known[side] = { plan: text, seed, untilNs, outcome };
    return outcome;
  }

  private simulated(plan: Plan, seed: number): Outcome {
    try {
      return transferOf(this.engine.simulate(JSON.stringify(plan), seed, true));
    } catch (error) {
      if (error instanceof Refused) return error;
      throw error;
    }
  }
}

/** The plan with an earlier end; a transfer that is alone is simulated whole, which takes no longer than it lasts. */
function shortened(plan: Plan, untilNs: number): Plan {
  const [first] = plan.applications;
  const isAlone = plan.applications.length === 1 && first?.clients === 1 && first.count === 1;
  return isAlone || untilNs >= plan.duration_ns ? plan : { ...plan, duration_ns: untilNs };
}

function endNs(outcome: Outcome): number {
  if (outcome instanceof Refused) return outcome instanceof NotStarted ? Infinity : 0;
  return outcome.completionNs === null ? Infinity : outcome.startNs + outcome.completionNs;
}
