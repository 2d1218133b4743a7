/** Sender, bottleneck queue and receiver on one time axis, with a line for each segment. */

import { type Colors, LEFT, nearest, RIGHT, Surface, type View } from "./canvas";
import { valueAt } from "./steps";
import type { Segment, Transfer } from "./transfer";

/** Above the sender: the names of the rounds. */
const TOP = 20;
/** As near as a pointer must come to a line, in pixels. */
const REACH = 14;
/** Data segments in view per pixel of width, above which they are drawn as a density; and the width of its bins. */
const [MOST_PER_PIXEL, BIN] = [0.7, 3];
/** Of a segment's line: sender, into the queue, out of it, receiver. */
const MOST_POINTS = 4;

export class Ladder extends Surface {
  private transfer: Transfer | undefined;
  private at: [number, number, number, number] = [0, 0, 0, 0];
  private readonly points = new Float64Array(2 * MOST_POINTS);

  draw(transfer: Transfer | undefined, view: View, own: string, colors: Colors, chosen: Segment | undefined): void {
    this.transfer = transfer;
    this.begin(view);
    if (transfer === undefined) return;
    this.at = this.levels();
    const [sender, queueTop, queueBottom, receiver] = this.at;
    this.context.fillStyle = colors.panel;
    this.context.fillRect(LEFT, queueTop, this.width - LEFT - RIGHT, queueBottom - queueTop);
    this.timeAxis(sender, this.height - 20, colors);
    for (const y of [sender, receiver]) this.rule(LEFT, y, this.width - RIGHT, y, colors.soft);
    for (const [name, y] of [["sender", sender], ["queue", (queueTop + queueBottom) / 2], ["receiver", receiver]] as const) {
      this.text(name, LEFT - 5, y + 4, colors.ink, "right");
    }
    this.clipped(0, this.height - 18, () => {
      this.segments(own, colors, chosen);
      this.markers(colors);
    });
  }

  /**
   * Rounds above; ends of the TLS handshake, of its first record, of slow start and of the transfer, a line lower each; below
   * the sender's line what else it reports, where there is room.
   */
  private markers(colors: Colors): void {
    if (this.transfer === undefined) return;
    const { startNs, tlsNs, usableNs, completionNs, rounds, reports } = this.transfer;
    const { context } = this;
    const [sender, , , receiver] = this.at;
    let free = LEFT;
    for (const [index, { name, fromNs }] of rounds.entries()) {
      const [from, to] = [this.x(fromNs), this.x(rounds[index + 1]?.fromNs ?? startNs + (completionNs ?? Infinity))];
      const x = Math.max(from + 2, free);
      const short = [name, name.replace(/^round /, "")].find((one) => x + context.measureText(one).width < Math.min(to, this.width));
      this.rule(from, sender - 12, from, sender, colors.soft);
      if (short === undefined) continue;
      this.text(short, x, sender - 4, colors.soft);
      free = x + context.measureText(short).width + 4;
    }
    const ends = reports.filter(({ what }) => what.startsWith("slow start ends") || what === "undo");
    const end = ends.find(({ what }, at) => what !== "undo" && ends[at + 1]?.what !== "undo");
    const shown = [
      ["TLS handshake", tlsNs],
      ["first usable byte", usableNs],
      [end?.what ?? "", end === undefined ? null : end.atNs - startNs],
      ["complete", completionNs],
    ] as const;
    let y = (sender + receiver) / 2;
    for (const [name, afterNs] of shown) {
      if (afterNs == null) continue;
      const x = this.x(startNs + afterNs);
      // The words of what is out of view would be cut.
      if (x < LEFT || x > this.width - RIGHT) continue;
      this.rule(x, sender, x, receiver, colors.ink, [2, 3]);
      const isLate = x > this.width - RIGHT - context.measureText(name).width - 6;
      this.label(name, x + (isLate ? -4 : 4), y, colors, isLate ? "right" : "left");
      y += 14;
    }
    free = LEFT;
    for (const { atNs, what } of reports.filter((one) => one !== end)) {
      const x = this.x(atNs);
      this.rule(x, sender, x, sender + 5, colors.ink);
      if (x < free || x + context.measureText(what).width > this.width) continue;
      this.label(what, x + 2, sender + 15, colors);
      free = x + context.measureText(what).width + 8;
    }
  }

