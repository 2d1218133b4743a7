/** One transfer out of the records: its segments with their outcomes, and three lines over time. */

import { type Records, Refused, type Simulated, type Table } from "./engine";
import { push, type Steps } from "./steps";

const [SENT, RECEIVED, DROPPED, LOST] = [0, 1, 2, 3];
const [FIN, SYN, ACK] = [1, 2, 16];
/** `resumption` of the records. */
const EARLY_DATA = 2;
const NO_CONNECTION = 0xffffffff;
/** `recovery_state` of the records: Linux's tcpi_ca_state. */
export const [FAST_RECOVERY, AFTER_TIMEOUT] = [3, 4];

export type LinkOutcome = "arrived" | "dropped" | "lost" | "under way";

export interface Segment {
  /** Sent by the end that sends the data. */
  readonly isDataWay: boolean;
  readonly sentNs: number;
  readonly seq: number;
  readonly length: number;
  readonly ack: number;
  readonly flags: number;
  readonly windowBytes: number;
  readonly sackRanges: number;
  readonly isRetransmission: boolean;
  /** Carries data of the TLS handshake. */
  readonly isTls: boolean;
  /** Of the data's sender as it sent this, or after it received it. */
  cwnd: number;
  state: number;
  /** Sent before the first ACK of data arrived. */
  isFirstFlight: boolean;
  /** At the bottleneck: when it came there, and when its transmission began and ended. */
  queuedNs: number | undefined;
  startNs: number | undefined;
  endNs: number | undefined;
  outcome: LinkOutcome;
  /** When it arrived, or was dropped or lost. */
  outcomeNs: number | undefined;
  /** Of an ACK at the data's sender: its number in a row of duplicates; 0: none. */
  duplicates: number;
}

export interface Transfer {
  readonly segments: readonly Segment[];
  readonly startNs: number;
  /** From the start until the last byte arrived; null: not before the end of the run; undefined: not known yet. */
  readonly completionNs: number | null | undefined;
  readonly handshakeNs: number;
  /** From the start until the TLS handshake ended at the client, and until the first TLS record was there; null: no. */
  readonly tlsNs: number | null;
  readonly usableNs: number | null;
  readonly serverSends: boolean;
  readonly bytes: number;
  /** The handshake, the first flight, and each further round of data, from its start. */
  readonly rounds: readonly Round[];
  /** What the data's sender reports: the end of slow start, recovery, undo, idle restart, probes, each with its cause. */
  readonly reports: readonly Report[];
  readonly delivered: Steps;
  readonly cwnd: Steps;
  readonly queue: Steps;
  readonly dropped: number;
  readonly retransmissions: number;
  readonly timeouts: number;
  readonly endNs: number;
  /** The drawing ends here, before the transfer does; null: all of it is drawn. */
  readonly cutNs: number | null;
}

export interface Report {
  readonly atNs: number;
  readonly what: string;
}

export interface Round {
  readonly name: string;
  readonly fromNs: number;
}

/** The transfer begins after the end of the run, if at all. */
export class NotStarted extends Refused {}

