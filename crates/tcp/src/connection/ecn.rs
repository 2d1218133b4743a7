//! Explicit congestion notification (RFC 3168) of an established connection: the signals of both endpoints in ECE and
//! CWR.

use crate::segment::{Ecn, Flags, Segment};

const ECHOING: u8 = 1;
const CWR_QUEUED: u8 = 2;
const CAPABLE_SEEN: u8 = 4;

/// State of both halves of one end.
#[derive(Clone, Debug, Default)]
pub(crate) struct EcnState(u8);

impl EcnState {
    /// New data arrived: whether to acknowledge it immediately, and whether to acknowledge what follows quickly.
    ///
    /// Linux hurries as the echo begins and, for one acknowledgment, as CWR arrives, because the sender may be down to a
    /// window of one segment, and when a segment comes without ECT after others had it, because that is a retransmission.
    // Linux, tcp_ecn_accept_cwr and tcp_data_ecn_check.
    pub(crate) fn on_data(&mut self, segment: &Segment) -> (bool, bool) {
        let mut quickack = false;
        let reduced = segment.flags.contains(Flags::CWR);
        // RFC 3168 §6.1.3: after the receipt of the CWR packet, ECE is set no more, unless for another CE packet.
        if reduced {
            self.0 &= !ECHOING;
        }
        match segment.ecn {
            // RFC 3168 §6.1.3: ECE is set in all acknowledgments from the CE packet on.
            Ecn::Congestion => {
                quickack |= self.0 & ECHOING == 0;
                self.0 |= ECHOING | CAPABLE_SEEN;
            }
            Ecn::Capable0 | Ecn::Capable1 => self.0 |= CAPABLE_SEEN,
            Ecn::NotCapable => quickack |= self.0 & CAPABLE_SEEN != 0,
        }
        (reduced || quickack, quickack)
    }

    /// Sets the bits of a segment that leaves.
    // RFC 3168 §6.1.2: ECT on data; §6.1.4, §6.1.5, §6.1.6: not on pure acknowledgments, retransmissions, probes.
    pub(crate) fn mark(&mut self, segment: &mut Segment) {
        if segment.payload_bytes > 0 && !segment.retransmission {
            segment.ecn = Ecn::Capable0;
            // RFC 3168 §6.1.2: CWR on the first new data packet sent after the window was reduced.
            if self.0 & CWR_QUEUED != 0 {
                self.0 &= !CWR_QUEUED;
                segment.flags |= Flags::CWR;
            }
        }
        if self.0 & ECHOING != 0 {
            segment.flags |= Flags::ECE;
        }
    }

    /// The sender reduced its window, for any reason: the next new data signals it.
    // RFC 3168 §6.1.2: because of a retransmit timeout, a fast retransmit or an ECN notification.
    pub(crate) fn queue_cwr(&mut self) {
        self.0 |= CWR_QUEUED;
    }

    /// The reduction was undone before it was signaled.
    pub(crate) fn withdraw_cwr(&mut self) {
        self.0 &= !CWR_QUEUED;
    }
}
