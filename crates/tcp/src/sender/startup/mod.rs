//! Start-up schemes: what begins a connection besides the size of its initial window. One file a scheme.
//!
//! A scheme is asked when the first data is about to leave, and told of acknowledgements, losses and their repair
//! until it is over; then nothing of it is left, and the congestion controller is alone. Of all connections only those
//! that begin by such a scheme, or whose controller paces, carry a [`Launch`].

mod first_loss;
mod jump_start;
mod paced;
mod quick_start;
mod rapid_start;

use crate::segment::QuickStart;
use crate::sender::congestion::{Acknowledged, Controller};
use crate::sender::pacing::{Pacer, Rate, UNPACED_SEGMENTS, WindowPacer, WindowPacing};
use crate::sequence::{NOWHERE, Position};
use crate::{NEVER, Nanos};
use jump_start::JumpStart;
use paced::Paced;
use quick_start::QuickStartSender;
use rapid_start::RapidStart;
use serde::{Deserialize, Serialize};

/// How the first round trip of data is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "scheme", rename_all = "snake_case", deny_unknown_fields)]
pub enum Startup {
    /// The initial window at once, then slow start.
    Window,
    /// The initial window spread evenly over the round trip that the handshake measured, then slow start.
    Paced {
        /// Share of the round trip over which it is spread, in percent, 1 to 100.
        #[serde(default = "paced::whole_round_trip")]
        over_rtt_percent: u32,
    },
    /// All that the application has written by then, up to the peer's window, over the first round trip, then
    /// congestion avoidance (Liu, Allman, Jin, Wang 2007).
    JumpStart,
    /// The rate that all routers on the path grant, for the first round trip (RFC 4782).
    QuickStart {
        /// Code N of the rate to ask for, 1 to 15: 40 kbit/s x 2^N, headers included.
        rate: u8,
        /// RFC 3742's `max_ssthresh`: above so many segments slow start grows by at most half of it a round trip.
        #[serde(default = "quick_start::limited_slow_start")]
        limited_slow_start_segments: u32,
    },
    /// A larger initial window over the first round trip, then growth faster than slow start's until a queue builds
    /// (draft-kazuho-ccwg-rapid-start-02).
    RapidStart {
        /// How many times the initial window the first flight is, 1 to 10.
        #[serde(default = "rapid_start::window_factor")]
        window_factor: u32,
        /// Factor by which the window grows in a round trip while no queue is seen, 2 to 4.
        #[serde(default = "rapid_start::growth")]
        growth: u32,
        /// A round trip that is longer than the shortest one by this much has met a queue.
        #[serde(default = "rapid_start::queue_delay_ns")]
        queue_delay_ns: Nanos,
        /// Or by this share of the shortest one, in percent, if that is less.
        #[serde(default = "rapid_start::queue_delay_percent")]
        queue_delay_percent: u32,
    },
}

impl Startup {
    /// Checks the scheme's parameters.
    pub(crate) fn validate(
        self,
        within: impl Fn(&str, u64, u64, u64) -> Result<(), String>,
        most_segments: u64,
        longest_time: Nanos,
    ) -> Result<(), String> {
        match self {
            Self::Window | Self::JumpStart => Ok(()),
            Self::Paced { over_rtt_percent } => within("startup.over_rtt_percent", over_rtt_percent.into(), 1, 100),
            Self::QuickStart { rate, limited_slow_start_segments } => {
                within("startup.rate", rate.into(), 1, 15)?;
                let segments = limited_slow_start_segments.into();
                within("startup.limited_slow_start_segments", segments, 1, most_segments)
            }
            Self::RapidStart { window_factor, growth, queue_delay_ns, queue_delay_percent } => {
                within("startup.window_factor", window_factor.into(), 1, 10)?;
                within("startup.growth", growth.into(), 2, 4)?;
                within("startup.queue_delay_ns", queue_delay_ns, 1, longest_time)?;
                within("startup.queue_delay_percent", queue_delay_percent.into(), 1, 1000)
            }
        }
    }
}

