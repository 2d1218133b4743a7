/** One's own capture: the responses in it, the path of one of them for the knobs, and its segments. */

import type { Observed, Table } from "./engine";
import { push, type Steps } from "./steps";
import type { Segment, Transfer } from "./transfer";
import { bytes, count, ms, rateWords } from "./words";

const SYN = 2;

/** The first response of a connection that the capture has from its SYN on, as a transfer here begins. */
export interface Response {
  /** Its number in the capture. */
  readonly connection: number;
  /** The capture was taken nearer to the client. */
  readonly isAtClient: boolean;
  readonly bytes: number;
  readonly completionNs: number;
  readonly rttMs: number;
  readonly rateBps: number;
  /** Segments sent before the first ACK, where the response had more; 0: it does not show the initial window. */
  readonly firstFlight: number;
}

/** Those of a capture that can be compared with a transfer, the largest first. */
export function comparable(observed: Observed): Response[] {
  const paths = observed.table("connections").columns("connection", "rtt_s", "down_bps", "min_down_bps", "at_client");
  const rows = new Map(Array.from(paths.connection, (connection, row) => [connection, row]));
  const { connection, object, handshake_time_s, completion_time_s, bytes, segments_sent, first_flight_segments, completed } = observed
    .table("responses")
    .columns("connection", "object", "handshake_time_s", "completion_time_s", "bytes", "segments_sent", "first_flight_segments", "completed");
  const found: Response[] = [];
  for (let index = 0; index < bytes.length; index++) {
    const row = rows.get(connection[index]!);
    // Further responses, and those over TLS, begin without the handshake.
    if (row === undefined || object[index] !== 0 || completed[index] !== 1 || Number.isNaN(handshake_time_s[index]!)) continue;
    if (!(completion_time_s[index]! > 0 && paths.rtt_s[row]! > 0)) continue;
    const rate = Number.isNaN(paths.down_bps[row]!) ? paths.min_down_bps[row]! : paths.down_bps[row]!;
    found.push({
      connection: connection[index]!,
      isAtClient: paths.at_client[row] === 1,
      bytes: bytes[index]!,
      completionNs: Math.round(completion_time_s[index]! * 1e9),
      rttMs: Math.round(paths.rtt_s[row]! * 1e4) / 10,
      rateBps: Number.isNaN(rate) ? 0 : Number(rate.toPrecision(3)),
      firstFlight: segments_sent[index]! > first_flight_segments[index]! ? first_flight_segments[index]! : 0,
    });
  }
  return found.sort((one, other) => other.bytes - one.bytes);
}

/** A response and its path in words. */
export function described({ bytes: size, completionNs, rttMs, rateBps, firstFlight }: Response): string {
  const rate = rateBps === 0 ? "rate unknown" : rateWords(rateBps);
  const flight = firstFlight === 0 ? "" : `, first flight of ${count(firstFlight, "segment")}`;
  return `${bytes(size)} in ${ms(completionNs)}, RTT ${rttMs} ms, ${rate}${flight}`;
}

/** A summary of the capture, in one or two sentences. */
export function summary(observed: Observed, found: Response[]): string {
  const read = `${count(observed.packets, "packet")}, ${count(observed.table("responses").column("bytes").length, "response")}`;
  const problems = observed.problems.map(([what, times]) => ` ${what}: ${times}.`).join("");
  if (found.length > 0) return `${read}; ${count(found.length, "dot")} in the chart.${problems}`;
  return `${read}, none of which can be compared: that needs a connection's first response, from its SYN on, without TLS.${problems}`;
}

/** Data or an ACK of a capture, in the order of time. */
export interface Mark {
  /** Since the client's SYN passed the capture. */
  readonly timeNs: number;
  readonly isData: boolean;
  /** The sender declares this data lost. */
  readonly isLost?: boolean;
  /** Bytes of the response before it. */
  readonly from: number;
  /** Bytes of the response up to its end, or that it acknowledges. */
  readonly to: number;
}

/** The segments of a response as they passed the place of the capture. */
export function marks(segments: Table, { bytes: size }: Response): Mark[] {
  const { time_ns, from_server, seq, length, ack, flags } = segments.columns("time_ns", "from_server", "seq", "length", "ack", "flags");
  const opened = Array.from(flags).findIndex((flag, index) => (flag & SYN) !== 0 && from_server[index] === 0);
  const found: Mark[] = [];
  for (let index = 0; index < time_ns.length; index++) {
    const isData = from_server[index] === 1;
    const from = isData ? seq[index]! - 1 : 0;
    const to = isData ? from + length[index]! : ack[index]! - 1;
    // Handshake, FIN and segments of later responses.
    if (to <= from || from >= size) continue;
    found.push({ timeNs: time_ns[index]! - time_ns[opened]!, isData, from, to: Math.min(to, size) });
    if (!isData && to >= size) break;
  }
  return found;
}

/** The highest byte of the data that has passed the client's or the server's end of the path. */
export function passed({ segments }: Transfer, isAtClient: boolean): Steps {
  const data = segments.filter((segment) => segment.isDataWay && segment.length > 0 && (!isAtClient || segment.outcome === "arrived"));
  const at = (segment: Segment): number => (isAtClient ? (segment.outcomeNs ?? 0) : segment.sentNs);
  const steps: Steps = { timeNs: [0], values: [0] };
  let highest = 0;
  for (const segment of data.sort((one, other) => at(one) - at(other))) {
    if (segment.seq + segment.length - 1 <= highest) continue;
    highest = segment.seq + segment.length - 1;
    push(steps, at(segment), highest);
  }
  return steps;
}

/** When the client's SYN passes that end. */
export function openedNs({ segments }: Transfer, isAtClient: boolean): number {
  const syn = segments.find(({ isDataWay, flags }) => !isDataWay && (flags & SYN) !== 0);
  return (isAtClient ? syn?.sentNs : syn?.outcomeNs) ?? 0;
}
