/** The page: settings and captures in, drawings and sentences out, at every move. */

import { comparable, described, type Mark, marks, type Response, summary } from "./capture";
import { command, Export } from "./export";
import { type Awaited, Background } from "./background";
import { Drawing, SIZE_SEEDS } from "./drawing";
import { element } from "./element";
import { Engine, Refused } from "./engine";
import { Board } from "./knobs";
import type { Plan, Start } from "./plan";
import { Pointing } from "./pointing";
import { isQlog, readQlog } from "./qlog";
import { type Name, SIDES, Simulations } from "./simulations";
import { FEWER_SIZES, SIZES, type Times } from "./sizes";
import { inflated, linkedPlan, NO_NEIGHBOR, NO_TLS, Unfit, unpacked } from "./settings";
import { SEEDS, varies } from "./spread";
import { State } from "./state";
import type { Steps } from "./steps";
import { defineAll } from "./terms";
import type { Timing, Transfer } from "./transfer";

/** How long the knobs rest before the page's address has their settings, and before other sizes are timed. */
const REST_MS = 100;
/** Responses of a capture to choose from. */
const MOST_LISTED = 200;

/** For the seeds; further ones are left out. */
const SPREAD_MS = 2500;

class Page {
  private readonly drawing: Drawing;
  private readonly board: Board;
  private simulations: Simulations | undefined;
  private background: Background | undefined;
  /** Of a response of the file that was read. */
  private segments: ((response: Response) => { marks: readonly Mark[]; cwnd?: Steps }) | undefined;
  private later: number | undefined;

  constructor(
    private readonly state: State,
    /** The transfers of the opening. */
    private readonly first: Partial<Record<Name, Transfer>>,
    linked: string,
  ) {
    element("name").textContent = state.start.name;
    element("all-sizes").hidden = state.start.plan.applications[0]?.size === undefined;
    this.drawing = new Drawing(state);
    this.board = new Board(state, () => this.move());
    new Pointing(state, this.drawing, () => this.takeDot(), () => this.takeSeed());
    new Export(state, this.drawing, () => {
      state.reset();
      this.board.show();
      this.move();
    });
    this.listen(linked);
    this.move();
  }

  /** From now on every setting can be simulated. */
  start(module: WebAssembly.Module): void {
    const engine = new Engine(module);
    [this.state.engine, this.simulations, this.background] = [engine, new Simulations(engine), new Background(module, block("worker"))];
    this.move();
  }

