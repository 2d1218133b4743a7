//! The option that a SYN carries for the routers on its path, which may lower it, and the answer (Quick-Start, RFC 4782).
//! All of it happens in the handshake and on the first segment after it.

use crate::connection::{Endpoint, State, feature};
use crate::segment::{Flags, QuickStart, Segment};
use crate::sequence::near;

/// Options that wait for the next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PathOptions {
    /// For the routers.
    report: QuickStart,
    /// For the peer, the answer to its request.
    response: Option<u8>,
}

impl Endpoint {
    /// A segment of the handshake arrived, maybe with a request or a response.
    pub(crate) fn note_path_option(&mut self, segment: &Segment) {
        if segment.quick_start != QuickStart::None || segment.quick_start_response.is_some() {
            self.on_path_option(segment);
        }
    }

    #[cold]
    fn on_path_option(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let acknowledges = segment.flags.contains(Flags::ACK)
            && matches!(self.state, State::SynSent | State::SynReceived)
            && near(self.una, segment.ack) == self.initial() + 1;
        if let Some(rate) = segment.quick_start_response.filter(|_| acknowledges)
            && let Some(startup) = self.extras.startup_mut()
        {
            startup.scheme_mut().on_rate_granted(rate);
        }
        // RFC 4782 §4.3: a response to each request, but not to one with a rate of zero. A request that some router has
        // ignored comes back with a TTL difference that is not the one sent, which is as good as no rate.
        if let (QuickStart::Request { rate: rate @ 1.., approved }, true) =
            (segment.quick_start, segment.flags.contains(Flags::SYN))
        {
            self.path_options().response = Some(if approved { rate } else { 0 });
            self.features |= feature::PATH_OPTION;
        }
    }

    fn path_options(&mut self) -> &mut PathOptions {
        &mut self.extras.get_or_new(&self.profile, self.initial_sequence).path_options
    }

    /// Puts request and response on our SYN or SYN-ACK.
    pub(crate) fn add_path_request(&mut self, segment: &mut Segment) {
        // RFC 4782 §4.7.2: without a response, resend the SYN or SYN/ACK without the Quick-Start Request.
        if self.stats.syn_retransmissions == 0
            && let Some(startup) = self.startup_scheme()
            && let rate @ 1.. = startup.scheme().requested_rate()
        {
            segment.quick_start = QuickStart::Request { rate, approved: true };
        }
        // RFC 4782 §4.3: the Quick-Start Response MUST NOT be resent if it is lost.
        if self.features & feature::PATH_OPTION != 0 {
            segment.quick_start_response = self.path_options().response.take();
            self.features &= !feature::PATH_OPTION;
        }
    }

    /// The handshake is complete: the request is answered, or never will be.
    // RFC 4782 §4.4: whether or not the Quick-Start Request was successful, the host MUST send a Report of Approved Rate.
    pub(crate) fn prepare_path_report(&mut self) {
        if self.stats.syn_retransmissions == 0
            && let Some(startup) = self.extras.startup()
            && startup.scheme().requested_rate() > 0
        {
            let rate = startup.scheme().granted_rate();
            self.path_options().report = QuickStart::Report { rate };
            self.features |= feature::PATH_OPTION;
        }
    }

    /// Adds the options that wait for a segment.
    #[cold]
    pub(crate) fn add_path_options(&mut self, segment: &mut Segment) {
        self.features &= !feature::PATH_OPTION;
        let options = std::mem::take(self.path_options());
        (segment.quick_start, segment.quick_start_response) = (options.report, options.response);
    }
}
