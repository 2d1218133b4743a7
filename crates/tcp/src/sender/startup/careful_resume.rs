//! Careful Resume (RFC 9959, N. Kuhn, E. Stephan, G. Fairhurst, R. Secchi, C. Huitema, April 2026): once the initial window
//! has arrived and its RTT matches the saved one of an earlier connection, cwnd jumps to half of the saved one, paced
//! over a round trip; the jump is validated by its ACKs, and a loss takes cwnd back to half of what the path has
//! delivered.

use super::scheme::{FirstSend, Growth, SendState, StartupScheme};
use crate::Nanos;
use crate::amounts::{Bytes, Segments};
use crate::sender::congestion::Window;
use crate::sender::pacing::flight::{PacedFlight, Rate};
use crate::sequence::SeqNum;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Reconnaissance,
    /// cwnd is the jump, for a round trip at most.
    Unvalidated {
        until: Nanos,
    },
    /// Data before position `end` is unvalidated.
    Validating {
        end: SeqNum,
    },
    SafeRetreat,
    /// The controller is alone.
    Normal,
}

#[derive(Clone, Debug, Default)]
pub(super) struct CarefulResume {
    saved_window: Segments,
    saved_rtt: Nanos,
    phase: Phase,
    initial_window: Bytes,
    /// One past the data of the initial window.
    initial_end: SeqNum,
    /// Sequence number at which unvalidated data begins.
    first: SeqNum,
    min_rtt: Nanos,
    latest_rtt: Nanos,
    /// PipeSize: bytes that the path is known to carry, of those in flight at the jump and those unvalidated.
    pipe_bytes: u64,
    most_pipe_bytes: u64,
}

impl CarefulResume {
    pub(super) fn new(saved_window_segments: u32, saved_rtt: Nanos) -> Self {
        Self {
            saved_window: Segments(saved_window_segments),
            saved_rtt,
            min_rtt: Nanos::MAX,
            most_pipe_bytes: u64::MAX,
            ..Self::default()
        }
    }

    /// The RTT is of the path whose window was saved.
    // RFC 9959 §3.2, Minimum RTT too small: not at or below saved_rtt / 2. §4.2.1: more than ten times the saved_rtt is
    // indicative of a path change.
    fn path_is_confirmed(&self) -> bool {
        self.min_rtt > self.saved_rtt / 2 && self.min_rtt <= self.saved_rtt.saturating_mul(10)
    }

    /// All of the initial window has arrived.
    fn leave_reconnaissance(&mut self, growth: &mut Growth<'_>, state: &SendState) {
        // RFC 9959 §3.3: jump_cwnd is at most Min(max_jump, saved_cwnd / 2).
        let jump = self.saved_window.bytes(growth.window().mss) / 2;
        if !self.path_is_confirmed() || jump <= growth.window().cwnd() {
            self.phase = Phase::Normal;
            return growth.by_controller();
        }
        if u64::from(state.flight_bytes) + state.queued_bytes <= u64::from(growth.window().cwnd()) {
            // RFC 9959 §3.2: the transition may be deferred until there is more data than cwnd permits.
            return growth.by_controller();
        }
        self.pipe_bytes = state.flight_bytes.into();
        self.first = state.nxt;
        self.phase = Phase::Unvalidated { until: state.now + self.latest_rtt };
        growth.window().set_cwnd(jump);
        // RFC 9959 §4.3.2: ITT = (current RTT x MPS) / jump_cwnd.
        let (bytes, time) = (u64::from(jump), self.latest_rtt);
        let flight = PacedFlight { bytes, rate: Rate::new(bytes, time), time, until_ack: false };
        growth.begin_pacing(flight, state.nxt, state.now);
    }

    /// Nothing more is sent unvalidated. `full`: the jump was used up, and cwnd is the data in flight before this ACK.
    // RFC 9959 §3.3, Check flight_size.
    fn leave_unvalidated(&mut self, full: bool, growth: &mut Growth<'_>, state: &SendState) {
        growth.end_pacing();
        let flight = Bytes(state.flight_bytes);
        if !full && (flight < self.initial_window || u64::from(flight) <= self.pipe_bytes) {
            growth.window().set_cwnd(bounded(self.pipe_bytes).max(self.initial_window));
            self.phase = Phase::Normal;
            return;
        }
        if !full {
            growth.window().set_cwnd(flight);
        }
        self.phase = Phase::Validating { end: state.nxt };
        self.most_pipe_bytes = self.pipe_bytes + (state.nxt - state.una.max(self.first));
    }

    /// An ACK shows that this amount of the unvalidated data has arrived.
    fn add_to_pipe(&mut self, bytes: u64) {
        self.pipe_bytes = (self.pipe_bytes + bytes).min(self.most_pipe_bytes);
    }

