/** Draws the state: ladders, lines over time, a capture, all sizes and real paths, with their captions. */

import { type Colors, colors, DASH, Surface, TOP, type View } from "./canvas";
import { Cloud } from "./cloud";
import { element } from "./element";
import { Ladder } from "./ladder";
import { SequenceChart } from "./sequence";
import { chainName, NO_NEIGHBOR, NO_TLS, readSide } from "./settings";
import { type Name, SIDES } from "./simulations";
import { SizeChart, type Times } from "./sizes";
import { compared, harm, SpreadChart } from "./spread";
import type { State } from "./state";
import type { Steps } from "./steps";
import { tlsFlight, type Transfer } from "./transfer";
import { bytes, count, ms } from "./words";

/** Seeds of each size, where the seed makes a difference. */
export const SIZE_SEEDS = 15;

/** A quantity of both sides over time, as steps. */
class Lines extends Surface {
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

export interface Line {
  readonly name: "delivered" | "cwnd" | "queue";
  readonly chart: Lines;
  readonly label: (value: number) => string;
}

export class Drawing {
  readonly ladders: Record<Name, Ladder> = { a: new Ladder(element("ladder-a")), b: new Ladder(element("ladder-b")) };
  readonly lines: readonly Line[];
  readonly spread = new SpreadChart(element("seeds"));
  readonly sizes = new SizeChart(element("sizes"));
  readonly sequence = new SequenceChart(element("sequence"));
  readonly cloud: Cloud;
  private sizesLater: number | undefined;

  constructor(private readonly state: State) {
    const packets = (value: number): string => value.toLocaleString("en");
    this.lines = [
      { name: "delivered", label: bytes, chart: new Lines(element("delivered"), bytes) },
      { name: "cwnd", label: (value) => `${Number(value.toFixed(1))} segments`, chart: new Lines(element("cwnd"), packets) },
      { name: "queue", label: (value) => count(value, "packet"), chart: new Lines(element("queue"), packets) },
    ];
    this.cloud = new Cloud(element("cloud"), state.start.plan.applications[0]?.server_tcp.mss_bytes ?? 1460);
  }

  draw(): void {
    this.drawTime();
    this.drawSpread();
    this.drawSizes();
    this.drawCloud();
  }

  /** The drawings over the time in view. */
  drawTime(): void {
    const palette = colors();
    const { transfers, view, cursorNs, captured } = this.state;
    for (const side of SIDES) {
      const chosen = this.state.chosen?.side === side ? this.state.chosen.segment : undefined;
      this.ladders[side].draw(transfers[side], view, palette[side], palette, chosen);
    }
    for (const { name, chart } of this.lines) chart.draw(transfers.a?.[name], transfers.b?.[name], view, palette, cursorNs, name === "cwnd" ? captured?.cwnd : undefined);
    element("captured").hidden = captured === undefined;
    if (captured !== undefined) this.sequence.draw(captured, view, palette, this.state.mark);
  }

  /** Every drawing in view with its caption, as SVG. */
  recorded(): { caption: string; content: string; width: number; height: number }[] {
    const { ladders, lines, sequence, sizes, spread } = this;
    const all = [spread, ...SIDES.map((side) => ladders[side]), ...lines.map(({ chart }) => chart), sequence, sizes];
    return all.filter(({ canvas }) => canvas.clientHeight > 0).map((surface) => {
      const content = surface.recorded(() => this.draw());
      const caption = surface.canvas.parentElement?.querySelector("figcaption")?.innerText ?? "";
      return { caption, content, width: surface.width, height: surface.height };
    });
  }

  /** Where it is not known yet whether the seed matters, the last answer stays, so that nothing moves. */
  drawSpread(): void {
    const { isRandom, spread, settings, seed } = this.state;
    if (isRandom !== undefined) element("spread").hidden = !isRandom;
    if (!element("spread").hidden) this.spread.draw(spread, colors(), [settings.path.seed, seed]);
  }

  drawSizes(): void {
    const { sizes, times, plainTimes, settings, sizeIndex, responses, isRandom } = this.state;
    const hasTls = SIDES.filter((side) => settings[side].chain !== NO_TLS);
    const seeds = isRandom === true ? SIZE_SEEDS : 1;
    const isFull = (all: Times): boolean => all.length === sizes.length && all.at(-1)?.length === seeds;
    const isDone = isFull(times.b) && hasTls.every((side) => isFull(plainTimes[side]));
    element("without").hidden = hasTls.length === 0;
    if (isDone) element("sizes").dataset["done"] = "";
    else delete element("sizes").dataset["done"];
    this.sizes.draw(sizes, times, plainTimes, settings.path.size_bytes, colors(), sizeIndex, responses);
  }

  /** In the next frame, with changes until then. */
  drawSizesSoon(): void {
    this.sizesLater ??= requestAnimationFrame(() => {
      this.sizesLater = undefined;
      this.drawSizes();
    });
  }

  drawCloud(): void {
    const { dots, dotIndex, settings } = this.state;
    this.cloud.draw(dots, settings.path, [settings.a, settings.b], colors(), dotIndex === undefined ? undefined : dots[dotIndex]);
  }