  private levels(): [number, number, number, number] {
    const bottom = this.height - 30;
    const at = (share: number): number => TOP + share * (bottom - TOP);
    return [TOP + 4, at(0.2), at(0.5), bottom];
  }

  private segments(own: string, colors: Colors, chosen: Segment | undefined): void {
    const shown = (this.transfer?.segments ?? []).filter((segment) => this.isShown(segment));
    const data = shown.filter(({ isDataWay }) => isDataWay);
    if (data.length > MOST_PER_PIXEL * (this.width - LEFT - RIGHT)) this.density(data, own, colors);
    else this.each(shown, own, colors);
    if (chosen === undefined) return;
    this.context.beginPath();
    this.trace(this.place(chosen));
    this.stroke(colors.ink, 3);
  }

  /** Segments sent and arrived per bin, and the queue between, where lines would be one block. */
  private density(data: readonly Segment[], own: string, colors: Colors): void {
    const { context, view } = this;
    const [sender, queueTop, queueBottom, receiver] = this.at;
    // A page that is not laid out yet has no width.
    const bins = Math.max(1, Math.ceil((this.width - LEFT - RIGHT) / BIN));
    const bin = (timeNs: number | undefined): number => Math.floor((this.x(timeNs ?? -1) - LEFT) / BIN);
    const [sent, arrived, again, gone] = Array.from({ length: 4 }, () => new Float64Array(bins)) as [Float64Array, Float64Array, Float64Array, Float64Array];
    const add = (to: Float64Array, at: number): void => {
      if (at >= 0 && at < bins) to[at]!++;
    };
    for (const { sentNs, outcome, outcomeNs, isRetransmission } of data) {
      add(sent, bin(sentNs));
      if (isRetransmission) add(again, bin(sentNs));
      add(outcome === "arrived" ? arrived : gone, bin(outcomeNs));
    }
    const most = Math.max(1, ...sent, ...arrived);
    const waiting = sent.map((_, at) => valueAt(this.transfer?.queue ?? { timeNs: [], values: [] }, this.timeAt(LEFT + (at + 0.5) * BIN)));
    const longest = Math.max(1, ...waiting);
    const bars = (values: Float64Array, most: number, from: number, to: number, color: string): void => {
      context.fillStyle = color;
      context.beginPath();
      for (const [at, value] of values.entries()) if (value > 0) context.rect(LEFT + at * BIN, from, BIN - 0.5, ((to - from) * value) / most);
      context.fill();
    };
    bars(sent, most, sender, queueTop - 2, own);
    bars(again, most, sender, queueTop - 2, colors.alarm);
    bars(waiting, longest, queueBottom, queueTop + 2, colors.soft);
    bars(arrived, most, receiver, queueBottom + 4, own);
    for (const [at, value] of gone.entries()) if (value > 0) this.cross(LEFT + (at + 0.5) * BIN, (queueTop + queueBottom) / 2, colors);
    const ms = ((view.toNs - view.fromNs) / 1e6 / bins).toPrecision(2);
    const words = [`Bars: segments in ${Number(ms)} ms, at most ${most};`, `queue, at most ${longest}.`, "Zoom in to see each."];
    const lines = context.measureText(words.join(" ")).width < this.width - LEFT - RIGHT - 12 ? [words.join(" ")] : words;
    for (const [index, line] of lines.reverse().entries()) this.label(line, LEFT + 6, receiver - 6 - 14 * index, colors);
  }