  private listen(linked: string): void {
    const [input, list] = [element<HTMLInputElement>("capture"), element<HTMLSelectElement>("response")];
    input.addEventListener("change", () => void this.read(input.files?.[0]));
    list.addEventListener("change", () => this.take(this.state.responses[Number(list.value)]));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      void this.read(event.dataTransfer?.files[0]);
    });
    const whose = element<HTMLSelectElement>("whose");
    whose.addEventListener("change", () => {
      [this.state.areOwn, this.state.dotIndex] = [whose.value === "own", undefined];
      this.drawing.drawCloud();
    });
    window.addEventListener("hashchange", () => {
      if (linkedPlan(location.hash) !== linked) return;
      this.state.readAddress();
      this.board.show();
      this.move();
    });
    new ResizeObserver(() => this.drawing.draw()).observe(element("drawings"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawing.draw());
  }

  /** Simulates both sides and shows them. */
  private move(): void {
    const began = performance.now();
    clearTimeout(this.later);
    this.background?.stop();
    const problems: string[] = [];
    const unfit = new Set<string>();
    const plans: Partial<Record<Name, Plan>> = {};
    for (const side of SIDES) {
      try {
        plans[side] = this.state.plan(side);
      } catch (error) {
        if (!(error instanceof Unfit)) throw error;
        problems.push(`${side.toUpperCase()}: ${error.message}.`);
        if (error.key !== undefined) unfit.add(`${error.key === "iw" ? side : "path"}-${error.key}`);
      }
    }
    const transfers: Partial<Record<Name, Transfer>> = {};
    const outcomes = this.simulations?.of(plans, this.state.settings.path.seed) ?? (this.state.isOpening ? this.first : {});
    for (const [side, outcome] of Object.entries(outcomes)) {
      if (outcome instanceof Refused) problems.push(`${side.toUpperCase()}: ${outcome.message}.`);
      else transfers[side as Name] = outcome;
    }
    // What is wrong with a value for both is said once.
    const [a, b] = problems.map((problem) => problem.slice(3));
    element("problem").textContent = a === b ? (a ?? "") : problems.join(" ");
    for (const input of document.querySelectorAll("#knobs [id]")) {
      if (unfit.has(input.id)) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    this.state.show(transfers);
    element<HTMLInputElement>("sweep").value = "1000";
    if (problems.length === 0) this.state.dropOthers();
    element("story").textContent = "Point at a line, or focus a drawing and press the arrow keys, to read what happened there.";
    this.drawing.write();
    if (this.simulations === undefined && transfers.a === undefined) element("verdict").textContent = "The simulator is loading.";
    this.drawing.draw();
    const isTimed = problems.length === 0;
    this.later = window.setTimeout(() => this.rest(isTimed), REST_MS);
    document.documentElement.dataset["moveMs"] = (performance.now() - began).toFixed(1);
  }

  /** Work that takes longer than a move may, once the knobs rest: browsers also refuse hundreds of address changes. */
  private rest(isTimed: boolean): void {
    const { state } = this;
    state.writeAddress();
    element("command").textContent = isTimed ? command(state) : "";
    if (!isTimed || this.background === undefined) return;
    const { seed, neighbor } = state.settings.path;
    const cut = SIDES.filter((side) => state.transfers[side]?.cutNs != null);
    const asked: Awaited[] = cut.map((side) => ({ plan: state.plan(side), seed, into: ({ completionNs }) => this.complete(side, completionNs) }));
    if (state.isRandom === undefined) {
      state.spread = { a: [], b: [], alone: [] };
      const { applications } = state.start.plan;
      const isUpload = applications[0]?.direction === "upload";
      const number = neighbor === NO_NEIGHBOR ? {} : { neighbor: applications.length, isUpload };
      const flows = SIDES.map((side) => ({ plan: state.plan(side), ...number, into: (timing: Timing) => state.spread[side].push(timing) }));
      if (neighbor !== NO_NEIGHBOR) {
        const { plan } = flows[0]!;
        flows.push({ plan: { ...plan, applications: plan.applications.slice(-1) }, neighbor: 0, isUpload, into: (timing) => state.spread.alone.push(timing) });
      }
      for (let seed = 1; seed <= SEEDS; seed++) asked.push(...flows.map((flow) => ({ ...flow, seed })));
    }
    const finished = (): void => {
      if (state.isRandom === undefined) {
        state.isRandom = SIDES.some((side) => varies(state.spread[side]));
        this.drawing.write();
        this.drawing.drawSpread();
        element("command").textContent = command(state);
      }
      if (!state.areSized) this.timeSizes();
    };
    // Of each flow at least two seeds: one alone cannot show that the seed matters.
    this.background.ask(asked, finished, SPREAD_MS, cut.length + 6);
  }

  private timeSizes(): void {
    const { state } = this;
    if (element("all-sizes").hidden) return;
    [state.times, state.plainTimes] = [{ a: [], b: [] }, { a: [], b: [] }];
    state.sizes = state.isRandom === true ? FEWER_SIZES : SIZES;
    const seeds = Array.from({ length: state.isRandom === true ? SIZE_SEEDS : 1 }, (_, index) => index + 1);
    const secured = SIDES.filter((side) => state.settings[side].chain !== NO_TLS);
    const timed = (side: Name, times: Times, chain?: string): Awaited[] =>
      state.sizes.flatMap((size, index) => {
        const into = ({ completionNs }: Timing): void => {
          (times[index] ??= []).push(completionNs);
          this.drawing.drawSizesSoon();
        };
        const plan = state.plan(side, size, chain);
        return seeds.map((seed) => ({ plan, seed, into }));
      });
    const [a, b] = SIDES.map((side) => timed(side, state.times[side]));
    // Size by size, both sides next to each other.
    const both = (a ?? []).flatMap((job, index) => [job, ...(b?.slice(index, index + 1) ?? [])]);
    this.background?.ask([...both, ...secured.flatMap((side) => timed(side, state.plainTimes[side], NO_TLS))], () => (state.areSized = true));
  }

  /** The completion time of a transfer of which the beginning is drawn. */
  private complete(side: Name, completionNs: number | null): void {
    const transfer = this.state.transfers[side];
    if (transfer === undefined) return;
    this.state.transfers[side] = { ...transfer, completionNs };
    this.drawing.write();
  }

  /** Gives the knobs the path of the dot that is pointed at. */
  private takeDot(): void {
    const { areOwn, dotIndex, responses, settings, start } = this.state;
    if (dotIndex === undefined) return;
    if (areOwn) {
      element<HTMLSelectElement>("response").value = String(dotIndex);
      return this.take(responses[dotIndex]);
    }
    const [rtt_ms, rate_bps, limit, loss_percent] = start.homes[dotIndex] ?? [];
    Object.assign(settings.path, { rtt_ms, rate_bps, limit, limit_unit: "kB", loss_percent });
    this.board.show();
    this.move();
  }

  /** Draws the run with the seed that is pointed at. */
  private takeSeed(): void {
    const { seed, settings } = this.state;
    if (seed === undefined) return;
    settings.path.seed = seed;
    this.board.show();
    this.move();
  }

  /** Reads a capture in this page, and takes the path of its largest response. */
  private async read(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    const { state } = this;
    [state.responses, this.segments, state.own] = [[], undefined, undefined];
    try {
      const bytes = new Uint8Array(await file.arrayBuffer());
      let says: string;
      if (isQlog(bytes)) {
        const { response, ...log } = readQlog(bytes);
        [state.responses, this.segments, says] = [[response], () => log, `qlog, ${described(response)}.`];
      } else {
        const { engine } = state;
        if (engine === undefined) throw new Error("the simulator is still loading; open the file again");
        const observed = engine.observe(bytes);
        state.responses = comparable(observed);
        this.segments = (response) => ({ marks: marks(engine.segments(bytes, response.connection), response) });
        says = summary(observed, state.responses);
      }
      element("capture-says").textContent = `${file.name}: ${says}`;
    } catch (error) {
      element("capture-says").textContent = `${file.name}: ${error instanceof Error ? error.message : String(error)}`;
    }
    const listed = state.responses.slice(0, MOST_LISTED);
    state.ownDots = listed.map((response) => ({ ...response, words: `Your capture: ${described(response)}` }));
    [state.areOwn, state.dotIndex] = [listed.length > 0, undefined];
    const whose = element<HTMLSelectElement>("whose");
    for (const option of whose.options) option.disabled = option.value === "own" && !state.areOwn;
    whose.value = state.areOwn ? "own" : "homes";
    element("response").replaceChildren(...listed.map((response, index) => new Option(described(response), String(index))));
    element("response-box").hidden = !state.areOwn;
    this.take(state.responses[0]);
    if (state.own !== undefined) element("captured").scrollIntoView({ block: "center" });
  }

  /** Sets the knobs to a response's path: B has its first flight, A stays as it is. */
  private take(response: Response | undefined): void {
    const { state } = this;
    if (response !== undefined && this.segments !== undefined) {
      state.own = { response, ...this.segments(response) };
      element("place").textContent = response.isAtClient ? "at the client" : "at the server";
      element("qlog-says").hidden = state.own.cwnd === undefined;
      const { path, b } = state.settings;
      // Observed bytes include the response's header, which a plan may count apart from the size.
      const header = state.start.plan.applications[0]?.response_header_bytes ?? 0;
      Object.assign(path, { size_bytes: Math.max(1, response.bytes - header), rtt_ms: response.rttMs, rate_bps: response.rateBps || path.rate_bps });
      if (response.firstFlight > 0) b.iw = response.firstFlight;
    }
    this.board.show();
    this.move();
  }
}

