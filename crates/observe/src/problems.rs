//! Problems of reading, counted, with the places of the first ones.

use std::collections::BTreeMap;

use thiserror::Error;

/// Places that are reported of each kind.
const TOLD: usize = 5;

/// Why something was left out, or is less sure than the rest; its text says so for all that were met.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Error)]
pub enum Trouble {
    /// The file ends within a packet.
    #[error("the file ends within a packet: it was cut off here")]
    CutOff,
    /// The bytes there are no packet, and nothing after them can be found.
    #[error("no packet stands here, and none after it can be found: the file is damaged from here on")]
    Damaged,
    /// A packet without a time, or with one too coarse to measure a round trip.
    #[error("packets without a time, or with one in units above a millisecond")]
    WithoutTime,
    /// An interface whose link layer, of this number, is not known here.
    #[error("packets of link type {0} (tcpdump.org/linktypes.html), which is not read")]
    LinkLayer(u16),
    /// A fragment of a packet, without a TCP header.
    #[error("fragments of packets")]
    Fragment,
    /// A packet that was captured too short to identify its connection.
    #[error("packets of which too little was kept to tell their connection")]
    TooShort,
    /// Headers that contradict themselves.
    #[error("packets whose headers contradict themselves")]
    Malformed,
    /// A packet that was captured twice, as on two interfaces that it crossed.
    #[error("packets captured twice, which count once")]
    Twice,
    /// A segment with a sequence or acknowledgment number far outside of its connection.
    #[error("segments with numbers far outside of their connection, which count for nothing")]
    Outside,
    /// A SYN-ACK with another number than the one that the client goes on with.
    #[error("SYN-ACKs with another number than the one that the client goes on with")]
    OtherAnswer,
    /// Data of a connection that is over, more than two seconds after its end.
    #[error("segments with data after the end of their connection, which count for nothing")]
    AfterEnd,
    /// A connection during which the capture's clock was set.
    #[error(
        "connections during which the clock of the capture was set (times go back, or jump further than a sender waits): \
         none of their times is known"
    )]
    ClockSet,
    /// A connection of which the capture lacks the acknowledgments without data.
    #[error(
        "connections without the client's acknowledgments that carry no data (a filter of lengths or flags?): what was \
         delivered, and when, is not known"
    )]
    Unacknowledged,
    /// A connection without data from the server.
    #[error("connections without data from the server")]
    Silent,
    /// A connection of which the capture has one direction.
    #[error("connections of which the capture has only one end's packets: what was delivered, and when, is not known")]
    OneWay,
    /// A connection that lacks packets which its acknowledgments speak of.
    #[error(
        "connections with bytes acknowledged that the capture lacks: their segments and retransmissions are too few"
    )]
    Missed,
}

/// A kind of trouble, how often it was met, and the first bytes of the file where it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The problem.
    pub trouble: Trouble,
    /// The count.
    pub count: u64,
    /// The first places; at most five.
    pub first: Vec<u64>,
}

/// All that was met.
#[derive(Debug, Default)]
pub(crate) struct Problems(BTreeMap<Trouble, Problem>);

impl Problems {
    pub(crate) fn add(&mut self, trouble: Trouble, offset: u64) {
        let new = || Problem { trouble, count: 0, first: Vec::new() };
        let problem = self.0.entry(trouble).or_insert_with(new);
        problem.count += 1;
        if problem.first.len() < TOLD {
            problem.first.push(offset);
        }
    }

    pub(crate) fn found(&self) -> Vec<Problem> {
        self.0.values().cloned().collect()
    }
}
