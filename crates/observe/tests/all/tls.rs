//! HTTPS: the handshake as TLS records show it, with whole packets and truncated ones.

use crate::made::{ACK, FIN, Frame, MS, SYN, Told, pcap, raw, read, segment};

const RAW: u32 = 101;
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
const OTHER: u8 = 16;
/// The captured part of the data: all; with `-s 96` on Ethernet, of IPv4 and of IPv6; with a cooked header and IPv6.
const KEPT: [usize; 4] = [usize::MAX, 30, 10, 4];
const HALF: i64 = 40 * MS;
const FULL: usize = 1460;

/// A record whose content begins with `first`.
fn record(kind: u8, length: usize, first: u8) -> Vec<u8> {
    let mut bytes = vec![kind, 3, 3, (length >> 8) as u8, length as u8];
    bytes.resize(5 + length, 0xee);
    bytes[5] = first;
    bytes
}

/// A connection at the server, 80 ms from the client; each end has all of the other's when it sends.
struct Flow {
    now: i64,
    kept: usize,
    frames: Vec<Frame>,
    sent: [u32; 2],
}

impl Flow {
    fn new(kept: usize) -> Self {
        let mut flow = Self { now: 0, kept, frames: Vec::new(), sent: [0, 0] };
        flow.frames.push(raw(0, &segment(false, 99, 0, SYN, 0).mss(1460)));
        flow.frames.push(raw(0, &segment(true, 499, 100, SYN | ACK, 0).mss(1460)));
        flow.wait(80);
        flow.push(false, ACK, &[]);
        flow
    }

    fn wait(&mut self, ms: i64) {
        self.now += ms * MS;
    }

    fn push(&mut self, from_server: bool, flags: u8, data: &[u8]) {
        let [client, server] = self.sent;
        let (seq, ack) = if from_server { (500 + server, 100 + client) } else { (100 + client, 500 + server) };
        let made = segment(from_server, seq, ack, flags, data.len() as u32);
        let (time, mut kept, length) = raw(self.now, &made);
        kept.extend(&data[..data.len().min(self.kept)]);
        self.frames.push((time, kept, length));
        self.sent[usize::from(from_server)] += data.len() as u32;
    }

    /// The client has all and sends records, a flight's in one segment.
    fn client(&mut self, records: &[Vec<u8>]) {
        self.push(false, ACK, &records.concat());
    }

    /// The server sends records in segments; the client has them a round trip later.
    fn server(&mut self, records: &[Vec<u8>]) {
        self.now += MS / 10;
        for part in records.concat().chunks(FULL) {
            self.push(true, ACK, part);
        }
        self.now += 2 * HALF;
        self.push(false, ACK, &[]);
    }

    /// The packet after `first` is seen before it.
    fn overtake(&mut self, first: usize) {
        let times = [self.frames[first].0, self.frames[first + 1].0];
        self.frames.swap(first, first + 1);
        (self.frames[first].0, self.frames[first + 1].0) = (times[0], times[1]);
    }

    fn told(&self) -> Told {
        read(&pcap(RAW, &self.frames))
    }

    /// The handshake of 1.3 up to the client's Finished.
    fn begin_13(&mut self, certificates: usize) {
        self.client(&[record(HANDSHAKE, 512, CLIENT_HELLO)]);
        let hidden = record(DATA, certificates, 0);
        self.server(&[record(HANDSHAKE, 122, 2), record(CHANGE_CIPHER_SPEC, 1, 1), hidden]);
        self.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 53, 0)]);
    }
}

fn sizes(told: &Told) -> Vec<u64> {
    told.responses.iter().map(|row| row.bytes).collect()
}

/// Bytes, exchanges and version of the only handshake.
fn handshake(told: &Told) -> (u64, u8, u8) {
    assert_eq!(told.handshakes.len(), 1);
    let row = told.handshakes[0];
    (row.bytes, row.exchanges, row.version)
}

