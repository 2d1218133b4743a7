/** The settings of the knobs, read from a plan, written to one, and kept in the address. */

import { type Limit, type Link, type Opening, type Plan, type Start, dataGoesForward, linkPairs, queueLimit, withLimit } from "./plan";

/** The settings common to both sides. */
export interface Path {
  size_bytes: number;
  rate_bps: number;
  rtt_ms: number;
  queue: string;
  limit: number;
  limit_unit: string;
  loss_percent: number;
  lose: string;
  seed: number;
  neighbor: string;
}

/** The settings of each side. */
export interface Side {
  iw: number;
  startup: string;
  cc: string;
  profile: string;
  chain: string;
}

export interface Settings {
  path: Path;
  a: Side;
  b: Side;
}

/** A profile, window or handshake that no knob can say: the plan's own stays. */
export const AS_GIVEN = "as given";
export const NO_NEIGHBOR = "none";
/** A chain: no TLS. */
export const NO_TLS = "none";

/** Networks to begin with. The values are typical ones, assumed; GEO's queue holds one bandwidth-delay product. */
export const NETWORKS: Readonly<Record<string, Partial<Path>>> = {
  fiber: network(500, 20, 500),
  DSL: network(16, 40, 100),
  LTE: network(20, 60, 300),
  "5G": network(100, 40, 500),
  GEO: network(25, 600, 1250),
  LEO: network(100, 50, 200, 0.5),
  congested: network(2, 60, 12),
};

function network(mbits: number, rtt_ms: number, limit: number, loss_percent = 0): Partial<Path> {
  return { rate_bps: mbits * 1e6, rtt_ms, limit, limit_unit: "packets", queue: "drop_tail", loss_percent };
}

/** A chain as people write it. */
export function chainName(chain: string): string {
  if (chain === AS_GIVEN || chain === NO_TLS) return chain;
  return chain === "merkle-tree" ? "Merkle tree" : chain.toUpperCase();
}

/** The name of the network that the path is; "" if it is none of them. */
export function networkOf(path: Path): string {
  const isIt = (of: Partial<Path>): boolean => Object.entries(of).every(([key, value]) => path[key as keyof Path] === value);
  return Object.entries(NETWORKS).find(([, of]) => isIt(of))?.[0] ?? "";
}

/** A knob's value that makes no sense: one sentence; `key`: of the knob, if it is one alone. */
export class Unfit extends Error {
  constructor(
    message: string,
    readonly key?: string,
  ) {
    super(message);
  }
}

interface Range {
  readonly name: string;
  readonly unit?: string;
  /** The value of the settings that a unit is worth. */
  readonly scale?: number;
  readonly from: number;
  readonly to: number;
  readonly isWhole?: boolean;
}

/** Numbers by the knob: the unit in which it is shown, and its range in the settings. */
export const RANGES: Readonly<Record<string, Range>> = {
  size_bytes: { name: "size", unit: "kB", scale: 1000, from: 1, to: 1e8, isWhole: true },
  rate_bps: { name: "rate", unit: "Mbit/s", scale: 1e6, from: 1000, to: 1e11, isWhole: true },
  rtt_ms: { name: "RTT", unit: "ms", from: 0, to: 10_000 },
  limit: { name: "limit", from: 1, to: 1e6, isWhole: true },
  limit_kB: { name: "limit", unit: "kB", from: 0.001, to: 1e6 },
  loss_percent: { name: "loss", unit: "%", from: 0, to: 90 },
  lose: { name: "loss list", from: 1, to: 1e9, isWhole: true },
  seed: { name: "seed", from: 0, to: Number.MAX_SAFE_INTEGER, isWhole: true },
  iw: { name: "IW", unit: "segments", from: 1, to: 1000, isWhole: true },
};

/** The value of a knob, or Unfit in its unit. */
function fit(key: string, value: number): number {
  const { name, unit, scale = 1, from, to, isWhole } = RANGES[key]!;
  const shown = (number: number): string => (number / scale).toLocaleString("en", { maximumSignificantDigits: 15 });
  const words = unit === undefined ? "" : unit === "%" ? unit : ` ${unit}`;
  if (!(value >= from && value <= to)) throw new Unfit(`${name}: ${shown(value)}${words} is not from ${shown(from)} to ${shown(to)}${words}`, key);
  if (isWhole && !Number.isInteger(value)) throw new Unfit(`${name}: ${shown(value)}${words} is not a whole number${key === "rate_bps" ? " of bit/s" : key === "size_bytes" ? " of bytes" : ""}`, key);
  return value;
}

/** Unfit for a word that is not one of those that the knob called `name` offers: a link may hold any. */
function among(name: string, value: string, choices: readonly string[], key?: string): void {
  if (!choices.includes(value)) throw new Unfit(`${name}: ${value} is not one of ${choices.join(", ")}`, key);
}

/** Where the data's bottleneck is: the slowest link, and on it the way of the data. */
function bottleneck(plan: Plan): { way: Link; back: Link } {
  const pairs = linkPairs(plan.network);
  const isForward = dataGoesForward(plan);
  const ways = pairs.map(({ forward, reverse }) => (isForward ? { way: forward, back: reverse } : { way: reverse, back: forward }));
  return ways.reduce((best, next) => ((next.way.rate_bps ?? Infinity) < (best.way.rate_bps ?? Infinity) ? next : best));
}

