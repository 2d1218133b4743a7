//! Congestion marks as the client echoes them (RFC 3168 §6.1.3): from a marked packet on its ACKs have ECE, until data
//! with CWR comes. One such time is one mark, as a sender answers it: by one reduction of cwnd.

use firstflight_segment::Flags;

use crate::stream::SeqNum;

/// The client's echoes on a connection.
#[derive(Debug, Default)]
pub(crate) struct Echoes {
    /// The client asks for an answer to a mark.
    echoing: bool,
    /// ACKs up to this position may repeat an echo that the sender has answered.
    answered: SeqNum,
    marks: u32,
    /// The client's SYN asked for accurate ECN.
    asked_accurate: bool,
    /// The flags count marks (AccECN, RFC 9768), so ECE alone shows nothing.
    accurate: bool,
}

/// The three bits by which the ends agree on ECN.
const AGREES: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);

impl Echoes {
    /// The client's SYN.
    pub(crate) fn syn(&mut self, flags: Flags) {
        self.asked_accurate = flags.contains(AGREES);
    }

    /// The server's SYN-ACK. ECE alone is the answer of RFC 3168, with AE that of RFC 3540; all three are the SYN's own,
    /// given back by a broken server; none is no ECN (RFC 9768 §3.1.1, table 2).
    pub(crate) fn syn_ack(&mut self, flags: Flags) {
        let answer = flags & AGREES;
        let others = [Flags::NONE, Flags::ECE, Flags::AE.union(Flags::ECE), AGREES];
        self.accurate = self.asked_accurate && !others.contains(&answer);
    }

    /// The client acknowledges all before a position.
    pub(crate) fn acknowledge(&mut self, position: SeqNum, flags: Flags) {
        if !self.echoing && flags.contains(Flags::ECE) && position > self.answered {
            self.echoing = true;
            self.marks += 1;
        }
    }

    /// The server sends new data at a position.
    pub(crate) fn send(&mut self, start: SeqNum, flags: Flags) {
        if flags.contains(Flags::CWR) && self.echoing {
            (self.echoing, self.answered) = (false, start);
        }
    }

    /// The marks since they were last taken; None with accurate ECN.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let marks = std::mem::take(&mut self.marks);
        (!self.accurate).then_some(marks)
    }
}
