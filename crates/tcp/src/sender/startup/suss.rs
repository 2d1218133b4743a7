//! SUSS, Speeding Up Slow Start (M. Arghavani, H. Zhang, D. Eyers, A. Arghavani, "SUSS: Improving TCP Performance by
//! Speeding Up Slow-Start", SIGCOMM 2024), as in the authors' patch of Linux 6.8 (SUSSdeveloper/SUSS).
//!
//! Each round has two parts. Its first ACKs clock out the segments that slow start would send; the next round's ACKs of
//! these form a train that no pacing has spread, and its length shows whether doubling will go on. If so, the rest of a
//! fourfold window follows, paced over the rest of the round trip.
//!
//! HyStart comes with it: its ACK train is the clocked part alone, and the sender waits until the whole train would have
//! been as long.

use super::scheme::{FirstSend, Growth, SendState, StartupScheme};
use crate::Nanos;
use crate::amounts::{Bytes, Segments};
use crate::event::Trigger;
use crate::sender::congestion::{Detectors, LinuxHystart, Progress, RoundTrip, Window};
use crate::sender::pacing::flight::{PacedFlight, Rate};
use crate::sequence::SeqNum;

/// The round of the first acceleration, the one that the initial window's ACKs begin.
const FIRST_ROUND: u32 = 2;
/// Rounds that may be accelerated, one after the other [suss_max].
const MOST_ROUNDS: u32 = 3;
/// Paths with a round trip up to this are not worth it.
const SHORT_RTT: Nanos = 10_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// The next round may be accelerated.
    #[default]
    Accelerating,
    /// No round will be accelerated any more; ACKs of the latest one that was may still be paced.
    Doubling,
    /// The clocked part of the ACKs was as long as HyStart allows: slow start ends beyond this window.
    Capped(Bytes),
    /// HyStart as in Linux.
    Hystart,
    /// HyStart has ended slow start.
    Done,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Suss {
    hystart: LinuxHystart,
    phase: Phase,
    initial_bytes: u64,
    round: u32,
    round_start: Nanos,
    /// The round ends when more than this is acknowledged.
    round_end: SeqNum,
    /// The clocked part of the round's ACKs ends when this is acknowledged, and whether it has.
    clocked_end: SeqNum,
    clocked: bool,
    /// Acknowledged in the clocked part so far, before the ACK that ends it.
    clocked_bytes: u64,
    /// Time that the clocked part of the previous round took.
    prior_train: Nanos,
    /// Shortest round trip since the latest timeout, if one was measured, the round in which it was found, and the
    /// shortest of this round.
    min_rtt: Option<Nanos>,
    min_rtt_round: u32,
    round_rtt: Nanos,
    /// Rounds that were accelerated.
    accelerations: u32,
    /// While the window opens at a pace: cwnd without that.
    jump_base: Option<Bytes>,
    /// Why slow start has ended last.
    end: Option<Trigger>,
}

impl Suss {
    pub(super) fn new() -> Self {
        Self {
            hystart: LinuxHystart::new(Detectors { ack_train: true, delay: true }, false),
            round: 1,
            round_rtt: Nanos::MAX,
            ..Self::default()
        }
    }

    /// Bytes that the clocked part of this round sends: the initial window, doubled every round.
    fn clocked_flight(&self) -> u64 {
        self.initial_bytes << (self.round - 1).min(32)
    }

    /// The ACK belongs to a new round.
    fn begin_round(&mut self, growth: &mut Growth<'_>, state: &SendState) {
        if self.clocked {
            // The part that would be clocked was not all sent: the application was slower than the window.
            self.phase = Phase::Hystart;
        }
        self.round += 1;
        self.round_start = state.now;
        self.round_end = state.nxt;
        self.clocked = true;
        self.clocked_bytes = 0;
        if let Some(base) = self.jump_base.take() {
            // The window opens as the paced part leaves, so unsent data is not part of it.
            let used = Bytes(state.flight_bytes).saturating_add(growth.bytes);
            let window = growth.window();
            window.set_cwnd(window.cwnd().min(used.max(base)));
            growth.end_pacing();
        }
    }

    /// All of the clocked part is acknowledged: whether the rest of a fourfold window follows.
    fn end_clocked_part(&mut self, growth: &mut Growth<'_>, state: &SendState) {
        self.clocked = false;
        let (sent, elapsed) = (self.clocked_flight(), state.now - self.round_start);
        self.clocked_end = self.round_end + sent;
        // The ACKs before this one, scaled to all of them.
        let train = match self.clocked_bytes {
            0 => elapsed,
            bytes => (u128::from(elapsed) * u128::from(sent / 2) / u128::from(bytes)) as Nanos,
        };
        if self.phase != Phase::Accelerating {
            return;
        }
        self.phase = match self.accelerate(train, growth, state) {
            Some(phase) => phase,
            None => Phase::Accelerating,
        };
        self.prior_train = train;
    }

