//! Rapid Start (K. Oku, draft-kazuho-ccwg-rapid-start-02, March 2026): a first flight of twice the initial window, paced
//! over a full round trip; then the window grows threefold a round trip while round trips show no queue, and twofold
//! once they do; at the first loss it converges on the data that the path delivered.

use super::first_loss::FirstLoss;
use super::paced::whole_segments;
use super::scheme::{FirstSend, Growth, SendState, StartupScheme};
use crate::Nanos;
use crate::amounts::Bytes;
use crate::sender::congestion::Window;
use crate::sender::pacing::flight::{PacedFlight, Rate};
use crate::sequence::SeqNum;

#[derive(Clone, Debug)]
pub(super) struct RapidStart {
    window_factor: u32,
    growth: u32,
    queue_delay_ns: Nanos,
    queue_delay_percent: u32,
    /// Shortest round trip so far, and the shortest of the latest round.
    min_rtt: Nanos,
    floor: Nanos,
    /// The latest round ends when this is acknowledged.
    round_end: SeqNum,
    retreat: Option<Retreat>,
    over: bool,
}

/// The first recovery period.
#[derive(Clone, Debug)]
struct Retreat {
    loss: FirstLoss,
    /// cwnd immediately before, in bytes.
    entry_window: u64,
    window: u64,
    /// The lower limit of the window, in bytes.
    least_window: u64,
}

impl RapidStart {
    pub(super) fn new(window_factor: u32, growth: u32, queue_delay_ns: Nanos, queue_delay_percent: u32) -> Self {
        Self {
            window_factor,
            growth,
            queue_delay_ns,
            queue_delay_percent,
            min_rtt: Nanos::MAX,
            floor: Nanos::MAX,
            round_end: 0,
            retreat: None,
            over: false,
        }
    }

    // §3.2: compare rtt_floor against min(min_rtt + 4 ms, min_rtt * 1.10).
    fn sees_queue(&self) -> bool {
        let share = self.min_rtt.saturating_mul(self.queue_delay_percent.into()) / 100;
        self.floor > self.min_rtt.saturating_add(self.queue_delay_ns.min(share))
    }
}

/// §3.3.1: K = 2/3 of the controller's reduction at a loss.
fn given_up(loss: &FirstLoss, bytes: u64) -> u64 {
    (bytes - loss.kept(bytes)) * 2 / 3
}

impl StartupScheme for RapidStart {
    fn begin(&mut self, first: &FirstSend, window: &mut Window) -> Option<PacedFlight> {
        // Without a round trip the flight cannot be paced, and then it may not be larger either.
        let time = first.rtt?;
        self.min_rtt = time;
        self.floor = time;
        window.set_cwnd(window.cwnd().saturating_mul(self.window_factor));
        let bytes = whole_segments(window.cwnd().min(Bytes(first.send_window)), window.mss);
        Some(PacedFlight { bytes, rate: Rate::new(bytes, time), time, until_ack: false })
    }

    fn grow(&mut self, growth: &mut Growth<'_>, _state: &SendState) {
        if self.retreat.is_some() {
            return;
        }
        let before = growth.window().cwnd();
        growth.by_controller();
        if before >= growth.window().ssthresh {
            self.over = true;
        } else if growth.allowed && !self.sees_queue() {
            // §3.2: 2 bytes for every byte that is newly acknowledged, that is, one less than the growth factor.
            let faster = before.saturating_add(growth.bytes.saturating_mul(self.growth - 1));
            let window = growth.window();
            window.set_cwnd(window.cwnd().max(faster.min(window.ssthresh)));
        }
    }

    fn on_round_trip(&mut self, rtt: Nanos, state: &SendState, _window: &mut Window) {
        self.min_rtt = self.min_rtt.min(rtt);
        if state.una >= self.round_end {
            self.round_end = state.nxt;
            self.floor = rtt;
        } else {
            self.floor = self.floor.min(rtt);
        }
    }

    fn on_loss(&mut self, state: &SendState, window: &mut Window) {
        if self.over || self.retreat.is_some() {
            return;
        }
        // §3.3: entering the recovery period, cwnd *= silence_factor, where silence_factor = beta + K * (1 - beta).
        let loss = FirstLoss::new(state, window);
        let entry_window = u64::from(state.flight_bytes);
        let reduced = loss.kept(entry_window) + given_up(&loss, entry_window);
        // §3.3: the sender SHOULD NOT reduce cwnd below pre_recovery_cwnd * beta / 3, and MUST NOT below RFC 5681's minimum.
        let least_window = (loss.kept(entry_window) / 3).max(2 * u64::from(state.mss_bytes));
        let reduced = reduced.max(least_window);
        self.retreat = Some(Retreat { loss, entry_window, window: reduced, least_window });
        window.set_cwnd(Bytes(reduced as u32));
        window.ssthresh = Bytes(reduced as u32);
    }

    fn on_delivery(&mut self, delivered_bytes: u32, lost_bytes: u32, window: &mut Window) {
        let Some(Retreat { loss, window: reduced, least_window, .. }) = &mut self.retreat else { return };
        loss.add_lost(lost_bytes);
        // §3.3: cwnd -= ack_factor * bytes_newly_acked + loss_factor * bytes_newly_lost. §3.3.1: ack_factor =
        // K * (1 - beta), loss_factor = beta + K * (1 - beta).
        let (delivered, lost) = (u64::from(delivered_bytes), u64::from(lost_bytes));
        let reduction = given_up(loss, delivered) + loss.kept(lost) + given_up(loss, lost);
        *reduced = reduced.saturating_sub(reduction).max(*least_window);
        // The threshold goes with it: proportional rate reduction (RFC 9937) steers towards it, and the end of any
        // recovery takes it up.
        window.set_cwnd(Bytes(*reduced as u32).min(window.cwnd()));
        window.ssthresh = Bytes(*reduced as u32);
    }

    fn on_undone(&mut self) {
        self.retreat = None;
    }

    fn on_recovered(&mut self, _state: &SendState, window: &mut Window) {
        if let Some(Retreat { loss, entry_window, least_window, .. }) = self.retreat.take() {
            // Appendix A: bytes acknowledged and lost in the recovery period add up to the window at its beginning, so
            // the rest is beta times its delivered part. §4.1 leaves to TCP how it counts them: here, by
            // retransmissions.
            let threshold = loss.threshold(entry_window, window.mss).max(Bytes(least_window as u32));
            window.ssthresh = threshold;
            window.set_cwnd(window.cwnd().min(threshold));
        }
        self.over = true;
    }

    fn on_timeout(&mut self, _state: &SendState, _window: &mut Window) {
        self.over = true;
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
