//! RACK's reordering window (RFC 8985 section 6.2 steps 3 and 4), measured by when a hole is retransmitted.

use crate::peer::Peer;
use crate::wire::*;
use firstflight_tcp::{Nanos, Profile};

/// A Linux sender over a path of 100 ms.
struct Path {
    peer: Peer,
    /// Segments written and acknowledged so far.
    next: u32,
    /// Segments sent at a time: a window that losses have reduced admits two.
    flight: u32,
}

impl Path {
    fn new() -> Self {
        Self { peer: Peer::new(&Profile::linux()), next: 0, flight: 4 }
    }

    /// After reordering was seen.
    fn that_reorders() -> Self {
        let mut path = Self::new();
        path.reorder();
        path
    }

    /// A segment arrives after the one behind it, and nothing is retransmitted.
    fn reorder(&mut self) {
        self.send(4);
        self.peer.ack(self.next, &[[self.next + 1, self.next + 2]]);
        self.next += 4;
        let before = self.peer.info().reordering_seen;
        assert!(self.peer.ack(self.next, &[]).is_empty());
        assert_eq!(self.peer.info().reordering_seen, before + 1);
    }

    /// Sends a flight and waits for an RTT.
    fn send(&mut self, segments: u32) {
        let flight: Vec<u32> = (self.next..self.next + segments).collect();
        assert_eq!(self.peer.write(segments), flight);
        assert!(self.peer.wait(100).is_empty());
    }

    /// The first segment of a flight is late; how long after the SACK of the others it is retransmitted.
    fn window(&mut self) -> Nanos {
        self.send(self.flight);
        let hole = self.next;
        let sent = self.peer.ack(hole, &[[hole + 1, hole + self.flight]]);
        self.next += self.flight;
        if sent == [hole] {
            return 0;
        }
        assert!(sent.is_empty(), "{sent:?}");
        let (waited, sent) = self.peer.wait_for_segment();
        assert_eq!(sent, [hole]);
        waited
    }

    /// The retransmitted data had been lost.
    fn was_lost(&mut self) {
        self.peer.wait(100);
        self.peer.ack(self.next, &[]);
    }

    /// The retransmitted data had been late: the original arrives, and an RTT later a DSACK of the retransmission.
    fn was_late(&mut self) {
        self.peer.wait(1);
        self.peer.ack(self.next, &[]);
        self.peer.wait(99);
        let hole = self.next - self.flight;
        self.peer.ack(self.next, &[[hole, hole + 1]]);
    }
}

#[test]
fn three_sacked_segments_close_the_window_while_no_reordering_was_seen() {
    let mut path = Path::new();
    assert_eq!(path.window(), 0);
}

#[test]
fn a_quarter_of_the_shortest_rtt_is_waited_for_while_fewer_are_sacked() {
    let mut path = Path::new();
    path.send(3);
    assert!(path.peer.ack(0, &[[1, 3]]).is_empty());
    assert_eq!(path.peer.wait_for_segment(), (25 * MS, vec![0]));
}

#[test]
fn each_round_trip_with_a_dsack_widens_the_window_by_a_quarter_of_the_shortest_rtt_up_to_srtt() {
    let mut path = Path::that_reorders();
    let mut windows = Vec::new();
    for _ in 0..6 {
        windows.push(path.window() / MS);
        path.was_late();
    }
    assert_eq!(windows, [25, 50, 75, 100, 100, 100]);
}

#[test]
fn a_dsack_before_reordering_was_seen_widens_nothing() {
    let mut path = Path::new();
    assert_eq!(path.window(), 0);
    path.was_late();
    assert_eq!(path.peer.info().dsack_duplicates, 1);
    path.reorder();
    assert_eq!(path.window(), 25 * MS);
}

/// A path on which one loss was retransmitted, so that two duplicates do not pass for the network's own.
fn with_a_dsack_to_spare() -> Path {
    let mut path = Path::that_reorders();
    assert_eq!(path.window(), 25 * MS);
    path.was_lost();
    assert_eq!(path.window(), 25 * MS);
    path.peer.ack(path.next, &[]);
    path
}