/** The bottleneck's delay both ways in ms: all of the RTT on a path of one link. */
export function readPath({ plan, seed }: Start): Path {
  const { way, back } = bottleneck(plan);
  const limit = queueLimit(way.queue);
  return {
    size_bytes: plan.applications[0]?.size?.value ?? 0,
    rate_bps: way.rate_bps ?? 0,
    rtt_ms: (way.delay_ns + back.delay_ns) / 1e6,
    queue: way.queue.kind,
    limit: "packets" in limit ? limit.packets : limit.bytes / 1000,
    limit_unit: "packets" in limit ? "packets" : "kB",
    loss_percent: way.loss * 100,
    lose: way.lose.join(" "),
    seed,
    neighbor: NO_NEIGHBOR,
  };
}

export function readSide(start: Start): Side {
  const application = start.plan.applications[0];
  const tcp = application?.direction === "upload" ? application.client_tcp : application?.server_tcp;
  if (tcp === undefined) throw new Unfit("the scenario has no application");
  const { policy, segments } = tcp.initial_window;
  const handshakes = application?.handshakes;
  // Programs that speak TLS have no Nagle, whatever the profile.
  const others = { initial_window: 0, startup: 0, congestion_control: 0, ...(handshakes === undefined ? {} : { nagle: 0 }) };
  const known = Object.entries(start.profiles).find(([, profile]) => isSame({ ...tcp, ...others }, { ...profile, ...others }));
  const chain = Object.entries(start.chains).find(([, of]) => isSame(of, handshakes));
  return {
    // Linux's policy and RFC 6928's give 10 segments of the usual size; 0: a policy that no number says.
    iw: policy === "fixed" ? (segments ?? 0) : policy === "linux" || policy === "rfc6928" ? 10 : 0,
    startup: tcp.startup.scheme,
    cc: tcp.congestion_control.algorithm,
    profile: known === undefined ? AS_GIVEN : known[0],
    chain: handshakes === undefined ? NO_TLS : (chain?.[0] ?? AS_GIVEN),
  };
}

/** The scenario's own setting, and the same with IW 3; against 10 if it has 3 itself. */
export function opening(start: Start): Settings {
  const own = readSide(start);
  const other = { ...own, iw: own.iw === 3 ? 10 : 3 };
  const [a, b] = own.iw === 3 ? [own, other] : [other, own];
  return { path: readPath(start), a, b };
}

/** The plan with the knobs' settings; other parts pass through unchanged. */
export function write(start: Start, path: Path, side: Side): Plan {
  const plan = structuredClone(start.plan);
  const [was, own] = [readPath(start), readSide(start)];
  fit("seed", path.seed);
  among("neighbor", path.neighbor, [NO_NEIGHBOR, ...Object.keys(start.neighbors)], "neighbor");
  among("queue", path.queue, [...new Set([was.queue, ...start.queues.map(({ kind }) => kind)])], "queue");
  among("limit in", path.limit_unit, ["packets", "kB"], "limit_unit");
  among("chain", side.chain, [...new Set([own.chain, NO_TLS, ...Object.keys(start.chains)])]);
  among("profile", side.profile, [...Object.keys(start.profiles), AS_GIVEN]);
  among("start-up", side.startup, start.startup.map(({ scheme }) => scheme));
  among("congestion control", side.cc, start.congestion_control.map(({ algorithm }) => algorithm));
  writePath(plan, start, path, was);
  const application = plan.applications[0];
  if (application === undefined) throw new Unfit("the scenario has no application");
  if (path.size_bytes !== was.size_bytes) application.size = { distribution: "constant", value: fit("size_bytes", path.size_bytes) };
  const isOtherChain = side.chain !== own.chain;
  if (isOtherChain) {
    const handshakes = start.chains[side.chain];
    delete application.handshakes;
    if (handshakes !== undefined) application.handshakes = handshakes;
  }
  for (const end of ["client_tcp", "server_tcp"] as const) {
    const chosen = side.profile === own.profile ? undefined : start.profiles[side.profile];
    const tcp = chosen === undefined ? application[end] : structuredClone(chosen);
    application[end] = tcp;
    if (application.handshakes !== undefined) {
      if (isOtherChain || chosen !== undefined) tcp.nagle = "off";
    } else if (isOtherChain) tcp.nagle = (chosen ?? start.profiles[own.profile])?.nagle ?? tcp.nagle;
    if (chosen !== undefined || side.iw !== own.iw) {
      if (side.iw !== 0 || own.iw !== 0) tcp.initial_window = { policy: "fixed", segments: fit("iw", side.iw) };
    }
    if (chosen !== undefined || side.startup !== own.startup) {
      tcp.startup = start.startup.find(({ scheme }) => scheme === side.startup)!;
    }
    if (tcp.congestion_control.algorithm !== side.cc) {
      tcp.congestion_control = start.congestion_control.find(({ algorithm }) => algorithm === side.cc)!;
    }
  }
  if (path.neighbor !== NO_NEIGHBOR) {
    const neighbor = start.neighbors[path.neighbor]!.plan;
    const { client_hosts = null, server_hosts = null, direction } = application;
    const way = direction === "upload" && neighbor.direction === "download" ? { direction } : {};
    plan.applications.push({ ...structuredClone(neighbor), ...way, client_hosts, server_hosts, name: "neighbor" });
  }
  return plan;
}

