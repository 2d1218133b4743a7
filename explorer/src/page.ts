/** The page: settings in, drawings and sentences out, at every move. */

import { comparable, described, type Mark, marks, type Response, summary } from "./capture";
import { Background } from "./background";
import { colours, type View } from "./canvas";
import { Cloud, type PathDot, rateWords } from "./cloud";
import { Engine, Refused } from "./engine";
import { Board } from "./knobs";
import { Ladder } from "./ladder";
import { Lines } from "./lines";
import type { Plan, Start } from "./plan";
import { Captured, SequenceChart } from "./sequence";
import { type Name, SIDES, Simulations } from "./simulations";
import { comparison, SizeChart, SIZES, type Times } from "./sizes";
import { fromFragment, linkedPlan, opening, type Settings, toFragment, Unfit, unpacked, write } from "./settings";
import { defineAll } from "./terms";
import { valueAt } from "./steps";
import { type Segment, traced, type Transfer } from "./transfer";
import { bytes, count, ms, story } from "./words";

/** How long the knobs rest before the page's address has their settings, and before other sizes are timed. */
const REST_MS = 100;
/** Responses of a capture to choose from. */
const MOST_LISTED = 200;

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as T;
}

class Page {
  private readonly ladders: Record<Name, Ladder>;
  private readonly lines: { name: "delivered" | "cwnd" | "queue"; chart: Lines; label: (value: number) => string }[];
  private readonly sizes = new SizeChart(element("sizes"));
  private readonly board: Board;
  private readonly opened: Settings;
  private transfers: Partial<Record<Name, Transfer>> = {};
  private readonly simulations: Simulations;
  private view: View = { fromNs: 0, toNs: 1 };
  private whole: View = this.view;
  private chosen: { side: Name; segment: Segment } | undefined;
  private cursorNs: number | undefined;
  private times: Record<Name, Times> = { a: [], b: [] };
  private sizeIndex: number | undefined;
  private responses: Response[] = [];
  private ownDots: readonly PathDot[] = [];
  private readonly cloud: Cloud;
  private readonly homes: readonly PathDot[];
  private dotIndex: number | undefined;
  private readonly sequence = new SequenceChart(element("sequence"));
  private file: Uint8Array | undefined;
  /** The response of the capture that is drawn. */
  private own: { response: Response; marks: readonly Mark[] } | undefined;
  private captured: Captured | undefined;
  private mark: Mark | undefined;
  private later: number | undefined;
  private sizesLater: number | undefined;

  constructor(
    private readonly start: Start,
    private readonly engine: Engine,
    private readonly background: Background,
    /** The part of the address that the transfer came with. */
    private readonly linked: string,
  ) {
    element("name").textContent = start.name;
    this.opened = opening(start);
    this.simulations = new Simulations(engine);
    this.ladders = { a: new Ladder(element("ladder-a")), b: new Ladder(element("ladder-b")) };
    const packets = (value: number): string => value.toLocaleString("en");
    this.lines = [
      { name: "delivered", label: bytes, chart: new Lines(element("delivered"), bytes) },
      { name: "cwnd", label: (value) => `${Number(value.toFixed(1))} segments`, chart: new Lines(element("cwnd"), packets) },
      { name: "queue", label: (value) => count(value, "packet"), chart: new Lines(element("queue"), packets) },
    ];
    this.cloud = new Cloud(element("cloud"), start.plan.applications[0]?.server_tcp.mss_bytes ?? 1460);
    this.homes = start.homes.map(([rttMs, rateBps, limitKb, loss]) => ({
      rttMs,
      rateBps,
      words: `UK home: RTT ${rttMs} ms, ${rateWords(rateBps)}, queue of ${limitKb} kB, loss ${loss} %`,
    }));
    element("all-sizes").hidden = start.plan.applications[0]?.size === undefined;
    this.board = new Board(start, fromFragment(location.hash, this.opened), () => this.move());
    this.listen();
    this.listenForCaptures();
    this.listenToCloud();
    this.move();
  }

