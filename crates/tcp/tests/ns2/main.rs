//! One flow with losses in ns-2 and here: the same segments and retransmissions in the same order, apart from the
//! differences listed here, which `docs/other-programs.md` explains. Without ns-2 the test says so and passes;
//! `apt-get install ns2` brings it.

mod flows;
#[path = "../endpoint/wire.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod wire;

use firstflight_tcp::{Nanos, RecoveryAlgorithm};
use flows::{Packet, SEGMENTS, Sender};
use std::thread;

const RENO: Sender =
    Sender { name: "Reno", agent: "Reno", recovery: RecoveryAlgorithm::RENO, limited_transmit: false, bug_fix: false };
const NEW_RENO: Sender = Sender {
    name: "NewReno",
    agent: "Newreno",
    recovery: RecoveryAlgorithm::NEW_RENO,
    limited_transmit: false,
    bug_fix: true,
};
const SACK: Sender = Sender {
    name: "Sack1",
    agent: "Sack1",
    recovery: RecoveryAlgorithm::SCOREBOARD,
    limited_transmit: false,
    bug_fix: true,
};
const SENDERS: [Sender; 6] = [
    RENO,
    Sender { name: "Reno with bugFix_", bug_fix: true, ..RENO },
    NEW_RENO,
    Sender { name: "NewReno with limited transmit", limited_transmit: true, ..NEW_RENO },
    SACK,
    Sender { name: "Sack1 with limited transmit", limited_transmit: true, ..SACK },
];

/// Packets lost, in addition to each of the 60 segments alone: by when they leave, and the SYN is 0. The window is 4
/// segments at first, 8 when 5 leaves, 16 when 13 leaves and 20 from 29 on.
const PATTERNS: [&[u32]; 35] = [
    &[],
    // Two, three and four of one window, next to each other and apart.
    &[1, 2],
    &[3, 7],
    &[14, 15],
    &[14, 16],
    &[14, 20],
    &[20, 29],
    &[29, 33],
    &[40, 50],
    &[1, 2, 3],
    &[3, 5, 7],
    &[14, 15, 16],
    &[14, 16, 18],
    &[29, 30, 31],
    &[29, 35, 41],
    &[1, 2, 3, 4],
    &[14, 15, 16, 17],
    &[29, 30, 31, 32],
    &[29, 31, 33, 35],
    &[40, 42, 44, 46],
    // The 31st (33rd with limited transmit) and the 49th are retransmissions of 14 and 29.
    &[14, 31],
    &[14, 33],
    &[29, 49],
    &[14, 29, 31],
    &[14, 31, 35],
    // The tail, where duplicates are too few; the 61st is a retransmission.
    &[57, 58],
    &[58, 59],
    &[59, 60],
    &[57, 58, 59],
    &[58, 59, 60],
    &[57, 58, 59, 60],
    &[60, 61],
    // Holes near the end, with nothing new to send.
    &[56, 59],
    &[52, 56, 60],
    &[55, 57, 59],
];

/// Differences in ns-2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// `bugFix_`: Reno answers one loss a window, the others wait for the timer.
    OneRepairAWindow,
    /// NewReno sends two segments an ACK in recovery, the retransmission apart.
    TwoSegmentsAnAck,
    /// The acknowledgment that ends recovery also lets cwnd grow.
    LastAckGrows,
    /// Limited transmit after a timeout sends the next segment, though it was sent before.
    LimitedTransmitOfOld,
    /// A timeout forgets SACKed data, and it is retransmitted.
    ForgetsSacks,
    /// Any hole below a SACK counts as lost.
    EveryHoleIsLost,
    /// A SACK that gives an RTT sample does not restart the timer.
    SackLeavesTimer,
}
use Rule::*;

/// Sender, pattern, rule, and the segments with which ours and ns-2 differ; none: nothing is left to send.
type Difference = (&'static str, &'static [u32], Rule, Option<u32>, Option<u32>);