/// A record with a hello of a client or a server, whose extensions have types and lengths.
fn hello(kind: u8, extensions: &[(u16, usize)]) -> Vec<u8> {
    let lists: &[u8] = if kind == CLIENT_HELLO { &[0, 2, 0x13, 1, 1, 0] } else { &[0x13, 1, 0] };
    let mut body = [&[3, 3], [7; 32].as_slice(), &[32], &[8; 32], lists, &[0, 0]].concat();
    for &(kind, length) in extensions {
        body.extend([kind.to_be_bytes(), (length as u16).to_be_bytes()].concat());
        body.resize(body.len() + length, 9);
    }
    let message = [&[kind, 0], (body.len() as u16).to_be_bytes().as_slice(), &body].concat();
    [&[HANDSHAKE, 3, 1], (message.len() as u16).to_be_bytes().as_slice(), &message].concat()
}

#[test]
fn hellos_show_key_shares_and_resumption() {
    let certificate = record(HANDSHAKE, 3000, 11);
    let (old, new) = ([(23, 0)].as_slice(), [(43, 2), (51, 1124)].as_slice());
    let resumed = [(43, 2), (51, 36), (41, 2)];
    for (server, next, expected) in [
        (new, record(CHANGE_CIPHER_SPEC, 1, 1), 0),
        (&resumed, record(CHANGE_CIPHER_SPEC, 1, 1), 1),
        (old, certificate, 0),
        (old, record(CHANGE_CIPHER_SPEC, 1, 1), 1),
    ] {
        let mut flow = Flow::new(usize::MAX);
        let asks = hello(CLIENT_HELLO, &[(0, 20), (51, 2 + 4 + 1216 + 4 + 32), (45, 2)]);
        flow.client(std::slice::from_ref(&asks));
        flow.server(&[hello(2, server), next]);
        flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 53, 0)]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 700, 0)]);
        let row = flow.told().handshakes[0];
        assert_eq!((row.client_hello_bytes, row.key_share_bytes), (asks.len() as u32, 4 + 1216 + 4 + 32));
        assert_eq!(row.resumed, expected);
    }
}

#[test]
fn resumption_is_read_from_the_hello_that_follows_a_retry_and_else_unknown() {
    // RFC 8446 §4.1.3, and the version of draft 16, whose hello has no session.
    let retry = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c";
    let retry: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&retry[2 * at..2 * at + 2], 16).unwrap()).collect();
    let changed = |at: usize, bytes: &[u8], extensions: &[_]| {
        let mut hello = hello(2, extensions);
        hello[9 + at..9 + at + bytes.len()].copy_from_slice(bytes);
        hello
    };
    let new = [(43, 2), (51, 36), (41, 2)];
    let asks = changed(2, &retry, &[(43, 2), (51, 2)]);
    for (first, second, expected) in [
        (asks.clone(), Some(hello(2, &new)), 1),
        (asks.clone(), Some(hello(2, &new[..2])), 0),
        (asks, None, 2),
        (changed(0, &[0x7f, 16], &[(40, 36)]), None, 2),
    ] {
        let mut flow = Flow::new(usize::MAX);
        flow.client(&[hello(CLIENT_HELLO, &[(51, 38), (43, 3)])]);
        flow.server(&[first, record(CHANGE_CIPHER_SPEC, 1, 1)]);
        if let Some(second) = second {
            flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), hello(CLIENT_HELLO, &[(51, 38), (43, 3), (45, 2)])]);
            flow.server(&[second, record(DATA, 3000, 0)]);
        }
        flow.client(&[record(DATA, 53, 0)]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 700, 0)]);
        assert_eq!(flow.told().handshakes[0].resumed, expected);
    }
}

#[test]
fn the_handshake_of_1_3_and_its_tickets_are_no_response() {
    for kept in KEPT {
        let mut flow = Flow::new(kept);
        flow.begin_13(3000);
        let asked = flow.now;
        flow.client(&[record(DATA, 120, 0)]);
        flow.push(true, ACK, &record(DATA, 250, 0));
        flow.push(true, ACK, &record(DATA, 250, 0));
        flow.server(&[record(DATA, 16_000, 0), record(DATA, 4000, 0)]);
        flow.wait(500);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 700, 0)]);
        let told = flow.told();
        assert_eq!(sizes(&told), [20_010, 705], "{kept} bytes kept");
        assert_eq!(handshake(&told), (127 + 6 + 3005 + 510, 1, 13), "{kept} bytes kept");
        let first = told.responses[0];
        assert_eq!((first.start_ns, first.object, first.segments_sent), (asked, 0, 14));
        assert_eq!(first.first_flight_segments, 3, "that of the connection is the handshake's");
        assert_eq!(told.connections[0].answer_flight_segments, 16, "with the tickets");
        assert!(first.handshake_time_s.is_nan());
        assert!((told.handshakes[0].handshake_time_s - 0.08).abs() < 1e-9);
        assert!((first.completion_time_s - 0.0801).abs() < 1e-9);
        let row = told.handshakes[0];
        assert_eq!((row.segments_sent, told.connections[0].tls), (5, 1));
        assert_eq!((row.flight_bytes, row.resumed), (127 + 6 + 3005, 2), "without tickets");
        assert!((row.time_s - 0.0801).abs() < 1e-9);
    }
}

