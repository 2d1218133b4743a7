//! Where the connection's start-up scheme, its pacer and Quick-Start's options meet the endpoint. All of it is skipped
//! with one look at `launch`, which is empty unless the profile asks for a scheme or for pacing or the controller paces.

use crate::connection::timestamps::OPTION_BYTES;
use crate::connection::{Endpoint, State, feature};
use crate::profile::Profile;
use crate::segment::{Flags, QuickStart, Segment};
use crate::sender::congestion::Controller;
use crate::sender::initial_window::{Outcome, StartingPoint};
use crate::sender::pacing::Rate;
use crate::sender::rtt::RttEstimator;
use crate::sender::startup::{First, Launch, Standing, Startup};
use crate::sequence::{Position, near};
use crate::{NEVER, Nanos};

/// Headers of a segment without options.
const HEADER_BYTES: u32 = 40;

impl Endpoint {
    /// Begins with what others have left rather than with what the profile's policy says, up to 65535 segments. Without
    /// effect on a connection that is open already.
    pub fn start_from(&mut self, start: StartingPoint) {
        if self.state < State::Established {
            let kept = |segments: u32| segments.min(u16::MAX.into()) as u16;
            self.start_window = kept(start.window_segments.max(1));
            self.start_ssthresh = kept(start.ssthresh_segments.unwrap_or(0));
        }
    }

    /// What others can go by of this connection.
    pub fn outcome(&self) -> Outcome {
        let segments = |bytes: u32| bytes / self.mss.max(1);
        let ssthresh = self.ssthresh_bytes();
        Outcome {
            window_segments: segments(self.controller.window()),
            ssthresh_segments: (ssthresh != u32::MAX).then(|| segments(ssthresh)),
            initial_window_failed: self.initial_window_failed,
        }
    }

    /// The initial window in bytes, before what a lost SYN makes of it.
    pub fn initial_window_bytes(&self) -> u32 {
        match self.start_window {
            0 => self.profile.initial_window.window_bytes(self.mss),
            segments => u32::from(segments).saturating_mul(self.mss),
        }
    }

    /// The initial window with which data began, in whole segments: after what lost SYNs made of it. Before the connection
    /// is established, the one that it would begin with if none were lost.
    pub fn initial_window_segments(&self) -> u32 {
        match self.initial_segments {
            0 => self.initial_window_bytes() / self.mss,
            segments => u32::from(segments),
        }
    }

    /// Something is sent again: remember it if it was part of the initial window.
    // RFC 9040 §C.3 step 4: if (seqno - ISN) < IW, the re-sent segment fixes an IW loss.
    #[cold]
    pub(crate) fn note_sent_again(&mut self, position: Position) {
        self.initial_window_failed |= position - self.initial() <= u64::from(self.initial_window_bytes());
    }

    /// Our SYN is acknowledged: what there is to know before the first data leaves.
    pub(crate) fn prepare_launch(&mut self) {
        let paces = self.controller.is_rate_based() || self.controller.pacing_rate().is_some();
        if self.profile.startup == Startup::Window && self.profile.pacing.is_none() && !paces {
            return;
        }
        // RFC 4782 §4.7.2: a SYN or SYN-ACK that is sent again carries no request.
        let requested = self.stats.syn_retransmissions == 0;
        let launch = self.launch_or_new();
        launch.set_controller_paces(paces);
        launch.report_quick_start(requested);
        if launch.has_options() {
            self.features |= feature::QUICK_START;
        }
    }

    fn launch_or_new(&mut self) -> &mut Launch {
        let profile = &self.profile;
        let extra = self.extras.get_or_new(profile, self.initial_sequence);
        extra.launch.get_or_insert_with(|| Box::new(Launch::new(profile.startup, profile.pacing.as_ref())))
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing { una: self.una, nxt: self.nxt, flight_bytes: self.flight_bytes(), mss_bytes: self.mss }
    }

    /// Whether data that is ready has to wait for its turn; [`poll_timeout`](Self::poll_timeout) then says how long.
    #[inline]
    pub(crate) fn holds_back(&mut self, now: Nanos) -> bool {
        self.extras.launch().is_some() && self.is_held(now)
    }

