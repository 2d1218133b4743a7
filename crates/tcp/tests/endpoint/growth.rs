//! Slow start and congestion avoidance without loss.

use crate::wire::*;
use firstflight_tcp::{
    AckPolicy, CongestionAlgorithm, CongestionAvoidance, Hystart, InitialWindow, Profile, SlowStartGrowth, WindowPacing,
};

/// Cumulative segments that the server has sent after each round trip.
fn rounds(profile: &Profile, count: u64, segments: u64) -> Vec<u32> {
    let mut wire = Wire::connected(profile, 50 * MS);
    let start = wire.now / MS;
    wire.server.write(wire.now, segments * 1460);
    wire.run_until(wire.now + count * 100 * MS);
    assert_eq!(wire.server.stats().retransmissions, 0);
    let data = wire.data(Server);
    let mut total = 0;
    (0..count)
        .map(|round| {
            total += sent_at(&data, start + round * 100).len() as u32;
            total
        })
        .collect()
}

#[test]
fn section_5_1_of_rfc_6928_is_reproduced_round_by_round() {
    // Long delayed-ACK timer, infinite bandwidth: the recursion derived from RFC 6928 section 5.1's table.
    let ack = AckPolicy::Delayed { segments: 2, timer_ns: 3600 * SECOND };
    for (segments, expected) in [
        (2, [2, 5, 8, 14, 23, 35, 53, 80, 122]),
        (3, [3, 6, 12, 21, 33, 51, 78, 120, 183]),
        (4, [4, 10, 19, 31, 49, 76, 118, 181, 274]),
        (10, [10, 25, 46, 79, 127, 199, 307, 469, 712]),
        (16, [16, 40, 76, 130, 211, 331, 511, 781, 1186]),
    ] {
        for slow_start_growth in [SlowStartGrowth::PerAck, SlowStartGrowth::AbcL1] {
            let initial_window = InitialWindow::Fixed { segments };
            let rto = firstflight_tcp::RtoRules { minimum_ns: 50 * SECOND, ..rfc().rto };
            let receive_window_bytes = 1 << 24;
            let profile = Profile { ack, initial_window, slow_start_growth, rto, receive_window_bytes, ..rfc() };
            assert_eq!(rounds(&profile, 9, 5000), expected, "initial window {segments}");
        }
    }
}

#[test]
fn slow_start_doubles_with_an_acknowledgement_per_segment() {
    let profile = Profile { ack: AckPolicy::EverySegment, ..rfc() };
    assert_eq!(rounds(&profile, 4, 5000), [10, 30, 70, 150]);
}

#[test]
fn counting_bytes_grows_by_less_for_small_segments() {
    for (slow_start_growth, growth) in [(SlowStartGrowth::PerAck, 1460), (SlowStartGrowth::AbcL1, 100)] {
        let mut wire = Wire::connected(&Profile { slow_start_growth, ..rfc() }, 50 * MS);
        let before = wire.server.cwnd_bytes();
        wire.server.write(wire.now, 100);
        wire.run();
        assert_eq!(wire.server.cwnd_bytes(), before + growth);
    }
}

#[test]
fn congestion_avoidance_adds_about_one_segment_a_round() {
    for congestion_avoidance in [CongestionAvoidance::PerAck, CongestionAvoidance::PerWindow] {
        let profile = Profile {
            congestion_avoidance,
            initial_ssthresh_segments: Some(10),
            ack: AckPolicy::EverySegment,
            ..rfc()
        };
        let mut wire = Wire::connected(&profile, 50 * MS);
        wire.server.write(wire.now, 10_000_000);
        wire.run_until(wire.now + 1000 * MS);
        let segments = f64::from(wire.server.cwnd_bytes()) / 1460.0;
        assert!((19.0..=20.0).contains(&segments), "{congestion_avoidance:?}: {segments}");
    }
}

#[test]
fn counting_by_window_adds_exactly_one_segment_a_window() {
    let profile = Profile {
        congestion_avoidance: CongestionAvoidance::PerWindow,
        initial_ssthresh_segments: Some(10),
        ack: AckPolicy::EverySegment,
        ..rfc()
    };
    assert_eq!(rounds(&profile, 5, 5000), [10, 21, 33, 46, 60]);
}

fn ns2_acknowledging_each() -> Profile {
    Profile { ack: AckPolicy::EverySegment, ..ns2() }
}

#[test]
fn the_bound_on_the_send_window_holds_whatever_cwnd_says() {
    let mut wire = Wire::connected(&ns2_acknowledging_each(), 50 * MS);
    wire.server.write(wire.now, 1_000_000);
    while wire.client.received_bytes() < 1_000_000 {
        wire.step();
        assert!(wire.server.flight_bytes() <= 11 * 1460);
    }
    assert!(wire.server.cwnd_bytes() > 11 * 1460);
}

#[test]
fn ns2_of_1998_starts_with_one_segment_and_stops_at_eleven() {
    assert_eq!(rounds(&ns2_acknowledging_each(), 7, 5000), [1, 3, 7, 15, 26, 37, 48]);
}

#[test]
fn a_partial_segment_goes_out_when_it_is_all_there_is() {
    let mut wire = Wire::connected(&rfc(), 50 * MS);
    let start = wire.now;
    for _ in 0..3 {
        wire.server.write(wire.now, 10);
        wire.pump();
    }
    let sizes: Vec<_> = wire.log.iter().map(|sent| (sent.at - start, sent.segment.payload_bytes)).collect();
    assert_eq!(sizes, [(0, 10), (0, 10), (0, 10)], "Nagle is off");
}

#[test]
fn a_window_that_is_not_a_whole_number_of_segments_sends_no_small_segment() {
    let profile = Profile { mss_bytes: 1400, initial_window: InitialWindow::Rfc3390, ..rfc() };
    let mut wire = Wire::connected(&profile, 50 * MS);
    let start = wire.now / MS;
    wire.server.write(wire.now, 100_000);
    wire.run();
    assert_eq!(sent_at(&wire.data(Server), start), [0, 1, 2]);
    let small = wire.log.iter().filter(|sent| sent.from == Server && (1..1400).contains(&sent.segment.payload_bytes));
    assert_eq!(small.count(), 1, "only the last");
}

#[test]
fn with_hystart_plus_plus_an_acknowledgement_of_twenty_segments_counts_for_eight_unless_the_profile_paces() {
    let pacing = WindowPacing { slow_start_percent: 200, avoidance_percent: 120, burst_segments: 2 };
    for (pacing, grown) in [(None, 28), (Some(pacing), 40)] {
        let profile = Profile {
            congestion_control: CongestionAlgorithm::Cubic { hystart: Hystart::HystartPlusPlus },
            initial_window: InitialWindow::Fixed { segments: 20 },
            ack: AckPolicy::Delayed { segments: 20, timer_ns: 3600 * SECOND },
            pacing,
            ..rfc()
        };
        let mut wire = Wire::connected(&profile, 50 * MS);
        wire.server.write(wire.now, 20 * 1460);
        wire.run_until(wire.now + 250 * MS);
        assert_eq!(wire.server.cwnd_bytes() / 1460, grown, "{pacing:?}");
    }
}