/** The first connection of the first application, as `firstflight trace` takes it. */
export function transferOf(records: Simulated): Transfer {
  const transfers = records.table("transfers");
  const row = firstTransfer(transfers);
  const at = (name: string): number => transfers.column(name)[row]!;
  const ns = (name: string): number | null => (Number.isNaN(at(name)) ? null : Math.round(at(name) * 1e9));
  const [connection, startNs, completionNs] = [at("connection"), ns("start_s")!, ns("completion_time_s")];

  const events = eventsOf(records.table("segments"), connection, tlsBytes(records, connection));
  const dataFrom = busier(events);
  const segments = matched(events, dataFrom);
  const crossings = crossingsOf(records.table("crossings"));
  const [there, back] = [dataFrom, 1 - dataFrom].map((from) => byLink(crossings, connection, from)) as [Links, Links];
  const link = bottleneck(crossings, there);
  for (const [links, isDataWay] of [[there, true], [back, false]] as const) throughLinks(segments.filter((one) => one.isDataWay === isDataWay), crossings, links, link);
  const endNs = completionNs === null ? Infinity : startNs + completionNs;
  const last = events.rows.at(-1);
  return {
    segments,
    startNs,
    completionNs,
    handshakeNs: ns("handshake_time_s") ?? NaN,
    tlsNs: ns("tls_handshake_time_s"),
    usableNs: ns("first_usable_byte_time_s"),
    serverSends: dataFrom === 1,
    bytes: at("bytes"),
    rounds: [{ name: "handshake", fromNs: startNs }, ...rounds(segments)],
    reports: reports(records, connection, dataFrom),
    delivered: delivered(events, dataFrom),
    cwnd: cwndSteps(events, dataFrom),
    queue: waiting(crossings, link),
    dropped: segments.filter(({ isDataWay, outcome, sentNs }) => isDataWay && sentNs <= endNs && (outcome === "dropped" || outcome === "lost")).length,
    retransmissions: at("retransmissions"),
    timeouts: at("timeouts"),
    endNs: last === undefined ? 0 : events.time_ns[last]!,
    cutNs: null,
  };
}

/** Bytes of the TLS handshake that client and server send on a connection. */
function tlsBytes(records: Records, connection: number): readonly [number, number] {
  const table = records.table("handshakes");
  // A run without TLS has no such table.
  const row = table.length === 0 ? undefined : rowsOf(table, connection)[0];
  if (row === undefined) return [0, 0];
  // Of a handshake with early data, the client's part does not lie before its request.
  const client = table.column("resumption")[row] === EARLY_DATA ? 0 : table.column("client_bytes")[row]!;
  return [client, table.column("server_bytes")[row]!];
}

/** The server's part of the TLS handshake: its segments, and the round trips that they take; undefined: no TLS. */
export function tlsFlight({ segments, serverSends }: Transfer): { segments: number; trips: number } | undefined {
  const flight = segments.filter(({ isTls, isDataWay }) => isTls && isDataWay === serverSends);
  if (flight.length === 0) return undefined;
  const answers = segments.filter(({ isDataWay, outcome }) => isDataWay !== serverSends && outcome === "arrived");
  let [trips, endsNs] = [0, 0];
  for (const { sentNs, outcome, outcomeNs } of flight) {
    if (trips === 0 || sentNs >= endsNs) [trips, endsNs] = [trips + 1, Infinity];
    if (endsNs < Infinity || outcome !== "arrived") continue;
    endsNs = Math.min(Infinity, ...answers.filter((one) => one.sentNs >= (outcomeNs ?? 0)).map((one) => one.outcomeNs ?? Infinity));
  }
  return { segments: flight.filter(({ isRetransmission }) => !isRetransmission).length, trips };
}

function firstTransfer(transfers: Table, whose = 0): number {
  const { application, start_s, connection } = transfers.columns("application", "start_s", "connection");
  const rows = Array.from(application, (_, row) => row).filter((row) => application[row] === whose && connection[row] !== NO_CONNECTION);
  if (rows.length === 0) throw new NotStarted("no transfer starts within this run");
  return rows.reduce((first, row) => (start_s[row]! < start_s[first]! ? row : first));
}

/** The segment events of that connection, as `firstflight trace --csv` writes them: a column for each name. */
export function traced(records: Records, names: readonly string[]): number[][] {
  const transfers = records.table("transfers");
  const table = records.table("segments");
  const rows = rowsOf(table, transfers.column("connection")[firstTransfer(transfers)]!);
  return names.map((name) => {
    const column = table.column(name);
    return rows.map((row) => column[row]!);
  });
}

/** A neighbor's flow: the completion time of a transfer, or of a call the longest delay of a packet. */
export interface Neighbor {
  /** null: not before the end of the run. */
  readonly timeNs: number | null;
  /** Packets of a call, and those that came too late or never; null and 0: it is a transfer. */
  readonly packets: number | null;
  readonly late: number;
}

