//! The option that a SYN carries for the routers on its path, which may lower it, and the answer (Quick-Start, RFC 4782).
//! All of it happens in the handshake and on the first segment after it.

use super::Endpoint;
use super::handshake::{State, feature};
use super::shared::Connection;
use crate::segment::{Flags, PathOption, QuickStart, Segment};

impl Endpoint {
    /// A segment of the handshake arrived, maybe with a request or a response.
    pub(crate) fn note_path_option(&mut self, segment: &Segment) {
        if let Some(option) = segment.path_option {
            self.on_path_option(segment, option);
        }
    }

    #[cold]
    fn on_path_option(&mut self, segment: &Segment, option: PathOption) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let acknowledges = segment.flags.contains(Flags::ACK)
            && matches!(self.conn.handshake.state, State::SynSent | State::SynReceived)
            && self.sender.is_ack_of_syn(segment.ack);
        if let Some(rate) = option.response.filter(|_| acknowledges) {
            if let Some(startup) = self.sender.startup() {
                startup.scheme_mut().on_rate_granted(rate);
            }
        }
        // RFC 4782 §4.3: a response to each request, but not to one with a rate of zero. A request that some router has
        // ignored comes back with a TTL difference that is not the one sent, which is as good as no rate.
        if let (QuickStart::Request { rate: rate @ 1.., approved }, true) =
            (option.quick_start, segment.flags.contains(Flags::SYN))
        {
            self.queue_path_option(QuickStart::None, Some(if approved { rate } else { 0 }));
        }
    }

    /// Puts request and response on our SYN or SYN-ACK.
    pub(crate) fn add_path_request(&mut self, segment: &mut Segment) {
        // RFC 4782 §4.7.2: without a response, resend the SYN or SYN/ACK without the Quick-Start Request.
        let request =
            match self.sender.startup_scheme(&self.conn).map_or(0, |startup| startup.scheme().requested_rate()) {
                rate @ 1.. if !segment.retransmission => QuickStart::Request { rate, approved: true },
                _ => QuickStart::None,
            };
        // RFC 4782 §4.3: the Quick-Start Response MUST NOT be resent if it is lost.
        let response = self.receiver.take_path_option(&mut self.conn).and_then(|option| option.response);
        segment.path_option = PathOption::new(request, response);
    }

    /// The handshake is complete: the request is answered, or never will be.
    // RFC 4782 §4.4: whether or not the Quick-Start Request was successful, the host MUST send a Report of Approved Rate.
    pub(crate) fn prepare_path_report(&mut self) {
        if self.conn.stats.syn_retransmissions == 0 {
            if let Some(startup) = self.sender.startup() {
                if startup.scheme().requested_rate() > 0 {
                    let rate = startup.scheme().granted_rate();
                    let response = self.receiver.take_path_option(&mut self.conn).and_then(|option| option.response);
                    self.queue_path_option(QuickStart::Report { rate }, response);
                }
            }
        }
    }

    /// The next segment is to carry these.
    fn queue_path_option(&mut self, quick_start: QuickStart, response: Option<u8>) {
        let memory = self.receiver.memory_or_new(&self.conn.profile, self.sender.snd().iss);
        memory.path_option = PathOption::new(quick_start, response);
        self.conn.handshake.features |= feature::PATH_OPTION;
    }
}

impl Connection {
    /// No option waits for the next segment any more.
    pub(crate) fn end_path_option(&mut self) {
        self.handshake.features &= !feature::PATH_OPTION;
    }
}
