/** A captured response next to both models: which bytes passed the place of the capture when. */

import { type Mark, openedNs, passed } from "./capture";
import { type Colors, DASH, nearest, Surface, type View } from "./canvas";
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
    const range = `bytes ${(from + 1).toLocaleString("en")} to ${to.toLocaleString("en")}`;
    const what = isData ? `${isLost === true ? "lost" : "data"}, ${range}` : `ACK of ${count(to, "byte")}`;
    const captured = `Captured: ${what}, at ${ms(timeNs)}.`;
    const at = this.b.values.findIndex((value) => value >= to);
    if (!isData || isLost === true || at < 0) return captured;
    const late = (this.b.timeNs[at] ?? 0) - timeNs;
    return `${captured} With B they pass ${ms(Math.abs(late))} ${late > 0 ? "later" : "earlier"}.`;
  }
}

export class SequenceChart extends Surface {
  private captured: Captured | undefined;
  private y = (value: number): number => value;

  draw(captured: Captured, view: View, colors: Colors, chosen: Mark | undefined): void {
    this.captured = captured;
    this.begin(view);
    const y = (this.y = this.axes(captured.mostBytes, bytes, colors));
    this.clipped(0, this.bottom + 4, () => {
      this.steps(captured.a, y, colors.a, []);
      this.steps(captured.b, y, colors.b, DASH);
      const acks = captured.marks.filter(({ isData }) => !isData);
      this.steps({ timeNs: acks.map(({ timeNs }) => timeNs), values: acks.map(({ to }) => to) }, y, colors.soft, [2, 2]);
      for (const mark of captured.marks) if (mark.isData) this.tick(mark, mark.isLost === true ? colors.alarm : colors.ink, mark.isLost === true ? 4 : 2);
      if (chosen !== undefined) this.tick(chosen, colors.alarm, 5);
    });
  }

  private tick({ timeNs, isData, from, to }: Mark, color: string, lineWidth: number): void {
    const [x, end] = [this.x(timeNs), this.y(to)];
    this.context.beginPath();
    this.context.moveTo(x, end);
    // At least so high that it is seen.
    this.context.lineTo(x, Math.max(isData ? this.y(from) : 0, end + 4));
    this.stroke(color, lineWidth);
  }

  /** The mark that is nearest to a point, if one is near. */
  nearest(x: number, y: number): Mark | undefined {
    const middle = ({ isData, from, to }: Mark): number => this.y(isData ? (from + to) / 2 : to);
    return nearest(this.captured?.marks ?? [], REACH, (mark) => Math.hypot(this.x(mark.timeNs) - x, middle(mark) - y));
  }
}