  /** Simulates both sides and shows them. */
  private move(): void {
    const began = performance.now();
    clearTimeout(this.later);
    this.background.stop();
    this.chosen = undefined;
    this.cursorNs = undefined;
    const problems: string[] = [];
    const plans: Partial<Record<Name, Plan>> = {};
    for (const side of SIDES) {
      try {
        plans[side] = this.plan(side);
      } catch (error) {
        if (!(error instanceof Unfit)) throw error;
        problems.push(`${side.toUpperCase()}: ${error.message}.`);
      }
    }
    this.transfers = {};
    for (const [side, outcome] of Object.entries(this.simulations.of(plans, this.board.settings.path.seed))) {
      if (outcome instanceof Refused) problems.push(`${side.toUpperCase()}: ${outcome.message}.`);
      else this.transfers[side as Name] = outcome;
    }
    element("problem").textContent = [...new Set(problems)].join(" ");
    const { a, b } = this.transfers;
    this.captured = this.own === undefined || a === undefined || b === undefined ? undefined : new Captured(this.own.marks, this.own.response.isAtClient, a, b);
    this.mark = undefined;
    element("captured").hidden = this.captured === undefined;
    const end = Math.max(1, this.captured?.endNs ?? 0, lastNs(a), lastNs(b));
    // Behind a cut nothing is known.
    const isCut = [a, b].some((transfer) => transfer !== undefined && transfer.cutNs !== null);
    this.whole = { fromNs: 0, toNs: isCut ? end : end * 1.02 };
    this.view = this.whole;
    this.times = { a: [], b: [] };
    delete element("sizes").dataset["done"];
    this.sizeIndex = undefined;
    this.summarise();
    element("story").textContent = "Point at a line, or focus a drawing and press the arrow keys, to read what happened there.";
    this.draw();
    const isTimed = problems.length === 0;
    this.later = window.setTimeout(() => this.rest(isTimed), REST_MS);
    document.documentElement.dataset["moveMs"] = (performance.now() - began).toFixed(1);
  }

  /** What takes longer than a move may, once the knobs rest: browsers refuse hundreds of changes of the address, too. */
  private rest(isTimed: boolean): void {
    this.writeAddress();
    if (!isTimed) return;
    const cut = SIDES.filter((side) => this.transfers[side]?.cutNs != null);
    const sizes = element("all-sizes").hidden ? [] : SIZES;
    const plans = [...cut.map((side) => this.plan(side)), ...sizes.flatMap((size) => SIDES.map((side) => this.plan(side, size)))];
    this.background.ask(plans, this.board.settings.path.seed, ({ index, completionNs }) => {
      const side = cut[index];
      if (side !== undefined) this.complete(side, completionNs);
      else this.addTime(SIDES[(index - cut.length) % SIDES.length]!, completionNs);
    });
  }

  /** The completion time of a transfer of which the beginning is drawn. */
  private complete(side: Name, completionNs: number | null): void {
    const transfer = this.transfers[side];
    if (transfer === undefined) return;
    this.transfers[side] = { ...transfer, completionNs };
    this.summarise();
  }

  private addTime(side: Name, completionNs: number | null): void {
    this.times[side].push(completionNs);
    const isDone = this.times.b.length === SIZES.length;
    if (isDone) element("sizes").dataset["done"] = "";
    // A frame draws what has come since the one before.
    if (this.sizesLater === undefined) this.sizesLater = requestAnimationFrame(() => this.drawSizes());
  }

  private writeAddress(): void {
    const fragment = [this.linked === "" ? "" : `plan=${this.linked}`, toFragment(this.board.settings, this.opened)].filter((part) => part !== "").join("&");
    history.replaceState(null, "", fragment === "" ? location.href.split("#")[0] : `#${fragment}`);
  }

  private plan(side: Name, size_bytes = this.board.settings.path.size_bytes): Plan {
    const { path, [side]: own } = this.board.settings;
    return write(this.start, { ...path, size_bytes }, own);
  }

