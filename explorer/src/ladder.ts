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

export class Ladder {
  private readonly surface: Surface;
  private transfer: Transfer | undefined;
  private view: View = { fromNs: 0, toNs: 1 };

  constructor(canvas: HTMLCanvasElement) {
    this.surface = new Surface(canvas);
  }

  draw(transfer: Transfer, view: View, own: string, colours: Colours, chosen: Segment | undefined): void {
    [this.transfer, this.view] = [transfer, view];
    const { surface } = this;
    surface.begin();
    const { context, width, height } = surface;
    const [sender, queueTop, queueBottom, receiver] = this.levels();
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
    surface.clipped(0, height - 18, () => this.segments(own, colours, chosen));
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
      [(one) => !one.isDataWay, colours.faint, 0.8],
      [(one) => one.isDataWay && !one.isRetransmission && one.fate === "arrived", own, one(shown.length)],
      [(one) => one.isDataWay && (one.isRetransmission || one.fate !== "arrived"), colours.alarm, 1.6],
    ];
    for (const [belongs, colour, lineWidth] of kinds) {
      context.beginPath();
      let last = "";
      for (const segment of shown) {
        if (!belongs(segment)) continue;
        const points = this.points(segment);
        // Lines that fall on the same half pixels are drawn once.
        const place = points.map(({ x }) => Math.round(2 * x)).join();
        if (place !== last) this.trace(points);
        last = place;
      }
      context.strokeStyle = colour;
      context.lineWidth = lineWidth;
      context.stroke();
    }
    context.strokeStyle = colours.alarm;
    context.lineWidth = 2;
    for (const segment of shown) if (segment.fate === "dropped" || segment.fate === "lost") this.cross(this.points(segment).at(-1));
    if (chosen === undefined) return;
    context.beginPath();
    this.trace(this.points(chosen));
    context.strokeStyle = colours.text;
    context.lineWidth = 3;
    context.stroke();
  }

  private trace(points: Point[]): void {
    const { context } = this.surface;
    points.forEach(({ x, y }, index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
  }

  private cross(point: Point | undefined): void {
    if (point === undefined) return;
    const { context } = this.surface;
    context.beginPath();
    for (const side of [-1, 1]) {
      context.moveTo(point.x - 4, point.y - 4 * side);
      context.lineTo(point.x + 4, point.y + 4 * side);
    }
    context.stroke();
  }

  /** Data: down to the queue, across it while it waits, and on to the receiver. An ACK: straight back. */
  private points(segment: Segment): Point[] {
    const [sender, queueTop, queueBottom, receiver] = this.levels();
    const x = (timeNs: number): number => this.surface.x(timeNs, this.view);
    const { sentNs, queuedNs, startNs, endNs, fate, fateNs } = segment;
    if (!segment.isDataWay) {
      const end = fateNs ?? sentNs;
      const y = fate === "arrived" ? sender : (sender + receiver) / 2;
      return [{ x: x(sentNs), y: receiver }, { x: x(end), y }];
    }
    const points = [{ x: x(sentNs), y: sender }];
    if (queuedNs !== undefined) points.push({ x: x(queuedNs), y: queueTop });
    if (fate === "dropped") return [...points, { x: x(fateNs ?? sentNs), y: (queueTop + queueBottom) / 2 }];
    if (startNs !== undefined) points.push({ x: x(startNs), y: queueBottom });
    if (fate === "lost") return [...points, { x: x(fateNs ?? endNs ?? sentNs), y: (queueBottom + receiver) / 2 }];
    if (fateNs !== undefined) points.push({ x: x(fateNs), y: receiver });
    return points;
  }

  private isShown({ sentNs, fateNs }: Segment): boolean {
    return sentNs <= this.view.toNs && (fateNs ?? sentNs) >= this.view.fromNs;
  }

  /** The segment whose line is nearest to a point, if one is near. */
  nearest(at: Point): Segment | undefined {
    let [best, distance]: [Segment | undefined, number] = [undefined, REACH];
    for (const segment of this.transfer?.segments ?? []) {
      if (!this.isShown(segment)) continue;
      const points = this.points(segment);
      for (let index = 1; index < points.length; index++) {
        const away = toLine(at, points[index - 1]!, points[index]!);
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