#[test]
fn tickets_in_one_packet_or_before_an_answer_in_the_same_packet_are_told_from_it() {
    let ticket = || record(DATA, 250, 0);
    for (kept, answer) in [(usize::MAX, 905), (30, 905 + 255)] {
        let mut flow = Flow::new(kept);
        flow.begin_13(3000);
        flow.client(&[record(DATA, 120, 0)]);
        flow.push(true, ACK, &[ticket(), ticket()].concat());
        flow.server(&[record(DATA, 900, 0)]);
        assert_eq!(sizes(&flow.told()), [905], "{kept} bytes kept");

        let mut flow = Flow::new(kept);
        flow.begin_13(3000);
        flow.client(&[record(DATA, 120, 0)]);
        // Of a cut packet, the second ticket is not seen.
        flow.server(&[ticket(), ticket(), record(DATA, 900, 0)]);
        assert_eq!(sizes(&flow.told()), [answer], "{kept} bytes kept");
    }
}

#[test]
fn tickets_that_come_long_before_the_request_are_none_of_the_answer() {
    for kept in KEPT {
        let mut flow = Flow::new(kept);
        flow.begin_13(3000);
        flow.server(&[record(DATA, 250, 0), record(DATA, 250, 0)]);
        flow.wait(5000);
        let asked = flow.now;
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 200, 0)]);
        let told = flow.told();
        assert_eq!(sizes(&told), [205], "{kept} bytes kept");
        assert_eq!(told.responses[0].start_ns, asked);
        assert_eq!(told.connections[0].answer_flight_segments, 1, "tickets were acknowledged before");
        assert_eq!(handshake(&told).1, 1, "nobody waits for tickets");
    }
}

#[test]
fn a_small_answer_of_a_server_without_tickets_is_an_answer() {
    let mut flow = Flow::new(30);
    flow.begin_13(3000);
    flow.client(&[record(DATA, 120, 0)]);
    flow.server(&[record(DATA, 200, 0)]);
    let told = flow.told();
    assert_eq!((sizes(&told), handshake(&told).0), (vec![205], 127 + 6 + 3005));
    assert_eq!(told.responses[0].completed, 1);
}

#[test]
fn a_request_in_the_packet_of_the_finished_is_seen_by_what_it_is_longer() {
    for kept in KEPT[..3].iter().copied() {
        let mut flow = Flow::new(kept);
        flow.client(&[record(HANDSHAKE, 512, CLIENT_HELLO)]);
        flow.server(&[record(HANDSHAKE, 122, 2), record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 500, 0)]);
        flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 69, 0), record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 5000, 0)]);
        if kept < 11 {
            // Nothing shows where the Finished ends: the data of a second flight is taken for the first request.
            assert!(flow.told().responses.is_empty());
            continue;
        }
        assert_eq!(sizes(&flow.told()), [5005], "{kept} bytes kept");
    }
}

#[test]
fn up_to_1_2_the_client_waits_twice_and_asks_with_its_first_record_of_data() {
    for kept in KEPT {
        let mut flow = Flow::new(kept);
        flow.client(&[record(HANDSHAKE, 200, CLIENT_HELLO)]);
        flow.server(&[record(HANDSHAKE, 90, 2), record(HANDSHAKE, 3000, 11), record(HANDSHAKE, 300, 12)]);
        let finished = || [record(CHANGE_CIPHER_SPEC, 1, 1), record(HANDSHAKE, 40, 0)].concat();
        flow.client(&[record(HANDSHAKE, 37, OTHER), finished()]);
        flow.server(&[record(HANDSHAKE, 186, 4), finished()]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 8000, 0)]);
        let told = flow.told();
        assert_eq!(sizes(&told), [8005], "{kept} bytes kept");
        assert_eq!(handshake(&told), (95 + 3005 + 305 + 191 + 51, 2, 12), "{kept} bytes kept");
    }
}

