/** One transfer out of the records: its segments with what became of them, and three lines over time. */

import { type Records, Refused, type Table } from "./engine";

const [SENT, RECEIVED, DROPPED, LOST] = [0, 1, 2, 3];
const [FIN, SYN, ACK] = [1, 2, 16];
const NO_CONNECTION = 0xffffffff;
/** `recovery_state` of the records: Linux's tcpi_ca_state. */
export const [FAST_RECOVERY, AFTER_TIMEOUT] = [3, 4];

export type Fate = "arrived" | "dropped" | "lost" | "under way";

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
  /** Of the data's sender as it sent this, or after it received it. */
  cwnd: number;
  state: number;
  /** Sent before the first ACK of data arrived. */
  isFirstFlight: boolean;
  /** At the bottleneck: when it came there, and when its transmission began and ended. */
  queuedNs?: number;
  startNs?: number;
  endNs?: number;
  fate: Fate;
  /** When it arrived, or was dropped or lost. */
  fateNs?: number;
  /** Of an ACK at the data's sender: its number in a row of duplicates; 0: none. */
  duplicates: number;
}

/** A line that keeps each value until the next time. */
export interface Steps {
  readonly timeNs: number[];
  readonly values: number[];
}

export interface Transfer {
  readonly segments: readonly Segment[];
  readonly startNs: number;
  /** From the start until the last byte arrived; null: not before the end of the run. */
  readonly completionNs: number | null;
  readonly handshakeNs: number;
  readonly bytes: number;
  readonly delivered: Steps;
  readonly cwnd: Steps;
  readonly queue: Steps;
  readonly dropped: number;
  readonly retransmissions: number;
  readonly timeouts: number;
  readonly endNs: number;
}

/** The first connection of the first application, as `firstflight trace` takes it. */
export function transferOf(records: Records): Transfer {
  const transfers = records.table("transfers");
  const row = firstTransfer(transfers);
  const connection = transfers.column("connection")[row]!;
  const at = (name: string): number => transfers.column(name)[row]!;
  const toNs = (seconds: number): number => Math.round(seconds * 1e9);

  const rows = segmentRows(records.table("segments"), connection);
  const dataFrom = busier(rows);
  const segments = matched(rows, dataFrom);
  const crossings = crossingRows(records.table("crossings"));
  const own = crossings.filter((crossing) => crossing.connection === connection);
  const link = bottleneck(own.filter((crossing) => crossing.from === dataFrom));
  for (const from of [0, 1]) throughLinks(segments.filter((one) => (one.isDataWay ? dataFrom : 1 - dataFrom) === from), own.filter((one) => one.from === from), link);
  const completion = at("completion_time_s");
  const lastRow = rows[rows.length - 1];
  return {
    segments,
    startNs: toNs(at("start_s")),
    completionNs: Number.isNaN(completion) ? null : toNs(completion),
    handshakeNs: toNs(at("handshake_time_s")),
    bytes: at("bytes"),
    delivered: delivered(rows, dataFrom),
    cwnd: cwndSteps(rows, dataFrom),
    queue: waiting(crossings.filter((crossing) => crossing.link === link)),
    dropped: segments.filter(({ isDataWay, fate }) => isDataWay && (fate === "dropped" || fate === "lost")).length,
    retransmissions: at("retransmissions"),
    timeouts: at("timeouts"),
    endNs: lastRow === undefined ? 0 : lastRow.timeNs,
  };
}

function firstTransfer(transfers: Table): number {
  const [application, starts, connections] = ["application", "start_s", "connection"].map((name) => transfers.column(name));
  let row = -1;
  for (let index = 0; index < application!.length; index++) {
    if (application![index] !== 0 || connections![index] === NO_CONNECTION) continue;
    if (row < 0 || starts![index]! < starts![row]!) row = index;
  }
  if (row < 0) throw new Refused("no transfer starts within this run");
  return row;
}

/** The segment events of that connection, as `firstflight trace --csv` writes them. */
export function traced(records: Records): Row[] {
  const transfers = records.table("transfers");
  return segmentRows(records.table("segments"), transfers.column("connection")[firstTransfer(transfers)]!);
}

/** The time from the start until the last byte arrived, without any picture; null: not before the end of the run. */
export function completionNs(records: Records): number | null {
  const seconds = records.table("transfers").column("completion_time_s")[0];
  return seconds === undefined || Number.isNaN(seconds) ? null : Math.round(seconds * 1e9);
}

