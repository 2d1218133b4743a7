/** For the build: what the page opens with, so that it is drawn before the simulator has come. */

import { Engine } from "./engine";
import type { Start } from "./plan";
import { opening, write } from "./settings";
import { type Outcome, type Name, SIDES, Simulations } from "./simulations";

export function first(module: BufferSource, start: Start): Partial<Record<Name, Outcome>> {
  const { path, ...sides } = opening(start);
  const plans = Object.fromEntries(SIDES.map((side) => [side, write(start, path, sides[side])]));
  return new Simulations(new Engine(new WebAssembly.Module(module))).of(plans, path.seed);
}
