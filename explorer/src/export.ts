/** What the page exports: the link, the drawings, the segments, and the scenario with the command that runs it. */

import { colors } from "./canvas";
import type { Drawing } from "./drawing";
import { element } from "./element";
import { linkPairs, withLimit } from "./plan";
import { numbers, readPath, readSide, type Side } from "./settings";
import { SIDES } from "./simulations";
import type { State } from "./state";
import { escaped } from "./svg";

const FILE = "explored.toml";
const COLUMNS = ["time_ns", "event", "from_server", "seq", "length", "ack", "window_bytes", "cwnd_segments", "ssthresh_segments", "recovery_state", "flags", "retransmission"];
const EVENTS = ["sent", "received", "dropped", "lost"];

export class Export {
  constructor(
    private readonly state: State,
    private readonly drawing: Drawing,
    reset: () => void,
  ) {
    const acts: Record<string, () => void> = {
      share: () => void this.share(),
      reset,
      png: () => void this.png(),
      svg: () => save("explorer.svg", this.svg(), "image/svg+xml"),
      csv: () => save("explorer.csv", this.csv(), "text/csv"),
      toml: () => save(FILE, scenario(state), "application/toml"),
    };
    for (const [id, act] of Object.entries(acts)) element(id).addEventListener("click", act);
  }

  private async share(): Promise<void> {
    this.state.writeAddress();
    const says = element("story");
    try {
      await navigator.clipboard.writeText(location.href);
      says.textContent = "The link is in the clipboard. It holds all settings.";
    } catch {
      says.textContent = "The browser allows no copying here. The address of this page is the link.";
    }
  }

  /** All drawings in view over time, with the verdict above and their captions. */
  private svg(): string {
    const { paper, ink } = colors();
    const drawn = this.drawing.recorded();
    const width = Math.max(...drawn.map(({ width }) => width));
    const lines = [element("verdict"), element("harm")].flatMap(({ textContent }) => wrapped(textContent ?? "", width / 8));
    let y = 6;
    const words = (line: string, weight: string): string => `<text x="10" y="${(y += 18)}" font-size="14" font-weight="${weight}" fill="${ink}">${escaped(line)}</text>`;
    const parts = lines.map((line) => words(line, "bold"));
    for (const { caption, content, height } of drawn) {
      y += 6;
      for (const line of wrapped(caption, width / 7)) parts.push(words(line, "normal"));
      parts.push(`<g transform="translate(0 ${y + 4})">${content}</g>`);
      y += height;
    }
    const size = `width="${width}" height="${y + 10}" viewBox="0 0 ${width} ${y + 10}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="system-ui, sans-serif" font-size="12"><rect width="100%" height="100%" fill="${paper}"/>${parts.join("\n")}</svg>\n`;
  }

  private async png(): Promise<void> {
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(this.svg())}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob !== null && save("explorer.png", blob, "image/png"));
  }

  /** The segment events of both sides. */
  private csv(): string {
    const rows = SIDES.flatMap((side) => {
      const columns = this.state.rows(side, COLUMNS);
      return (columns[0] ?? []).map((_, row) => [side, ...columns.map((column, at) => (COLUMNS[at] === "event" ? EVENTS[column[row]!] : column[row]))].join(","));
    });
    return `${["setting", ...COLUMNS].join(",")}\n${rows.join("\n")}\n`;
  }
}

