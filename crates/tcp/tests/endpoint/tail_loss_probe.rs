//! Tail loss probes (RFC 8985 section 7): when they are sent, and the meaning of the answer.

use crate::peer::{MSS, Peer};
use crate::wire::*;
use firstflight_tcp::{Profile, TailLossProbe, TimerTick};

const OPEN: u8 = 0;
const RECOVERY: u8 = 3;

/// A Linux sender over a path of 100 ms, whose timeout is 300 ms.
fn linux() -> Peer {
    Peer::new(&Profile::linux())
}

fn probes(peer: &Peer) -> u32 {
    peer.sender.stats().tail_loss_probes
}

// RFC 8985 §7.2: PTO = 2 * SRTT.
#[test]
fn the_probe_leaves_two_rtts_after_the_latest_segment() {
    let mut peer = linux();
    assert_eq!(peer.write(2), [0, 1]);
    assert!(peer.wait(40).is_empty());
    assert_eq!(peer.write(1), [2]);
    assert_eq!(peer.wait_until(250), [(240, 2)]);
    assert_eq!((probes(&peer), peer.info().recovery_state), (1, OPEN));
}

// Linux, tcp_schedule_loss_probe: TCP_TIMEOUT_MIN_US on top.
#[test]
fn with_clock_ticks_the_probe_waits_for_two_ms_more() {
    let mut peer =
        Peer::new(&Profile { timer_tick: Some(TimerTick { period_ns: MS, wheel: false }), ..Profile::linux() });
    peer.write(2);
    assert_eq!(peer.wait(250), [(202, 1)]);
}

// RFC 8985 §7.2: plus TLP.max_ack_delay if one segment is in flight.
#[test]
fn the_probe_of_a_single_segment_allows_for_a_delayed_ack() {
    let mut peer =
        Peer::new(&linux_with(|rules| rules.tail_loss_probe = Some(TailLossProbe { max_ack_delay_ns: 70 * MS })));
    peer.write(1);
    assert_eq!(peer.wait(290), [(270, 0)]);
    assert_eq!(probes(&peer), 1);
}

// RFC 8985 §7.2: if the RTO would expire before the PTO, the PTO is the RTO.
#[test]
fn the_probe_leaves_no_later_than_the_timeout_of_the_first_segment_would_expire() {
    let mut peer = linux();
    peer.write(1);
    peer.wait(150);
    peer.write(1);
    assert_eq!(peer.wait(200), [(300, 1)]);
    assert_eq!((probes(&peer), peer.sender.stats().timeouts), (1, 0));
}

// RFC 8985 §7.2: an ACK of new data reschedules it.
#[test]
fn an_ack_of_new_data_sets_the_probe_for_two_rtts_later() {
    let mut peer = linux();
    peer.write(3);
    peer.wait(150);
    assert!(peer.ack(1, &[]).is_empty());
    let srtt = 106_250_000;
    assert_eq!(peer.info().srtt_ns, srtt);
    assert_eq!(peer.wait_for_segment(), (2 * srtt, vec![2]));
    assert_eq!(probes(&peer), 1);
}

// RFC 8985 §7.2: without an RTT the probe waits for a second.
#[test]
fn without_an_rtt_sample_the_probe_waits_for_a_second() {
    let mut peer = Peer::after_syn_acks(&Profile::linux(), 2);
    assert_eq!(peer.info().srtt_ns, 0);
    peer.write(2);
    assert_eq!(peer.wait(1100), [(1000, 1)]);
    assert_eq!(probes(&peer), 1);
}

// RFC 8985 §7.3: one probe at a time; then the timeout, whose time begins with the probe.
#[test]
fn the_timeout_follows_the_probe_and_not_another_probe() {
    let mut peer = linux();
    peer.write(2);
    assert_eq!(peer.wait(600), [(200, 1), (500, 0)]);
    assert_eq!((probes(&peer), peer.sender.stats().timeouts), (1, 1));
}

// RFC 8985 §7.2: not in recovery.
#[test]
fn no_probe_is_scheduled_in_recovery() {
    let mut peer = linux();
    peer.write(6);
    peer.wait(100);
    assert_eq!(peer.ack(0, &[[1, 4]]), [0]);
    assert_eq!(peer.info().recovery_state, RECOVERY);
    peer.wait(250);
    assert_eq!(probes(&peer), 0);
}

#[test]
fn a_sender_without_tail_loss_probes_waits_for_the_timeout() {
    let mut peer = Peer::new(&linux_with(|rules| rules.tail_loss_probe = None));
    peer.write(2);
    assert_eq!(peer.wait(310), [(300, 0)]);
    assert_eq!((probes(&peer), peer.sender.stats().timeouts), (0, 1));
}