#[test]
fn a_resumed_session_of_1_2_takes_one_exchange() {
    for kept in [usize::MAX, 30] {
        let mut flow = Flow::new(kept);
        let finished = || [record(CHANGE_CIPHER_SPEC, 1, 1), record(HANDSHAKE, 40, 0)].concat();
        flow.client(&[record(HANDSHAKE, 400, CLIENT_HELLO)]);
        flow.server(&[record(HANDSHAKE, 100, 2), finished()]);
        flow.client(&[finished()]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 300, 0)]);
        let told = flow.told();
        assert_eq!((sizes(&told), handshake(&told)), (vec![305], (105 + 51, 1, 12)), "{kept} bytes kept");
    }
}

#[test]
fn with_false_start_the_rest_of_the_handshake_comes_before_the_answer() {
    for kept in [usize::MAX, 30] {
        let mut flow = Flow::new(kept);
        let finished = || [record(CHANGE_CIPHER_SPEC, 1, 1), record(HANDSHAKE, 40, 0)].concat();
        flow.client(&[record(HANDSHAKE, 200, CLIENT_HELLO)]);
        flow.server(&[record(HANDSHAKE, 90, 2), record(HANDSHAKE, 3000, 11), record(HANDSHAKE, 300, 12)]);
        flow.client(&[record(HANDSHAKE, 37, OTHER), finished()]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.push(true, ACK, &finished());
        flow.server(&[record(DATA, 8000, 0)]);
        let told = flow.told();
        assert_eq!((sizes(&told), handshake(&told)), (vec![8005], (95 + 3005 + 305 + 51, 1, 12)), "{kept} bytes kept");
    }
}

#[test]
fn a_server_that_wants_another_hello_is_waited_for_twice() {
    for kept in KEPT[..2].iter().copied() {
        let mut flow = Flow::new(kept);
        flow.client(&[record(HANDSHAKE, 512, CLIENT_HELLO)]);
        flow.server(&[record(HANDSHAKE, 88, 2), record(CHANGE_CIPHER_SPEC, 1, 1)]);
        flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(HANDSHAKE, 540, CLIENT_HELLO)]);
        flow.server(&[record(HANDSHAKE, 122, 2), record(DATA, 3000, 0)]);
        flow.client(&[record(DATA, 69, 0)]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 8000, 0)]);
        let told = flow.told();
        assert_eq!((sizes(&told), handshake(&told).1), (vec![8005], 2), "{kept} bytes kept");
    }
}

#[test]
fn what_was_asked_before_the_handshake_was_over_is_answered_together_with_it() {
    for kept in KEPT[..2].iter().copied() {
        let mut flow = Flow::new(kept);
        flow.client(&[record(HANDSHAKE, 512, CLIENT_HELLO)]);
        flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 120, 0)]);
        flow.server(&[record(HANDSHAKE, 122, 2), record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 100, 0)]);
        flow.client(&[record(DATA, 21, 0), record(DATA, 53, 0)]);
        flow.server(&[record(DATA, 250, 0), record(DATA, 4000, 0)]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 700, 0)]);
        let told = flow.told();
        assert_eq!(sizes(&told), [127 + 6 + 105 + 255 + 4005, 705], "{kept} bytes kept");
        assert!(told.handshakes.is_empty());
        assert_eq!(told.connections[0].early_data, 1);
    }
}

#[test]
fn a_connection_that_asks_for_nothing_has_a_handshake_and_no_response() {
    for alert in [record(ALERT, 26, 0), record(DATA, 19, 0)] {
        let mut flow = Flow::new(30);
        flow.begin_13(3000);
        flow.server(&[record(DATA, 250, 0), record(DATA, 250, 0)]);
        flow.wait(5000);
        flow.client(std::slice::from_ref(&alert));
        flow.server(&[alert]);
        let told = flow.told();
        assert!(told.responses.is_empty());
        assert_eq!((told.connections.len(), told.handshakes.len()), (1, 1));
    }
}