  private drawSizes(): void {
    this.sizesLater = undefined;
    this.sizes.draw(this.times.a, this.times.b, this.board.settings.path.size_bytes, colours(), this.sizeIndex, this.responses);
  }

  private get areOwn(): boolean {
    return element<HTMLSelectElement>("whose").value === "own";
  }

  private get dots(): readonly PathDot[] {
    return this.areOwn ? this.ownDots : this.homes;
  }

  private drawCloud(): void {
    const { path, a, b } = this.board.settings;
    this.cloud.draw(this.dots, path, [a, b], colours(), this.dotIndex === undefined ? undefined : this.dots[this.dotIndex]);
  }

  private pointDot(index: number | undefined): void {
    if (index === undefined || this.dots.length === 0) return;
    this.dotIndex = Math.max(0, Math.min(this.dots.length - 1, index));
    element("story").textContent = `${this.dots[this.dotIndex]?.words}. Click or press Enter to give the knobs this path.`;
    this.drawCloud();
  }

  /** Gives the knobs the path of the dot that is pointed at. */
  private takeDot(): void {
    if (this.dotIndex === undefined) return;
    if (this.areOwn) {
      element<HTMLSelectElement>("response").value = String(this.dotIndex);
      return this.take(this.responses[this.dotIndex]);
    }
    const [rtt_ms, rate_bps, limit, loss_percent] = this.start.homes[this.dotIndex] ?? [];
    Object.assign(this.board.settings.path, { rtt_ms, rate_bps, limit, limit_unit: "kB", loss_percent });
    this.board.show();
    this.move();
  }