export interface Row {
  timeNs: number;
  event: number;
  from: number;
  seq: number;
  length: number;
  ack: number;
  windowBytes: number;
  cwnd: number;
  state: number;
  flags: number;
  retransmission: number;
  sackCount: number;
}

function segmentRows(table: Table, connection: number): Row[] {
  const names = ["time_ns", "event", "from_server", "seq", "length", "ack", "window_bytes", "cwnd_segments", "recovery_state", "flags", "retransmission", "sack_count"];
  const [time, event, from, seq, length, ack, window, cwnd, state, flags, again, sack] = names.map((name) => table.column(name));
  const whose = table.column("connection");
  const rows: Row[] = [];
  for (let index = 0; index < whose.length; index++) {
    if (whose[index] !== connection) continue;
    rows.push({
      timeNs: time![index]!,
      event: event![index]!,
      from: from![index]!,
      seq: seq![index]!,
      length: length![index]!,
      ack: ack![index]!,
      windowBytes: window![index]!,
      cwnd: cwnd![index]!,
      state: state![index]!,
      flags: flags![index]!,
      retransmission: again![index]!,
      sackCount: sack![index]!,
    });
  }
  return rows;
}

/** The end that sends more data: 1 for the server. */
function busier(rows: Row[]): number {
  const bytes = [0, 0];
  for (const { event, from, length } of rows) if (event === SENT) bytes[from]! += length;
  return bytes[1]! >= bytes[0]! ? 1 : 0;
}

/** Segments as they were sent, each with its arrival or loss: the first of its kind that is still under way. */
// By what it carries or, without data, acknowledges; who sent it; whether it is a retransmission.
function matched(rows: Row[], dataFrom: number): Segment[] {
  const segments: Segment[] = [];
  const underWay = new Map<number, Segment[]>();
  let hasAck = false;
  let [reached, highest, window, inARow] = [0, 0, -1, 0];
  for (const row of rows) {
    const isDataWay = row.from === dataFrom;
    const kind = 4 * row.retransmission + (row.length > 0 ? 2 : 0) + row.from;
    const key = (row.length > 0 ? row.seq : row.ack) * 8 + kind;
    if (row.event === SENT) {
      const segment: Segment = {
        isDataWay,
        sentNs: row.timeNs,
        seq: row.seq,
        length: row.length,
        ack: row.ack,
        flags: row.flags,
        windowBytes: row.windowBytes,
        sackRanges: row.sackCount,
        isRetransmission: row.retransmission === 1,
        cwnd: row.cwnd,
        state: row.state,
        isFirstFlight: isDataWay && row.length > 0 && !hasAck,
        fate: "under way",
        duplicates: 0,
      };
      segments.push(segment);
      const alike = underWay.get(key);
      if (alike === undefined) underWay.set(key, [segment]);
      else alike.push(segment);
      if (isDataWay) highest = Math.max(highest, row.seq + row.length);
      continue;
    }
    const segment = underWay.get(key)?.shift();
    if (segment === undefined) continue;
    segment.fate = row.event === RECEIVED ? "arrived" : row.event === LOST ? "lost" : "dropped";
    segment.fateNs = row.timeNs;
    if (isDataWay || row.event !== RECEIVED || (row.flags & ACK) === 0) continue;
    [segment.cwnd, segment.state] = [row.cwnd, row.state];
    // RFC 5681 section 2: no data, no SYN or FIN, the same acknowledgment number and window, while data is outstanding.
    const isDuplicate = row.length === 0 && (row.flags & (SYN | FIN)) === 0 && row.ack === reached && row.windowBytes === window && highest > row.ack;
    inARow = isDuplicate ? inARow + 1 : 0;
    segment.duplicates = inARow;
    hasAck ||= row.ack > 1;
    reached = Math.max(reached, row.ack);
    window = row.windowBytes;
  }
  return segments;
}

interface Crossing {
  link: number;
  connection: number;
  from: number;
  event: number;
  timeNs: number;
  startNs: number;
  endNs: number;
}