export interface Timing {
  /** From the start until the last byte arrived; null: not before the end of the run. */
  readonly completionNs: number | null;
  readonly neighbor: Neighbor | null;
}

/** The times of the first transfer and of a neighbor, without any picture. */
export function timingOf(records: Records, neighbor: number | undefined, isFromServer: boolean): Timing {
  return { completionNs: completionNs(records, 0), neighbor: neighbor === undefined ? null : neighborOf(records, neighbor, isFromServer) };
}

function completionNs(records: Records, application: number): number | null {
  const transfers = records.table("transfers");
  try {
    const seconds = transfers.column("completion_time_s")[firstTransfer(transfers, application)]!;
    return Number.isNaN(seconds) ? null : Math.round(seconds * 1e9);
  } catch (error) {
    if (error instanceof NotStarted) return null;
    throw error;
  }
}

function neighborOf(records: Records, number: number, isFromServer: boolean): Neighbor {
  const streams = records.table("streams").columns("application", "from_server", "packets_sent", "packets_lost", "packets_late", "delay_max_s");
  const row = Array.from(streams.application).findIndex((one, index) => one === number && streams.from_server[index] === Number(isFromServer));
  if (row < 0) return { timeNs: completionNs(records, number), packets: null, late: 0 };
  return { timeNs: Math.round(streams.delay_max_s[row]! * 1e9), packets: streams.packets_sent[row]!, late: streams.packets_lost[row]! + streams.packets_late[row]! };
}

function rowsOf(table: Table, connection: number): number[] {
  const whose = table.column("connection");
  return Array.from(whose, (_, row) => row).filter((row) => whose[row] === connection);
}

type Events = ReturnType<typeof eventsOf>;

/** The table of segments by column, and which of its rows are of a connection: an object for each row would take longer. */
function eventsOf(table: Table, connection: number, tls: readonly [number, number]) {
  const columns = table.columns(
    ...(["time_ns", "event", "from_server", "seq", "length", "ack", "window_bytes", "cwnd_segments", "recovery_state", "flags", "retransmission", "sack_count"] as const),
  );
  const { from_server, seq, length } = columns;
  /** The first byte of data has sequence number 1. */
  const isTls = (row: number): boolean => length[row]! > 0 && seq[row]! <= tls[from_server[row] as 0 | 1];
  return { ...columns, rows: rowsOf(table, connection), isTls };
}

/** The end that sends more data, without the TLS handshake: 1 for the server. */
function busier(events: Events): number {
  const bytes = [0, 0];
  for (const row of events.rows) if (events.event[row] === SENT && !events.isTls(row)) bytes[events.from_server[row]!]! += events.length[row]!;
  return bytes[1]! >= bytes[0]! ? 1 : 0;
}