  private listenToCloud(): void {
    const { canvas } = this.cloud.surface;
    canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => this.pointDot(this.cloud.nearest(offsetX, offsetY)));
    canvas.addEventListener("click", ({ offsetX, offsetY }) => {
      const index = this.cloud.nearest(offsetX, offsetY);
      this.pointDot(index);
      if (index !== undefined) this.takeDot();
    });
    canvas.addEventListener("keydown", ({ key }) => key === "Enter" && this.takeDot());
    this.listenTo(canvas, (by) => this.pointDot((this.dotIndex ?? (by > 0 ? -1 : this.dots.length)) + by));
    element("whose").addEventListener("change", () => {
      this.dotIndex = undefined;
      this.drawCloud();
    });
  }

  /** Reads a capture in this page, and takes the path of its largest response. */
  private async read(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    const list = element<HTMLSelectElement>("response");
    [this.responses, this.file, this.own] = [[], undefined, undefined];
    try {
      this.file = new Uint8Array(await file.arrayBuffer());
      const observed = this.engine.observe(this.file);
      this.responses = comparable(observed);
      element("capture-says").textContent = `${file.name}: ${summary(observed, this.responses)}`;
    } catch (error) {
      element("capture-says").textContent = `${file.name}: ${error instanceof Error ? error.message : String(error)}`;
    }
    this.ownDots = this.responses.slice(0, MOST_LISTED).map((response) => ({ ...response, words: `Your capture: ${described(response)}` }));
    const whose = element<HTMLSelectElement>("whose");
    for (const option of whose.options) option.disabled = option.value === "own" && this.ownDots.length === 0;
    whose.value = this.ownDots.length === 0 ? "homes" : "own";
    this.dotIndex = undefined;
    list.replaceChildren(...this.responses.slice(0, MOST_LISTED).map((response, index) => new Option(described(response), String(index))));
    element("response-box").hidden = this.responses.length === 0;
    this.take(this.responses[0]);
  }

  /** Sets the knobs to a response's path: B has its first flight, A stays what it is held against. */
  private take(response: Response | undefined): void {
    if (response !== undefined && this.file !== undefined) {
      this.own = { response, marks: marks(this.engine.segments(this.file, response.connection), response) };
      element("place").textContent = response.isAtClient ? "at the client" : "at the server";
      const { path, b } = this.board.settings;
      // Observed bytes include the response's header, which a plan may have beside the size.
      const header = this.start.plan.applications[0]?.response_header_bytes ?? 0;
      Object.assign(path, { size_bytes: Math.max(1, response.bytes - header), rtt_ms: response.rttMs, rate_bps: response.rateBps || path.rate_bps });
      if (response.firstFlight > 0) b.iw = response.firstFlight;
    }
    this.board.show();
    this.move();
  }

  private listenForCaptures(): void {
    const [input, list] = [element<HTMLInputElement>("capture"), element<HTMLSelectElement>("response")];
    input.addEventListener("change", () => void this.read(input.files?.[0]));
    list.addEventListener("change", () => this.take(this.responses[Number(list.value)]));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      void this.read(event.dataTransfer?.files[0]);
    });
  }

  private chooseMark(mark: Mark | undefined): void {
    if (mark === undefined || this.captured === undefined || mark === this.mark) return;
    this.mark = mark;
    element("story").textContent = this.captured.story(mark);
    if (mark.timeNs < this.view.fromNs || mark.timeNs > this.view.toNs) this.shift(mark.timeNs - (this.view.fromNs + this.view.toNs) / 2);
    this.draw();
  }

  /** The next mark of the capture, or the one before. */
  private stepMark(by: number): void {
    const all = this.captured?.marks ?? [];
    const now = this.mark === undefined ? (by > 0 ? -1 : all.length) : all.indexOf(this.mark);
    this.chooseMark(all[Math.max(0, Math.min(all.length - 1, now + by))]);
  }

  private pointSize(index: number): void {
    this.sizeIndex = Math.max(0, Math.min(SIZES.length - 1, index));
    element("story").textContent = comparison(this.sizeIndex, this.times.a, this.times.b);
    this.drawSizes();
  }

  /** Columns of the segment events of a side, as `firstflight trace --csv` writes them. */
  rows(side: Name, names: readonly string[]): number[][] {
    return traced(this.engine.simulate(JSON.stringify(this.plan(side)), this.board.settings.path.seed, true), names);
  }

  /** How many segments and ACKs the ladders hold. */
  get marks(): number {
    return SIDES.reduce((sum, side) => sum + (this.transfers[side]?.segments.length ?? 0), 0);
  }

  private summarise(): void {
    const { a, b } = this.transfers;
    element("verdict").textContent = verdict(a, b, this.board.settings);
    for (const side of SIDES) {
      const transfer = this.transfers[side];
      element(`caption-${side}`).textContent = transfer === undefined ? "" : caption(transfer);
      element(`canvas-name-${side}`).textContent = named(side, this.board.settings);
      element(`ladder-${side}`).dataset["completionNs"] = String(transfer?.completionNs ?? "");
    }
  }

  private draw(): void {
    const palette = colours();
    const { a, b } = this.transfers;
    for (const side of SIDES) {
      const transfer = this.transfers[side];
      const chosen = this.chosen?.side === side ? this.chosen.segment : undefined;
      if (transfer !== undefined) this.ladders[side].draw(transfer, this.view, palette[side], palette, chosen);
    }
    for (const { name, chart } of this.lines) chart.draw(a?.[name], b?.[name], this.view, palette, this.cursorNs);
    if (this.captured !== undefined) this.sequence.draw(this.captured, this.view, palette, this.mark);
    this.drawSizes();
    this.drawCloud();
  }

  private choose(side: Name, segment: Segment | undefined): void {
    if (segment === undefined || segment === this.chosen?.segment) return;
    this.chosen = { side, segment };
    element("story").textContent = `${side.toUpperCase()}: ${story(segment)}`;
    this.draw();
  }

  /** The next segment of a side by the time of sending, or the one before. */
  private step(side: Name, by: number): void {
    const segments = this.transfers[side]?.segments ?? [];
    const now = this.chosen?.side === side ? segments.indexOf(this.chosen.segment) : by > 0 ? -1 : segments.length;
    const next = segments[Math.max(0, Math.min(segments.length - 1, now + by))];
    if (next !== undefined && (next.sentNs < this.view.fromNs || next.sentNs > this.view.toNs)) this.shift(next.sentNs - (this.view.fromNs + this.view.toNs) / 2);
    this.choose(side, next);
  }

  private point(name: "delivered" | "cwnd" | "queue", timeNs: number): void {
    this.cursorNs = Math.max(this.view.fromNs, Math.min(this.view.toNs, timeNs));
    const label = this.lines.find((line) => line.name === name)?.label ?? String;
    const values = SIDES.map((side) => {
      const transfer = this.transfers[side];
      return transfer === undefined ? "" : `${side.toUpperCase()} ${label(valueAt(transfer[name], this.cursorNs ?? 0))}`;
    });
    element("story").textContent = `${name} at ${ms(this.cursorNs)}: ${values.filter((one) => one !== "").join(", ")}.`;
    this.draw();
  }

  private zoom(factor: number, aroundNs = (this.view.fromNs + this.view.toNs) / 2): void {
    const width = Math.max(1e4, Math.min(this.whole.toNs, (this.view.toNs - this.view.fromNs) * factor));
    const share = (aroundNs - this.view.fromNs) / (this.view.toNs - this.view.fromNs);
    this.place(aroundNs - share * width, width);
  }

  private shift(byNs: number): void {
    this.place(this.view.fromNs + byNs, this.view.toNs - this.view.fromNs);
  }

  private place(fromNs: number, width: number): void {
    const from = Math.max(0, Math.min(this.whole.toNs - width, fromNs));
    this.view = { fromNs: from, toNs: from + width };
    this.draw();
  }

  private listen(): void {
    for (const side of SIDES) {
      const canvas = element<HTMLCanvasElement>(`ladder-${side}`);
      canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => this.choose(side, this.ladders[side].nearest({ x: offsetX, y: offsetY })));
      canvas.addEventListener("pointerdown", ({ offsetX, offsetY }) => this.choose(side, this.ladders[side].nearest({ x: offsetX, y: offsetY })));
      this.listenTo(canvas, (by) => this.step(side, by));
    }
    for (const { name, chart } of this.lines) {
      const { canvas } = chart.surface;
      const at = ({ offsetX }: PointerEvent): void => this.point(name, chart.surface.timeAt(offsetX, this.view));
      canvas.addEventListener("pointermove", at);
      canvas.addEventListener("pointerdown", at);
      const step = (by: number): void => this.point(name, (this.cursorNs ?? this.view.fromNs) + (by * (this.view.toNs - this.view.fromNs)) / 100);
      this.listenTo(canvas, step);
    }
    const own = this.sequence.surface.canvas;
    for (const kind of ["pointermove", "pointerdown"] as const) own.addEventListener(kind, ({ offsetX, offsetY }) => this.chooseMark(this.sequence.nearest(offsetX, offsetY)));
    this.listenTo(own, (by) => this.stepMark(by));
    const { canvas } = this.sizes.surface;
    const atSize = ({ offsetX }: PointerEvent): void => this.pointSize(this.sizes.indexAt(offsetX));
    canvas.addEventListener("pointermove", atSize);
    canvas.addEventListener("pointerdown", atSize);
    this.listenTo(canvas, (by) => this.pointSize((this.sizeIndex ?? 0) + by));
    element("zoom-in").addEventListener("click", () => this.zoom(0.5));
    element("zoom-out").addEventListener("click", () => this.zoom(2));
    element("zoom-all").addEventListener("click", () => this.zoom(Infinity));
    window.addEventListener("hashchange", () => {
      if (linkedPlan(location.hash) !== this.linked) return;
      this.board.settings = fromFragment(location.hash, this.opened);
      this.board.show();
      this.move();
    });
    new ResizeObserver(() => this.draw()).observe(element("drawings"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Keys: arrows step, + and - zoom, 0 shows all. The wheel zooms with Ctrl, so that the page still scrolls. */
  private listenTo(canvas: HTMLCanvasElement, step: (by: number) => void): void {
    const keys: Record<string, () => void> = {
      ArrowRight: () => step(1),
      ArrowLeft: () => step(-1),
      "+": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      "0": () => this.zoom(Infinity),
    };
    canvas.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (act === undefined) return;
      event.preventDefault();
      act();
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.lines[0]?.chart.surface.timeAt(event.offsetX, this.view));
      },
      { passive: false },
    );
  }
}