    /// Opens the window fourfold, or returns the phase without that.
    fn accelerate(&mut self, train: Nanos, growth: &mut Growth<'_>, state: &SendState) -> Option<Phase> {
        // Unknown if the handshake and all of the first flight were retransmitted (Karn's algorithm).
        let Some(min_rtt) = self.min_rtt else { return Some(Phase::Hystart) };
        if self.round == FIRST_ROUND && !first_train_is_short(train, min_rtt) {
            return Some(Phase::Hystart);
        }
        let steps = self.round - FIRST_ROUND;
        let goes_on = steps == 0
            || steps < MOST_ROUNDS
                && train_will_fit(train << steps, self.prior_train << (steps - 1), min_rtt)
                && delay_will_fit(self.round_rtt, min_rtt, self.round - self.min_rtt_round);
        // The time of the round trip that remains for the clocked part after the paced part.
        let rest = min_rtt >> (self.round - 1);
        let base = growth.window().cwnd().saturating_add(growth.bytes);
        let slow_start = base < growth.window().ssthresh;
        let has_data = u64::from(state.flight_bytes) + state.queued_bytes > u64::from(base);
        if !goes_on || rest <= train || !slow_start || !growth.allowed || !has_data {
            return Some(Phase::Doubling);
        }
        let clocked = self.clocked_flight();
        let paced = (clocked << (steps + 1)) - clocked;
        // ACKs of the paced part of the round before do not open the window further.
        let paced_acks = ((clocked / 2) << steps) - clocked / 2;
        let opened = Bytes((paced - paced_acks).min(u64::from(u32::MAX)) as u32);
        let window = growth.window();
        window.set_cwnd(base.saturating_add(opened).min(window.ssthresh));
        let time = min_rtt - rest;
        let flight = PacedFlight { bytes: paced, rate: Rate::new(paced, time), time, until_ack: false };
        growth.begin_pacing(flight, state.una + u64::from(base), state.now + (rest - train) / 2);
        self.accelerations += 1;
        self.jump_base = Some(base);
        None
    }

    /// HyStart with a train of which only a part shows.
    fn look_for_exit(&mut self, rtt: Nanos, min_rtt: Nanos, state: &SendState, window: &mut Window) {
        let progress = Progress { window: window.cwnd(), mss: window.mss, min_rtt_us: min_rtt / 1000 };
        let sample = RoundTrip { rtt, una: state.una, nxt: state.nxt };
        let end = match self.phase {
            Phase::Done => return,
            Phase::Hystart if self.hystart.on_round_trip(state.now, &sample, &progress) => self.hystart.found,
            Phase::Hystart => return,
            _ if !self.hystart.looks(state.now, &sample, &progress) => return,
            Phase::Capped(cap) if window.cwnd() > cap => Some(Trigger::AckTrain),
            Phase::Capped(_) => self.hystart.delay_has_risen(rtt, &progress).then_some(Trigger::Delay),
            _ => {
                let parts = 1 << self.accelerations;
                if self.clocked && self.hystart.train_is_long(state.now, &progress, parts) {
                    // As many ACKs again will come for each part that has been paced.
                    let unseen = self.clocked_bytes * (parts - 1);
                    self.phase = Phase::Capped(window.cwnd().saturating_add(Bytes(unseen.min(u32::MAX.into()) as u32)));
                }
                self.hystart.delay_has_risen(rtt, &progress).then_some(Trigger::Delay)
            }
        };
        if end.is_some() {
            if self.phase != Phase::Hystart && self.accelerations > 1 {
                window.set_cwnd(window.cwnd().min(Bytes(state.flight_bytes).max(Segments(2) * window.mss)));
            }
            window.ssthresh = window.cwnd();
            self.jump_base = None;
            self.phase = Phase::Done;
            self.end = end;
        }
    }
}

/// The ACKs of the initial window, over this time, leave room for a fourfold one: HyStart would still not end slow
/// start in the next round.
fn first_train_is_short(train: Nanos, min_rtt: Nanos) -> bool {
    min_rtt > SHORT_RTT && train < min_rtt / 4
}

