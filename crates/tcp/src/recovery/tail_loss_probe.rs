//! Tail loss probes: when acknowledgements fail to come for two round trips, one more segment leaves, so that a lost
//! tail is repaired by acknowledgements rather than by the timeout (RFC 8985 §7).

use super::selective::{Meaning, Selective, Sender, State};
use super::timer::Timer;
use crate::sequence::Position;
use crate::{NEVER, Nanos};

/// An outstanding probe.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe {
    /// TLP.end_seq: `nxt` when the probe left.
    end: Option<Position>,
    /// TLP.is_retrans: the probe was sent before.
    is_repetition: bool,
}

impl Probe {
    pub fn forget(&mut self) {
        self.end = None;
    }

    /// Whether a probe is outstanding.
    #[inline]
    pub fn is_outstanding(&self) -> bool {
        self.end.is_some()
    }

    /// Whether a probe is outstanding that was sent before.
    pub fn is_repetition(&self) -> bool {
        self.end.is_some() && self.is_repetition
    }

    /// Whether a probe is outstanding that ends here.
    pub fn ends_at(&self, position: Position) -> bool {
        self.end == Some(position)
    }
}

impl Selective {
    /// Sets the probe timer in place of the retransmission timer, if a probe may be sent. True if it did.
    // RFC 8985 §7.2: schedule a PTO when new data is sent or acknowledged, unless in recovery.
    #[inline]
    pub(super) fn schedule_probe(&mut self, sender: &mut Sender<'_>, advanced: bool) -> bool {
        let allowed = sender.profile.tail_loss_probe
            && self.sack
            && !self.board.is_empty()
            && matches!(self.state, State::Open | State::Reduced);
        if !allowed {
            return false;
        }
        let mut timeout = match sender.rtt.smoothed(&sender.profile.rto) {
            // RFC 8985 §7.2: PTO = 2 * SRTT, plus TLP.max_ack_delay if only one segment is in flight.
            Some(srtt) if self.board.len() == 1 => 2 * srtt + sender.profile.tail_loss_probe_max_ack_delay_ns,
            Some(srtt) => 2 * srtt + sender.profile.shortest_timer(),
            None => PROBE_WITHOUT_SAMPLE,
        };
        // RFC 8985 §7.2: not later than the retransmission timer would expire.
        let rto = if advanced { sender.now.saturating_add(sender.rtt.rto()) } else { self.timeout_of_first(sender) };
        timeout = timeout.min(rto.saturating_sub(sender.now).max(1));
        sender.set_timer(sender.now + timeout);
        self.timer = Timer::Probe;
        true
    }

    /// When the first segment in flight would time out.
    fn timeout_of_first(&self, sender: &Sender<'_>) -> Nanos {
        self.board.front().map_or(NEVER, |front| front.sent_at.saturating_add(sender.rtt.rto()))
    }

    /// The probe timer expired.
    // RFC 8985 §7.3, TLP_send_probe (): new data if there is any and the peer's window admits it, else the last segment.
    pub(super) fn on_probe_timeout(&mut self, sender: &mut Sender<'_>) {
        // RFC 8985 §7.3: at most one outstanding probe.
        self.probing = self.probe.end.is_none() && !self.board.is_empty();
        self.restart_timer(sender);
    }

    /// The probe left.
    pub(crate) fn on_probe_sent(&mut self, sender: &mut Sender<'_>, repeated: Option<u64>) {
        if let Some(number) = repeated {
            self.repeat(sender.now, number, false);
        }
        self.probe = Probe { end: Some(sender.nxt), is_repetition: repeated.is_some() };
        self.probing = false;
        sender.stats.tail_loss_probes += 1;
        self.restart_timer(sender);
    }

    /// Decides whether the probe repaired a loss, which then has to be answered.
    // RFC 8985 §7.4, TLP_process_ack ().
    pub(super) fn on_probe_acknowledged(&mut self, sender: &mut Sender<'_>, ack: Position, meaning: &Meaning) {
        let Some(end) = self.probe.end.filter(|&end| ack >= end) else { return };
        if !self.probe.is_repetition || meaning.dsack_of_probe {
            // New data was acknowledged, or original and probe both arrived: nothing was lost.
            self.probe.forget();
        } else if ack > end {
            // The tail was lost and the probe repaired it.
            self.begin_reduction(sender);
            self.state = State::Reduced;
            self.end_reduction(sender);
            self.keep_open(sender);
        } else if !(meaning.advanced || meaning.acknowledged || meaning.sacked) && meaning.duplicate {
            self.probe.forget();
        }
    }
}

/// RFC 8985 §7.2: without a sample the probe waits a second.
const PROBE_WITHOUT_SAMPLE: Nanos = 1_000_000_000;