function writePath(plan: Plan, start: Start, path: Path, was: Path): void {
  const { way, back } = bottleneck(plan);
  if (path.rate_bps !== was.rate_bps) {
    const rate = fit("rate_bps", path.rate_bps);
    if (back.rate_bps === way.rate_bps) back.rate_bps = rate;
    way.rate_bps = rate;
  }
  if (path.rtt_ms !== was.rtt_ms) {
    const round = Math.round(fit("rtt_ms", path.rtt_ms) * 1e6);
    way.delay_ns = Math.floor(round / 2);
    back.delay_ns = round - way.delay_ns;
  }
  if (path.queue !== was.queue || path.limit !== was.limit || path.limit_unit !== was.limit_unit) {
    const packet = plan.header_bytes + (plan.applications[0]?.server_tcp.mss_bytes ?? 1460);
    const limit: Limit =
      path.limit_unit === "packets"
        ? { packets: fit("limit", path.limit) }
        : { bytes: Math.round(1000 * fit("limit_kB", path.limit)) };
    const kind = path.queue === was.queue ? way.queue : start.queues.find((queue) => queue.kind === path.queue)!;
    const isSameBack = isSame(way.queue, back.queue);
    way.queue = withLimit(kind, limit, packet);
    if (isSameBack) back.queue = structuredClone(way.queue);
  }
  if (path.loss_percent !== was.loss_percent) way.loss = fit("loss_percent", path.loss_percent) / 100;
  if (path.lose !== was.lose) way.lose = numbers(path.lose);
}

/** "3 14": ascending numbers of data packets. */
export function numbers(text: string): number[] {
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  const wrong = words.find((word) => !/^\d+$/.test(word));
  if (wrong !== undefined) throw new Unfit(`loss list: ${wrong} is not the number of a packet`, "lose");
  const listed = [...new Set(words.map((word) => fit("lose", Number(word))))];
  return listed.sort((one, two) => one - two);
}

/** Whatever the order of an object's keys. */
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one, inOrder) === JSON.stringify(other, inOrder);

const inOrder = (_: string, value: unknown): unknown => (value instanceof Object && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value);

/** The transfer that an address opens with, still packed; "" if it is the page's own. */
export function linkedPlan(fragment: string): string {
  return new URLSearchParams(fragment.slice(1)).get("plan") ?? "";
}

/** The content of packed bytes, or of their base64. */
export function inflated(packed: string | ReadableStream<Uint8Array<ArrayBuffer>>, format: CompressionFormat): Response {
  const stream = typeof packed === "string" ? new Blob([Uint8Array.from(atob(packed), (character) => character.charCodeAt(0))]).stream() : packed;
  return new Response(stream.pipeThrough(new DecompressionStream(format)));
}

/** Reads the output of `fragment` of python/firstflight/explore/start.py. */
export async function unpacked(linked: string): Promise<Opening> {
  try {
    const { name, seed, plan, toml } = (await inflated(linked.replaceAll("-", "+").replaceAll("_", "/"), "deflate").json()) as Opening;
    if (plan.applications.length === 0 || linkPairs(plan.network).length === 0) throw new Unfit("no transfer");
    return { name: String(name), seed: Number(seed), plan, toml: toml ?? "" };
  } catch {
    throw new Unfit("the plan in the address is damaged; copy the whole address");
  }
}

/** The part of the address with the differences from the opening: "a.iw=4&rate_bps=2000000". */
export function toFragment(settings: Settings, opened: Settings): string {
  const changed: string[] = [];
  for (const part of ["path", "a", "b"] as const) {
    const [now, then] = [settings[part], opened[part]] as unknown as Record<string, string | number>[];
    for (const [key, value] of Object.entries(now ?? {})) {
      const name = part === "path" ? key : `${part}.${key}`;
      if (value !== then?.[key]) changed.push(`${name}=${encodeURIComponent(value)}`);
    }
  }
  return changed.join("&");
}

/** The settings of an address; those that it does not name, or whose values are invalid, are as opened. */
export function fromFragment(fragment: string, opened: Settings): Settings {
  const settings = structuredClone(opened);
  for (const [name, value] of new URLSearchParams(fragment.slice(1))) {
    const [key, part] = /^[ab]\./.test(name) ? [name.slice(2), name[0] as "a" | "b"] : [name, "path" as const];
    const table = settings[part] as unknown as Record<string, string | number>;
    if (!Object.hasOwn(table, key)) continue;
    if (typeof table[key] === "string") table[key] = value;
    else if (value !== "" && Number.isFinite(Number(value))) table[key] = Number(value);
  }
  return settings;
}
