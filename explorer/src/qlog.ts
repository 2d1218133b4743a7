/** A qlog of a sender, as aioquic (JSON) and quinn (JSON text sequence) write it: its transfer, like one of a capture. */

import type { Mark, Response } from "./capture";
import { Refused } from "./engine";
import { push, type Steps } from "./steps";

interface Event {
  readonly time: number;
  readonly name: string;
  readonly data: {
    readonly header?: { packet_type?: string; packet_number?: number; length?: number };
    readonly raw?: { length?: number };
    readonly frames?: readonly { frame_type?: string; acked_ranges?: readonly (readonly number[])[] }[];
    /** Of a lost packet at aioquic. */
    readonly type?: string;
    readonly packet_number?: number;
    readonly min_rtt?: number;
    readonly congestion_window?: number;
    readonly cwnd?: number;
    readonly bytes_in_flight?: number;
  };
}

export interface Log {
  readonly response: Response;
  readonly marks: readonly Mark[];
  /** In bytes, on the time of the marks. */
  readonly cwnd: Steps;
}

/** Whether a file is one, by its first character. */
export function isQlog(bytes: Uint8Array): boolean {
  return bytes[0] === 0x7b || bytes[0] === 0x1e;
}

function events(text: string): Event[] {
  try {
    const records = text.startsWith("\x1e")
      ? // The record of a writer that was stopped has no end.
        text.split("\x1e").slice(1).filter((record) => record.endsWith("\n")).map((record) => JSON.parse(record) as unknown)
      : ((JSON.parse(text) as { traces?: { events?: unknown[] }[] }).traces?.[0]?.events ?? []);
    return (records as Event[]).filter(({ time, name, data }) => typeof time === "number" && typeof name === "string" && typeof data === "object");
  } catch {
    throw new Refused("this is no qlog: its JSON is damaged");
  }
}

/** Packets of data have at least this number of bytes; acknowledgments and the handshake's ends are smaller. */
const LEAST_DATA = 500;
const DATA = /^(1RTT|0RTT|one_?rtt|zero_?rtt)$/i;

/** The sent, acknowledged and lost data of the log's own end. Throws Refused. */
export function readQlog(bytes: Uint8Array): Log {
  const all = events(new TextDecoder().decode(bytes));
  const began = all[0]?.time ?? 0;
  const ns = ({ time }: Event): number => Math.round((time - began) * 1e6);
  const kind = ({ name }: Event): string => name.slice(name.indexOf(":") + 1).replace(/^recovery_/, "");
  const hasAcks = all.some(({ data }) => data.frames?.some(({ frame_type }) => frame_type === "ack"));
  const sent = new Map<number, { from: number; to: number; isOpen: boolean }>();
  const marks: Mark[] = [];
  const cwnd: Steps = { timeNs: [], values: [] };
  let [offered, acked, flight, rttMs, firstFlight] = [0, 0, 0, Infinity, 0];
  const acknowledge = (event: Event, bytes: number): void => {
    if (bytes <= 0) return;
    acked += bytes;
    marks.push({ timeNs: ns(event), isData: false, from: 0, to: acked });
  };
  for (const event of all) {
    const { header, raw, frames, packet_number, ...metrics } = event.data;
    const number = header?.packet_number ?? packet_number ?? -1;
    const isData = DATA.test(header?.packet_type ?? event.data.type ?? "");
    switch (kind(event)) {
      case "packet_sent": {
        const length = raw?.length ?? header?.length ?? 0;
        if (!isData || length < LEAST_DATA) break;
        sent.set(number, { from: offered, to: offered + length, isOpen: true });
        marks.push({ timeNs: ns(event), isData: true, from: offered, to: (offered += length) });
        if (acked === 0) firstFlight++;
        break;
      }
      case "packet_received": {
        if (!isData) break;
        const ranges = (frames ?? []).flatMap(({ frame_type, acked_ranges }) => (frame_type === "ack" ? (acked_ranges ?? []) : []));
        const now = [...sent].filter(([number, { isOpen }]) => isOpen && ranges.some(([from = 0, to = from]) => number >= from && number <= to));
        for (const [, packet] of now) packet.isOpen = false;
        acknowledge(event, now.reduce((sum, [, { from, to }]) => sum + to - from, 0));
        break;
      }
      case "packet_lost": {
        const packet = sent.get(number);
        if (!isData || packet === undefined || !packet.isOpen) break;
        packet.isOpen = false;
        marks.push({ timeNs: ns(event), isData: true, isLost: true, from: packet.from, to: packet.to });
        break;
      }
      case "metrics_updated": {
        rttMs = Math.min(rttMs, metrics.min_rtt ?? Infinity);
        const window = metrics.congestion_window ?? metrics.cwnd;
        if (window !== undefined) push(cwnd, ns(event), window);
        // Without ACK frames: what has left the flight, and is not lost, is acknowledged.
        const lower = flight - (metrics.bytes_in_flight ?? flight);
        flight = metrics.bytes_in_flight ?? flight;
        if (!hasAcks && sent.size > 0 && lower > 0) acknowledge(event, Math.min(lower - lostSince(marks), offered - acked));
      }
    }
  }
  if (marks.every(({ isData }) => isData) || !Number.isFinite(rttMs)) throw new Refused("this qlog has no acknowledged data of its own end, or no RTT; open the sender's log, with transport and recovery events");
  const last = lastAck(marks);
  const completionNs = marks[last]!.timeNs - (rttMs / 2) * 1e6;
  return {
    response: { connection: 0, isAtClient: false, bytes: acked, completionNs, rttMs: Math.round(rttMs * 10) / 10, rateBps: rate(marks), firstFlight: acked < offered || sent.size > firstFlight ? firstFlight : 0 },
    marks,
    cwnd,
  };
}

const lastAck = (marks: readonly Mark[]): number => marks.findLastIndex(({ isData }) => !isData);

/** Lost bytes since the last acknowledgment. */
function lostSince(marks: readonly Mark[]): number {
  const from = lastAck(marks);
  return marks.slice(from + 1).reduce((sum, { isLost, from, to }) => sum + (isLost === true ? to - from : 0), 0);
}

/** ACKs of this number of bytes show the rate of the path: short enough to lie within a flight. */
const RATE_BYTES = 12_000;

/** The highest rate of such a run of ACKs, in bit/s; 0: there is none. */
function rate(marks: readonly Mark[]): number {
  const acks = marks.filter(({ isData }) => !isData);
  let [most, from] = [0, 0];
  for (const { timeNs, to } of acks) {
    while (to - (acks[from + 1]?.to ?? to) >= RATE_BYTES) from++;
    const [bytes, span] = [to - acks[from]!.to, timeNs - acks[from]!.timeNs];
    if (bytes >= RATE_BYTES && span > 0) most = Math.max(most, (bytes * 8e9) / span);
  }
  return Number(most.toPrecision(3));
}