/** Segments as they were sent, each with its arrival or loss. */
function matched(events: Events, dataFrom: number): Segment[] {
  const { time_ns, event, from_server, seq, length, ack, window_bytes, cwnd_segments, recovery_state, flags, retransmission, sack_count } = events;
  const segments: Segment[] = [];
  // Of segments alike, the first that was sent arrives first.
  const underWay = new Map<number, Segment[]>();
  let hasAck = false;
  let [reached, highest, window, inARow] = [0, 0, -1, 0];
  for (const row of events.rows) {
    const isDataWay = from_server[row] === dataFrom;
    const [start, size, acked] = [seq[row]!, length[row]!, ack[row]!];
    // Segments are alike if they carry or, without data, acknowledge the same, from one endpoint, both or neither a
    // retransmission.
    const key = (size > 0 ? start : acked) * 8 + 4 * retransmission[row]! + (size > 0 ? 2 : 0) + from_server[row]!;
    if (event[row] === SENT) {
      const segment: Segment = {
        isDataWay,
        sentNs: time_ns[row]!,
        seq: start,
        length: size,
        ack: acked,
        flags: flags[row]!,
        windowBytes: window_bytes[row]!,
        sackRanges: sack_count[row]!,
        isRetransmission: retransmission[row] === 1,
        isTls: events.isTls(row),
        cwnd: cwnd_segments[row]!,
        state: recovery_state[row]!,
        isFirstFlight: isDataWay && size > 0 && !hasAck,
        queuedNs: undefined,
        startNs: undefined,
        endNs: undefined,
        outcome: "under way",
        outcomeNs: undefined,
        duplicates: 0,
      };
      segments.push(segment);
      const alike = underWay.get(key);
      if (alike === undefined) underWay.set(key, [segment]);
      else alike.push(segment);
      if (isDataWay) highest = Math.max(highest, start + size);
      continue;
    }
    const segment = underWay.get(key)?.shift();
    if (segment === undefined) continue;
    segment.outcome = event[row] === RECEIVED ? "arrived" : event[row] === LOST ? "lost" : "dropped";
    segment.outcomeNs = time_ns[row]!;
    if (isDataWay || event[row] !== RECEIVED || (flags[row]! & ACK) === 0) continue;
    segment.cwnd = cwnd_segments[row]!;
    segment.state = recovery_state[row]!;
    // RFC 5681 section 2: no data, no SYN or FIN, the same acknowledgment number and window, while data is outstanding.
    const isDuplicate = size === 0 && (flags[row]! & (SYN | FIN)) === 0 && acked === reached && window_bytes[row] === window && highest > acked;
    inARow = isDuplicate ? inARow + 1 : 0;
    segment.duplicates = inARow;
    hasAck ||= acked > 1;
    reached = Math.max(reached, acked);
    window = window_bytes[row]!;
  }
  return segments;
}

/** The table of packets at links by column. */
function crossingsOf(table: Table) {
  return table.columns(...(["connection", "link", "from_server", "event", "time_ns", "start_ns", "end_ns"] as const));
}
type Crossings = ReturnType<typeof crossingsOf>;
/** Rows of packets by link. */
type Links = (readonly [link: number, rows: readonly number[]])[];

/** Of the packets that an end of a connection sends, the rows by link, in the order in which they get there. */
function byLink({ connection, link, from_server, time_ns }: Crossings, whose: number, from: number): Links {
  const links = new Map<number, number[]>();
  for (let row = 0; row < link.length; row++) {
    if (connection[row] !== whose || from_server[row] !== from) continue;
    const there = links.get(link[row]!);
    if (there === undefined) links.set(link[row]!, [row]);
    else there.push(row);
  }
  return [...links].sort(([, one], [, other]) => time_ns[one[0]!]! - time_ns[other[0]!]!);
}

/** The link at which the data waits longest in total; if it waits nowhere, the slowest. */
function bottleneck({ event, time_ns, start_ns, end_ns }: Crossings, links: Links): number {
  const sums = links.map(([link, all]) => {
    const rows = all.filter((row) => event[row] !== DROPPED);
    const sum = (from: ArrayLike<number>, to: ArrayLike<number>): number => rows.reduce((sum, row) => sum + to[row]! - from[row]!, 0);
    return { link, waited: sum(time_ns, start_ns), transmitted: sum(start_ns, end_ns) };
  });
  sums.sort((one, other) => other.waited - one.waited || other.transmitted - one.transmitted);
  return sums[0]?.link ?? -1;
}

/** Packets of all connections that wait at a link. */
function waiting({ link, time_ns, start_ns }: Crossings, at: number): Steps {
  const [came, went]: [number[], number[]] = [[], []];
  for (let row = 0; row < link.length; row++) {
    if (link[row] !== at || start_ns[row]! <= time_ns[row]!) continue;
    came.push(time_ns[row]!);
    went.push(start_ns[row]!);
  }
  // Packets come in the order of the table, and need not leave in it.
  const leave = Float64Array.from(went).sort();
  const steps: Steps = { timeNs: [0], values: [0] };
  let arrived = 0;
  for (const [left, timeNs] of leave.entries()) {
    for (; arrived < came.length && came[arrived]! <= timeNs; arrived++) push(steps, came[arrived]!, arrived + 1 - left);
    push(steps, timeNs, arrived - left - 1);
  }
  return steps;
}

