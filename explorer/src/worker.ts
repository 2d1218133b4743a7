/** Completion times in the background, for which no knob has to wait. */

import type { Asked, Told } from "./background";
import { Engine } from "./engine";
import { timed } from "./simulations";

let engine: Engine | undefined;

addEventListener("message", ({ data: { module, jobs, budgetMs, least } }: MessageEvent<Asked>) => {
  engine ??= new Engine(module);
  const began = performance.now();
  for (const [index, { plan, seed, neighbor, isUpload }] of jobs.entries()) {
    if (index >= least && performance.now() - began > budgetMs) break;
    const told: Told = { index, timing: timed(engine, plan, seed, neighbor, isUpload) };
    postMessage(told);
  }
  postMessage(null);
});