    #[inline(never)]
    fn is_held(&mut self, now: Nanos) -> bool {
        let Some(launch) = self.extras.launch_mut() else { return false };
        if self.nxt >= self.data_end {
            return false;
        }
        if !launch.has_begun() {
            let first = First {
                position: self.nxt,
                queued_bytes: self.data_end - self.nxt,
                send_window: self.send_window,
                mss_bytes: self.mss,
                header_bytes: HEADER_BYTES + if self.features & feature::TIMESTAMPS == 0 { 0 } else { OPTION_BYTES },
                rtt: self.rtt.smoothed(&self.profile.rto),
            };
            launch.begin(&first, &mut self.controller);
        }
        launch.set_window_rate(window_rate(&self.profile, &self.controller, &self.rtt));
        launch.holds(now, self.nxt, &self.controller)
    }

    /// Whether repairs, too, have to wait for their turn: a controller that sets the rate sets it for all that leaves.
    #[inline]
    pub(crate) fn holds_back_repairs(&mut self, now: Nanos) -> bool {
        match self.extras.launch_mut() {
            Some(launch) => {
                launch.set_window_rate(window_rate(&self.profile, &self.controller, &self.rtt));
                launch.holds_repairs(now, &self.controller)
            }
            None => false,
        }
    }

    /// `bytes` of payload leave.
    #[inline]
    pub(crate) fn pace(&mut self, now: Nanos, bytes: u32) {
        if let Some(launch) = self.extras.launch_mut() {
            launch.on_sent(now, bytes);
        }
    }

    /// When a segment that is held back may leave, or [`NEVER`].
    #[inline]
    pub(crate) fn launch_deadline(&self) -> Nanos {
        self.extras.launch().map_or(NEVER, |launch| launch.deadline())
    }

    /// A segment of the handshake arrived, maybe with a Quick-Start option.
    #[inline]
    pub(crate) fn note_quick_start(&mut self, segment: &Segment) {
        if segment.quick_start != QuickStart::None || segment.quick_start_response.is_some() {
            self.on_quick_start(segment);
        }
    }

    #[cold]
    fn on_quick_start(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let acknowledges = segment.flags.contains(Flags::ACK)
            && matches!(self.state, State::SynSent | State::SynReceived)
            && near(self.una, segment.ack) == self.initial() + 1;
        if let Some(rate) = segment.quick_start_response.filter(|_| acknowledges) {
            self.launch_or_new().on_quick_start_response(rate);
        }
        // RFC 4782 §4.3: a response to each request, but not to one with a rate of zero. A request that some router has
        // ignored comes back with a TTL difference that is not the one sent, which is as good as no rate.
        if let (QuickStart::Request { rate: 1.., approved }, true) =
            (segment.quick_start, segment.flags.contains(Flags::SYN))
        {
            let QuickStart::Request { rate, .. } = segment.quick_start else { return };
            self.launch_or_new().answer_quick_start(if approved { rate } else { 0 });
            self.features |= feature::QUICK_START;
        }
    }

    /// The request of our SYN or SYN-ACK.
    pub(crate) fn quick_start_request(&self) -> QuickStart {
        match self.profile.startup {
            // RFC 4782 §4.7.2: without a response, resend the SYN or SYN/ACK without the Quick-Start Request.
            Startup::QuickStart { rate, .. } if self.stats.syn_retransmissions == 0 => {
                QuickStart::Request { rate, approved: true }
            }
            _ => QuickStart::None,
        }
    }

    /// The response of our SYN-ACK.
    // RFC 4782 §4.3: the Quick-Start Response MUST NOT be resent if it is lost.
    pub(crate) fn quick_start_response(&mut self) -> Option<u8> {
        self.extras.launch_mut().and_then(|launch| launch.take_response())
    }

    /// Adds the options that wait for a segment to ride on.
    pub(crate) fn add_quick_start(&mut self, segment: &mut Segment) {
        self.features &= !feature::QUICK_START;
        if let Some(launch) = self.extras.launch_mut() {
            (segment.quick_start, segment.quick_start_response) = launch.take_options();
        }
    }
}

/// The rate at which a window leaves, if the profile paces it and the round trip is known.
fn window_rate(profile: &Profile, controller: &Controller, rtt: &RttEstimator) -> Option<Rate> {
    let (pacing, srtt) = (profile.pacing?, rtt.smoothed(&profile.rto)?);
    Some(pacing.rate(controller.window(), controller.ssthresh(), srtt))
}