/** Each link passes the segments of a connection in order, so the nth packet there is the nth segment that got so far. */
function throughLinks(segments: Segment[], { event, time_ns, start_ns, end_ns }: Crossings, links: Links, bottleneck: number): void {
  let left = segments;
  for (const [link, rows] of links) {
    left = left.filter((segment, index) => {
      const row = rows[index];
      if (row === undefined) return true;
      if (link === bottleneck) [segment.queuedNs, segment.startNs, segment.endNs] = [time_ns[row], start_ns[row], end_ns[row]];
      return event[row] === RECEIVED;
    });
  }
}

/** Bytes that have arrived in order. */
function delivered({ rows, event, from_server, time_ns, seq, length }: Events, dataFrom: number): Steps {
  const steps: Steps = { timeNs: [0], values: [0] };
  const ahead = new Map<number, number>();
  let next = 1;
  for (const row of rows) {
    if (event[row] !== RECEIVED || from_server[row] !== dataFrom || length[row] === 0) continue;
    const [start, end] = [seq[row]!, seq[row]! + length[row]!];
    if (end <= next) continue;
    ahead.set(start, Math.max(end, ahead.get(start) ?? 0));
    if (start > next) continue;
    // A range that was reached may make others reachable.
    for (let [before, now] = [0, next]; before !== now; [before, now] = [now, next]) {
      for (const [later, until] of ahead) {
        if (later > next) continue;
        ahead.delete(later);
        next = Math.max(next, until);
      }
    }
    push(steps, time_ns[row]!, next - 1);
  }
  return steps;
}

/** A round begins with the first data that is sent after the ACK of the first data of the round before. */
function rounds(segments: readonly Segment[]): Round[] {
  const acks = segments.filter(({ isDataWay, outcome }) => !isDataWay && outcome === "arrived").sort((one, other) => one.outcomeNs! - other.outcomeNs!);
  const found: Round[] = [];
  let [next, first] = [0, 0];
  for (const { isDataWay, isTls, isRetransmission, length, seq, sentNs } of segments) {
    if (!isDataWay || isTls || isRetransmission || length === 0) continue;
    while (next < acks.length && acks[next]!.ack <= first) next++;
    const acked = acks[next];
    if (found.length > 0 && (acked === undefined || acked.outcomeNs! > sentNs)) continue;
    found.push({ name: found.length === 0 ? "first flight" : `round ${found.length + 1}`, fromNs: sentNs });
    first = seq;
  }
  return found;
}

/** The events of the data's sender in words, as `firstflight trace` has them. */
function reports(records: Simulated, connection: number, dataFrom: number): Report[] {
  const table = records.table("sender_events");
  const { time_ns, from_server, old_state, new_state, trigger } = table.columns("time_ns", "from_server", "old_state", "new_state", "trigger");
  return rowsOf(table, connection)
    .filter((row) => from_server[row] === dataFrom)
    .map((row) => ({ atNs: time_ns[row]!, what: records.senderEvents![old_state[row]!]![new_state[row]!]![trigger[row]!]! }));
}

/** cwnd when the data's sender sends and after it receives. */
function cwndSteps({ rows, event, from_server: from, time_ns, cwnd_segments: cwnd }: Events, dataFrom: number): Steps {
  const steps: Steps = { timeNs: [], values: [] };
  for (const row of rows) {
    const isOwn = event[row] === SENT ? from[row] === dataFrom : event[row] === RECEIVED && from[row] !== dataFrom;
    if (!isOwn) continue;
    if (steps.values[steps.values.length - 1] !== cwnd[row]) push(steps, time_ns[row]!, cwnd[row]!);
  }
  return steps;
}