function wrapped(words: string, most: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(" ").filter((one) => one !== "")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < most) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function save(name: string, content: string | Blob, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  // Not before the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The scenario that the page opened with, and the neighbor. */
function scenario({ start, settings }: State): string {
  const neighbor = start.neighbors[settings.path.neighbor];
  if (neighbor === undefined) return start.toml;
  const { client_hosts, server_hosts, direction } = start.plan.applications[0]!;
  const keys = { client_hosts, server_hosts, direction: direction === "upload" && neighbor.plan.direction === "download" ? direction : null };
  const lines = Object.entries(keys).flatMap(([key, value]) => (value == null ? [] : [`${key} = "${value}"`]));
  return [start.toml, "[[application]]", 'name = "neighbor"', ...lines, neighbor.toml, ""].join("\n");
}

/** The command that runs the scenario with the settings; where their keys are not known, a sentence. */
export function command(state: State): string {
  const { settings } = state;
  const path = pathKeys(state);
  const [a, b] = SIDES.map((side) => sideKeys(state, settings[side]));
  if (state.start.toml === "") return "The link was made by an earlier version, without the scenario.";
  if (path === undefined || a === undefined || b === undefined) return `The knobs' keys are not known in this scenario: write the settings into ${FILE}, then run it.`;
  const seed = `--seed ${settings.path.seed}`;
  const set = (keys: Record<string, string>): string => Object.entries(keys).map(([key, value]) => ` --set '${key}=${value}'`).join("");
  const IW = "tcp.initial_window";
  const rest = ({ [IW]: _, ...keys }: Record<string, string>): Record<string, string> => keys;
  const windows = SIDES.map((side) => settings[side].iw);
  if (set(rest(a)) === set(rest(b)) && windows[0] !== windows[1] && !windows.includes(0)) {
    const replicates = state.isRandom === true ? " --replicates 50" : "";
    return `firstflight run ${FILE} --vary ${IW}=${windows.join(",")}${set({ ...path, ...rest(a) })} ${seed}${replicates}`;
  }
  return [a, b].map((keys) => `firstflight trace ${FILE}${set({ ...path, ...keys })} ${seed}`).join("\n");
}

/** Keys of the scenario for the changed knobs of the path; undefined: not those of a single link. */
function pathKeys({ start, settings: { path } }: State): Record<string, string> | undefined {
  const was = readPath(start);
  const keys: Record<string, string> = {};
  if (path.size_bytes !== was.size_bytes) keys["application[0].size"] = `"${path.size_bytes}B"`;
  const link: Record<string, string> = {};
  const reverse: string[] = [];
  if (path.rate_bps !== was.rate_bps) link["rate"] = `"${path.rate_bps}bit"`;
  if (path.rtt_ms !== was.rtt_ms) {
    const round = Math.round(path.rtt_ms * 1e6);
    link["delay"] = `"${Math.floor(round / 2)}ns"`;
    if (round % 2 === 1) reverse.push(`delay="${(round + 1) / 2}ns"`);
  }
  if (path.queue !== was.queue || path.limit !== was.limit || path.limit_unit !== was.limit_unit) {
    link["queue"] = `{kind="${path.queue}", limit="${path.limit}${path.limit_unit === "packets" ? "p" : "kB"}"}`;
  }
  if (path.loss_percent !== was.loss_percent) {
    link["loss"] = String(Number((path.loss_percent / 100).toPrecision(12)));
    reverse.push("loss=0.0");
  }
  if (path.lose !== was.lose) {
    link["loss_list"] = `[${numbers(path.lose).join(", ")}]`;
    reverse.push("loss_list=[]");
  }
  if (reverse.length > 0) link["reverse"] = `{${reverse.join(", ")}}`;
  if (Object.keys(link).length === 0) return keys;
  const [pair, ...others] = linkPairs(start.plan.network);
  const [there, back] = [pair?.forward, pair?.reverse];
  const isPlain = others.length === 0 && start.plan.network.topology === "chain" && JSON.stringify(there) === JSON.stringify(back);
  if (!isPlain || there === undefined) return undefined;
  // A RED queue counts packets only, and parameters that a file gives its queue would be lost.
  const known = start.queues.find(({ kind }) => kind === there.queue.kind);
  const isDefault = known !== undefined && JSON.stringify(withLimit(known, { packets: 1 }, 1)) === JSON.stringify(withLimit(there.queue, { packets: 1 }, 1));
  if (link["queue"] !== undefined && (!isDefault || (path.queue === "red" && path.limit_unit === "kB"))) return undefined;
  for (const [key, value] of Object.entries(link)) keys[`network.links[0].${key}`] = value;
  return keys;
}

/** Those of the changed knobs of a side; undefined: the application has its own TCP. */
function sideKeys({ start }: State, side: Side): Record<string, string> | undefined {
  const was = readSide(start);
  const keys: Record<string, string> = {};
  const isOther = side.profile !== was.profile;
  if (isOther) keys["tcp.profile"] = `"${side.profile}"`;
  if ((isOther || side.startup !== was.startup) && !(isOther && side.startup === "window")) keys["tcp.startup"] = `"${side.startup}"`;
  if (isOther || side.cc !== was.cc) keys["tcp.congestion_control"] = `"${side.cc}"`;
  if ((isOther || side.iw !== was.iw) && side.iw !== 0) keys["tcp.initial_window"] = String(side.iw);
  const isOwn = /_tcp\b|^tcp = |^\[application\.tcp/m.test(start.toml);
  if (Object.keys(keys).length > 0 && isOwn) return undefined;
  if (side.chain !== was.chain) keys["application[0].tls"] = `"${side.chain}"`;
  return keys;
}