// RFC 8985 §7.3: new data if there is any and the peer's window admits it.
#[test]
fn the_probe_is_new_data_beyond_cwnd_if_there_is_any() {
    let mut peer = linux();
    assert_eq!(peer.write(12).len(), 10);
    assert_eq!(peer.wait(250), [(200, 10)]);
    // A probe of new data shows no loss.
    peer.ack(11, &[]);
    assert_eq!((peer.info().recovery_state, peer.sender.stats().retransmissions), (OPEN, 0));
    assert_eq!(peer.info().ssthresh_segments, None);
}

#[test]
fn the_probe_is_the_last_segment_if_the_peers_window_is_full() {
    let mut peer = Peer::new(&Profile { ignore_shrinking_duplicates: false, ..Profile::linux() });
    peer.window = 4 * MSS as u16;
    peer.ack(0, &[]);
    assert_eq!(peer.write(12), [0, 1, 2, 3]);
    assert_eq!(peer.wait(250), [(200, 3)]);
}

/// A sender whose probe has retransmitted the last of ten segments, `ms` after which the peer answers.
fn probed(ms: u64) -> Peer {
    let mut peer = linux();
    peer.write(10);
    assert_eq!(peer.wait(200 + ms), [(200, 9)]);
    peer
}

fn keeps_its_window(peer: &Peer) -> bool {
    let info = peer.info();
    info.ssthresh_segments.is_none() && info.cwnd_segments >= 10 && info.recovery_state == OPEN
}

// RFC 8985 §7.4.2: the ACK of something beyond the probe, without a sign of the original, shows that the tail was lost.
#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window_once_something_beyond_it_is_acknowledged() {
    let mut peer = probed(100);
    peer.ack(10, &[]);
    assert!(keeps_its_window(&peer), "the original may have arrived");
    peer.write(1);
    peer.wait(100);
    peer.ack(11, &[]);
    let info = peer.info();
    // CUBIC: 0.7 of 20 segments.
    assert_eq!((info.cwnd_segments, info.ssthresh_segments, info.recovery_state), (14, Some(14), OPEN));
    assert_eq!(peer.sender.stats().fast_retransmits, 0);
    peer.write(1);
    peer.wait(100);
    peer.ack(12, &[]);
    assert_eq!(peer.info().ssthresh_segments, Some(14), "once");
}

// RFC 8985 §7.4.2: a DSACK of the probe shows that original and probe both arrived.
#[test]
fn a_probe_that_a_dsack_names_reduces_nothing() {
    let mut peer = probed(50);
    peer.ack(10, &[]);
    peer.wait(50);
    peer.ack(10, &[[9, 10]]);
    peer.write(1);
    peer.wait(100);
    peer.ack(11, &[]);
    assert!(keeps_its_window(&peer));
}

// RFC 8985 §7.4.2: so does a duplicate ACK of the probe's end.
#[test]
fn a_probe_that_a_duplicate_ack_answers_reduces_nothing() {
    let mut peer = probed(50);
    peer.ack(10, &[]);
    peer.wait(50);
    peer.ack(10, &[]);
    peer.write(1);
    peer.wait(100);
    peer.ack(11, &[]);
    assert!(keeps_its_window(&peer));
}

#[test]
fn a_window_update_after_the_probe_is_no_duplicate_ack_of_it() {
    let mut peer = probed(50);
    peer.window -= 1;
    peer.ack(10, &[]);
    peer.wait(50);
    peer.window += 1;
    peer.ack(10, &[]);
    peer.write(1);
    peer.wait(100);
    peer.ack(11, &[]);
    assert_eq!(peer.info().ssthresh_segments, Some(14));
}

#[test]
fn an_ack_below_the_probe_leaves_it_outstanding() {
    let mut peer = probed(50);
    peer.ack(5, &[]);
    peer.ack(5, &[]);
    peer.wait(50);
    peer.ack(10, &[]);
    peer.write(1);
    peer.wait(100);
    peer.ack(11, &[]);
    assert!(!keeps_its_window(&peer));
}

// RFC 8985 §7.3: the answer to a probe of the last segment of several brings RACK to find the others.
#[test]
fn a_sack_of_the_probe_finds_the_lost_tail() {
    let mut peer = probed(100);
    assert!(peer.ack(7, &[[9, 10]]).is_empty());
    assert_eq!(peer.info().recovery_state, 1);
    assert_eq!(peer.wait_for_segment().1, [7]);
    peer.wait(100);
    assert_eq!(peer.ack(8, &[[9, 10]]), [8]);
}

// RFC 8985 §7.4: only once an earlier probe is answered may another be sent.
#[test]
fn the_next_flight_has_a_probe_of_its_own() {
    let mut peer = probed(50);
    peer.ack(10, &[]);
    peer.ack(10, &[[9, 10]]);
    peer.write(2);
    let (_, sent) = peer.wait_for_segment();
    assert_eq!((sent, probes(&peer)), (vec![11], 2));
}