  /** The verdict and the captions of the ladders. */
  write(): void {
    const { transfers, settings, isRandom, spread } = this.state;
    const { neighbor, seed } = settings.path;
    const [one, other] = [named("a", this.state), named("b", this.state)];
    // What is known of seeds and sizes is of the settings before.
    const isRefused = SIDES.some((side) => transfers[side] === undefined);
    for (const id of ["spread", "sizes"]) element(id).toggleAttribute("data-stale", isRefused);
    element("verdict").textContent = isRandom === true && !isRefused ? compared(one, other, spread) : verdict(transfers.a, transfers.b, one, other);
    // Until the answer is there the old one keeps its place, unseen: nothing moves.
    if (isRandom !== undefined || neighbor === NO_NEIGHBOR) element("harm").textContent = harm(neighbor, spread.a, spread.b, spread.alone);
    element("harm").toggleAttribute("data-stale", isRandom === undefined || isRefused);
    element("example").textContent = String(seed);
    element("seed-count").textContent = String(spread.b.length);
    element("first-flight").textContent = firstFlight(transfers);
    for (const side of SIDES) {
      const transfer = transfers[side];
      element(`caption-${side}`).textContent = transfer === undefined ? "" : caption(transfer);
      element(`canvas-name-${side}`).textContent = named(side, this.state);
      element(`ladder-${side}`).dataset["completionNs"] = String(transfer?.completionNs ?? "");
    }
  }
}

function named(side: Name, { start, settings }: State): string {
  const { iw, startup, cc, chain } = settings[side];
  const other = SIDES.map((one) => settings[one]);
  const window = iw === 0 && readSide(start).iw === 0 ? "IW as given" : `IW ${iw}`;
  const more = [
    other[0]?.startup === other[1]?.startup ? "" : startup.replaceAll("_", " "),
    other[0]?.cc === other[1]?.cc ? "" : cc,
    other[0]?.profile === other[1]?.profile ? "" : settings[side].profile,
    other[0]?.chain === other[1]?.chain ? "" : chain === NO_TLS ? "no TLS" : chainName(chain),
  ];
  return [`${side.toUpperCase()}: ${window}`, ...more.filter((one) => one !== "")].join(", ");
}

function verdict(a: Transfer | undefined, b: Transfer | undefined, one: string, other: string): string {
  if (a === undefined || b === undefined) return "";
  if (a.completionNs === undefined || b.completionNs === undefined) return `${one} and ${other}: the beginning is drawn, the completion times follow.`;
  if (a.completionNs === null || b.completionNs === null) {
    const late = [a.completionNs === null ? one : "", b.completionNs === null ? other : ""].filter((name) => name !== "");
    return `Not complete when the run ends: ${late.join("; ")}.`;
  }
  const difference = a.completionNs - b.completionNs;
  const both = `${one}: ${ms(a.completionNs)}. ${other}: ${ms(b.completionNs)}.`;
  if (difference === 0) return `${both} No difference.`;
  const [faster, slower] = difference > 0 ? ["B", a.completionNs] : ["A", b.completionNs];
  return `${both} ${faster} is ${ms(Math.abs(difference))} faster (${Math.round((100 * Math.abs(difference)) / slower)}%).`;
}

/** One sentence if the first flight is the TLS handshake, as `firstflight explain` says it. */
function firstFlight(transfers: Partial<Record<Name, Transfer>>): string {
  const said = SIDES.flatMap((side) => {
    const transfer = transfers[side];
    const flight = transfer === undefined ? undefined : tlsFlight(transfer);
    if (flight === undefined) return [];
    const take = flight.segments === 1 ? "takes" : "take";
    return [`with ${side.toUpperCase()} the server's ${count(flight.segments, "segment")} ${take} ${count(flight.trips, "round trip")}`];
  });
  return said.length === 0 ? "" : `The first flight is the TLS handshake: ${said.join("; ")}.`;
}

function caption({ bytes: size, completionNs, cutNs, handshakeNs, tlsNs, usableNs, dropped, retransmissions, timeouts }: Transfer): string {
  const late = completionNs === null ? "not complete when the run ends" : `complete after ${ms(completionNs ?? 0)}`;
  const parts = [completionNs === undefined ? bytes(size) : `${bytes(size)} ${late}`, `handshake ${ms(handshakeNs)}`];
  if (tlsNs !== null) parts.push(`TLS handshake ${ms(tlsNs)}`);
  if (usableNs !== null) parts.push(`first usable byte ${ms(usableNs)}`);
  if (cutNs !== null) parts.push(`drawn until ${ms(cutNs)}`);
  const until = cutNs === null ? "" : " until then";
  if (dropped > 0) parts.push(`${count(dropped, "segment")} dropped or lost${until}`);
  if (retransmissions > 0) parts.push(`${count(retransmissions, "retransmission")}${until}`);
  if (timeouts > 0) parts.push(`${count(timeouts, "timeout")}${until}`);
  return `${parts.join(", ")}.`;
}