#[test]
fn the_last_words_of_ends_that_close_are_no_part_of_a_response() {
    for alert in [record(ALERT, 26, 0), record(DATA, 19, 0)] {
        let mut flow = Flow::new(30);
        flow.begin_13(3000);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 5000, 0)]);
        flow.wait(60_000);
        flow.push(true, ACK | FIN, &alert);
        flow.client(&[alert]);
        let told = flow.told();
        assert_eq!(sizes(&told), [5005]);
        assert!(told.responses[0].completion_time_s < 0.1, "{}", told.responses[0].completion_time_s);
    }
}

#[test]
fn the_handshake_counts_its_own_retransmissions() {
    let mut flow = Flow::new(30);
    flow.client(&[record(HANDSHAKE, 512, CLIENT_HELLO)]);
    flow.server(&[record(HANDSHAKE, 122, 2), record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 3000, 0)]);
    let last = flow.frames.len() - 2;
    let mut again = flow.frames[last].clone();
    again.0 += 70 * MS;
    flow.frames.insert(last + 1, again);
    flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 53, 0)]);
    flow.client(&[record(DATA, 120, 0)]);
    flow.server(&[record(DATA, 5000, 0)]);
    let told = flow.told();
    assert_eq!((told.handshakes[0].segments_sent, told.handshakes[0].retransmissions), (4, 1));
    assert_eq!((sizes(&told), told.responses[0].retransmissions), (vec![5005], 0));
}

#[test]
fn without_data_in_the_capture_the_handshake_is_taken_for_a_response() {
    let mut flow = Flow::new(0);
    flow.begin_13(3000);
    flow.server(&[record(DATA, 5000, 0)]);
    let told = flow.told();
    assert_eq!(told.responses.len(), 2);
    assert_eq!((told.connections[0].tls, told.handshakes.len()), (0, 0));
}

#[test]
fn a_request_that_overtakes_the_finished_of_1_3_is_seen() {
    for kept in KEPT[..3].iter().copied() {
        let mut flow = Flow::new(kept);
        flow.begin_13(3000);
        let finished = flow.frames.len() - 1;
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 5000, 0)]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 700, 0)]);
        flow.overtake(finished);
        let told = flow.told();
        assert_eq!((sizes(&told), handshake(&told)), (vec![5005, 705], (127 + 6 + 3005, 1, 13)), "{kept} bytes kept");
    }
}

#[test]
fn a_request_that_overtakes_the_end_of_a_resumed_handshake_of_1_2_is_seen() {
    for kept in [usize::MAX, 30] {
        let mut flow = Flow::new(kept);
        let finished = || [record(CHANGE_CIPHER_SPEC, 1, 1), record(HANDSHAKE, 40, 0)].concat();
        flow.client(&[record(HANDSHAKE, 400, CLIENT_HELLO)]);
        flow.server(&[record(HANDSHAKE, 100, 2), finished()]);
        flow.client(&[finished()]);
        flow.client(&[record(DATA, 120, 0)]);
        let request = flow.frames.len() - 1;
        flow.server(&[record(DATA, 300, 0)]);
        flow.overtake(request - 1);
        let told = flow.told();
        assert_eq!((sizes(&told), handshake(&told)), (vec![305], (105 + 51, 1, 12)), "{kept} bytes kept");
    }
}

#[test]
fn a_certificate_that_the_finished_overtakes_is_no_request() {
    let mut flow = Flow::new(30);
    flow.client(&[record(HANDSHAKE, 512, CLIENT_HELLO)]);
    flow.server(&[record(HANDSHAKE, 122, 2), record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 3000, 0)]);
    let asked = flow.frames.len();
    flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 1000, 0)]);
    flow.client(&[record(DATA, 53, 0)]);
    flow.overtake(asked);
    flow.server(&[record(DATA, 250, 0), record(DATA, 250, 0)]);
    flow.client(&[record(DATA, 120, 0)]);
    flow.server(&[record(DATA, 5000, 0)]);
    let told = flow.told();
    assert_eq!((sizes(&told), handshake(&told)), (vec![5005], (127 + 6 + 3005 + 510, 1, 13)));
}

