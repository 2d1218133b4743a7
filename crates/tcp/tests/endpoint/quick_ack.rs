//! Acknowledgments as Linux sends them.

use crate::wire::*;
use firstflight_tcp::{AckPolicy, AdaptiveAck, Ecn, EcnPolicy, Flags, Nanos, Profile, Segment, TimerTick, Timestamps};

const MSS: u32 = 1000;

fn linux_acks() -> Profile {
    let ack = AckPolicy::Adaptive(AdaptiveAck {
        delay_min_ns: 40 * MS,
        delay_max_ns: 200 * MS,
        max_quickacks: 16,
        sack_compression: None,
    });
    Profile { mss_bytes: MSS, ack, ..rfc() }
}

/// A connection whose client is handed data by the test.
struct Receiver {
    wire: Wire,
    sent: u32,
}

impl Receiver {
    fn new(profile: &Profile) -> Self {
        Self::over(profile, 0)
    }

    fn over(profile: &Profile, delay: Nanos) -> Self {
        let mut wire = Wire::connected(profile, delay);
        wire.set_fate(Box::new(|_| vec![]));
        wire.now = 100 * SECOND;
        Self { wire, sent: 0 }
    }

    fn data(&mut self, bytes: u32, flags: Flags) -> Segment {
        let seq = SERVER_ISN + 1 + self.sent;
        self.sent += bytes;
        let flags = Flags::ACK | flags;
        Segment { seq, ack: CLIENT_ISN + 1, payload_bytes: bytes, window: 65535, flags, ..Segment::EMPTY }
    }

    /// The client gets a segment and reads it if `reads`; returns whether it acknowledged immediately.
    fn get(&mut self, segment: Segment, reads: bool) -> bool {
        let now = self.wire.now;
        self.wire.log.clear();
        self.wire.client.handle_segment(now, &segment);
        if reads {
            self.wire.client.read(u64::MAX);
        }
        self.wire.pump();
        self.acknowledged()
    }

    fn full(&mut self) -> bool {
        let segment = self.data(MSS, Flags::NONE);
        self.get(segment, true)
    }

    fn acknowledged(&self) -> bool {
        self.wire.log.iter().any(|sent| sent.from == Client && sent.segment.ack == SERVER_ISN + 1 + self.sent)
    }

    /// The SACK blocks of each ACK of the client to segment `number` of the stream, as numbers of segments.
    fn blocks_of(&mut self, number: u32) -> Vec<Vec<[u32; 2]>> {
        self.sent = number * MSS;
        let (now, segment) = (self.wire.now, self.data(MSS, Flags::NONE));
        let client = &mut self.wire.client;
        client.handle_segment(now, &segment);
        client.read(u64::MAX);
        let number = |seq: u32| (seq - SERVER_ISN - 1) / MSS;
        std::iter::from_fn(|| client.poll_transmit(now))
            .map(|ack| ack.sack.as_slice().iter().map(|block| block.map(number)).collect())
            .collect()
    }

    /// Milliseconds until the client acknowledges by itself.
    fn waits(&mut self) -> Option<u64> {
        let start = self.wire.now;
        self.wire.log.clear();
        self.wire.run_until(start + SECOND);
        let at = self.wire.log.iter().find(|sent| sent.from == Client)?.at;
        Some((at - start) / MS)
    }

    fn after(&mut self, ms: u64) {
        self.wire.run_until(self.wire.now + ms * MS);
    }

    /// Uses up the quick acknowledgments of the start, with data at a steady pace.
    fn past_the_start(profile: &Profile) -> Self {
        let mut receiver = Self::new(profile);
        for _ in 0..16 {
            receiver.full();
            receiver.after(1);
        }
        receiver
    }
}

#[test]
fn the_first_sixteen_segments_are_acknowledged_at_once_and_then_every_second() {
    let mut receiver = Receiver::new(&linux_acks());
    let at_once: Vec<_> = (0..22).map(|_| receiver.full()).collect();
    let mut expected = vec![true; 16];
    expected.extend([false, true, false, true, false, true]);
    assert_eq!(at_once, expected);
}

// Linux, tcp_send_dupack: quick acknowledgments begin for a segment that has data and starts before RCV.NXT.
#[test]
fn a_segment_with_an_old_timestamp_begins_quick_acknowledgments_if_it_has_data() {
    let half = |receiver: &mut Receiver| {
        let segment = receiver.data(MSS / 2, Flags::NONE);
        receiver.get(segment, true)
    };
    for bytes in [0, MSS] {
        let mut receiver = Receiver::past_the_start(&Profile { timestamps: true, ..linux_acks() });
        while half(&mut receiver) {}
        let next = receiver.data(0, Flags::NONE);
        let timestamps = Some(Timestamps { value: SERVER_ISN.wrapping_sub(10_000), echo: 0 });
        let old = Segment { seq: next.seq - bytes, payload_bytes: bytes, timestamps, ..next };
        assert!(receiver.get(old, true), "it is acknowledged");
        assert_eq!(half(&mut receiver), bytes > 0, "{bytes} bytes");
    }
}

