/** A quantity of both sides over time, as steps. */

import { type Colors, LEFT, RIGHT, Surface, ticks, type View } from "./canvas";
import type { Steps } from "./steps";

export class Lines {
  readonly surface: Surface;

  constructor(
    canvas: HTMLCanvasElement,
    private readonly label: (value: number) => string,
  ) {
    this.surface = new Surface(canvas);
  }

  draw(a: Steps | undefined, b: Steps | undefined, view: View, colors: Colors, cursorNs: number | undefined, own?: Steps): void {
    const { surface } = this;
    surface.begin();
    const { context, width, height } = surface;
    const [top, bottom] = [10, height - 22];
    const most = Math.max(1, highest(a), highest(b), highest(own));
    const y = (value: number): number => bottom - (value / (most * 1.06)) * (bottom - top);
    surface.timeAxis(view, top, bottom, colors);
    for (const value of ticks(0, most, Math.max(2, Math.floor((bottom - top) / 30)))) {
      context.strokeStyle = colors.line;
      context.beginPath();
      context.moveTo(LEFT, Math.round(y(value)) + 0.5);
      context.lineTo(width - RIGHT, Math.round(y(value)) + 0.5);
      context.stroke();
      surface.text(this.label(value), LEFT - 5, y(value) + 4, colors.ink, "right");
    }
    surface.clipped(0, bottom + 2, view, () => {
      if (a !== undefined) surface.steps(a, view, y, colors.a, []);
      if (b !== undefined) surface.steps(b, view, y, colors.b, [6, 3]);
      if (own !== undefined) surface.steps(own, view, y, colors.ink, [2, 3]);
      if (cursorNs === undefined) return;
      context.setLineDash([]);
      context.strokeStyle = colors.ink;
      context.beginPath();
      context.moveTo(surface.x(cursorNs, view), top);
      context.lineTo(surface.x(cursorNs, view), bottom);
      context.stroke();
    });
  }
}

function highest(steps: Steps | undefined): number {
  return steps === undefined ? 0 : steps.values.reduce((one, other) => Math.max(one, other), 0);
}