/// A round's ACKs take `whole`, those of the round before took `prior`: at this growth HyStart would still not end slow
/// start in the next round.
// mu = whole / (2 * prior) is the effect of doubling on the length, and 2 * mu * whole is not to exceed the shortest
// RTT.
fn train_will_fit(whole: Nanos, prior: Nanos, min_rtt: Nanos) -> bool {
    u128::from(whole) * u128::from(whole) <= u128::from(min_rtt) * u128::from(prior)
}

/// The shortest RTT of the round, `rounds` rounds after the shortest of all, will not have risen by more than an eighth in
/// the next one if it goes on so.
fn delay_will_fit(round_rtt: Nanos, min_rtt: Nanos, rounds: u32) -> bool {
    let (now, rounds) = (u128::from(round_rtt), u128::from(rounds));
    8 * now * (rounds + 1) <= u128::from(min_rtt) * (8 * (rounds + 1) + rounds)
}

impl StartupScheme for Suss {
    fn begin(&mut self, first: &FirstSend, window: &mut Window) -> Option<PacedFlight> {
        self.initial_bytes = window.cwnd().into();
        self.round_end = first.position;
        self.clocked_end = first.position + self.initial_bytes;
        None
    }

    fn on_round_trip(&mut self, rtt: Nanos, state: &SendState, window: &mut Window) {
        let min_rtt = self.min_rtt.map_or(rtt, |shortest| shortest.min(rtt));
        if self.min_rtt != Some(min_rtt) {
            self.min_rtt = Some(min_rtt);
            self.min_rtt_round = self.round;
        }
        self.round_rtt = if state.una > self.round_end { rtt } else { self.round_rtt.min(rtt) };
        if window.cwnd() < window.ssthresh {
            self.look_for_exit(rtt, min_rtt, state, window);
        }
    }

    fn grow(&mut self, growth: &mut Growth<'_>, state: &SendState) {
        let paced = self.jump_base.is_some();
        if matches!(self.phase, Phase::Accelerating | Phase::Doubling) {
            if state.una > self.round_end {
                self.begin_round(growth, state);
            }
            if self.clocked && state.una >= self.clocked_end {
                self.end_clocked_part(growth, state);
                if self.jump_base.is_some() {
                    return;
                }
            }
            if self.clocked {
                self.clocked_bytes += u64::from(growth.bytes);
            }
        } else if paced {
            growth.end_pacing();
        }
        if self.jump_base.is_none() {
            growth.by_controller();
        }
    }

    fn slow_start_end(&self) -> Option<Trigger> {
        self.end
    }

    fn before_reduction(&mut self, state: &SendState, window: &mut Window) {
        if !matches!(self.phase, Phase::Hystart | Phase::Done) {
            window.set_cwnd(window.cwnd().min(Bytes(state.flight_bytes).max(Segments(2) * window.mss)));
        }
        self.jump_base = None;
        self.phase = Phase::Hystart;
    }

    fn on_timeout(&mut self, state: &SendState, _window: &mut Window) {
        self.jump_base = None;
        self.phase = Phase::Hystart;
        self.hystart.restart(state.now);
        self.min_rtt = None;
    }

    // HyStart is looked for again after each timeout.
    fn is_over(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_first_train_is_short_below_a_quarter_of_an_rtt_above_ten_milliseconds() {
        assert!(first_train_is_short(25 * MS - 1, 100 * MS));
        assert!(!first_train_is_short(25 * MS, 100 * MS));
        assert!(!first_train_is_short(0, 10 * MS));
    }

    #[test]
    fn a_train_that_quadrupled_fits_if_it_takes_a_quarter_of_the_rtt() {
        // Four times as long as the one before, it would be 100 ms after the next fourfold round.
        assert!(train_will_fit(25 * MS, 25 * MS / 4, 100 * MS));
        assert!(!train_will_fit(26 * MS, 26 * MS / 4, 100 * MS));
        // One that only doubled may take half.
        assert!(train_will_fit(50 * MS, 25 * MS, 100 * MS));
        assert!(!train_will_fit(51 * MS, 51 * MS / 2, 100 * MS));
        assert!(train_will_fit(0, 0, 100 * MS), "ACKs of one moment");
    }

    #[test]
    fn a_delay_that_rises_by_an_eighth_more_is_too_much() {
        // One round after the shortest: 100 ms, then 1/16 more, then 1/8 more.
        assert!(delay_will_fit(106_250_000, 100 * MS, 1));
        assert!(!delay_will_fit(106_250_001, 100 * MS, 1));
        // Two rounds after: another half of the rise is to come.
        assert!(delay_will_fit(108_333_333, 100 * MS, 2));
        assert!(!delay_will_fit(108_333_334, 100 * MS, 2));
        assert!(delay_will_fit(100 * MS, 100 * MS, 0));
    }
}
