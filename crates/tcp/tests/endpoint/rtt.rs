//! Smoothed RTT, its variation and the timeout, sample by sample. The expected values come from the formulas in RFC 6298
//! section 2 and of Linux's tcp_rtt_estimator (), computed apart from this code.

use crate::peer::Peer;
use crate::wire::*;
use firstflight_tcp::{Nanos, Profile, RtoRules};

/// (RTT in ms, and the SRTT, RTTVAR and RTO in ns after it)
type Sample = (u64, Nanos, Nanos, Nanos);

fn estimates(peer: &Peer) -> (Nanos, Nanos, Nanos) {
    let info = peer.info();
    (info.srtt_ns, info.rttvar_ns, info.rto_ns)
}

/// A segment per RTT, so that each sample ends a round trip. The handshake took 100 ms.
fn check(profile: &Profile, samples: &[Sample]) {
    let mut peer = Peer::new(profile);
    for (sent, &(rtt, srtt, rttvar, rto)) in (1..).zip(samples) {
        peer.write(1);
        assert!(peer.wait(rtt).is_empty());
        peer.ack(sent, &[]);
        assert_eq!(estimates(&peer), (srtt, rttvar, rto), "sample {sent}, {rtt} ms");
    }
}

#[test]
fn linux_follows_a_rising_rtt_at_once_and_a_falling_one_by_an_eighth_of_what_exceeds_the_variation() {
    check(
        &Profile::linux(),
        &[
            (40, 92_500_000, 50_312_500, 293_750_000),
            (250, 112_187_500, 77_109_375, 420_625_000),
            (200, 123_164_062, 79_785_156, 442_304_687),
            (90, 119_018_554, 68_129_882, 426_503_906),
            (90, 115_391_235, 58_352_050, 404_357_300),
            (20, 103_467_331, 59_509_525, 379_701_405),
            (150, 109_283_914, 56_265_311, 372_724_781),
            (20, 98_123_425, 57_297_142, 353_001_218),
        ],
    );
}

#[test]
fn the_variation_of_rfc_6298_moves_by_a_quarter_of_the_error_whether_the_rtt_rises_or_falls() {
    let rfc = rfc();
    check(
        &Profile { rto: RtoRules { minimum_ns: MS, ..rfc.rto }, ..rfc },
        &[
            (40, 92_500_000, 52_500_000, 302_500_000),
            (250, 112_187_500, 78_750_000, 427_187_500),
            (200, 123_164_062, 81_015_625, 447_226_562),
            (90, 119_018_554, 69_052_734, 395_229_491),
            (90, 115_391_235, 59_044_189, 351_567_992),
            (20, 103_467_331, 68_130_950, 375_991_134),
        ],
    );
}

#[test]
fn linux_lets_the_timeout_fall_once_per_round_trip_only() {
    let mut peer = Peer::new(&Profile::linux());
    peer.write(1);
    peer.wait_until(20);
    peer.write(1);
    peer.wait_until(100);
    peer.ack(1, &[]);
    assert_eq!(estimates(&peer), (100_000_000, 37_500_000, 300_000_000));
    peer.wait_until(260);
    peer.write(1);
    peer.wait_until(265);
    peer.write(1);
    peer.wait_until(270);
    peer.ack(2, &[]);
    assert_eq!(estimates(&peer), (118_750_000, 65_625_000, 381_250_000));
    peer.wait_until(300);
    peer.ack(3, &[]);
    assert_eq!(estimates(&peer), (108_906_250, 66_035_156, 373_046_875));
    peer.wait_until(415);
    peer.ack(4, &[]);
    assert_eq!(estimates(&peer), (114_042_968, 59_799_804, 378_183_593));
}

#[test]
fn back_off_doubles_the_timeout_up_to_its_maximum_and_ends_with_a_sample() {
    let rto = RtoRules { maximum_ns: 3 * SECOND, ..Profile::linux().rto };
    let mut peer = Peer::new(&Profile { rto, ..linux_with(|rules| rules.tail_loss_probe = None) });
    peer.write(1);
    assert_eq!(peer.wait(7600), [(300, 0), (900, 0), (2100, 0), (4500, 0), (7500, 0)]);
    assert_eq!(peer.info().backoff, 5);
    peer.ack(1, &[]);
    assert_eq!(peer.info().rto_ns, 3 * SECOND, "an ACK of a retransmission gives no sample");
    peer.write(1);
    peer.wait(100);
    peer.ack(2, &[]);
    assert_eq!((peer.info().rto_ns, peer.info().backoff), (300 * MS, 0));
}
