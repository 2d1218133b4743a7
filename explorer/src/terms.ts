/** Every term of the page, defined once; shown where a pointer rests on it or the keyboard is. */

export const TERMS: Record<string, string> = {
  segment: "A piece of the data that TCP sends as one packet, at most 1,460 bytes here.",
  ack: "Acknowledgment: the receiver's report of the bytes that have arrived.",
  iw: "Initial window: number of segments that the sender may send before the first ACK returns.",
  cwnd: "Congestion window: number of segments that the sender may have in flight. It grows as ACKs arrive and shrinks after a loss.",
  rtt: "Round-trip time: from sending a packet to receiving the reply, without queueing. On a path of several links, the part of the slowest link.",
  rate: "Transmission rate of the slowest link.",
  size: "Bytes of the transfer.",
  queue: "Packets that wait before the slowest link. A discipline decides which packet is dropped and when: drop tail drops packets that arrive at a full queue, the others keep waiting times short.",
  limit: "Capacity of the queue; further packets are dropped.",
  neighbor: "A second flow that shares the path from the same moment on: a short flow of 30 kB, a call of 2 s (a packet every 20 ms, 60 ms of playout buffer), or a download of 1 MB. Linux's TCP with IW 10.",
  loss: "The share of packets that the link loses at random, independent of the queue.",
  lose: "More data packets to lose, by number: 1 is the first that the link sends.",
  seed: "Chooses the random numbers. The same seed gives the same losses. It is an example: the verdict is about the seeds from 1 to 50.",
  startup: "Start-up scheme. window: the initial window is sent back to back. paced: it is spread over one RTT. jump start: everything is paced over one RTT. rapid start: growth by three. suss: growth by four while ACKs allow it. careful resume: half of a saved cwnd after one RTT.",
  cc: "Congestion control: the rule by which cwnd grows and shrinks, such as Reno, CUBIC (the default of Linux) or BBR.",
  chain: "Certificates that the server sends in a TLS 1.3 handshake before the response, with one intermediate certificate; Merkle tree: with none. none: no TLS. The first flight is then this handshake: 2.2 kB with ECDSA, 11.8, 15.7 and 21.0 kB with ML-DSA-44, -65 and -87.",
  network: "Sets rate, RTT, queue and loss to typical values, which are assumed. LEO loses 0.5% at random; congested has a queue of 12 packets.",
  profile: "A complete set of TCP rules: Linux's, those of the RFCs, or those of ns-2 in 1998. A change of profile starts from its own rules, with the knobs here set again.",
  delivered: "Bytes that have arrived in order, so that an application can read them.",
  bottleneck: "The slowest link of the path, where packets wait.",
  capture: "Packets recorded by tcpdump or Wireshark. Each first response of a connection is a dot in the chart above. Its time includes the server's own time and other traffic, which the simulation lacks.",
  captured: "Each segment of the chosen response as it passed the place of the capture. Its time counts from the client's SYN, which passes there when the simulated one does. Both simulations have the path that the capture shows. Differences come from the server's own time, other traffic, and errors of the estimated path.",
  paths: "Homes that Ofcom's probes measured in 2023, drawn by their weights in the country. Contains public sector information published by Ofcom under the Open Government Licence. Their RTT is to a server in the country; to one abroad it is longer. With your capture: the paths of its responses.",
  steps: "Transfers of 121 sizes from 1 kB to 10 MB, each simulated with both settings. The line goes up in steps: one segment more than a round trip carries takes another round trip. Where something is random, 31 sizes with 15 seeds each: median, and a band for 80% of them. With TLS the thin lines are the same transfers without the handshake.",
  ladder: "Time runs to the right. Each line is a segment: it is sent at the top, crosses the gray band while it waits in the queue, and reaches the receiver at the bottom. Thin lines back up are ACKs. Purple, both ways: the TLS handshake. Red: retransmitted, dropped or lost. Above: the first flight and each further round. Dotted lines: end of the TLS handshake, first usable byte (its TLS record is complete), end of slow start with its cause (ack train, delay: HyStart), last byte. Below the sender's line: its recoveries and probes. Many segments are drawn as bars; zoom in to see each.",
};

let made = 0;

/** Shows the definition of `term` at `owner`, and has `described` read it to those who listen. */
export function define(term: string, owner: HTMLElement, described: HTMLElement): void {
  const tip = document.createElement("span");
  tip.id = `tip-${++made}`;
  tip.className = "tip";
  tip.setAttribute("role", "tooltip");
  tip.textContent = TERMS[term] ?? "";
  owner.classList.add("defined");
  owner.append(tip);
  described.setAttribute("aria-describedby", tip.id);
}

/** Defines every `<dfn data-term>` of the page. */
export function defineAll(): void {
  for (const word of document.querySelectorAll<HTMLElement>("dfn[data-term]")) {
    word.tabIndex = 0;
    define(word.dataset["term"] ?? "", word, word);
  }
}