/// What is known when the first data is about to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    /// The position of the first byte.
    pub position: Position,
    /// Bytes that the application has written.
    pub queued_bytes: u64,
    /// What the peer, and the profile's bound on the send window, take.
    pub send_window: u32,
    pub mss_bytes: u32,
    /// TCP and IP headers of a segment.
    pub header_bytes: u32,
    /// The round trip that the handshake measured; none if its segments had to be repeated.
    pub rtt: Option<Nanos>,
}

/// A part of the stream that leaves at a rate rather than as the window opens: so many bytes from the first on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacedFlight {
    pub bytes: u64,
    pub rate: Rate,
    /// What is not sent in this time for want of data is not paced any more.
    pub time: Nanos,
}

/// Where the sender stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// First position not acknowledged.
    pub una: Position,
    /// Next position to send.
    pub nxt: Position,
    /// Bytes in flight.
    pub flight_bytes: u32,
    pub mss_bytes: u32,
}

/// Data that was acknowledged while nothing is being repaired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub now: Nanos,
    pub bytes: u32,
    /// Window validation lets the window grow.
    pub allowed: bool,
}

impl Growth {
    /// The controller's own growth.
    fn of(&self, controller: &mut Controller) {
        if self.allowed {
            controller.on_ack(self.now, Acknowledged { bytes: self.bytes });
        }
    }
}

/// What a scheme answers to. The window and the threshold are the controller's: a scheme that wants others sets them.
pub(crate) trait Scheme {
    /// The first data is about to leave, under the controller's initial window.
    fn begin(&mut self, first: &First, controller: &mut Controller) -> Option<PacedFlight>;

    /// Data was acknowledged while nothing is being repaired.
    fn grow(&mut self, growth: &Growth, _standing: &Standing, controller: &mut Controller) {
        growth.of(controller);
    }

    /// An acknowledgement gave a round trip.
    fn on_round_trip(&mut self, _rtt: Nanos, _standing: &Standing) {}

    /// A loss was noticed by acknowledgements, and the controller has answered it.
    fn on_loss(&mut self, standing: &Standing, controller: &mut Controller);

    /// While that loss is repaired: bytes that newly left the network, and bytes newly known to be lost.
    fn on_delivery(&mut self, _delivered_bytes: u32, _lost_bytes: u32, _controller: &mut Controller) {}

    /// That loss was none: the controller has its window and threshold again.
    fn on_undone(&mut self) {}

    /// The repair is over.
    fn on_repaired(&mut self, _standing: &Standing, _controller: &mut Controller) {}

    /// The retransmission timer expired, and the controller has answered it.
    fn on_timeout(&mut self, standing: &Standing, controller: &mut Controller);

    /// From now on the controller is alone.
    fn is_over(&self) -> bool;
}

/// The scheme of a connection.
#[derive(Clone, Debug)]
enum Chosen {
    Window,
    Paced(Paced),
    JumpStart(JumpStart),
    QuickStart(QuickStartSender),
    RapidStart(RapidStart),
}

impl Chosen {
    fn new(startup: Startup) -> Self {
        match startup {
            Startup::Window => Self::Window,
            Startup::Paced { over_rtt_percent } => Self::Paced(Paced::new(over_rtt_percent)),
            Startup::JumpStart => Self::JumpStart(JumpStart::default()),
            Startup::QuickStart { rate, limited_slow_start_segments } => {
                Self::QuickStart(QuickStartSender::new(rate, limited_slow_start_segments))
            }
            Startup::RapidStart { window_factor, growth, queue_delay_ns, queue_delay_percent } => {
                Self::RapidStart(RapidStart::new(window_factor, growth, queue_delay_ns, queue_delay_percent))
            }
        }
    }

    fn scheme(&mut self) -> Option<&mut dyn Scheme> {
        match self {
            Self::Window => None,
            Self::Paced(scheme) => Some(scheme),
            Self::JumpStart(scheme) => Some(scheme),
            Self::QuickStart(scheme) => Some(scheme),
            Self::RapidStart(scheme) => Some(scheme),
        }
    }
}