#[test]
fn a_hello_of_two_packets_may_come_in_any_order_and_twice() {
    for (swapped, twice) in [(false, true), (true, false), (true, true)] {
        let mut flow = Flow::new(30);
        let hello = record(HANDSHAKE, 1800, CLIENT_HELLO);
        let begin = flow.frames.len();
        for part in hello.chunks(FULL) {
            flow.push(false, ACK, part);
        }
        if swapped {
            flow.overtake(begin);
        }
        if twice {
            let mut again = flow.frames[begin].clone();
            again.0 += 60 * MS;
            flow.frames.push(again);
            flow.wait(60);
        }
        flow.server(&[record(HANDSHAKE, 122, 2), record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 3000, 0)]);
        flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 53, 0)]);
        flow.client(&[record(DATA, 120, 0)]);
        flow.server(&[record(DATA, 5000, 0)]);
        let told = flow.told();
        assert_eq!((sizes(&told), handshake(&told)), (vec![5005], (127 + 6 + 3005, 1, 13)), "{swapped} {twice}");
    }
}

#[test]
fn what_the_servers_first_packets_hold_counts_in_whatever_order_they_come() {
    let mut flow = Flow::new(30);
    flow.client(&[record(HANDSHAKE, 512, CLIENT_HELLO)]);
    let handshake_begins = flow.frames.len();
    flow.server(&[record(HANDSHAKE, 122, 2), record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 3000, 0)]);
    flow.client(&[record(CHANGE_CIPHER_SPEC, 1, 1), record(DATA, 53, 0)]);
    flow.client(&[record(DATA, 120, 0)]);
    let answer_begins = flow.frames.len();
    flow.server(&[record(DATA, 5000, 0)]);
    flow.overtake(handshake_begins);
    flow.overtake(answer_begins);
    let told = flow.told();
    assert_eq!((sizes(&told), handshake(&told)), (vec![5005], (127 + 6 + 3005, 1, 13)));
    assert_eq!(told.connections[0].answer_flight_segments, 4);
    assert_eq!((told.handshakes[0].segments_sent, told.responses[0].segments_sent), (3, 4));
}

#[test]
fn a_segment_of_the_answer_that_was_lost_before_the_capture_is_of_its_flight() {
    for lost in [0, 1] {
        let mut flow = Flow::new(30);
        flow.begin_13(3000);
        flow.client(&[record(DATA, 120, 0)]);
        let begins = flow.frames.len();
        flow.server(&[record(DATA, 8000, 0)]);
        let all = flow.frames.pop().unwrap();
        let mut again = flow.frames.remove(begins + lost);
        again.0 = all.0 + 100 * MS;
        flow.frames.push(again);
        flow.frames.push((all.0 + 200 * MS, all.1, all.2));
        let told = flow.told();
        assert_eq!(sizes(&told), [8005]);
        assert_eq!((told.responses[0].segments_sent, told.responses[0].retransmissions), (6, 1));
        assert_eq!(told.connections[0].answer_flight_segments, 6);
    }
}

#[test]
fn where_the_server_speaks_first_or_the_capture_begins_later_no_handshake_is_made_up() {
    let hello = || record(HANDSHAKE, 512, CLIENT_HELLO);
    let mut flow = Flow::new(30);
    flow.server(&[b"220 mail.example ESMTP\r\n".to_vec()]);
    flow.client(&[b"STARTTLS\r\n".to_vec()]);
    flow.server(&[b"220 go ahead\r\n".to_vec()]);
    flow.client(&[hello()]);
    flow.server(&[record(HANDSHAKE, 122, 2), record(DATA, 3000, 0)]);
    let told = flow.told();
    assert_eq!((told.connections[0].tls, told.handshakes.len(), told.responses.len()), (0, 0, 3));

    let mut flow = Flow::new(30);
    flow.begin_13(3000);
    let later = flow.frames.len();
    flow.client(&[record(DATA, 120, 0)]);
    flow.server(&[record(DATA, 5000, 0)]);
    flow.frames.drain(..later);
    let told = flow.told();
    assert_eq!((told.connections[0].tls, told.connections[0].from_start, told.handshakes.len()), (1, 0, 0));
    assert_eq!(sizes(&told), [5005]);
}