function named(side: Name, settings: Settings): string {
  const { iw, startup, cc } = settings[side];
  const other = SIDES.map((one) => settings[one]);
  const window = iw === 0 ? "IW as given" : `IW ${iw}`;
  const more = [
    other[0]?.startup === other[1]?.startup ? "" : startup.replaceAll("_", " "),
    other[0]?.cc === other[1]?.cc ? "" : cc,
    other[0]?.profile === other[1]?.profile ? "" : settings[side].profile,
  ];
  return [`${side.toUpperCase()}: ${window}`, ...more.filter((one) => one !== "")].join(", ");
}

function verdict(a: Transfer | undefined, b: Transfer | undefined, settings: Settings): string {
  if (a === undefined || b === undefined) return "";
  const [one, other] = [named("a", settings), named("b", settings)];
  if (a.completionNs === undefined || b.completionNs === undefined) return `${one} and ${other}: the beginning is drawn, the completion times follow.`;
  if (a.completionNs === null || b.completionNs === null) {
    const late = [a.completionNs === null ? one : "", b.completionNs === null ? other : ""].filter((name) => name !== "");
    return `Not complete when the run ends: ${late.join("; ")}.`;
  }
  const difference = a.completionNs - b.completionNs;
  const both = `${one}: ${ms(a.completionNs)}. ${other}: ${ms(b.completionNs)}.`;
  if (difference === 0) return `${both} No difference.`;
  const [faster, slower] = difference > 0 ? ["B", a.completionNs] : ["A", b.completionNs];
  return `${both} ${faster} is ${ms(Math.abs(difference))} faster (${Math.round((100 * Math.abs(difference)) / slower)} %).`;
}