/// How a connection begins that does not simply send its initial window: the scheme, the pacer, and the Quick-Start
/// options that wait for a segment to ride on.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pacer: Pacer,
    chosen: Chosen,
    /// The controller says at which rate to send, all the time.
    controller_paces: bool,
    /// Or the window and the round trip do.
    window_pacer: Option<WindowPacer>,
    begun: bool,
    /// Segments sent so far, as far as it matters.
    sent: u32,
    /// The paced flight: one past its last position, and when it is over at the latest.
    paced_end: Position,
    paced_time: Nanos,
    paced_until: Nanos,
    /// The IP option of the next segment.
    report: QuickStart,
    /// The TCP option of the next segment.
    response: Option<u8>,
}

impl Launch {
    pub(crate) fn new(startup: Startup, pacing: Option<&WindowPacing>) -> Self {
        Self {
            pacer: Pacer::default(),
            chosen: Chosen::new(startup),
            controller_paces: false,
            window_pacer: pacing.map(WindowPacer::new),
            begun: false,
            sent: 0,
            paced_end: 0,
            paced_time: 0,
            paced_until: NEVER,
            report: QuickStart::None,
            response: None,
        }
    }

    pub(crate) fn set_controller_paces(&mut self, paces: bool) {
        self.controller_paces = paces;
        if paces {
            self.window_pacer = None;
        }
    }

