//! The sender's window together with the algorithm that changes it.

use super::interface::{Acknowledged, CongestionControl, Delivery, RoundTrip};
use super::reno::Reno;
use super::start::Start;
use super::window::Window;
use super::{CongestionAlgorithm, Other};
use crate::Nanos;
use crate::amounts::Bytes;
use crate::event::Trigger;

/// The sender's cwnd and ssthresh, and the algorithm that changes them. Reno, which plain TCP asks for, is distinguished
/// from the others by one comparison and keeps its state here.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    window: Window,
    state: ControllerState,
}

#[derive(Clone, Debug)]
enum ControllerState {
    Reno(Reno),
    Other(Box<Other>),
    /// One that says of itself that it is rate-based: asked for with almost every segment, and always the same.
    RateBased(Box<Other>),
}

// An endpoint holds its controller, and a simulation holds very many endpoints.
const _: () = assert!(size_of::<Controller>() <= 32);

impl ControllerState {
    /// A new algorithm, in the memory of an old one if there is one.
    fn new_in(old: Option<Box<Other>>, algorithm: CongestionAlgorithm, start: &Start) -> Self {
        let renewed = match old {
            Some(mut memory) => memory.renew(algorithm, start).then_some(memory),
            None => Other::new(algorithm, start).map(Box::new),
        };
        match renewed {
            None => Self::Reno(Reno::new(start)),
            Some(other) if other.algorithm().is_rate_based() => Self::RateBased(other),
            Some(other) => Self::Other(other),
        }
    }
}

impl Controller {
    /// A new controller, in the memory of an old one if there is one.
    pub(crate) fn new_in(old: Option<Box<Other>>, algorithm: CongestionAlgorithm, start: &Start) -> Self {
        Self { window: Window::new(start), state: ControllerState::new_in(old, algorithm, start) }
    }

    /// Resets cwnd and ssthresh to their initial values; the algorithm keeps its state.
    pub(crate) fn reset_window(&mut self, start: &Start) {
        self.window = Window::new(start);
    }

    /// Gives up the memory that another controller can be built in, for a controller without any.
    pub(crate) fn take_memory(&mut self, start: &Start) -> Option<Box<Other>> {
        match std::mem::replace(&mut self.state, ControllerState::Reno(Reno::new(start))) {
            ControllerState::Reno(_) => None,
            ControllerState::Other(memory) | ControllerState::RateBased(memory) => Some(memory),
        }
    }

    /// Becomes a new controller in the memory of the old one.
    pub(crate) fn restart(&mut self, algorithm: CongestionAlgorithm, start: &Start) {
        let memory = self.take_memory(start);
        *self = Self::new_in(memory, algorithm, start);
    }

    /// The algorithm and the window that it changes.
    #[inline]
    fn parts(&mut self) -> (&mut dyn CongestionControl, &mut Window) {
        let algorithm = match &mut self.state {
            ControllerState::Reno(reno) => reno,
            ControllerState::Other(other) | ControllerState::RateBased(other) => other.algorithm_mut(),
        };
        (algorithm, &mut self.window)
    }

    #[inline]
    pub(crate) fn on_start(&mut self, now: Nanos, last_sent_at: Option<Nanos>) {
        if let ControllerState::Other(other) | ControllerState::RateBased(other) = &mut self.state {
            other.algorithm_mut().on_start(&mut self.window, now, last_sent_at);
        }
    }

    #[inline]
    pub(crate) fn on_round_trip(&mut self, now: Nanos, sample: &RoundTrip) {
        if let ControllerState::Other(other) | ControllerState::RateBased(other) = &mut self.state {
            other.algorithm_mut().on_round_trip(&mut self.window, now, sample);
        }
    }

    #[inline]
    pub(crate) fn on_ack(&mut self, now: Nanos, acknowledged: Acknowledged) {
        match &mut self.state {
            ControllerState::Reno(reno) => reno.on_ack(&mut self.window, now, acknowledged),
            ControllerState::Other(other) | ControllerState::RateBased(other) => {
                other.algorithm_mut().on_ack(&mut self.window, now, acknowledged)
            }
        }
    }

    pub(crate) fn on_delivery(&mut self, now: Nanos, delivery: &Delivery) {
        let (algorithm, window) = self.parts();
        algorithm.on_delivery(window, now, delivery);
    }

    pub(crate) fn on_congestion(&mut self, now: Nanos, flight_bytes: u32) {
        let (algorithm, window) = self.parts();
        algorithm.on_congestion(window, now, Bytes(flight_bytes));
    }

    pub(crate) fn on_timeout(&mut self, now: Nanos, flight_bytes: u32, first: bool) {
        let (algorithm, window) = self.parts();
        algorithm.on_timeout(window, now, Bytes(flight_bytes), first);
    }

    pub(crate) fn on_undo(&mut self, now: Nanos, cwnd: u32, ssthresh: u32) {
        let (algorithm, window) = self.parts();
        algorithm.on_undo(window, now, Bytes(cwnd), Bytes(ssthresh));
    }

    /// cwnd and ssthresh, for a start-up scheme to change.
    pub(crate) fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// cwnd, in bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd().0
    }

    pub(crate) fn largest_cwnd(&self) -> u32 {
        self.window.largest().0
    }

    /// ssthresh in bytes, if anything has set it.
    pub(crate) fn known_ssthresh(&self) -> Option<u32> {
        self.window.known_ssthresh().map(|ssthresh| ssthresh.0)
    }

    /// ssthresh, in bytes; [`Window::NO_LIMIT`] until anything sets it.
    pub(crate) fn ssthresh(&self) -> u32 {
        self.window.ssthresh.0
    }

    /// ssthresh to return to, in bytes: at least three quarters of cwnd, unless that is being reduced.
    // Linux, tcp_current_ssthresh.
    pub(crate) fn current_ssthresh(&self, reducing: bool) -> u32 {
        if reducing { self.ssthresh() } else { self.window.current_ssthresh().0 }
    }

    pub(crate) fn set_cwnd(&mut self, bytes: u32) {
        self.window.set_cwnd(Bytes(bytes));
    }

    pub(crate) fn set_ssthresh(&mut self, bytes: u32) {
        self.window.ssthresh = Bytes(bytes);
    }

    #[inline]
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        match &self.state {
            ControllerState::Reno(_) => None,
            ControllerState::Other(other) | ControllerState::RateBased(other) => other.algorithm().pacing_rate(),
        }
    }

    fn algorithm(&self) -> &dyn CongestionControl {
        match &self.state {
            ControllerState::Reno(reno) => reno,
            ControllerState::Other(other) | ControllerState::RateBased(other) => other.algorithm(),
        }
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.algorithm().in_slow_start(&self.window)
    }

    /// Why the algorithm ended slow start when it lowered ssthresh without congestion.
    pub(crate) fn slow_start_end(&self) -> Option<Trigger> {
        self.algorithm().slow_start_end()
    }

    pub(crate) fn min_train_segments(&self) -> Option<u32> {
        match &self.state {
            ControllerState::Reno(_) => None,
            ControllerState::Other(other) | ControllerState::RateBased(other) => other.algorithm().min_train_segments(),
        }
    }

    pub(crate) fn is_rate_based(&self) -> bool {
        matches!(self.state, ControllerState::RateBased(_))
    }

    #[cfg(test)]
    pub(crate) fn bbr(&self) -> Option<&super::bbr::Bbr> {
        match &self.state {
            ControllerState::Other(other) | ControllerState::RateBased(other) => match &**other {
                Other::Bbr(bbr) => Some(bbr),
                _ => None,
            },
            ControllerState::Reno(_) => None,
        }
    }
}
