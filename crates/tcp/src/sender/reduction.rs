//! The response of cwnd to a loss: proportional rate reduction (RFC 9937, which obsoletes RFC 6937), and the values
//! that an undo restores.

/// A reduction of cwnd in progress, counted in segments, and cwnd and ssthresh before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reduction {
    /// RecoverFS: cwnd when the reduction began.
    from: u32,
    /// Delivered since.
    delivered: u32,
    /// Sent since.
    sent: u32,
    /// cwnd and ssthresh before the episode, bytes; no ssthresh: the congestion was confirmed otherwise.
    prior_cwnd: u32,
    prior_ssthresh: Option<u32>,
}

impl Reduction {
    /// Reduction begins with this cwnd.
    pub fn begin(&mut self, cwnd_segments: u32) {
        (self.from, self.delivered, self.sent) = (cwnd_segments, 0, 0);
    }

    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Anything was sent since the reduction began.
    pub fn has_sent(&self) -> bool {
        self.sent > 0
    }

    /// Stores the values that an undo would restore, bytes.
    pub fn save_cwnd(&mut self, cwnd: u32, ssthresh: u32) {
        (self.prior_cwnd, self.prior_ssthresh) = (cwnd, Some(ssthresh));
    }

    /// The congestion is real (an ECN mark): cwnd stays reduced despite DSACKs.
    pub fn forbid_cwnd_restore(&mut self) {
        self.prior_ssthresh = None;
    }

    /// cwnd and ssthresh to restore, if that is allowed.
    pub fn prior(&self) -> Option<(u32, u32)> {
        self.prior_ssthresh.map(|ssthresh| (self.prior_cwnd, ssthresh))
    }

    /// The next cwnd in segments, after `delivered` more; `safe`: an ACK that advances and shows no further loss.
    pub fn cwnd(&mut self, ssthresh: u32, in_flight: u32, delivered: u32, safe: bool) -> Option<u32> {
        if delivered == 0 || self.from == 0 {
            return None;
        }
        self.delivered += delivered;
        let (gone, sent) = (i64::from(self.delivered), i64::from(self.sent));
        let (from, ssthresh) = (i64::from(self.from), i64::from(ssthresh));
        let in_flight = i64::from(in_flight);
        let room = ssthresh - in_flight;
        let quota = if room < 0 {
            // RFC 9937 §6: SndCnt = CEIL (prr_delivered * ssthresh / RecoverFS) - prr_out.
            (ssthresh * gone + from - 1) / from - sent
        } else {
            // RFC 9937 §6: at least the delivered data; one more on a safe ACK; not above ssthresh.
            room.min((gone - sent).max(i64::from(delivered)) + i64::from(safe))
        };
        // RFC 9937 §6: force a fast retransmit upon entering recovery.
        let quota = quota.max(i64::from(sent == 0));
        Some((in_flight + quota).max(1) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 3168 §6.1.2: a mark is congestion, whatever DSACKs say of the retransmissions.
    #[test]
    fn after_a_mark_there_is_nothing_to_restore() {
        let mut reduction = Reduction::default();
        reduction.save_cwnd(20_000, 15_000);
        assert_eq!(reduction.prior(), Some((20_000, 15_000)));
        reduction.forbid_cwnd_restore();
        assert_eq!(reduction.prior(), None);
    }
}