#[test]
fn a_small_window_shortens_the_quick_start() {
    // Half of the window in segments: 8000 / (2 x 1000) = 4.
    let mut receiver = Receiver::new(&Profile { receive_window_bytes: 8000, ..linux_acks() });
    let at_once: Vec<_> = (0..9).map(|_| receiver.full()).collect();
    assert_eq!(at_once, [true, true, true, true, false, true, false, true, false]);
}

#[test]
fn the_odd_segment_waits_40_ms() {
    let mut receiver = Receiver::past_the_start(&linux_acks());
    assert!(!receiver.full());
    assert_eq!(receiver.waits(), Some(40));
}

#[test]
fn a_delay_that_was_in_vain_doubles_up_to_the_round_trip_time() {
    let mut profile = linux_acks();
    profile.rto.minimum_ns = 10 * SECOND;
    for (one_way_ms, delays) in [(0, [40, 40, 40, 40]), (50, [40, 80, 100, 100]), (500, [40, 80, 160, 200])] {
        let mut receiver = Receiver::over(&profile, one_way_ms * MS);
        for _ in 0..16 {
            receiver.full();
            receiver.after(1);
        }
        let waited = delays.map(|_| {
            assert!(!receiver.full());
            receiver.waits().unwrap()
        });
        assert_eq!(waited, delays, "round trip of {} ms", 2 * one_way_ms);
    }
}

#[test]
fn a_short_segment_is_acknowledged_as_soon_as_it_is_read() {
    let mut receiver = Receiver::past_the_start(&linux_acks());
    let unread = receiver.data(100, Flags::PSH);
    assert!(!receiver.get(unread, false));
    receiver.wire.client.read(u64::MAX);
    receiver.wire.pump();
    assert!(receiver.acknowledged());
}

#[test]
fn what_is_not_read_is_acknowledged_after_the_delay_however_much_it_is() {
    let mut receiver = Receiver::past_the_start(&linux_acks());
    for _ in 0..4 {
        let segment = receiver.data(MSS, Flags::NONE);
        assert!(!receiver.get(segment, false));
    }
    assert_eq!(receiver.waits(), Some(40));
}

#[test]
fn an_answer_makes_the_connection_interactive_and_carries_the_acknowledgement() {
    let mut receiver = Receiver::new(&linux_acks());
    let request = receiver.data(100, Flags::PSH);
    assert!(receiver.get(request, true));
    receiver.wire.client.write(receiver.wire.now, 500);
    receiver.wire.pump();
    // Quick acknowledgments are left, but data goes back and forth now.
    receiver.after(10);
    let request = receiver.data(100, Flags::PSH);
    assert!(!receiver.get(request, true));
    receiver.wire.client.write(receiver.wire.now, 500);
    receiver.wire.log.clear();
    receiver.wire.pump();
    let sizes: Vec<_> = receiver.wire.log.iter().map(|sent| sent.segment.payload_bytes).collect();
    assert_eq!(sizes, [500]);
    assert!(receiver.acknowledged());
}

#[test]
fn an_answer_that_does_not_come_ends_the_interactive_mode() {
    let mut receiver = Receiver::new(&linux_acks());
    let request = receiver.data(100, Flags::PSH);
    receiver.get(request, true);
    receiver.wire.client.write(receiver.wire.now, 500);
    receiver.wire.pump();
    receiver.after(10);
    let request = receiver.data(100, Flags::PSH);
    receiver.get(request, true);
    // The answer above waits for its acknowledgment, so its retransmission may come as well, but later.
    assert_eq!(receiver.waits(), Some(40));
    let request = receiver.data(100, Flags::PSH);
    assert!(receiver.get(request, true));
}

#[test]
fn the_quick_acknowledgement_leaves_before_the_answer() {
    let mut receiver = Receiver::new(&linux_acks());
    let request = receiver.data(100, Flags::PSH);
    let now = receiver.wire.now;
    receiver.wire.log.clear();
    receiver.wire.client.handle_segment(now, &request);
    receiver.wire.client.read(u64::MAX);
    receiver.wire.client.write(now, 500);
    receiver.wire.pump();
    let sizes: Vec<_> = receiver.wire.log.iter().map(|sent| sent.segment.payload_bytes).collect();
    assert_eq!(sizes, [0, 500]);
}

