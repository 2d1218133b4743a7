/** The knobs: a number with a slider, a choice, or words; each with its definition. */

import type { Start } from "./plan";
import { AS_GIVEN, chainName, NETWORKS, NO_NEIGHBOR, NO_TLS, networkOf, RANGES, type Settings } from "./settings";
import { define } from "./terms";

type Part = keyof Settings;

interface Knob {
  key: string;
  label: string;
  /** Ends of the slider, as shown; it is logarithmic. A number may lie outside. */
  slider?: [number, number];
  choices?: readonly string[];
  /** The words for a choice. */
  words?: (choice: string) => string;
}

/** The knobs by the element that has them: those of first interest, and more. */
function knobs(start: Start): Record<string, Knob[]> {
  const isFile = start.plan.applications[0]?.kind === "file_transfer";
  const iw: Knob = { key: "iw", label: "IW", slider: [1, 100] };
  const more: Knob[] = [
    { key: "startup", label: "start-up", choices: start.startup.map(({ scheme }) => scheme).filter((scheme) => scheme !== "quick_start") },
    { key: "cc", label: "congestion control", choices: start.congestion_control.map(({ algorithm }) => algorithm) },
    { key: "profile", label: "profile", choices: [...Object.keys(start.profiles).sort(), AS_GIVEN] },
    { key: "chain", label: "TLS chain", choices: [NO_TLS, ...Object.keys(start.chains)], words: chainName },
  ];
  return {
    path: [
      { key: "network", label: "network", choices: ["", ...Object.keys(NETWORKS)], words: (name) => (name === "" ? "own values" : name) },
      { key: "neighbor", label: "cost to a neighbor", choices: [NO_NEIGHBOR, ...Object.keys(start.neighbors)], words: (flow) => (flow === NO_NEIGHBOR ? "not shown" : flow) },
      ...(isFile ? [{ key: "size_bytes", label: "size", slider: [1, 10_000] as [number, number] }] : []),
      { key: "rate_bps", label: "rate", slider: [0.1, 1000] },
      { key: "rtt_ms", label: "RTT", slider: [1, 1000] },
    ],
    a: [iw],
    b: [iw],
    "path-more": [
      { key: "queue", label: "queue", choices: start.queues.map(({ kind }) => kind) },
      { key: "limit", label: "limit", slider: [1, 1000] },
      { key: "limit_unit", label: "limit unit", choices: ["packets", "kB"] },
      { key: "loss_percent", label: "loss" },
      { key: "lose", label: "loss list" },
      { key: "seed", label: "seed" },
    ],
    "a-more": more,
    "b-more": more,
  };
}

const TERM: Record<string, string> = { size_bytes: "size", rate_bps: "rate", rtt_ms: "rtt", limit_unit: "limit", loss_percent: "loss" };

/** All knobs of the page; `moved` is called with each move. */
export class Board {
  private readonly shows: (() => void)[] = [];

  constructor(
    private readonly state: { readonly start: Start; settings: Settings },
    private readonly moved: () => void,
  ) {
    for (const [id, list] of Object.entries(knobs(state.start))) {
      const place = document.querySelector<HTMLElement>(`#${id} .knobs`);
      for (const knob of list) place?.append(this.built(id.replace("-more", "") as Part, knob));
    }
    this.show();
  }

  /** Updates the page from the settings. */
  show(): void {
    for (const show of this.shows) show();
  }

  private built(part: Part, knob: Knob): HTMLElement {
    const box = document.createElement("div");
    box.className = "knob";
    const id = `${part}-${knob.key}`;
    const label = document.createElement("label");
    label.htmlFor = id;
    const { unit } = RANGES[knob.key] ?? {};
    label.textContent = unit === undefined ? knob.label : `${knob.label}, ${unit}`;
    const input = knob.choices === undefined ? this.field(part, knob) : this.choice(part, knob);
    input.id = id;
    input.name = id;
    box.append(label, input);
    if (knob.slider !== undefined) box.append(this.slider(part, knob, knob.slider, label.textContent));
    define(TERM[knob.key] ?? knob.key, box, input);
    return box;
  }

  private value(part: Part, key: string): string | number {
    const { settings } = this.state;
    return key === "network" ? networkOf(settings.path) : (settings[part] as unknown as Record<string, string | number>)[key]!;
  }

  private set(part: Part, key: string, value: string | number): void {
    // A network sets several knobs.
    Object.assign(this.state.settings[part], key === "network" ? NETWORKS[value] : { [key]: value });
    this.show();
    this.moved();
  }

  private choice(part: Part, { key, choices, words = (value) => value.replaceAll("_", " ") }: Knob): HTMLSelectElement {
    const select = document.createElement("select");
    // A value of the scenario that is no named choice is offered as it is.
    const all = new Set([...(choices ?? []), String(this.value(part, key))]);
    for (const value of all) select.append(new Option(words(value), value));
    select.addEventListener("change", () => this.set(part, key, select.value));
    this.shows.push(() => (select.value = String(this.value(part, key))));
    return select;
  }

  private field(part: Part, { key }: Knob): HTMLInputElement {
    const { scale = 1 } = RANGES[key] ?? {};
    const input = document.createElement("input");
    const isText = typeof this.value(part, key) === "string";
    input.type = isText ? "text" : "number";
    if (isText) input.placeholder = "none";
    else [input.min, input.step] = ["0", "any"];
    input.addEventListener("input", () => {
      if (isText) this.set(part, key, input.value);
      else if (input.value !== "") this.set(part, key, unscaled(Number(input.value), scale));
    });
    this.shows.push(() => {
      const value = this.value(part, key);
      const shown = isText ? String(value) : String(Number((Number(value) / scale).toPrecision(12)));
      if (document.activeElement !== input) input.value = shown;
    });
    return input;
  }

  private slider(part: Part, { key }: Knob, [low, high]: [number, number], name: string): HTMLInputElement {
    const { scale = 1 } = RANGES[key] ?? {};
    const slider = document.createElement("input");
    slider.type = "range";
    // The number next to it is the same knob by keyboard.
    slider.tabIndex = -1;
    slider.setAttribute("aria-label", `${name}, slider`);
    const steps = 400;
    [slider.min, slider.max] = ["0", String(steps)];
    const position = (value: number): number => Math.round((Math.log(value / low) / Math.log(high / low)) * steps);
    slider.addEventListener("input", () => {
      const value = low * (high / low) ** (Number(slider.value) / steps);
      this.set(part, key, unscaled(value < 100 && low < 1 ? Number(value.toPrecision(2)) : Math.round(value), scale));
    });
    this.shows.push(() => {
      const value = Number(this.value(part, key)) / scale;
      if (document.activeElement !== slider) slider.value = String(position(Math.max(low, Math.min(high, value))));
      slider.setAttribute("aria-valuetext", String(value));
    });
    return slider;
  }
}

function unscaled(shown: number, scale: number): number {
  return Number((shown * scale).toPrecision(12));
}
