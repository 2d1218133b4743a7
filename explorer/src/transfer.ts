/** One transfer out of the records: its segments with their outcomes, and three lines over time. */

import { type Records, Refused, type Table } from "./engine";
import { push, type Steps } from "./steps";

const [SENT, RECEIVED, DROPPED, LOST] = [0, 1, 2, 3];
const [FIN, SYN, ACK] = [1, 2, 16];
/** `resumption` of the records. */
const EARLY_DATA = 2;
const NO_CONNECTION = 0xffffffff;
/** `recovery_state` of the records: Linux's tcpi_ca_state. */
export const [CWR, FAST_RECOVERY, AFTER_TIMEOUT] = [2, 3, 4];
/** An initial ssthresh, that of a sender without one: 4 GiB. */
const NO_SSTHRESH = 1e6;

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
  /** When ssthresh was first set, and why; null: not before the last data was sent, or from the start. */
  readonly slowStartEnd: { readonly atNs: number; readonly why: string } | null;
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

export interface Round {
  readonly name: string;
  readonly fromNs: number;
}

/** The transfer begins after the end of the run, if at all. */
export class NotStarted extends Refused {}

/** The first connection of the first application, as `firstflight trace` takes it. */
export function transferOf(records: Records): Transfer {
  const transfers = records.table("transfers");
  const row = firstTransfer(transfers);
  const connection = transfers.column("connection")[row]!;
  const at = (name: string): number => transfers.column(name)[row]!;
  const toNs = (seconds: number): number => Math.round(seconds * 1e9);

  const events = new Events(records.table("segments"), connection, tlsBytes(records, connection));
  const dataFrom = busier(events);
  const segments = matched(events, dataFrom);
  const crossings = new Crossings(records.table("crossings"), connection);
  const link = crossings.bottleneck(dataFrom);
  for (const from of [0, 1]) throughLinks(segments.filter((one) => (one.isDataWay ? dataFrom : 1 - dataFrom) === from), crossings, from, link);
  const completion = at("completion_time_s");
  const endNs = Number.isNaN(completion) ? Infinity : toNs(at("start_s") + completion);
  const last = events.rows.at(-1);
  return {
    segments,
    startNs: toNs(at("start_s")),
    completionNs: Number.isNaN(completion) ? null : toNs(completion),
    handshakeNs: toNs(at("handshake_time_s")),
    tlsNs: orNull(toNs(at("tls_handshake_time_s"))),
    usableNs: orNull(toNs(at("first_usable_byte_time_s"))),
    serverSends: dataFrom === 1,
    bytes: at("bytes"),
    rounds: [{ name: "handshake", fromNs: toNs(at("start_s")) }, ...rounds(segments)],
    slowStartEnd: slowStartEnd(events, dataFrom),
    delivered: delivered(events, dataFrom),
    cwnd: cwndSteps(events, dataFrom),
    queue: crossings.waiting(link),
    dropped: segments.filter(({ isDataWay, outcome, sentNs }) => isDataWay && sentNs <= endNs && (outcome === "dropped" || outcome === "lost")).length,
    retransmissions: at("retransmissions"),
    timeouts: at("timeouts"),
    endNs: last === undefined ? 0 : events.timeNs[last]!,
    cutNs: null,
  };
}