#[test]
fn a_hole_its_filling_and_a_duplicate_are_acknowledged_at_once() {
    let mut receiver = Receiver::past_the_start(&linux_acks());
    let first = receiver.data(MSS, Flags::NONE);
    let second = receiver.data(MSS, Flags::NONE);
    receiver.get(second, true);
    assert_eq!(receiver.wire.log.len(), 1);
    assert_eq!(receiver.wire.log[0].segment.ack, first.seq);
    assert!(receiver.get(first, true));
    assert!(receiver.get(first, true));
}

#[test]
fn a_duplicate_brings_quick_acknowledgments_back() {
    let mut receiver = Receiver::past_the_start(&linux_acks());
    let segment = receiver.data(MSS, Flags::NONE);
    assert!(!receiver.get(segment, true));
    assert!(receiver.get(segment, true));
    assert!((0..15).all(|_| receiver.full()));
    assert!(!receiver.full());
}

#[test]
fn an_idle_time_longer_than_the_timeout_brings_quick_acknowledgments_back() {
    let mut profile = linux_acks();
    profile.rto.minimum_ns = 200 * MS;
    let mut receiver = Receiver::past_the_start(&profile);
    receiver.after(100);
    assert!(!receiver.full());
    receiver.after(1000);
    assert!((0..16).all(|_| receiver.full()));
    assert!(!receiver.full());
}

#[test]
fn a_mark_brings_two_quick_acknowledgments() {
    let mut receiver = Receiver::past_the_start(&Profile { ecn: EcnPolicy::On, ..linux_acks() });
    let marked = Segment { ecn: Ecn::Congestion, ..receiver.data(MSS, Flags::NONE) };
    assert!(receiver.get(marked, true));
    let next = Segment { ecn: Ecn::Capable0, ..receiver.data(MSS, Flags::NONE) };
    assert!(receiver.get(next, true));
    let next = Segment { ecn: Ecn::Capable0, ..receiver.data(MSS, Flags::NONE) };
    assert!(!receiver.get(next, true));
}

#[test]
fn the_fin_of_the_peer_waits_for_ours() {
    let mut receiver = Receiver::past_the_start(&linux_acks());
    let fin = receiver.data(0, Flags::FIN);
    receiver.sent += 1;
    assert!(!receiver.get(fin, true));
    assert_eq!(receiver.waits(), Some(40));
    let mut receiver = Receiver::past_the_start(&linux_acks());
    let fin = receiver.data(0, Flags::FIN);
    receiver.sent += 1;
    receiver.get(fin, true);
    receiver.wire.client.close(receiver.wire.now);
    receiver.wire.log.clear();
    receiver.wire.pump();
    assert_eq!(receiver.wire.log.len(), 1);
    assert!(receiver.acknowledged() && receiver.wire.log[0].segment.flags.contains(Flags::FIN));
}

#[test]
fn the_application_can_ask_for_quick_acknowledgments_and_hold_them_back() {
    let mut receiver = Receiver::new(&linux_acks());
    receiver.wire.client.set_quick_ack(false);
    assert!(!receiver.full());
    receiver.wire.log.clear();
    receiver.wire.client.set_quick_ack(true);
    receiver.wire.pump();
    assert!(receiver.acknowledged());
    assert!(receiver.full());
}

#[test]
fn shorter_segments_that_come_twice_become_the_full_size() {
    let mut receiver = Receiver::past_the_start(&linux_acks());
    // A path with a smaller segment: the first two are taken for short ones, from then on every second counts.
    let at_once: Vec<_> = (0..6)
        .map(|_| {
            let segment = receiver.data(600, Flags::NONE);
            receiver.get(segment, true)
        })
        .collect();
    assert_eq!(at_once, [true, false, true, false, true, false]);
}

#[test]
fn a_timer_expires_on_its_tick() {
    let mut profile = linux_acks();
    profile.timer_tick = Some(TimerTick { period_ns: 10 * MS, wheel: false });
    let mut receiver = Receiver::past_the_start(&profile);
    assert!(!receiver.full());
    let start = receiver.wire.now / MS;
    let wait = receiver.waits().unwrap();
    assert!((40..50).contains(&wait) && (start + wait) % 10 == 0, "{start} + {wait}");
}

// Linux, tcp_sack_new_ofo_skb.
#[test]
fn a_merged_ack_leaves_before_a_third_block_which_has_no_ack_of_its_own() {
    let linux = Profile { timestamps: false, undo_spurious_syn: false, ..Profile::linux() };
    let mut receiver = Receiver::past_the_start(&linux);
    for last in 22..25 {
        assert_eq!(receiver.blocks_of(last), [[[22, last + 1]]], "the first three for a hole");
    }
    assert!(receiver.blocks_of(25).is_empty() && receiver.blocks_of(27).is_empty(), "merged");
    assert_eq!(receiver.blocks_of(29), [[[27, 28], [22, 26]]], "without the third block");
    assert!(receiver.blocks_of(30).is_empty(), "the third is the first now");
}