function caption({ bytes: size, completionNs, cutNs, handshakeNs, dropped, retransmissions, timeouts }: Transfer): string {
  const late = completionNs === null ? "not complete when the run ends" : `complete after ${ms(completionNs ?? 0)}`;
  const parts = [completionNs === undefined ? bytes(size) : `${bytes(size)} ${late}`, `handshake ${ms(handshakeNs)}`];
  if (cutNs !== null) parts.push(`drawn until ${ms(cutNs)}`);
  const until = cutNs === null ? "" : " until then";
  if (dropped > 0) parts.push(`${count(dropped, "segment")} dropped or lost${until}`);
  if (retransmissions > 0) parts.push(`${count(retransmissions, "retransmission")}${until}`);
  if (timeouts > 0) parts.push(`${count(timeouts, "timeout")}${until}`);
  return `${parts.join(", ")}.`;
}

/** The end of the drawing: the last byte's arrival; of a transfer that does not finish the ACKs after it, or where it is cut. */
function lastNs(transfer: Transfer | undefined): number {
  if (transfer === undefined) return 0;
  return transfer.cutNs ?? (transfer.completionNs == null ? transfer.endNs : transfer.startNs + transfer.completionNs);
}

/** The content of a data block of the page. */
function block(id: string): string {
  return element(id).textContent?.trim() ?? "";
}

async function unpackedModule(): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(block("module")), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function begin(): Promise<void> {
  const linked = linkedPlan(location.hash);
  window.addEventListener("hashchange", () => linkedPlan(location.hash) === linked || location.reload());
  const start = { ...(JSON.parse(block("start")) as Start), ...(linked === "" ? {} : await unpacked(linked)) };
  defineAll();
  const module = await WebAssembly.compile(await unpackedModule());
  const page = new Page(start, new Engine(module), new Background(module, block("worker")), linked);
  // For the browser's console: firstflight.rows("a").
  Object.assign(window, { firstflight: page });
  document.documentElement.dataset["ready"] = "";
}

begin().catch((error: unknown) => {
  element("problem").textContent = `The explorer did not start: ${error instanceof Error ? error.message : String(error)}`;
});
