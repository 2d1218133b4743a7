/** The events of a segment, in words. */

import { AFTER_TIMEOUT, FAST_RECOVERY, type Segment } from "./transfer";

const [FIN, SYN] = [1, 2];

export function ms(ns: number): string {
  return `${(ns / 1e6).toFixed(Math.abs(ns) < 1e9 ? 1 : 0)} ms`;
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function bytes(number: number): string {
  if (number < 1000) return count(number, "byte");
  return number < 1e6 ? `${trimmed(number / 1e3)} kB` : `${trimmed(number / 1e6)} MB`;
}

export function rateWords(rateBps: number): string {
  return rateBps < 1e9 ? `${trimmed(rateBps / 1e6)} Mbit/s` : `${trimmed(rateBps / 1e9)} Gbit/s`;
}

function trimmed(number: number): string {
  return String(Number(number.toPrecision(3)));
}

/** Two or three sentences: its kind and the reason why it was sent, the queue's action, its outcome. */
export function story(segment: Segment): string {
  return [what(segment), inQueue(segment), ending(segment)].filter((sentence) => sentence !== "").join(" ");
}

function what(segment: Segment): string {
  const at = `sent at ${ms(segment.sentNs)}`;
  if ((segment.flags & SYN) !== 0) {
    const first = segment.ack === 0 ? "SYN: the client asks for a connection" : "SYN-ACK: the server accepts the connection";
    return `${first}, ${at}.`;
  }
  if (segment.length > 0) {
    const range = `bytes ${segment.seq.toLocaleString("en")} to ${(segment.seq + segment.length - 1).toLocaleString("en")}`;
    return `${segment.isTls ? "TLS handshake" : segment.isDataWay ? "Data" : "Request"}, ${range}, ${at}${segment.isDataWay ? `, ${why(segment)}` : ""}.`;
  }
  if ((segment.flags & FIN) !== 0) return `FIN: this endpoint has nothing more to send, ${at}.`;
  if (segment.isDataWay) return `ACK from the data's sender, ${at}.`;
  return segment.ack <= 1 ? `ACK that completes the handshake, ${at}.` : `ACK of everything before byte ${segment.ack.toLocaleString("en")}, ${at}${effect(segment)}.`;
}

function why(segment: Segment): string {
  const cwnd = `cwnd ${trimmed(segment.cwnd)}`;
  if (segment.isRetransmission) {
    if (segment.state === AFTER_TIMEOUT) return `retransmitted because no ACK came within the retransmission timeout (${cwnd})`;
    if (segment.state === FAST_RECOVERY) return `fast retransmit: ACKs show that it is missing (${cwnd})`;
    return `retransmitted as a probe: the last ACK is overdue (${cwnd})`;
  }
  if (segment.isFirstFlight) return `part of the first flight: sent before the first ACK of data (${cwnd})`;
  return `because an ACK made room in cwnd (${cwnd})`;
}

function effect({ duplicates, sackRanges, cwnd, state, outcome }: Segment): string {
  const sack = sackRanges === 0 ? "" : `, with SACK: ${count(sackRanges, "range")} beyond a gap arrived`;
  if (outcome !== "arrived") return sack;
  if (duplicates === 0) return `${sack}; cwnd is ${trimmed(cwnd)} after it`;
  const after = state === FAST_RECOVERY ? ": the sender is in fast recovery" : "";
  const ordinal = ["first", "second", "third"][duplicates - 1];
  return `; ${ordinal === undefined ? `duplicate ACK ${duplicates}` : `${ordinal} duplicate ACK`}${after}${sack}`;
}

function inQueue({ isDataWay, queuedNs, startNs, outcome }: Segment): string {
  if (!isDataWay || queuedNs === undefined || startNs === undefined || outcome === "dropped") return "";
  return startNs > queuedNs ? `It waited ${ms(startNs - queuedNs)} in the bottleneck queue.` : "The bottleneck was idle: no waiting.";
}

function ending({ outcome, outcomeNs }: Segment): string {
  if (outcome === "arrived") return `It arrived at ${ms(outcomeNs ?? 0)}.`;
  if (outcome === "dropped") return `The queue dropped it at ${ms(outcomeNs ?? 0)}: there was no room, or the discipline chose to.`;
  if (outcome === "lost") return `It was lost on the link at ${ms(outcomeNs ?? 0)}.`;
  return "It was in flight when the run ended.";
}
