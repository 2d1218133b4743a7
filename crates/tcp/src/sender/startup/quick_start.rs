//! Quick-Start (RFC 4782), for the initial window: the sender asks for a rate on its SYN or SYN-ACK, each router on the
//! path lowers, refuses or ignores the request, and the peer reports the remaining rate.
//!
//! The TTL and nonce that let a real sender find out about routers that ignore the option, and about receivers that
//! lie, are the `approved` mark of the request here.

use super::first_loss::{FirstLoss, threshold_after_timeout};
use super::paced::whole_segments;
use super::scheme::{FirstSend, Growth, SendState, StartupScheme};
use crate::amounts::{Bytes, LARGEST_WINDOW, Segments};
use crate::segment::QuickStart;
use crate::sender::congestion::Window;
use crate::sender::pacing::flight::{PacedFlight, Rate};
use crate::sequence::SeqNum;

#[derive(Clone, Debug, Default)]
pub(super) struct QuickStartSender {
    requested: u8,
    granted: u8,
    limited_slow_start: Segments,
    mss: Bytes,
    /// The initial window that there would have been without a grant.
    default_window: Bytes,
    start: SeqNum,
    /// One past the Quick-Start window.
    end: SeqNum,
    /// Paced by the grant, and nothing of it acknowledged yet.
    quick_start_mode: bool,
    loss: Option<FirstLoss>,
    over: bool,
}

impl QuickStartSender {
    pub(super) fn new(requested: u8, limited_slow_start_segments: u32) -> Self {
        Self { requested, limited_slow_start: Segments(limited_slow_start_segments), mss: Bytes(1), ..Self::default() }
    }

    /// A Quick-Start packet was lost.
    fn is_quick_start_loss(&self, state: &SendState) -> bool {
        !self.over && state.una < self.end
    }
}

impl StartupScheme for QuickStartSender {
    fn begin(&mut self, first: &FirstSend, window: &mut Window) -> Option<PacedFlight> {
        self.mss = Bytes(first.mss_bytes);
        self.default_window = window.cwnd();
        self.start = first.position;
        self.over = true;
        let rtt = first.rtt?;
        // RFC 4782 §4.4: QS-cwnd = (R * T) / (MSS + H), in segments, where R is the Rate Request in bytes per second and T
        // the measured round-trip time; used only if it is greater than cwnd.
        let rate = QuickStart::bits_per_second(self.granted) / 8;
        let (mss, packet) = (u64::from(first.mss_bytes), u64::from(first.mss_bytes + first.header_bytes));
        let segments = u128::from(rate) * u128::from(rtt) / (1_000_000_000 * u128::from(packet));
        let granted = Bytes((segments * u128::from(mss)).min(LARGEST_WINDOW.into()) as u32);
        if granted <= self.default_window {
            return None;
        }
        self.over = false;
        self.quick_start_mode = true;
        self.end = first.position + u64::from(granted);
        window.set_cwnd(granted);
        // RFC 4782 §4.4, derivation: the sender may transmit R*MSS/(MSS+H) bytes per second of application data.
        Some(PacedFlight {
            bytes: whole_segments(granted, self.mss),
            rate: Rate::new(rate * mss, 1_000_000_000 * packet),
            time: rtt,
            // RFC 4782 §4.4: Quick-Start mode, and with it the pacing, ends when the TCP host receives an ACK for one of
            // the Quick-Start packets.
            until_ack: true,
        })
    }

    fn grow(&mut self, growth: &mut Growth<'_>, state: &SendState) {
        if self.quick_start_mode {
            // RFC 4782 §4.4: when the first ACK for a Quick-Start packet arrives, the sender MUST reduce the congestion
            // window to the amount that has actually been used.
            self.quick_start_mode = false;
            let used = Bytes((state.nxt - self.start).min(u64::from(growth.window().cwnd())) as u32);
            growth.window().set_cwnd(used.max(self.default_window));
            self.end = self.end.min(state.nxt);
            return;
        }
        if self.loss.is_some() {
            return;
        }
        let before = growth.window().cwnd();
        let slow_start = before < growth.window().ssthresh;
        growth.by_controller();
        // RFC 4782 §4.4: the TCP sender MUST use Limited Slow-Start along with Quick-Start. RFC 3742 §2: above
        // max_ssthresh, K = int(cwnd/(0.5 max_ssthresh)) and cwnd += int(MSS/K) for each ACK.
        let half = (self.limited_slow_start.bytes(self.mss) / 2).max(Bytes(1));
        if !self.over && slow_start && before.0 > 2 * half.0 {
            let increase = (self.mss / (before.0 / half.0)).max(Bytes(1));
            let window = growth.window();
            window.set_cwnd(window.cwnd().min(before + increase));
        }
    }

    fn on_loss(&mut self, state: &SendState, window: &mut Window) {
        if self.is_quick_start_loss(state) {
            // RFC 4782 §4.6: after a loss TCP MUST revert to the default procedures: slow-start with the default initial
            // window that would have been used if Quick-Start had not been used.
            self.loss = Some(FirstLoss::new(state, window));
            window.set_cwnd(window.cwnd().min(self.default_window));
        } else {
            self.over = true;
        }
    }

    fn on_delivery(&mut self, _delivered_bytes: u32, lost_bytes: u32, _window: &mut Window) {
        if let Some(loss) = &mut self.loss {
            loss.add_lost(lost_bytes);
        }
    }

    fn on_undone(&mut self) {
        self.loss = None;
    }

    fn on_recovered(&mut self, state: &SendState, window: &mut Window) {
        if let Some(loss) = self.loss.take() {
            // RFC 4782 §4.6: decrease ssthresh to, at most, half the number of Quick-Start packets that were successfully
            // transmitted.
            let sent = self.end.min(state.nxt) - self.start;
            let threshold = loss.threshold(sent, window.mss);
            window.ssthresh = threshold;
            window.set_cwnd(window.cwnd().min(self.default_window));
        }
        self.over = true;
    }

    fn on_timeout(&mut self, state: &SendState, window: &mut Window) {
        if self.is_quick_start_loss(state) {
            let delivered = state.una - self.start;
            window.ssthresh = threshold_after_timeout(delivered, window);
        }
        self.over = true;
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn requested_rate(&self) -> u8 {
        self.requested
    }

    // RFC 4782 §4.4: the Quick-Start Response is valid if it contains an equal or lesser value for the Rate Request than
    // that transmitted in the Quick-Start Request.
    fn on_rate_granted(&mut self, rate: u8) {
        self.granted = if rate <= self.requested { rate } else { 0 };
    }

    fn granted_rate(&self) -> u8 {
        self.granted
    }
}