/** The content of a data block of the page. */
function block(id: string): string {
  return element(id).textContent?.trim() ?? "";
}

/** The simulator, which the site keeps next to the page (docs/site_pages.py). A page from disk loads no such file. */
async function module(): Promise<WebAssembly.Module> {
  const { src, alone } = element("module").dataset;
  if (src !== undefined && location.protocol === "file:") location.replace(`${alone}${location.hash}`);
  const packed = src === undefined ? block("module") : (await fetch(src)).body;
  return WebAssembly.compile(await inflated(packed ?? "", "gzip").arrayBuffer());
}

async function begin(): Promise<void> {
  const linked = linkedPlan(location.hash);
  window.addEventListener("hashchange", () => linkedPlan(location.hash) === linked || location.reload());
  const start = { ...(JSON.parse(block("start")) as Start), ...(linked === "" ? {} : await unpacked(linked)) };
  defineAll();
  // Another page's frame has its own heading.
  document.querySelector("header")!.hidden = window !== window.top;
  const state = new State(start, linked);
  const first = start.first === undefined ? {} : ((await inflated(start.first, "gzip").json()) as Partial<Record<Name, Transfer>>);
  const page = new Page(state, first, linked);
  page.start(await module());
  // For the browser's console: firstflight.rows("a").
  Object.assign(window, { firstflight: state });
  document.documentElement.dataset["ready"] = "";
}

begin().catch((error: unknown) => {
  element("problem").textContent = `The explorer did not start: ${error instanceof Error ? error.message : String(error)}`;
});
