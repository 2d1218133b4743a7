//! The interface of a start-up scheme: its inputs, and the state that it may change. Users can add their own.

use crate::Nanos;
use crate::amounts::Bytes;
use crate::event::Trigger;
use crate::sender::congestion::controller::Controller;
use crate::sender::congestion::{Acknowledged, Custom, Window};
use crate::sender::pacing::flight::PacedFlight;
use crate::sequence::SeqNum;
use dyn_clone::DynClone;

/// A scheme's inputs when the first data is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct FirstSend {
    /// The position of the first byte.
    pub position: SeqNum,
    /// Bytes that the application has written.
    pub queued_bytes: u64,
    /// The limit from the peer's window and the profile's bound on the send window.
    pub send_window: u32,
    /// Effective segment size.
    pub mss_bytes: u32,
    /// TCP and IP headers of a segment.
    pub header_bytes: u32,
    /// RTT of the handshake; none if its segments had to be retransmitted.
    pub rtt: Option<Nanos>,
}

/// State of the sender.
#[derive(Clone, Copy, Debug)]
pub struct SendState {
    /// Time of the event.
    pub now: Nanos,
    /// First position not acknowledged.
    pub una: SeqNum,
    /// Next position to send.
    pub nxt: SeqNum,
    /// Bytes in flight.
    pub flight_bytes: u32,
    /// Bytes that the application has written and that were not sent.
    pub queued_bytes: u64,
    /// Effective segment size.
    pub mss_bytes: u32,
}

/// New data is acknowledged outside of recovery: cwnd may grow, by the scheme's algorithm or by the controller's.
#[derive(Debug)]
pub struct Growth<'a> {
    /// Time of the ACK.
    pub now: Nanos,
    /// Newly acknowledged; with SACK, newly delivered.
    pub bytes: Bytes,
    /// Window validation lets cwnd grow.
    pub allowed: bool,
    pub(super) controller: &'a mut Controller,
    pub(super) pace: NextPace,
}

/// A scheme's decision on the pace of later data.
#[derive(Clone, Copy, Debug)]
pub(super) enum NextPace {
    Unchanged,
    None,
    Flight { flight: PacedFlight, start: SeqNum, at: Nanos },
}

impl Growth<'_> {
    /// cwnd and ssthresh.
    pub fn window(&mut self) -> &mut Window {
        self.controller.window_mut()
    }

    /// Growth by the controller's algorithm.
    pub fn by_controller(&mut self) {
        if self.allowed {
            self.controller.on_ack(self.now, Acknowledged { bytes: self.bytes });
        }
    }

    /// Data from position `start` is sent at a rate, not before `at`; data before it is sent as the window opens.
    pub fn begin_pacing(&mut self, flight: PacedFlight, start: SeqNum, at: Nanos) {
        self.pace = NextPace::Flight { flight, start, at };
    }

    /// Nothing is paced any more.
    pub fn end_pacing(&mut self) {
        self.pace = NextPace::None;
    }
}

/// A start-up scheme. cwnd and ssthresh are the sender's; the controller changes them, and a scheme that wants others sets
/// them after it.
pub trait StartupScheme: DynClone + std::fmt::Debug + Send + Sync {
    /// The first data is about to leave, and cwnd is the initial window. Returns the flight to send at a rate.
    fn begin(&mut self, first: &FirstSend, window: &mut Window) -> Option<PacedFlight>;

    /// New data is acknowledged outside of recovery.
    fn grow(&mut self, growth: &mut Growth<'_>, _state: &SendState) {
        growth.by_controller();
    }

    /// An ACK gave an RTT. Called before `grow` for the same ACK.
    fn on_round_trip(&mut self, _rtt: Nanos, _state: &SendState, _window: &mut Window) {}

    /// ACKs show a loss or a CE mark, and the controller is about to answer it: a scheme that has opened cwnd beyond
    /// the part that was used reduces it.
    fn before_reduction(&mut self, _state: &SendState, _window: &mut Window) {}

    /// An ACK echoed a CE mark, and the controller has answered it.
    fn on_mark(&mut self, _state: &SendState, _window: &mut Window) {}

    /// ACKs show a loss, and the controller has answered it.
    fn on_loss(&mut self, _state: &SendState, _window: &mut Window) {}

    /// While that loss is recovered: bytes newly delivered, and bytes newly known to be lost.
    fn on_delivery(&mut self, _delivered_bytes: u32, _lost_bytes: u32, _window: &mut Window) {}

    /// That loss was spurious: cwnd and ssthresh are those before it.
    fn on_undone(&mut self) {}

    /// Recovery is over.
    fn on_recovered(&mut self, _state: &SendState, _window: &mut Window) {}

    /// The retransmission timer expired, and the controller has answered it.
    fn on_timeout(&mut self, _state: &SendState, _window: &mut Window) {}

    /// From now on the controller is alone.
    fn is_over(&self) -> bool;

    /// Rate code that the SYN or SYN-ACK asks of the routers on the path, 1 to 15 (Quick-Start, RFC 4782); 0: none.
    fn requested_rate(&self) -> u8 {
        0
    }

    /// The routers and the peer answered the request: this is the granted rate, 0 for none. Not called if there is no
    /// answer.
    fn on_rate_granted(&mut self, _rate: u8) {}

    /// Why it ended slow start when it lowered ssthresh without congestion; none: it did not, or gives no reason.
    fn slow_start_end(&self) -> Option<Trigger> {
        None
    }

    /// Rate code that the sender goes by, which the first segment after the handshake reports to the routers.
    fn granted_rate(&self) -> u8 {
        0
    }
}

// Endpoints are cloned, with the scheme in its box.
dyn_clone::clone_trait_object!(StartupScheme);

/// A start-up scheme of the crate's user.
pub type CustomStartup = Custom<fn() -> Box<dyn StartupScheme>>;
