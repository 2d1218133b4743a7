/** A quantity of both sides over time, as steps. */

import { type Colors, DASH, Surface, TOP, type View } from "./canvas";
import type { Steps } from "./steps";

export class Lines extends Surface {
  constructor(
    canvas: HTMLCanvasElement,
    private readonly words: (value: number) => string,
  ) {
    super(canvas);
  }

  draw(a: Steps | undefined, b: Steps | undefined, view: View, colors: Colors, cursorNs: number | undefined, own?: Steps): void {
    this.begin(view);
    if (a === undefined && b === undefined) return;
    const given = [[a, colors.a, []], [b, colors.b, DASH], [own, colors.ink, [2, 3]]] as const;
    const most = given.reduce((most, [steps]) => (steps?.values ?? []).reduce((one, other) => Math.max(one, other), most), 1);
    const y = this.axes(most, this.words, colors);
    this.clipped(0, this.bottom + 2, () => {
      for (const [steps, color, dash] of given) if (steps !== undefined) this.steps(steps, y, color, dash);
      if (cursorNs !== undefined) this.rule(this.x(cursorNs), TOP, this.x(cursorNs), this.bottom, colors.ink);
    });
  }
}