#[test]
fn a_second_dsack_of_the_same_round_trip_widens_nothing() {
    let mut path = with_a_dsack_to_spare();
    path.send(2);
    let retransmitted = [path.next - 4, path.next - 3];
    path.peer.ack(path.next + 1, &[retransmitted]);
    // This segment left before the window was widened.
    path.peer.ack(path.next + 2, &[retransmitted]);
    path.next += 2;
    assert_eq!(path.peer.info().dsack_duplicates, 2);
    assert_eq!(path.window(), 50 * MS);
}

#[test]
fn a_dsack_with_what_left_after_the_window_was_widened_widens_it_again() {
    let mut path = with_a_dsack_to_spare();
    let retransmitted = [path.next - 4, path.next - 3];
    for _ in 0..2 {
        path.send(1);
        path.next += 1;
        path.peer.ack(path.next, &[retransmitted]);
    }
    assert_eq!(path.window(), 75 * MS);
}

/// The reordering windows in ms for this number of losses in a row.
fn windows_of_losses(path: &mut Path, losses: usize) -> Vec<Nanos> {
    path.flight = 2;
    let mut windows = Vec::new();
    for _ in 0..losses {
        windows.push(path.window() / MS);
        path.was_lost();
    }
    windows
}

#[test]
fn a_wide_window_falls_back_after_sixteen_recoveries_without_a_dsack() {
    let mut path = Path::that_reorders();
    assert_eq!(path.window(), 25 * MS);
    path.was_late();
    let expected: Vec<u64> = (0..18).map(|recovery| if recovery < 16 { 50 } else { 25 }).collect();
    assert_eq!(windows_of_losses(&mut path, 18), expected);
}

#[test]
fn a_dsack_makes_a_wide_window_last_for_sixteen_recoveries_more() {
    let mut path = Path::that_reorders();
    assert_eq!(path.window(), 25 * MS);
    path.was_late();
    assert_eq!(windows_of_losses(&mut path, 10), [50; 10]);
    assert_eq!(path.window(), 50 * MS);
    path.was_late();
    let expected: Vec<u64> = (0..18).map(|recovery| if recovery < 16 { 75 } else { 25 }).collect();
    assert_eq!(windows_of_losses(&mut path, 18), expected);
}

#[test]
fn an_undone_recovery_makes_a_wide_window_last_for_one_recovery_more() {
    let mut path = Path::that_reorders();
    assert_eq!(path.window(), 25 * MS);
    path.was_lost();
    let lost = path.next - 4;
    path.send(6);
    let hole = path.next;
    path.next += 6;
    assert!(path.peer.ack(hole, &[[hole + 1, hole + 4]]).is_empty());
    assert_eq!(path.peer.wait_for_segment().1, [hole]);
    // New data leaves in recovery, before a DSACK of the same round trip widens the window.
    assert!(path.peer.write(1).is_empty());
    assert_eq!(path.peer.ack(hole, &[[hole + 1, hole + 5]]), [hole + 6]);
    path.peer.wait(1);
    path.peer.ack(hole, &[[lost, lost + 1], [hole + 1, hole + 6]]);
    // Recovery ends, which leaves fifteen; then a DSACK shows that it was spurious, but widens nothing, since the
    // data that is delivered next left before the window was widened.
    path.peer.wait(99);
    path.peer.ack(hole + 6, &[]);
    path.peer.ack(hole + 6, &[[hole, hole + 1]]);
    assert_eq!(path.peer.sender.stats().spurious_recoveries_undone, 1);
    path.peer.wait(1);
    path.next += 1;
    path.peer.ack(path.next, &[]);
    let expected: Vec<u64> = (0..18).map(|recovery| if recovery < 16 { 50 } else { 25 }).collect();
    assert_eq!(windows_of_losses(&mut path, 18), expected);
}

// RFC 8985 §6.4.
#[test]
fn a_timeout_marks_lost_what_was_sent_an_rtt_ago_but_no_later_segment() {
    for (sent_at, lost) in [(199, 2), (200, 2), (201, 1)] {
        let mut peer = Peer::new(&linux_with(|rules| rules.tail_loss_probe = None));
        peer.write(1);
        peer.wait(100);
        peer.ack(1, &[]);
        peer.write(1);
        peer.wait(sent_at);
        peer.write(1);
        assert_eq!(peer.wait_for_segment().1, [1]);
        let info = peer.info();
        assert_eq!((peer.ms(), info.lost, info.cwnd_segments), (400, lost, 3 - lost), "{sent_at}");
    }
}
