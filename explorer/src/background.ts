/** The worker that computes completion times while the page answers. */

import type { Plan } from "./plan";

export interface Asked {
  readonly module: WebAssembly.Module;
  readonly plans: readonly Plan[];
  readonly seed: number;
}

/** The completion time of a plan by its place among those asked; null: not before the end of the run. */
export interface Told {
  readonly index: number;
  readonly completionNs: number | null;
}

export class Background {
  private readonly script: string;
  private worker: Worker | undefined;
  private left = 0;

  constructor(
    private readonly module: WebAssembly.Module,
    script: string,
  ) {
    this.script = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  }

  /** Has each plan timed, and `answered` called for each. Earlier requests are dropped. */
  ask(plans: readonly Plan[], seed: number, answered: (told: Told) => void): void {
    this.stop();
    if (plans.length === 0) return;
    this.worker ??= new Worker(this.script);
    this.left = plans.length;
    this.worker.onmessage = ({ data }: MessageEvent<Told>) => {
      this.left--;
      answered(data);
    };
    const asked: Asked = { module: this.module, plans, seed };
    this.worker.postMessage(asked);
  }

  /** Ends unfinished work. */
  stop(): void {
    if (this.left === 0) return;
    this.worker?.terminate();
    [this.worker, this.left] = [undefined, 0];
  }
}