    /// The rate at which the window is to leave, where the profile paces it.
    pub(crate) fn set_window_rate(&mut self, rate: Option<Rate>) {
        if let Some(pacer) = &mut self.window_pacer {
            pacer.set_rate(rate);
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    pub(crate) fn begin(&mut self, first: &First, controller: &mut Controller) {
        self.begun = true;
        let flight = self.chosen.scheme().and_then(|scheme| scheme.begin(first, controller));
        if let Some(flight) = flight.filter(|_| !self.controller_paces) {
            self.pacer.set_rate(Some(flight.rate));
            self.paced_end = first.position + flight.bytes;
            self.paced_time = flight.time;
        }
    }

    /// Whether what would leave at `nxt` has to wait.
    pub(crate) fn holds(&mut self, now: Nanos, nxt: Position, controller: &Controller) -> bool {
        if let Some(pacer) = &mut self.window_pacer {
            return pacer.holds(now);
        }
        if self.controller_paces {
            self.pacer.set_rate(controller.pacing_rate().map(|rate| Rate::new(rate, 1_000_000_000)));
        } else if nxt >= self.paced_end || now >= self.paced_until {
            self.stop_pacing();
        }
        self.pacer.holds(now)
    }

    /// Whether a repair that is ready has to wait: only what paces all the time makes it.
    pub(crate) fn holds_repairs(&mut self, now: Nanos, controller: &Controller) -> bool {
        (self.controller_paces || self.window_pacer.is_some()) && self.holds(now, 0, controller)
    }

    pub(crate) fn on_sent(&mut self, now: Nanos, bytes: u32) {
        if self.paced_until == NEVER && self.begun {
            self.paced_until = now.saturating_add(self.paced_time);
        }
        self.sent = self.sent.saturating_add(1);
        if !self.controller_paces || self.sent >= UNPACED_SEGMENTS {
            self.pacer.on_sent(now, bytes);
        }
        if let Some(pacer) = &mut self.window_pacer {
            pacer.on_sent(now, bytes);
        }
    }

    fn stop_pacing(&mut self) {
        if !self.controller_paces {
            self.pacer.set_rate(None);
            self.paced_end = 0;
        }
    }

    pub(crate) fn grow(&mut self, growth: &Growth, standing: &Standing, controller: &mut Controller) {
        match self.chosen.scheme() {
            Some(scheme) if self.begun => scheme.grow(growth, standing, controller),
            _ => growth.of(controller),
        }
        if let Chosen::QuickStart(_) = self.chosen {
            // RFC 4782 §4.4: Quick-Start mode, and with it the pacing, ends when the TCP host receives an ACK for one
            // of the Quick-Start packets.
            self.stop_pacing();
        }
    }

    pub(crate) fn on_round_trip(&mut self, rtt: Nanos, standing: &Standing) {
        if let Some(scheme) = self.chosen.scheme() {
            scheme.on_round_trip(rtt, standing);
        }
    }

    pub(crate) fn on_loss(&mut self, standing: &Standing, controller: &mut Controller) {
        self.stop_pacing();
        if let Some(scheme) = self.chosen.scheme() {
            scheme.on_loss(standing, controller);
        }
    }

    pub(crate) fn on_delivery(&mut self, delivered_bytes: u32, lost_bytes: u32, controller: &mut Controller) {
        if let Some(scheme) = self.chosen.scheme() {
            scheme.on_delivery(delivered_bytes, lost_bytes, controller);
        }
    }

    pub(crate) fn on_undone(&mut self) {
        if let Some(scheme) = self.chosen.scheme() {
            scheme.on_undone();
        }
    }

    pub(crate) fn on_repaired(&mut self, standing: &Standing, controller: &mut Controller) {
        if let Some(scheme) = self.chosen.scheme() {
            scheme.on_repaired(standing, controller);
        }
    }

    pub(crate) fn on_timeout(&mut self, standing: &Standing, controller: &mut Controller) {
        self.stop_pacing();
        if let Some(scheme) = self.chosen.scheme() {
            scheme.on_timeout(standing, controller);
        }
    }

    pub(crate) fn deadline(&self) -> Nanos {
        let window = self.window_pacer.as_ref().map_or(NEVER, |pacer| pacer.deadline());
        self.pacer.deadline().min(window)
    }

    pub(crate) fn on_time(&mut self, now: Nanos) {
        self.pacer.on_time(now);
        if let Some(pacer) = &mut self.window_pacer {
            pacer.on_time(now);
        }
    }

    /// The rate at which segments leave now, in bytes a second.
    pub(crate) fn rate(&self) -> Option<u64> {
        let window = self.window_pacer.as_ref().and_then(|pacer| pacer.rate());
        self.pacer.rate().or(window).map(Rate::bytes_per_second)
    }

    /// Nothing is left to do: the connection goes on as if it had begun with its initial window.
    pub(crate) fn is_over(&mut self) -> bool {
        self.begun
            && !self.controller_paces
            && self.window_pacer.is_none()
            && self.pacer.rate().is_none()
            && !self.has_options()
            && self.chosen.scheme().is_none_or(|scheme| scheme.is_over())
    }

    /// The peer, or a router on its way, granted the request for a rate: a response with this code arrived.
    pub(crate) fn on_quick_start_response(&mut self, rate: u8) {
        if let Chosen::QuickStart(scheme) = &mut self.chosen {
            scheme.on_response(rate);
        }
    }

    /// The handshake is complete: the request is answered, or never will be.
    // RFC 4782 §4.4: whether or not the Quick-Start Request was successful, the host MUST send a Report of Approved Rate.
    pub(crate) fn report_quick_start(&mut self, requested: bool) {
        if let Chosen::QuickStart(scheme) = &self.chosen {
            if requested {
                self.report = QuickStart::Report { rate: scheme.granted() };
            }
        }
    }

    /// A request arrived, to be answered on the next segment.
    pub(crate) fn answer_quick_start(&mut self, rate: u8) {
        self.response = Some(rate);
    }

    /// Whether an option waits for a segment to ride on.
    pub(crate) fn has_options(&self) -> bool {
        self.report != QuickStart::None || self.response.is_some()
    }

    /// Options for the segment that leaves now.
    pub(crate) fn take_options(&mut self) -> (QuickStart, Option<u8>) {
        (std::mem::take(&mut self.report), self.response.take())
    }

    /// Response for the SYN-ACK that leaves now.
    pub(crate) fn take_response(&mut self) -> Option<u8> {
        self.response.take()
    }
}

/// One past every position: for schemes that have not begun.
const UNBEGUN: Position = NOWHERE;