    /// Congestion, which the controller has answered.
    fn on_congestion(&mut self, state: &SendState, window: &mut Window) {
        if let Phase::Unvalidated { .. } = self.phase {
            self.most_pipe_bytes = self.pipe_bytes + (state.nxt - state.una.max(self.first));
        }
        match self.phase {
            Phase::Unvalidated { .. } | Phase::Validating { .. } => {
                // RFC 9959 §3.5: cwnd MUST be reduced to no more than PipeSize / 2. The threshold goes with it, as it is
                // recovery's target.
                let retreat = bounded(self.pipe_bytes / 2).max(Segments(2) * window.mss);
                window.set_cwnd(window.cwnd().min(retreat));
                window.ssthresh = window.ssthresh.min(retreat);
                self.phase = Phase::SafeRetreat;
            }
            Phase::SafeRetreat => {}
            Phase::Reconnaissance | Phase::Normal => self.phase = Phase::Normal,
        }
    }
}

fn bounded(bytes: u64) -> Bytes {
    Bytes(bytes.min(u32::MAX.into()) as u32)
}

impl StartupScheme for CarefulResume {
    fn begin(&mut self, first: &FirstSend, window: &mut Window) -> Option<PacedFlight> {
        self.initial_window = window.cwnd();
        self.initial_end = first.position + first.queued_bytes.min(window.cwnd().into());
        None
    }

    fn on_round_trip(&mut self, rtt: Nanos, _state: &SendState, _window: &mut Window) {
        self.min_rtt = self.min_rtt.min(rtt);
        self.latest_rtt = rtt;
    }

    fn grow(&mut self, growth: &mut Growth<'_>, state: &SendState) {
        if self.phase == Phase::Reconnaissance {
            return match state.una >= self.initial_end && self.latest_rtt > 0 {
                true => self.leave_reconnaissance(growth, state),
                false => growth.by_controller(),
            };
        }
        // RFC 9959 §3.3, Tracking PipeSize: by evidence that an unvalidated packet has arrived; appendix B.4 counts so.
        self.add_to_pipe(u64::from(growth.bytes).min(state.una.saturating_sub(self.first)));
        match self.phase {
            Phase::Unvalidated { until } => {
                let used = u64::from(state.flight_bytes) + u64::from(growth.bytes);
                let full = used + u64::from(state.mss_bytes) > u64::from(growth.window().cwnd());
                if self.min_rtt <= self.saved_rtt / 2 {
                    // RFC 9959 §3.3, Confirming the path during transmission.
                    growth.end_pacing();
                    self.on_congestion(state, growth.window());
                    self.phase = Phase::Normal;
                } else if full || state.una > self.first || state.now > until {
                    self.leave_unvalidated(full, growth, state);
                    growth.by_controller();
                }
            }
            Phase::Validating { end } => {
                growth.by_controller();
                if state.una >= end {
                    self.phase = Phase::Normal;
                }
            }
            // RFC 9959 §3.5: cwnd MUST NOT be increased in the Safe Retreat Phase.
            Phase::SafeRetreat => {}
            Phase::Reconnaissance | Phase::Normal => growth.by_controller(),
        }
    }

    fn on_loss(&mut self, state: &SendState, window: &mut Window) {
        self.on_congestion(state, window);
    }

    fn on_delivery(&mut self, delivered_bytes: u32, _lost_bytes: u32, _window: &mut Window) {
        self.add_to_pipe(delivered_bytes.into());
    }

    fn on_mark(&mut self, state: &SendState, window: &mut Window) {
        self.on_congestion(state, window);
        if self.phase == Phase::SafeRetreat {
            // Nothing was lost, so there is no recovery to wait for.
            self.phase = Phase::Normal;
        }
    }

    fn on_undone(&mut self) {
        self.phase = Phase::Normal;
    }

    fn on_recovered(&mut self, _state: &SendState, window: &mut Window) {
        if self.phase == Phase::SafeRetreat {
            // RFC 9959 §3.5: on leaving, ssthresh MUST be no larger than PipeSize * Beta, 0.5 by default.
            window.ssthresh = bounded(self.pipe_bytes / 2).max(Segments(2) * window.mss);
            window.set_cwnd(window.cwnd().min(window.ssthresh));
        }
        self.phase = Phase::Normal;
    }

    // RFC 9959 §3.6: after a retransmission timeout the sender returns to using normal CC.
    fn on_timeout(&mut self, _state: &SendState, _window: &mut Window) {
        self.phase = Phase::Normal;
    }

    fn is_over(&self) -> bool {
        self.phase == Phase::Normal
    }
}
