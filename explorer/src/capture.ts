/** One's own capture: the responses in it, and the path of one of them for the knobs. */

import type { Observed } from "./engine";
import { bytes, count, ms } from "./words";

/** The first response of a connection that the capture has from its SYN on, as a transfer here begins. */
export interface Response {
  readonly bytes: number;
  readonly completionNs: number;
  readonly rttMs: number;
  readonly rateBps: number;
  /** Segments sent before the first ACK, where the response had more; 0: it does not show the initial window. */
  readonly firstFlight: number;
}

/** Those of a capture that can be compared with a transfer, the largest first. */
export function comparable(observed: Observed): Response[] {
  const connections = observed.table("connections");
  const rows = new Map(Array.from(connections.column("connection"), (connection, row) => [connection, row]));
  const [rtt, rate, leastRate] = ["rtt_s", "down_bps", "least_down_bps"].map((name) => connections.column(name));
  const responses = observed.table("responses");
  const of = ["connection", "object", "handshake_time_s", "completion_time_s", "bytes", "segments_sent", "first_flight_segments", "completed"];
  const [connection, object, handshake, completion, size, sent, flight, completed] = of.map((name) => responses.column(name));
  const found: Response[] = [];
  for (let index = 0; index < size!.length; index++) {
    const row = rows.get(connection![index]!);
    // Further responses, and those over TLS, begin without the handshake.
    if (row === undefined || object![index] !== 0 || completed![index] !== 1 || Number.isNaN(handshake![index]!)) continue;
    if (!(completion![index]! > 0 && rtt![row]! > 0)) continue;
    found.push({
      bytes: size![index]!,
      completionNs: Math.round(completion![index]! * 1e9),
      rttMs: Math.round(rtt![row]! * 1e4) / 10,
      rateBps: rounded(Number.isNaN(rate![row]!) ? leastRate![row]! : rate![row]!),
      firstFlight: sent![index]! > flight![index]! ? flight![index]! : 0,
    });
  }
  return found.sort((one, other) => other.bytes - one.bytes);
}

function rounded(rate: number): number {
  return Number.isNaN(rate) ? 0 : Number(rate.toPrecision(3));
}

/** A response and its path in words. */
export function described({ bytes: size, completionNs, rttMs, rateBps, firstFlight }: Response): string {
  const rate = rateBps === 0 ? "rate unknown" : `${Number((rateBps / 1e6).toPrecision(3))} Mbit/s`;
  const flight = firstFlight === 0 ? "" : `, first flight of ${count(firstFlight, "segment")}`;
  return `${bytes(size)} in ${ms(completionNs)}, RTT ${rttMs} ms, ${rate}${flight}`;
}

/** What was read, in one or two sentences. */
export function summary(observed: Observed, found: Response[]): string {
  const read = `${count(observed.packets, "packet")}, ${count(observed.table("responses").column("bytes").length, "response")}`;
  const problems = observed.problems.map(([what, times]) => ` ${what}: ${times}.`).join("");
  if (found.length > 0) return `${read}; ${count(found.length, "dot")} in the chart.${problems}`;
  return `${read}, none of which can be compared: that needs a connection's first response, from its SYN on, without TLS.${problems}`;
}