function crossingRows(table: Table): Crossing[] {
  const names = ["link", "connection", "from_server", "event", "time_ns", "start_ns", "end_ns"];
  const [link, connection, from, event, time, start, end] = names.map((name) => table.column(name));
  return Array.from(link!, (one, index) => ({
    link: one,
    connection: connection![index]!,
    from: from![index]!,
    event: event![index]!,
    timeNs: time![index]!,
    startNs: start![index]!,
    endNs: end![index]!,
  }));
}

/** The link at which the data waits longest in total; if it waits nowhere, the slowest. */
function bottleneck(crossings: Crossing[]): number {
  const links = new Map<number, [waited: number, transmitted: number]>();
  for (const { link, event, timeNs, startNs, endNs } of crossings) {
    const sums = links.get(link) ?? [0, 0];
    if (event !== DROPPED) {
      sums[0] += startNs - timeNs;
      sums[1] += endNs - startNs;
    }
    links.set(link, sums);
  }
  const ranked = [...links].sort(([, one], [, other]) => other[0] - one[0] || other[1] - one[1]);
  return ranked[0]?.[0] ?? -1;
}

/** Each link passes the segments of a connection in order, so the nth packet there is the nth segment that got so far. */
function throughLinks(segments: Segment[], crossings: Crossing[], bottleneck: number): void {
  const links = new Map<number, Crossing[]>();
  for (const crossing of crossings) {
    const there = links.get(crossing.link);
    if (there === undefined) links.set(crossing.link, [crossing]);
    else there.push(crossing);
  }
  const inOrder = [...links].sort(([, one], [, other]) => one[0]!.timeNs - other[0]!.timeNs);
  let left = segments;
  for (const [link, passed] of inOrder) {
    left = left.filter((segment, index) => {
      const crossing = passed[index];
      if (crossing === undefined) return true;
      if (link === bottleneck) {
        segment.queuedNs = crossing.timeNs;
        segment.startNs = crossing.startNs;
        segment.endNs = crossing.endNs;
      }
      return crossing.event === RECEIVED;
    });
  }
}

/** Bytes that have arrived in order. */
function delivered(rows: Row[], dataFrom: number): Steps {
  const steps: Steps = { timeNs: [0], values: [0] };
  const ahead = new Map<number, number>();
  let next = 1;
  for (const { event, from, timeNs, seq, length } of rows) {
    if (event !== RECEIVED || from !== dataFrom || length === 0) continue;
    if (seq + length <= next) continue;
    ahead.set(seq, Math.max(seq + length, ahead.get(seq) ?? 0));
    if (seq > next) continue;
    const before = next;
    for (let found = true; found; ) {
      found = false;
      for (const [start, end] of ahead) {
        if (start > next) continue;
        ahead.delete(start);
        next = Math.max(next, end);
        found = true;
      }
    }
    if (next > before) push(steps, timeNs, next - 1);
  }
  return steps;
}

/** cwnd when the data's sender sends and after what it receives. */
function cwndSteps(rows: Row[], dataFrom: number): Steps {
  const steps: Steps = { timeNs: [], values: [] };
  for (const { event, from, timeNs, cwnd } of rows) {
    if ((event === SENT && from === dataFrom) || (event === RECEIVED && from !== dataFrom)) {
      if (steps.values[steps.values.length - 1] !== cwnd) push(steps, timeNs, cwnd);
    }
  }
  return steps;
}

/** Packets of all connections that wait at a link. */
function waiting(crossings: Crossing[]): Steps {
  const waited = crossings.filter(({ timeNs, startNs }) => startNs > timeNs);
  const came = waited.map(({ timeNs }) => [timeNs, 1] as const);
  const went = waited.map(({ startNs }) => [startNs, -1] as const);
  const steps: Steps = { timeNs: [0], values: [0] };
  let packets = 0;
  for (const [timeNs, change] of [...came, ...went].sort(([one], [other]) => one - other)) push(steps, timeNs, (packets += change));
  return steps;
}

/** Of several values at one moment the last one stays. */
function push(steps: Steps, timeNs: number, value: number): void {
  const last = steps.timeNs.length - 1;
  if (steps.timeNs[last] === timeNs) steps.values[last] = value;
  else {
    steps.timeNs.push(timeNs);
    steps.values.push(value);
  }
}

/** The value at a time: that of the last step up to it. */
export function valueAt({ timeNs, values }: Steps, time: number): number {
  let [low, high] = [0, timeNs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeNs[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return values[low - 1] ?? 0;
}
