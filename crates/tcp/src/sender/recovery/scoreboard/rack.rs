//! RACK: a segment is lost if one that left later was delivered and enough time has passed (RFC 8985 §6).

use super::board::{Board, Judgement, NewlyLost, Sent};
use crate::Nanos;
use crate::sequence::SeqNum;

/// Recoveries for which a widened reordering window lasts (RFC 8985 §6.2 step 4).
const PERSISTENCE: u8 = 16;

/// RACK's state of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: of the segment that left last among those delivered.
    sent_at: Nanos,
    end: SeqNum,
    /// Its round trip.
    rtt: Nanos,
    /// Something was delivered since losses were looked for last.
    advanced: bool,
    /// RACK.reo_wnd_mult, less one.
    widened: u8,
    /// RACK.reo_wnd_persist.
    persist: u8,
    dsack_seen: bool,
    /// Segments delivered when the window was widened last: once a round trip is enough.
    widened_at: u32,
}

impl Rack {
    /// A segment was delivered.
    // RFC 8985 §6.2 step 2: a retransmission that is acknowledged earlier than the minimum round trip is taken for its
    // original.
    #[inline]
    pub fn advance(&mut self, now: Nanos, min_rtt: Option<Nanos>, sent: &Sent) {
        let rtt = now - sent.sent_at;
        if sent.was_retransmitted() && min_rtt.is_none_or(|shortest| rtt < shortest) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if (sent.sent_at, sent.end()) > (self.sent_at, self.end) {
            self.sent_at = sent.sent_at;
            self.end = sent.end();
        }
    }

    /// Losses have to be looked for again, though nothing was delivered.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// A DSACK shows that the reordering window was too narrow.
    pub fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// A spurious recovery was detected.
    pub fn keep_wide(&mut self) {
        self.persist = (self.persist + 1).min(PERSISTENCE);
    }

    /// A recovery ended that was not spurious.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Widens the reordering window, or lets it fall back.
    // RFC 8985 §6.2 step 4: once per round trip with DSACKs the window grows by min_RTT/4; it falls back after 16
    // recoveries without. `prior_delivered` shows the round trip in which the delivered segment left.
    #[inline]
    pub fn adapt(&mut self, delivered: u32, prior_delivered: Option<u32>) {
        let Some(prior_delivered) = prior_delivered else { return };
        if prior_delivered < self.widened_at {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.widened = self.widened.saturating_add(1);
            self.dsack_seen = false;
            self.widened_at = delivered;
            self.persist = PERSISTENCE;
        } else if self.persist == 0 {
            self.widened = 0;
        }
    }

    /// True if so long after it left a segment of the head of the queue counts as recently sent.
    pub fn is_recent(&self, now: Nanos, sent: &Sent) -> bool {
        sent.sent_at + self.rtt > now
    }

    /// RACK.reo_wnd_mult.
    pub fn window_multiplier(&self) -> u64 {
        u64::from(self.widened) + 1
    }

    /// True if losses have to be looked for, which is done now.
    pub fn takes_news(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// Marks segments overtaken for longer than `window`; returns their number, and how long the last one that may still
    /// only be late has to be waited for.
    // RFC 8985 §6.2 step 5, RACK_detect_loss ().
    pub fn mark_losses(&self, board: &mut Board, now: Nanos, window: Nanos) -> (NewlyLost, Nanos) {
        let mut wait = 0;
        let lost = board.mark_losses(|sent| {
            if (sent.sent_at, sent.end()) >= (self.sent_at, self.end) {
                return Judgement::Stop;
            }
            let due = sent.sent_at + self.rtt + window;
            if due <= now {
                Judgement::Lost
            } else {
                wait = wait.max(due - now);
                Judgement::Wait
            }
        });
        (lost, wait)
    }
}
