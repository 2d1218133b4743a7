//! Problems of reading, counted, with the places of the first ones.

/// Places that are reported of each kind.
const TOLD: usize = 5;

/// Why something was left out, or is less sure than the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The file ends within a packet.
    CutOff,
    /// The bytes there are no packet, and nothing after them can be found.
    Damaged,
    /// A packet without a time.
    WithoutTime,
    /// An interface whose link layer is not known here.
    LinkLayer,
    /// A fragment of a packet, without a TCP header.
    Fragment,
    /// A packet that was captured too short to identify its connection.
    TooShort,
    /// Headers that contradict themselves.
    Malformed,
    /// A packet that was captured twice, as on two interfaces that it crossed.
    Twice,
    /// A segment with a sequence or acknowledgment number far outside of its connection.
    Outside,
    /// A SYN-ACK with another number than the one that the client goes on with.
    OtherAnswer,
    /// Data of a connection that is over, more than two seconds after its end.
    AfterEnd,
    /// A connection during which the capture's clock was set.
    ClockSet,
    /// A connection without data from the server.
    Silent,
    /// A connection that lacks packets which its acknowledgments speak of.
    Missed,
}

impl Trouble {
    const ALL: [Self; 14] = [
        Self::CutOff,
        Self::Damaged,
        Self::WithoutTime,
        Self::LinkLayer,
        Self::Fragment,
        Self::TooShort,
        Self::Malformed,
        Self::Twice,
        Self::Outside,
        Self::OtherAnswer,
        Self::AfterEnd,
        Self::ClockSet,
        Self::Silent,
        Self::Missed,
    ];

    /// The same in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::CutOff => "the file ends within a packet: it was cut off here",
            Self::Damaged => "no packet stands here, and none after it can be found: the file is damaged from here on",
            Self::WithoutTime => "packets without a time",
            Self::LinkLayer => "packets of a link layer that is not known",
            Self::Fragment => "fragments of packets",
            Self::TooShort => "packets of which too little was kept to tell their connection",
            Self::Malformed => "packets whose headers contradict themselves",
            Self::Twice => "packets captured twice, which count once",
            Self::Outside => "segments with numbers far outside of their connection, which count for nothing",
            Self::OtherAnswer => "SYN-ACKs with another number than the one that the client goes on with",
            Self::AfterEnd => "segments with data after the end of their connection, which count for nothing",
            Self::ClockSet => {
                "connections left out because the clock of the capture was set while they lasted (times go back, or \
                 jump further than a sender waits): none of their times is known"
            }
            Self::Silent => "connections without data from the server",
            Self::Missed => {
                "connections with bytes acknowledged that the capture lacks: their segments and retransmissions are \
                 too few"
            }
        }
    }
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
pub(crate) struct Problems([(u64, [u64; TOLD]); Trouble::ALL.len()]);

impl Problems {
    pub(crate) fn add(&mut self, trouble: Trouble, offset: u64) {
        let (count, first) = &mut self.0[trouble as usize];
        if let Some(place) = first.get_mut(*count as usize) {
            *place = offset;
        }
        *count += 1;
    }

    pub(crate) fn found(&self) -> Vec<Problem> {
        let met = Trouble::ALL.into_iter().zip(&self.0).filter(|(_, (count, _))| *count > 0);
        met.map(|(trouble, (count, first))| {
            let told = TOLD.min(*count as usize);
            Problem { trouble, count: *count, first: first[..told].to_vec() }
        })
        .collect()
    }
}