function orNull(number: number): number | null {
  return Number.isNaN(number) ? null : number;
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
  const [application, starts, connections] = ["application", "start_s", "connection"].map((name) => transfers.column(name));
  let row = -1;
  for (let index = 0; index < application!.length; index++) {
    if (application![index] !== whose || connections![index] === NO_CONNECTION) continue;
    if (row < 0 || starts![index]! < starts![row]!) row = index;
  }
  if (row < 0) throw new NotStarted("no transfer starts within this run");
  return row;
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

function neighborOf(records: Records, application: number, isFromServer: boolean): Neighbor {
  const streams = records.table("streams");
  const of = ["application", "from_server", "packets_sent", "packets_lost", "packets_late", "delay_max_s"].map((name) => streams.column(name));
  const [whose, from, sent, lost, late, delay] = of;
  const row = Array.from(whose!).findIndex((one, index) => one === application && from![index] === Number(isFromServer));
  if (row < 0) return { timeNs: completionNs(records, application), packets: null, late: 0 };
  return { timeNs: Math.round(delay![row]! * 1e9), packets: sent![row]!, late: lost![row]! + late![row]! };
}

function rowsOf(table: Table, connection: number): number[] {
  const whose = table.column("connection");
  const rows: number[] = [];
  for (let row = 0; row < whose.length; row++) if (whose[row] === connection) rows.push(row);
  return rows;
}

/** The table of segments by column, and which of its rows are of a connection: an object for each row would take longer. */
class Events {
  readonly rows: readonly number[];
  readonly timeNs; readonly event; readonly from; readonly seq; readonly length; readonly ack; readonly windowBytes;
  readonly cwnd; readonly ssthresh; readonly state; readonly flags; readonly retransmission; readonly sackCount;

  constructor(
    table: Table,
    connection: number,
    private readonly tlsBytes: readonly [number, number],
  ) {
    this.rows = rowsOf(table, connection);
    this.timeNs = table.column("time_ns");
    this.event = table.column("event");
    this.from = table.column("from_server");
    this.seq = table.column("seq");
    this.length = table.column("length");
    this.ack = table.column("ack");
    this.windowBytes = table.column("window_bytes");
    this.cwnd = table.column("cwnd_segments");
    this.ssthresh = table.column("ssthresh_segments");
    this.state = table.column("recovery_state");
    this.flags = table.column("flags");
    this.retransmission = table.column("retransmission");
    this.sackCount = table.column("sack_count");
  }

  /** The first byte of data has sequence number 1. */
  isTls(row: number): boolean {
    return this.length[row]! > 0 && this.seq[row]! <= this.tlsBytes[this.from[row] as 0 | 1];
  }
}

/** The end that sends more data, without the TLS handshake: 1 for the server. */
function busier(events: Events): number {
  const { rows, event, from, length } = events;
  const bytes = [0, 0];
  for (const row of rows) if (event[row] === SENT && !events.isTls(row)) bytes[from[row]!]! += length[row]!;
  return bytes[1]! >= bytes[0]! ? 1 : 0;
}

/** Segments that are in flight: of those alike, the first that was sent arrives first. */
class UnderWay {
  private readonly first = new Map<number, Segment>();
  private readonly next = new Map<Segment, Segment>();

  add(key: number, segment: Segment): void {
    let last = this.first.get(key);
    if (last === undefined) {
      this.first.set(key, segment);
      return;
    }
    for (let later = this.next.get(last); later !== undefined; later = this.next.get(last)) last = later;
    this.next.set(last, segment);
  }

  take(key: number): Segment | undefined {
    const taken = this.first.get(key);
    if (taken === undefined) return undefined;
    const later = this.next.get(taken);
    if (later === undefined) this.first.delete(key);
    else {
      this.first.set(key, later);
      this.next.delete(taken);
    }
    return taken;
  }
}

/** Segments as they were sent, each with its arrival or loss. */
function matched(events: Events, dataFrom: number): Segment[] {
  const { timeNs, event, from, seq, length, ack, windowBytes, cwnd, state, flags, retransmission, sackCount } = events;
  const segments: Segment[] = [];
  const underWay = new UnderWay();
  let hasAck = false;
  let [reached, highest, window, inARow] = [0, 0, -1, 0];
  for (const row of events.rows) {
    const isDataWay = from[row] === dataFrom;
    const [start, size, acked] = [seq[row]!, length[row]!, ack[row]!];
    // Segments are alike if they carry or, without data, acknowledge the same, from one endpoint, both or neither a
    // retransmission.
    const key = (size > 0 ? start : acked) * 8 + 4 * retransmission[row]! + (size > 0 ? 2 : 0) + from[row]!;
    if (event[row] === SENT) {
      const segment: Segment = {
        isDataWay,
        sentNs: timeNs[row]!,
        seq: start,
        length: size,
        ack: acked,
        flags: flags[row]!,
        windowBytes: windowBytes[row]!,
        sackRanges: sackCount[row]!,
        isRetransmission: retransmission[row] === 1,
        isTls: events.isTls(row),
        cwnd: cwnd[row]!,
        state: state[row]!,
        isFirstFlight: isDataWay && size > 0 && !hasAck,
        queuedNs: undefined,
        startNs: undefined,
        endNs: undefined,
        outcome: "under way",
        outcomeNs: undefined,
        duplicates: 0,
      };
      segments.push(segment);
      underWay.add(key, segment);
      if (isDataWay) highest = Math.max(highest, start + size);
      continue;
    }
    const segment = underWay.take(key);
    if (segment === undefined) continue;
    segment.outcome = event[row] === RECEIVED ? "arrived" : event[row] === LOST ? "lost" : "dropped";
    segment.outcomeNs = timeNs[row]!;
    if (isDataWay || event[row] !== RECEIVED || (flags[row]! & ACK) === 0) continue;
    segment.cwnd = cwnd[row]!;
    segment.state = state[row]!;
    // RFC 5681 section 2: no data, no SYN or FIN, the same acknowledgment number and window, while data is outstanding.
    const isDuplicate = size === 0 && (flags[row]! & (SYN | FIN)) === 0 && acked === reached && windowBytes[row] === window && highest > acked;
    inARow = isDuplicate ? inARow + 1 : 0;
    segment.duplicates = inARow;
    hasAck ||= acked > 1;
    reached = Math.max(reached, acked);
    window = windowBytes[row]!;
  }
  return segments;
}

/** The table of packets at links by column, and which of its rows are of a connection. */
class Crossings {
  private readonly rows: readonly number[];
  readonly link; readonly from; readonly event; readonly timeNs; readonly startNs; readonly endNs;

  constructor(table: Table, connection: number) {
    this.rows = rowsOf(table, connection);
    this.link = table.column("link");
    this.from = table.column("from_server");
    this.event = table.column("event");
    this.timeNs = table.column("time_ns");
    this.startNs = table.column("start_ns");
    this.endNs = table.column("end_ns");
  }

  /** Of the packets that an end sends, the rows by link, in the order in which they get there. */
  byLink(from: number): Map<number, number[]> {
    const links = new Map<number, number[]>();
    for (const row of this.rows) {
      if (this.from[row] !== from) continue;
      const there = links.get(this.link[row]!);
      if (there === undefined) links.set(this.link[row]!, [row]);
      else there.push(row);
    }
    return new Map([...links].sort(([, one], [, other]) => this.timeNs[one[0]!]! - this.timeNs[other[0]!]!));
  }

  /** The link at which the data waits longest in total; if it waits nowhere, the slowest. */
  bottleneck(dataFrom: number): number {
    const sums = [...this.byLink(dataFrom)].map(([link, rows]) => {
      let [waited, transmitted] = [0, 0];
      for (const row of rows) {
        if (this.event[row] === DROPPED) continue;
        waited += this.startNs[row]! - this.timeNs[row]!;
        transmitted += this.endNs[row]! - this.startNs[row]!;
      }
      return { link, waited, transmitted };
    });
    sums.sort((one, other) => other.waited - one.waited || other.transmitted - one.transmitted);
    return sums[0]?.link ?? -1;
  }

  /** Packets of all connections that wait at a link. */
  waiting(link: number): Steps {
    const [came, went]: [number[], number[]] = [[], []];
    for (let row = 0; row < this.link.length; row++) {
      if (this.link[row] !== link || this.startNs[row]! <= this.timeNs[row]!) continue;
      came.push(this.timeNs[row]!);
      went.push(this.startNs[row]!);
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
}

/** Each link passes the segments of a connection in order, so the nth packet there is the nth segment that got so far. */
function throughLinks(segments: Segment[], crossings: Crossings, from: number, bottleneck: number): void {
  const { event, timeNs, startNs, endNs } = crossings;
  let left = segments;
  for (const [link, rows] of crossings.byLink(from)) {
    left = left.filter((segment, index) => {
      const row = rows[index];
      if (row === undefined) return true;
      if (link === bottleneck) {
        segment.queuedNs = timeNs[row];
        segment.startNs = startNs[row];
        segment.endNs = endNs[row];
      }
      return event[row] === RECEIVED;
    });
  }
}

/** Bytes that have arrived in order. */
function delivered({ rows, event, from, timeNs, seq, length }: Events, dataFrom: number): Steps {
  const steps: Steps = { timeNs: [0], values: [0] };
  const ahead = new Map<number, number>();
  let next = 1;
  for (const row of rows) {
    if (event[row] !== RECEIVED || from[row] !== dataFrom || length[row] === 0) continue;
    const [start, end] = [seq[row]!, seq[row]! + length[row]!];
    if (end <= next) continue;
    if (start > next) {
      ahead.set(start, Math.max(end, ahead.get(start) ?? 0));
      continue;
    }
    next = end;
    for (let found = ahead.size > 0; found; ) {
      found = false;
      for (const [later, until] of ahead) {
        if (later > next) continue;
        ahead.delete(later);
        next = Math.max(next, until);
        found = true;
      }
    }
    push(steps, timeNs[row]!, next - 1);
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

/** From the sender's ssthresh and recovery state, which is all that the records have. */
function slowStartEnd({ rows, event, from, timeNs, length, ssthresh, state }: Events, dataFrom: number): Transfer["slowStartEnd"] {
  const sent = rows.filter((row) => event[row] === SENT && from[row] === dataFrom && length[row]! > 0);
  const lastSent = timeNs[sent.at(-1) ?? -1] ?? 0;
  let isFirst = true;
  for (const row of rows) {
    if (event[row] === SENT ? from[row] !== dataFrom : event[row] !== RECEIVED || from[row] === dataFrom) continue;
    const isSet = ssthresh[row]! < NO_SSTHRESH;
    if ((isSet && isFirst) || timeNs[row]! >= lastSent) return null;
    if (isSet) return { atNs: timeNs[row]!, why: state[row] === AFTER_TIMEOUT ? "timeout" : state[row] === FAST_RECOVERY ? "loss" : state[row] === CWR ? "CE mark" : "no loss" };
    isFirst = false;
  }
  return null;
}

/** cwnd when the data's sender sends and after it receives. */
function cwndSteps({ rows, event, from, timeNs, cwnd }: Events, dataFrom: number): Steps {
  const steps: Steps = { timeNs: [], values: [] };
  for (const row of rows) {
    const isOwn = event[row] === SENT ? from[row] === dataFrom : event[row] === RECEIVED && from[row] !== dataFrom;
    if (!isOwn) continue;
    if (steps.values[steps.values.length - 1] !== cwnd[row]) push(steps, timeNs[row]!, cwnd[row]!);
  }
  return steps;
}
