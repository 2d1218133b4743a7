/** The worker that computes completion times while the page answers. */

import type { Plan } from "./plan";
import type { Timing } from "./transfer";

/** A transfer to be timed: the first application's; with it, or alone, that of the application with this number. */
export interface Job {
  readonly plan: Plan;
  readonly seed: number;
  readonly neighbor?: number;
  /** Of a call that way is measured which the first application's data goes. */
  readonly isUpload?: boolean;
}

export interface Asked {
  readonly module: WebAssembly.Module;
  readonly jobs: readonly Job[];
  /** After this time no job begins, except for the first `least` of them. */
  readonly budgetMs: number;
  readonly least: number;
}

/** A job, and what its times are given to. */
export interface Awaited extends Job {
  readonly into: (timing: Timing) => void;
}

/** The times of a job by its place among those asked. */
export interface Told {
  readonly index: number;
  readonly timing: Timing;
}

export class Background {
  private readonly script: string;
  private worker: Worker | undefined;
  private isBusy = false;

  constructor(
    private readonly module: WebAssembly.Module,
    script: string,
  ) {
    this.script = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  }

  /** Has each job timed, and `finished` called at the end. Earlier requests are dropped. */
  ask(awaited: readonly Awaited[], finished: () => void, budgetMs = Infinity, least = 0): void {
    this.stop();
    this.worker ??= new Worker(this.script);
    this.isBusy = true;
    this.worker.onmessage = ({ data }: MessageEvent<Told | null>) => {
      if (data !== null) return awaited[data.index]?.into(data.timing);
      this.isBusy = false;
      finished();
    };
    const jobs = awaited.map(({ into, ...job }) => job);
    const asked: Asked = { module: this.module, jobs, budgetMs, least };
    this.worker.postMessage(asked);
  }

  /** Ends unfinished work. */
  stop(): void {
    if (!this.isBusy) return;
    this.worker?.terminate();
    [this.worker, this.isBusy] = [undefined, false];
  }
}
