/** A captured response next to both models: which bytes passed the place of the capture when. */

import { type Mark, openedNs, passed } from "./capture";
import { type Colors, LEFT, RIGHT, Surface, ticks, type View } from "./canvas";
import type { Steps } from "./steps";
import type { Transfer } from "./transfer";
import { bytes, count, ms } from "./words";

/** As near as a pointer must come to a mark, in pixels. */
const REACH = 20;

/** The contents of the chart: the capture's segments on the models' time, and the models as seen from there. */
export class Captured {
  readonly marks: readonly Mark[];
  readonly a: Steps;
  readonly b: Steps;
  readonly mostBytes: number;
  /** Of a qlog, in segments of the simulation. */
  readonly cwnd: Steps | undefined;

  /** `marks` count from the client's SYN, which passes that end at the same time in both models. */
  constructor(marks: readonly Mark[], isAtClient: boolean, a: Transfer, b: Transfer, cwnd: Steps | undefined, segmentBytes: number) {
    const opened = openedNs(b, isAtClient);
    this.marks = marks.map((mark) => ({ ...mark, timeNs: mark.timeNs + opened }));
    this.cwnd = cwnd && { timeNs: cwnd.timeNs.map((time) => time + opened), values: cwnd.values.map((bytes) => bytes / segmentBytes) };
    [this.a, this.b] = [passed(a, isAtClient), passed(b, isAtClient)];
    this.mostBytes = marks.reduce((most, { to }) => Math.max(most, to), Math.max(1, this.b.values.at(-1) ?? 0));
  }

  get endNs(): number {
    return this.marks.at(-1)?.timeNs ?? 0;
  }

  /** The kind of a mark, and the time when the same bytes pass there in the model B. */
  story({ timeNs, isData, isLost, from, to }: Mark): string {
    const what = isLost === true ? `lost, bytes ${(from + 1).toLocaleString("en")} to ${to.toLocaleString("en")}` : isData ? `data, bytes ${(from + 1).toLocaleString("en")} to ${to.toLocaleString("en")}` : `ACK of ${count(to, "byte")}`;
    const captured = `Captured: ${what}, at ${ms(timeNs)}.`;
    const at = this.b.values.findIndex((value) => value >= to);
    if (!isData || isLost === true || at < 0) return captured;
    const late = (this.b.timeNs[at] ?? 0) - timeNs;
    return `${captured} With B they pass ${ms(Math.abs(late))} ${late > 0 ? "later" : "earlier"}.`;
  }
}

export class SequenceChart {
  readonly surface: Surface;
  private captured: Captured | undefined;
  private view: View = { fromNs: 0, toNs: 1 };

  constructor(canvas: HTMLCanvasElement) {
    this.surface = new Surface(canvas);
  }

  draw(captured: Captured, view: View, colors: Colors, chosen: Mark | undefined): void {
    [this.captured, this.view] = [captured, view];
    const { surface } = this;
    surface.begin();
    const { context, width, height } = surface;
    const [top, bottom] = [10, height - 22];
    surface.timeAxis(view, top, bottom, colors);
    for (const value of ticks(0, captured.mostBytes, 5)) {
      context.strokeStyle = colors.line;
      context.beginPath();
      context.moveTo(LEFT, Math.round(this.y(value)) + 0.5);
      context.lineTo(width - RIGHT, Math.round(this.y(value)) + 0.5);
      context.stroke();
      surface.text(bytes(value), LEFT - 5, this.y(value) + 4, colors.ink, "right");
    }
    surface.clipped(0, bottom + 4, view, () => {
      surface.steps(captured.a, view, (value) => this.y(value), colors.a, []);
      surface.steps(captured.b, view, (value) => this.y(value), colors.b, [6, 3]);
      const acks = captured.marks.filter(({ isData }) => !isData);
      const acknowledged = { timeNs: acks.map(({ timeNs }) => timeNs), values: acks.map(({ to }) => to) };
      surface.steps(acknowledged, view, (value) => this.y(value), colors.soft, [2, 2]);
      for (const mark of captured.marks) if (mark.isData) this.tick(mark, mark.isLost === true ? colors.alarm : colors.ink, mark.isLost === true ? 4 : 2);
      if (chosen !== undefined) this.tick(chosen, colors.alarm, 5);
    });
  }

  private tick({ timeNs, isData, from, to }: Mark, color: string, lineWidth: number): void {
    const { context } = this.surface;
    const x = this.surface.x(timeNs, this.view);
    const end = this.y(to);
    context.strokeStyle = color;
    context.lineWidth = lineWidth;
    context.beginPath();
    context.moveTo(x, end);
    // At least so high that it is seen.
    context.lineTo(x, Math.max(isData ? this.y(from) : 0, end + 4));
    context.stroke();
  }

  private y(value: number): number {
    const [top, bottom] = [10, this.surface.height - 22];
    return bottom - (value / ((this.captured?.mostBytes ?? 1) * 1.06)) * (bottom - top);
  }

  /** The mark that is nearest to a point, if one is near. */
  nearest(x: number, y: number): Mark | undefined {
    let [best, distance]: [Mark | undefined, number] = [undefined, REACH];
    for (const mark of this.captured?.marks ?? []) {
      const away = Math.hypot(this.surface.x(mark.timeNs, this.view) - x, this.y((mark.from * Number(mark.isData) + mark.to) / (mark.isData ? 2 : 1)) - y);
      if (away < distance) [best, distance] = [mark, away];
    }
    return best;
  }
}