  private each(shown: readonly Segment[], own: string, colors: Colors): void {
    const { context } = this;
    const kinds: [(segment: Segment) => boolean, string, number][] = [
      [(one) => !one.isDataWay && !one.isTls, colors.soft, 0.8],
      [(one) => one.isDataWay && !one.isTls && !isTrouble(one), own, one(shown.length)],
      [(one) => one.isTls && !isTrouble(one), colors.tls, one(shown.length)],
      [(one) => (one.isDataWay || one.isTls) && isTrouble(one), colors.alarm, 1.6],
    ];
    const last = new Float64Array(2 * MOST_POINTS);
    for (const [belongs, color, lineWidth] of kinds) {
      context.beginPath();
      last.fill(NaN);
      for (const segment of shown) {
        if (!belongs(segment)) continue;
        const numbers = this.place(segment);
        // Lines that fall on the same half pixels are drawn once.
        let isNew = false;
        for (let at = 0; at < numbers; at += 2) {
          const x = Math.round(2 * this.points[at]!);
          isNew ||= x !== last[at];
          last[at] = x;
        }
        if (isNew) this.trace(numbers);
      }
      this.stroke(color, lineWidth);
    }
    for (const segment of shown) {
      if (segment.outcome !== "dropped" && segment.outcome !== "lost") continue;
      const end = this.place(segment);
      this.cross(this.points[end - 2]!, this.points[end - 1]!, colors);
    }
  }

  /** Draws the line that was placed last, of this number of values. */
  private trace(numbers: number): void {
    const { context } = this;
    context.moveTo(this.points[0]!, this.points[1]!);
    for (let at = 2; at < numbers; at += 2) context.lineTo(this.points[at]!, this.points[at + 1]!);
  }

  private cross(x: number, y: number, { alarm }: Colors): void {
    const { context } = this;
    context.beginPath();
    for (const side of [-1, 1]) {
      context.moveTo(x - 4, y - 4 * side);
      context.lineTo(x + 4, y + 4 * side);
    }
    this.stroke(alarm, 2);
  }

  /**
   * Writes a segment's line into `points`, x and y in turn, and returns how many numbers these are: an array for each
   * would take longer. Data: down to the queue, across it while it waits, and on to the receiver. An ACK: straight back.
   */
  private place({ isDataWay, sentNs, queuedNs, startNs, endNs, outcome, outcomeNs }: Segment): number {
    const [sender, queueTop, queueBottom, receiver] = this.at;
    let numbers = 0;
    const go = (timeNs: number, y: number): void => {
      this.points[numbers++] = this.x(timeNs);
      this.points[numbers++] = y;
    };
    if (!isDataWay) {
      go(sentNs, receiver);
      go(outcomeNs ?? sentNs, outcome === "arrived" ? sender : (sender + receiver) / 2);
      return numbers;
    }
    go(sentNs, sender);
    if (queuedNs !== undefined) go(queuedNs, queueTop);
    if (outcome === "dropped") {
      go(outcomeNs ?? sentNs, (queueTop + queueBottom) / 2);
      return numbers;
    }
    if (startNs !== undefined) go(startNs, queueBottom);
    if (outcome === "lost") go(outcomeNs ?? endNs ?? sentNs, (queueBottom + receiver) / 2);
    else if (outcomeNs !== undefined) go(outcomeNs, receiver);
    return numbers;
  }

  private isShown({ sentNs, outcomeNs }: Segment): boolean {
    return sentNs <= this.view.toNs && (outcomeNs ?? sentNs) >= this.view.fromNs;
  }

  /** The segment whose line is nearest to a point, if one is near. */
  nearest(x: number, y: number): Segment | undefined {
    const shown = (this.transfer?.segments ?? []).filter((segment) => this.isShown(segment));
    return nearest(shown, REACH, (segment) => {
      const numbers = this.place(segment);
      let least = Infinity;
      for (let to = 2; to < numbers; to += 2) {
        const [x0, y0, x1, y1] = this.points.subarray(to - 2, to + 2) as unknown as [number, number, number, number];
        const [dx, dy] = [x1 - x0, y1 - y0];
        const along = Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1)));
        least = Math.min(least, Math.hypot(x - x0 - along * dx, y - y0 - along * dy));
      }
      return least;
    });
  }
}

/** Lines get thinner where there are many. */
function one(lines: number): number {
  return lines > 2000 ? 0.5 : lines > 500 ? 0.9 : 1.3;
}

/** Retransmitted, dropped or lost; a segment in flight at the end of the drawing is none of these. */
function isTrouble({ isRetransmission, outcome }: Segment): boolean {
  return isRetransmission || outcome === "dropped" || outcome === "lost";
}