#[rustfmt::skip]
const DIFFERENCES: &[Difference] = &[
    ("Reno with bugFix_", &[14, 15, 16], OneRepairAWindow, Some(34), Some(17)),
    ("Reno with bugFix_", &[14, 16, 18], OneRepairAWindow, Some(34), Some(19)),
    ("Reno with bugFix_", &[14, 15, 16, 17], OneRepairAWindow, Some(34), Some(19)),
    ("NewReno", &[29, 35, 41], TwoSegmentsAnAck, Some(51), Some(41)),
    ("NewReno", &[14, 33], LastAckGrows, Some(32), Some(37)),
    ("NewReno with limited transmit", &[1, 2, 3], LimitedTransmitOfOld, Some(5), Some(7)),
    ("NewReno with limited transmit", &[29, 35, 41], TwoSegmentsAnAck, Some(51), Some(41)),
    ("NewReno with limited transmit", &[14, 15, 16, 17], LimitedTransmitOfOld, Some(36), Some(19)),
    ("NewReno with limited transmit", &[29, 30, 31, 32], LimitedTransmitOfOld, Some(51), Some(34)),
    ("NewReno with limited transmit", &[29, 31, 33, 35], LimitedTransmitOfOld, Some(53), Some(37)),
    ("NewReno with limited transmit", &[40, 42, 44, 46], LimitedTransmitOfOld, None, Some(48)),
    ("NewReno with limited transmit", &[14, 29, 31], TwoSegmentsAnAck, Some(38), Some(31)),
    ("NewReno with limited transmit", &[14, 31, 35], TwoSegmentsAnAck, Some(45), Some(31)),
    ("Sack1", &[1, 2], ForgetsSacks, Some(5), Some(3)),
    ("Sack1", &[3, 7], EveryHoleIsLost, Some(9), Some(7)),
    ("Sack1", &[1, 2, 3], ForgetsSacks, Some(5), Some(4)),
    ("Sack1", &[3, 5, 7], EveryHoleIsLost, Some(9), Some(5)),
    ("Sack1", &[57, 58], ForgetsSacks, None, Some(59)),
    ("Sack1", &[58, 59], ForgetsSacks, None, Some(60)),
    ("Sack1", &[57, 58, 59], ForgetsSacks, None, Some(60)),
    ("Sack1 with limited transmit", &[3, 7], EveryHoleIsLost, Some(11), Some(7)),
    ("Sack1 with limited transmit", &[1, 2, 3], ForgetsSacks, Some(7), Some(4)),
    ("Sack1 with limited transmit", &[14, 31, 35], SackLeavesTimer, Some(48), Some(31)),
    ("Sack1 with limited transmit", &[57, 58], ForgetsSacks, None, Some(59)),
    ("Sack1 with limited transmit", &[58, 59], ForgetsSacks, None, Some(60)),
    ("Sack1 with limited transmit", &[57, 58, 59], ForgetsSacks, None, Some(60)),
];

fn numbers(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(|&(_, number)| number).collect()
}

/// The segments with which two lists part.
fn parting(ours: &[u32], theirs: &[u32]) -> Option<(Option<u32>, Option<u32>)> {
    let at = (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at))?;
    Some((ours.get(at).copied(), theirs.get(at).copied()))
}

/// Packets up to the first that was sent before.
fn until_first_repair(packets: &[Packet]) -> &[Packet] {
    let repair = (1..packets.len()).find(|&at| packets[at].1 <= packets[at - 1].1);
    &packets[..repair.map_or(packets.len(), |at| at + 1)]
}

#[test]
fn the_same_segments_leave_in_the_same_order_as_in_ns2_but_for_the_differences_explained() {
    let singles: Vec<_> = (1..=SEGMENTS).map(|number| [number]).collect();
    let patterns: Vec<&[u32]> = singles.iter().map(|single| &single[..]).chain(PATTERNS).collect();
    let mut found = Vec::new();
    let runs = thread::scope(|scope| {
        let runs = SENDERS.map(|sender| {
            scope.spawn({
                let patterns = &patterns;
                move || sender.theirs(patterns)
            })
        });
        runs.map(|run| run.join().unwrap())
    });
    for (sender, theirs) in SENDERS.iter().zip(runs) {
        let Some(theirs) = theirs else {
            eprintln!("skipped: ns-2 is not here; apt-get install ns2");
            return;
        };
        for (losses, theirs) in patterns.iter().zip(&theirs) {
            let ours = sender.ours(losses);
            // To the microsecond, the precision of ns-2's output: nothing was halved yet.
            let (early, peer) = (until_first_repair(&ours), until_first_repair(theirs));
            let micros = |packets: &[Packet]| -> Vec<(Nanos, u32)> {
                packets.iter().map(|&(at, number)| ((at + 500) / 1000, number)).collect()
            };
            assert_eq!(micros(early), micros(peer), "{} without {losses:?}", sender.name);
            if let Some((ours, theirs)) = parting(&numbers(&ours), &numbers(theirs)) {
                found.push((sender.name, losses.to_vec(), ours, theirs));
            }
        }
    }
    let explained: Vec<_> =
        DIFFERENCES.iter().map(|&(sender, losses, _, ours, theirs)| (sender, losses.to_vec(), ours, theirs)).collect();
    assert_eq!(found, explained);
}
