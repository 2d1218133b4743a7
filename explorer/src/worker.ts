/** Completion times in the background, for which no knob has to wait. */

import type { Asked, Told } from "./background";
import { Engine } from "./engine";
import { timed } from "./simulations";

let engine: Engine | undefined;

addEventListener("message", ({ data: { module, plans, seed } }: MessageEvent<Asked>) => {
  engine ??= new Engine(module);
  for (const [index, plan] of plans.entries()) {
    const told: Told = { index, completionNs: timed(engine, plan, seed) };
    postMessage(told);
  }
});
