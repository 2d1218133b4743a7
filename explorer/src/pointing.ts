/** Pointer, wheel and keys on the drawings: the item pointed at, in words, and the part of the time in view. */

import { colors, type Surface } from "./canvas";
import type { Mark } from "./capture";
import { type Drawing, type Line } from "./drawing";
import { element } from "./element";
import { type Name, SIDES } from "./simulations";
import { comparison } from "./sizes";
import { example } from "./spread";
import type { State } from "./state";
import { valueAt } from "./steps";
import type { Segment } from "./transfer";
import { ms, story } from "./words";

/** The time that the whole view takes to play. */
const PLAY_MS = 8000;
/** A shorter drag is a click, in pixels. */
const LEAST_DRAG = 8;
const VERBS = { delivered: "delivered", cwnd: "cwnd", queue: "waiting" } as const;

export class Pointing {
  constructor(
    private readonly state: State,
    private readonly drawing: Drawing,
    /** Gives the knobs the path of the dot that is pointed at. */
    takeDot: () => void,
    /** Draws the run with the seed that is pointed at. */
    takeSeed: () => void,
  ) {
    const { ladders, lines, sequence, sizes, cloud, spread } = drawing;
    for (const side of SIDES) onItems(ladders[side], (x, y) => this.choose(side, ladders[side].nearest(x, y)), (by) => this.step(side, by));
    for (const line of lines) {
      const step = (by: number): void => {
        const { fromNs, toNs } = state.view;
        this.point(line, (state.cursorNs ?? fromNs) + (by * (toNs - fromNs)) / 100);
      };
      onItems(line.chart, (x) => this.point(line, line.chart.timeAt(x)), step);
    }
    // The next mark of the capture, or the one before.
    const stepMark = (by: number): void => this.chooseMark(neighbor(state.captured?.marks ?? [], state.mark, by));
    onItems(sequence, (x, y) => this.chooseMark(sequence.nearest(x, y)), stepMark);
    onItems(sizes, (x) => this.pointSize(sizes.indexAt(x)), (by) => this.pointSize((state.sizeIndex ?? 0) + by));
    onChoice(spread, (x, y) => this.pointSeed(spread.nearest(x, y)), (by) => this.pointSeed((state.seed ?? state.settings.path.seed) + by), takeSeed);
    onChoice(cloud, (x, y) => this.pointDot(cloud.nearest(x, y)), (by) => this.pointDot((state.dotIndex ?? (by > 0 ? -1 : state.dots.length)) + by), takeDot);
    for (const chart of [...SIDES.map((side) => ladders[side]), ...lines.map(({ chart }) => chart), sequence]) {
      this.onZoom(chart);
      this.onDrag(chart);
    }
    this.onPlay();
    element("zoom-in").addEventListener("click", () => this.zoom(0.5));
    element("zoom-out").addEventListener("click", () => this.zoom(2));
    element("zoom-all").addEventListener("click", () => this.zoom(Infinity));
  }

