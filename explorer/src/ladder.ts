/** Sender, bottleneck queue and receiver on one time axis, with a line for each segment. */

import { type Colours, LEFT, RIGHT, Surface, type View } from "./canvas";
import type { Segment, Transfer } from "./transfer";

interface Point {
  x: number;
  y: number;
}

const TOP = 8;
/** As near as a pointer must come to a line, in pixels. */
const REACH = 14;
/** Of a segment's line: sender, into the queue, out of it, receiver. */
const MOST_POINTS = 4;

export class Ladder {
  readonly surface: Surface;
  private transfer: Transfer | undefined;
  private view: View = { fromNs: 0, toNs: 1 };
  private at: [number, number, number, number] = [0, 0, 0, 0];
  private readonly points = new Float64Array(2 * MOST_POINTS);

  constructor(canvas: HTMLCanvasElement) {
    this.surface = new Surface(canvas);
  }

  draw(transfer: Transfer, view: View, own: string, colours: Colours, chosen: Segment | undefined): void {
    [this.transfer, this.view] = [transfer, view];
    const { surface } = this;
    surface.begin();
    const { context, width, height } = surface;
    this.at = this.levels();
    const [sender, queueTop, queueBottom, receiver] = this.at;
    context.fillStyle = colours.ground;
    context.fillRect(LEFT, queueTop, width - LEFT - RIGHT, queueBottom - queueTop);
    surface.timeAxis(view, sender, height - 20, colours);
    context.strokeStyle = colours.faint;
    for (const y of [sender, receiver]) {
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(width - RIGHT, y);
      context.stroke();
    }
    for (const [name, y] of [["sender", sender], ["queue", (queueTop + queueBottom) / 2], ["receiver", receiver]] as const) {
      surface.text(name, LEFT - 5, y + 4, colours.text, "right");
    }
    surface.clipped(0, height - 18, () => {
      this.segments(own, colours, chosen);
      this.markers(colours);
    });
  }

  /** The ends of the TLS handshake, of its first record and of the transfer, each with its name: a line lower each. */
  private markers(colours: Colours): void {
    const { startNs, tlsNs, usableNs, completionNs } = this.transfer ?? {};
    const shown = [["TLS handshake", tlsNs], ["first usable byte", usableNs], ["last byte", completionNs]] as const;
    const { context } = this.surface;
    const [sender, , , receiver] = this.at;
    // Without TLS the last byte alone needs no name.
    if (startNs === undefined || tlsNs == null) return;
    context.setLineDash([2, 3]);
    let y = (sender + receiver) / 2;
    for (const [name, afterNs] of shown) {
      if (afterNs == null) continue;
      const x = this.surface.x(startNs + afterNs, this.view);
      this.surface.rule(x, sender, x, receiver, colours.text);
      const isLate = x > this.surface.width - RIGHT - context.measureText(name).width - 6;
      context.textAlign = isLate ? "right" : "left";
      context.strokeStyle = colours.page;
      context.lineWidth = 3;
      context.setLineDash([]);
      context.strokeText(name, x + (isLate ? -4 : 4), y);
      context.setLineDash([2, 3]);
      this.surface.text(name, x + (isLate ? -4 : 4), y, colours.text, isLate ? "right" : "left");
      y += 14;
    }
    context.setLineDash([]);
  }

  private levels(): [number, number, number, number] {
    const bottom = this.surface.height - 30;
    const at = (share: number): number => TOP + share * (bottom - TOP);
    return [TOP + 4, at(0.2), at(0.5), bottom];
  }

  private segments(own: string, colours: Colours, chosen: Segment | undefined): void {
    const { context } = this.surface;
    const shown = (this.transfer?.segments ?? []).filter((segment) => this.isShown(segment));
    const kinds: [(segment: Segment) => boolean, string, number][] = [
      [(one) => !one.isDataWay && !one.isTls, colours.faint, 0.8],
      [(one) => one.isDataWay && !one.isTls && !isTrouble(one), own, one(shown.length)],
      [(one) => one.isTls && !isTrouble(one), colours.tls, one(shown.length)],
      [(one) => (one.isDataWay || one.isTls) && isTrouble(one), colours.alarm, 1.6],
    ];
    const last = new Float64Array(2 * MOST_POINTS);
    for (const [belongs, colour, lineWidth] of kinds) {
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
      context.strokeStyle = colour;
      context.lineWidth = lineWidth;
      context.stroke();
    }
    context.strokeStyle = colours.alarm;
    context.lineWidth = 2;
    for (const segment of shown) if (segment.outcome === "dropped" || segment.outcome === "lost") this.cross(this.place(segment));
    if (chosen === undefined) return;
    context.beginPath();
    this.trace(this.place(chosen));
    context.strokeStyle = colours.text;
    context.lineWidth = 3;
    context.stroke();
  }

  /** Draws the line that was placed last, of this number of values. */
  private trace(numbers: number): void {
    const { context } = this.surface;
    context.moveTo(this.points[0]!, this.points[1]!);
    for (let at = 2; at < numbers; at += 2) context.lineTo(this.points[at]!, this.points[at + 1]!);
  }

  /** A cross where the line that was placed last ends. */
  private cross(numbers: number): void {
    const { context } = this.surface;
    const [x, y] = [this.points[numbers - 2]!, this.points[numbers - 1]!];
    context.beginPath();
    for (const side of [-1, 1]) {
      context.moveTo(x - 4, y - 4 * side);
      context.lineTo(x + 4, y + 4 * side);
    }
    context.stroke();
  }

  /**
   * Writes a segment's line into `points`, x and y in turn, and returns how many numbers these are: an array for each
   * would take longer. Data: down to the queue, across it while it waits, and on to the receiver. An ACK: straight back.
   */
  private place({ isDataWay, sentNs, queuedNs, startNs, endNs, outcome, outcomeNs }: Segment): number {
    const [sender, queueTop, queueBottom, receiver] = this.at;
    let numbers = 0;
    const go = (timeNs: number, y: number): void => {
      this.points[numbers++] = this.surface.x(timeNs, this.view);
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
  nearest(at: Point): Segment | undefined {
    let [best, distance]: [Segment | undefined, number] = [undefined, REACH];
    for (const segment of this.transfer?.segments ?? []) {
      if (!this.isShown(segment)) continue;
      const numbers = this.place(segment);
      for (let to = 2; to < numbers; to += 2) {
        const [x0, y0, x1, y1] = this.points.subarray(to - 2, to + 2) as unknown as [number, number, number, number];
        const away = toLine(at, { x: x0, y: y0 }, { x: x1, y: y1 });
        if (away < distance) [best, distance] = [segment, away];
      }
    }
    return best;
  }
}

/** Lines get thinner where there are many. */
function one(lines: number): number {
  return lines > 2000 ? 0.5 : lines > 500 ? 0.9 : 1.3;
}

function toLine(at: Point, from: Point, to: Point): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = dx * dx + dy * dy;
  const along = length === 0 ? 0 : Math.max(0, Math.min(1, ((at.x - from.x) * dx + (at.y - from.y) * dy) / length));
  return Math.hypot(at.x - from.x - along * dx, at.y - from.y - along * dy);
}

/** Retransmitted, dropped or lost; a segment in flight at the end of the drawing is none of these. */
function isTrouble({ isRetransmission, outcome }: Segment): boolean {
  return isRetransmission || outcome === "dropped" || outcome === "lost";
}
