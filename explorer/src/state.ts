/** The state of the page: the settings, their transfers, a capture, and the item pointed at. */

import { type Mark, type Response } from "./capture";
import type { View } from "./canvas";
import type { PathDot } from "./cloud";
import type { Engine } from "./engine";
import type { Plan, Start } from "./plan";
import { Captured } from "./sequence";
import { type Name, SIDES } from "./simulations";
import { SIZES, type Times } from "./sizes";
import { fromFragment, opening, type Settings, toFragment, write } from "./settings";
import type { Steps } from "./steps";
import { type Segment, type Timing, traced, type Transfer } from "./transfer";
import { rateWords } from "./words";

export class State {
  settings: Settings;
  transfers: Partial<Record<Name, Transfer>> = {};
  /** The times with the seeds from 1 on, by side, and of the neighbor alone. */
  spread: Record<Name | "alone", Timing[]> = { a: [], b: [], alone: [] };
  /** The seed makes a difference; undefined: not known yet. */
  isRandom: boolean | undefined;
  /** A seed that is pointed at. */
  seed: number | undefined;
  sizes = SIZES;
  /** All sizes are timed. */
  areSized = false;
  times: Record<Name, Times> = { a: [], b: [] };
  /** Without the TLS handshake. */
  plainTimes: Record<Name, Times> = { a: [], b: [] };
  view: View = { fromNs: 0, toNs: 1 };
  /** The responses of the capture that was read. */
  responses: Response[] = [];
  /** The response that is drawn. */
  own: { response: Response; marks: readonly Mark[]; cwnd?: Steps } | undefined;
  captured: Captured | undefined;
  ownDots: readonly PathDot[] = [];
  /** The cloud shows the paths of the capture. */
  areOwn = false;
  /** The item pointed at. */
  chosen: { side: Name; segment: Segment } | undefined;
  cursorNs: number | undefined;
  mark: Mark | undefined;
  sizeIndex: number | undefined;
  dotIndex: number | undefined;
  private readonly homes: readonly PathDot[];
  private readonly opened: Settings;
  private whole: View = this.view;
  private plans = "";
  /** The simulator, when it has come. */
  engine: Engine | undefined;

  constructor(
    readonly start: Start,
    /** The part of the address that the transfer came with. */
    private readonly linked: string,
  ) {
    this.opened = opening(start);
    this.settings = fromFragment(location.hash, this.opened);
    this.homes = start.homes.map(([rttMs, rateBps, limitKb, loss]) => ({
      rttMs,
      rateBps,
      words: `UK home: RTT ${rttMs} ms, ${rateWords(rateBps)}, queue of ${limitKb} kB, loss ${loss}%`,
    }));
  }

  reset(): void {
    this.settings = structuredClone(this.opened);
  }

  readAddress(): void {
    this.settings = fromFragment(location.hash, this.opened);
  }

  writeAddress(): void {
    const fragment = [this.linked === "" ? "" : `plan=${this.linked}`, toFragment(this.settings, this.opened)].filter((part) => part !== "").join("&");
    history.replaceState(null, "", fragment === "" ? location.href.split("#")[0] : `#${fragment}`);
  }

  plan(side: Name, size_bytes = this.settings.path.size_bytes, chain = this.settings[side].chain): Plan {
    const { path, [side]: own } = this.settings;
    return write(this.start, { ...path, size_bytes }, { ...own, chain });
  }

  /** Whether the settings are those that the page opens with. */
  get isOpening(): boolean {
    return this.linked === "" && toFragment(this.settings, this.opened) === "";
  }

  /** Takes the transfers of new settings: all of them is in view, and nothing is pointed at. */
  show(transfers: Partial<Record<Name, Transfer>>): void {
    const { a, b } = transfers;
    this.transfers = transfers;
    this.captured = this.own === undefined || a === undefined || b === undefined ? undefined : new Captured(this.own.marks, this.own.response.isAtClient, a, b, this.own.cwnd, this.start.plan.applications[0]?.server_tcp.mss_bytes ?? 1460);
    [this.chosen, this.cursorNs, this.mark, this.sizeIndex, this.seed] = [undefined, undefined, undefined, undefined, undefined];
    const end = Math.max(1, this.captured?.endNs ?? 0, lastNs(a), lastNs(b));
    // Behind a cut nothing is known.
    const isCut = [a, b].some((transfer) => transfer !== undefined && transfer.cutNs !== null);
    this.whole = { fromNs: 0, toNs: isCut ? end : end * 1.02 };
    this.view = this.whole;
  }

  /** Drops the results of seeds and sizes if the plans are others than at the last call; the seed is no part of a plan. */
  dropOthers(): void {
    const plans = JSON.stringify(SIDES.map((side) => this.plan(side)));
    if (plans === this.plans) return;
    this.plans = plans;
    [this.isRandom, this.areSized] = [undefined, false];
    [this.times, this.plainTimes] = [{ a: [], b: [] }, { a: [], b: [] }];
  }

  get dots(): readonly PathDot[] {
    return this.areOwn ? this.ownDots : this.homes;
  }

  zoom(factor: number, aroundNs = (this.view.fromNs + this.view.toNs) / 2): void {
    const width = Math.max(1e4, Math.min(this.whole.toNs, (this.view.toNs - this.view.fromNs) * factor));
    const share = (aroundNs - this.view.fromNs) / (this.view.toNs - this.view.fromNs);
    this.place(aroundNs - share * width, width);
  }

  /** Moves the view, if it does not show this time, so that it is in the middle. */
  bringIntoView(timeNs: number): void {
    const { fromNs, toNs } = this.view;
    if (timeNs < fromNs || timeNs > toNs) this.place(timeNs - (toNs - fromNs) / 2, toNs - fromNs);
  }

  private place(fromNs: number, width: number): void {
    const from = Math.max(0, Math.min(this.whole.toNs - width, fromNs));
    this.view = { fromNs: from, toNs: from + width, untilNs: this.view.untilNs };
  }

  /** Brings the time between two moments into view. */
  zoomTo(oneNs: number, otherNs: number): void {
    const [from, to] = [Math.min(oneNs, otherNs), Math.max(oneNs, otherNs)];
    this.place(Math.max(0, from), Math.max(1e4, Math.min(this.whole.toNs, to) - Math.max(0, from)));
  }

  /** Draws up to a share of the time in view; 1: all. */
  sweep(share: number): void {
    const { fromNs, toNs } = this.view;
    this.view = { fromNs, toNs, untilNs: share >= 1 ? undefined : fromNs + share * (toNs - fromNs) };
  }

  /** Columns of the segment events of a side, as `firstflight trace --csv` writes them. */
  rows(side: Name, names: readonly string[]): number[][] {
    if (this.engine === undefined) return names.map(() => []);
    return traced(this.engine.simulate(JSON.stringify(this.plan(side)), this.settings.path.seed, true), names);
  }

  /** How many segments and ACKs the ladders hold. */
  get marks(): number {
    return SIDES.reduce((sum, side) => sum + (this.transfers[side]?.segments.length ?? 0), 0);
  }
}

/** The end of the drawing: the last byte's arrival; of a transfer that does not finish the ACKs after it, or where it is cut. */
function lastNs(transfer: Transfer | undefined): number {
  if (transfer === undefined) return 0;
  return transfer.cutNs ?? (transfer.completionNs == null ? transfer.endNs : transfer.startNs + transfer.completionNs);
}