  /** + and - zoom, 0 shows all. The wheel zooms with Ctrl, so that the page still scrolls. */
  private onZoom(surface: Surface): void {
    const { canvas } = surface;
    onKey(canvas, { "+": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.zoom(Infinity) });
    const zoom = (event: WheelEvent): void => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, surface.timeAt(event.offsetX));
    };
    canvas.addEventListener("wheel", zoom, { passive: false });
  }

  /** A drag brings the time between its ends into view. */
  private onDrag(surface: Surface): void {
    const { canvas } = surface;
    let began: number | undefined;
    canvas.addEventListener("pointerdown", (event) => {
      began = event.offsetX;
      // The pointer of a script is none that can be captured.
      if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", ({ offsetX }) => {
      if (began === undefined || Math.abs(offsetX - began) < LEAST_DRAG) return;
      this.drawing.drawTime();
      surface.shade(began, offsetX, colors().ink);
    });
    canvas.addEventListener("pointerup", ({ offsetX }) => {
      const from = began;
      began = undefined;
      if (from === undefined || Math.abs(offsetX - from) < LEAST_DRAG) return;
      this.state.zoomTo(surface.timeAt(from), surface.timeAt(offsetX));
      this.drawing.drawTime();
    });
    canvas.addEventListener("pointercancel", () => (began = undefined));
  }

  /** Time sweeps over the drawings; for those who want no motion each press is a step. */
  private onPlay(): void {
    const [button, slider] = [element("play"), element<HTMLInputElement>("sweep")];
    let frame: number | undefined;
    const stop = (): void => {
      if (frame !== undefined) cancelAnimationFrame(frame);
      frame = undefined;
      button.textContent = "play";
    };
    const sweep = (share: number): void => {
      slider.value = String(Math.round(1000 * share));
      this.state.sweep(share);
      this.drawing.drawTime();
      const { fromNs, untilNs, toNs } = this.state.view;
      const at = untilNs ?? toNs;
      slider.setAttribute("aria-valuetext", ms(at));
      if (at > fromNs) this.say(at, this.drawing.lines);
    };
    slider.addEventListener("input", () => {
      stop();
      sweep(Number(slider.value) / 1000);
    });
    button.addEventListener("click", () => {
      if (frame !== undefined) return stop();
      const from = Number(slider.value) >= 1000 ? 0 : Number(slider.value) / 1000;
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return sweep(Math.min(1, from + 0.05));
      const began = performance.now();
      button.textContent = "stop";
      const step = (now: number): void => {
        const share = Math.min(1, from + Math.max(0, now - began) / PLAY_MS);
        sweep(share);
        if (share < 1) frame = requestAnimationFrame(step);
        else stop();
      };
      frame = requestAnimationFrame(step);
    });
  }

  /** What both sides have at a time, as far as they have a transfer. */
  private say(timeNs: number, lines: readonly Line[]): void {
    const sides = SIDES.flatMap((side) => {
      const transfer = this.state.transfers[side];
      if (transfer === undefined) return [];
      const values = lines.map(({ name, label }) => `${label(valueAt(transfer[name], timeNs))} ${VERBS[name]}`);
      return [`${side.toUpperCase()}: ${values.join(", ")}.`];
    });
    if (sides.length > 0) element("story").textContent = `At ${ms(timeNs)}. ${sides.join(" ")}`;
  }

  private zoom(factor: number, aroundNs?: number): void {
    this.state.zoom(factor, aroundNs);
    this.drawing.draw();
  }

  private choose(side: Name, segment: Segment | undefined): void {
    if (segment === undefined || segment === this.state.chosen?.segment) return;
    this.state.chosen = { side, segment };
    element("story").textContent = `${side.toUpperCase()}: ${story(segment)}`;
    this.drawing.draw();
  }

  /** The next segment of a side by the time of sending, or the one before. */
  private step(side: Name, by: number): void {
    const { transfers, chosen } = this.state;
    const next = neighbor(transfers[side]?.segments ?? [], chosen?.side === side ? chosen.segment : undefined, by);
    if (next !== undefined) this.state.bringIntoView(next.sentNs);
    this.choose(side, next);
  }

  private chooseMark(mark: Mark | undefined): void {
    const { state } = this;
    if (mark === undefined || state.captured === undefined || mark === state.mark) return;
    state.mark = mark;
    element("story").textContent = state.captured.story(mark);
    state.bringIntoView(mark.timeNs);
    this.drawing.draw();
  }

  private point(line: Line, timeNs: number): void {
    const { state } = this;
    state.cursorNs = Math.max(state.view.fromNs, Math.min(state.view.toNs, timeNs));
    this.say(state.cursorNs, [line]);
    this.drawing.draw();
  }

  private pointSize(index: number): void {
    const { state } = this;
    state.sizeIndex = Math.max(0, Math.min(state.sizes.length - 1, index));
    element("story").textContent = comparison(state.sizeIndex, state.sizes, state.times, state.plainTimes);
    this.drawing.drawSizes();
  }

  /** Returns whether there is one. */
  private pointSeed(seed: number | undefined): boolean {
    const { state } = this;
    if (seed === undefined || state.spread.b.length === 0) return false;
    state.seed = Math.max(1, Math.min(state.spread.b.length, seed));
    const [a, b] = SIDES.map((side) => state.spread[side][state.seed! - 1]?.completionNs);
    element("story").textContent = `${example(state.seed, a, b)}. Click or press Enter to draw this run.`;
    this.drawing.drawSpread();
    return true;
  }

  private pointDot(index: number | undefined): boolean {
    const { dots } = this.state;
    if (index === undefined || dots.length === 0) return false;
    this.state.dotIndex = Math.max(0, Math.min(dots.length - 1, index));
    element("story").textContent = `${dots[this.state.dotIndex]?.words}. Click or press Enter to give the knobs this path.`;
    this.drawing.drawCloud();
    return true;
  }
}

/** Calls `at` with the place of the pointer (a touch shows what a mouse shows) and `step` for the arrow keys. */
function onItems({ canvas }: Surface, at: (x: number, y: number) => void, step: (by: number) => void): void {
  for (const kind of ["pointermove", "pointerdown"] as const) canvas.addEventListener(kind, ({ offsetX, offsetY }) => at(offsetX, offsetY));
  onKey(canvas, { ArrowRight: () => step(1), ArrowLeft: () => step(-1) });
}

/** A drawing whose items are taken by a click or Enter; `point` returns whether there is one. */
function onChoice(surface: Surface, point: (x: number, y: number) => boolean, step: (by: number) => void, take: () => void): void {
  onItems(surface, point, step);
  surface.canvas.addEventListener("click", ({ offsetX, offsetY }) => point(offsetX, offsetY) && take());
  onKey(surface.canvas, { Enter: take });
}

function onKey(canvas: HTMLCanvasElement, acts: Record<string, () => void>): void {
  canvas.addEventListener("keydown", (event) => {
    const act = acts[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  });
}

function neighbor<T>(all: readonly T[], chosen: T | undefined, by: number): T | undefined {
  const now = chosen === undefined ? (by > 0 ? -1 : all.length) : all.indexOf(chosen);
  return all[Math.max(0, Math.min(all.length - 1, now + by))];
}
