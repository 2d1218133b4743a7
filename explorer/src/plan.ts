/** The part of a plan that the knobs read and write; everything else passes through as it came. */

export interface Queue {
  kind: string;
  limit?: Limit;
  /** RED's limit. */
  limit_packets?: number;
}
export type Limit = { packets: number } | { bytes: number };

export interface Link {
  rate_bps: number | null;
  delay_ns: number;
  loss: number;
  lose: number[];
  queue: Queue;
}
export interface LinkPair {
  forward: Link;
  reverse: Link;
}

export interface Profile {
  mss_bytes: number;
  initial_window: { policy: string; segments?: number };
  startup: { scheme: string };
  congestion_control: { algorithm: string };
  nagle: string;
}

export interface Application {
  name?: string;
  kind: string;
  server_hosts?: string | null;
  client_hosts?: string | null;
  client_tcp: Profile;
  server_tcp: Profile;
  clients?: number;
  count?: number | null;
  direction?: string;
  response_header_bytes?: number;
  size?: { distribution: string; value: number };
  handshakes?: object;
  /** Of a call. */
  length_ns?: number | null;
}

export interface Plan {
  duration_ns: number;
  header_bytes: number;
  network: Record<string, unknown> & { topology: string };
  applications: Application[];
}

/** The transfer that the page opens with. */
export interface Opening {
  name: string;
  seed: number;
  plan: Plan;
  /** The scenario. */
  toml: string;
}

/** The data that Python writes when the page is built or served (python/firstflight/explore/start.py). */
export interface Start extends Opening {
  profiles: Record<string, Profile>;
  startup: { scheme: string }[];
  congestion_control: { algorithm: string }[];
  queues: Queue[];
  /** Handshakes of TLS by the chain of certificates. */
  chains: Record<string, object>;
  /** Applications of a neighbor by name: with the keys of a scenario, as TOML. */
  neighbors: Record<string, { plan: Application; toml: string }>;
  /** The transfers of the opening, packed; written by the build. */
  first?: string;
  /** Real paths: RTT in ms, rate in bit/s, queue in kB, loss in percent. */
  homes: [rttMs: number, rateBps: number, limitKb: number, lossPercent: number][];
}

/** All links of a network, each with both directions, in the order of the plan. */
export function linkPairs(network: Plan["network"]): LinkPair[] {
  const found: LinkPair[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    else if (typeof value === "object" && value !== null) {
      if ("forward" in value && "reverse" in value) found.push(value as LinkPair);
      else Object.values(value).forEach(visit);
    }
  };
  visit(network);
  return found;
}

/** Whether the first application's data goes forward on its links: away from a chain's start, a hub or a root. */
export function dataGoesForward(plan: Plan): boolean {
  const application = plan.applications[0];
  const place = (host: string | null | undefined): number => {
    const [, name, index] = /^([a-z_]+)(?:\[(\d+)\])?/.exec(host ?? "") ?? [];
    if (name === "node") return Number(index ?? 0);
    return name === "right" || name === "spokes" ? 1 : 0;
  };
  const [from, to] = application?.direction !== "upload"
    ? [application?.server_hosts, application?.client_hosts]
    : [application?.client_hosts, application?.server_hosts];
  return place(from) <= place(to);
}

export function queueLimit(queue: Queue): Limit {
  return queue.limit ?? { packets: queue.limit_packets ?? 0 };
}

/** The queue with another limit; RED counts packets only, so bytes become full packets there. */
export function withLimit(queue: Queue, limit: Limit, packetBytes: number): Queue {
  const changed = structuredClone(queue);
  if (changed.limit !== undefined) changed.limit = limit;
  else changed.limit_packets = "packets" in limit ? limit.packets : Math.max(1, Math.floor(limit.bytes / packetBytes));
  return changed;
}
