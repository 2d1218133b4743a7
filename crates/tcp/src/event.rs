//! What a sender publishes to those who listen ([`Endpoint::listen`](crate::Endpoint::listen)): each change of its congestion
//! state with its trigger, and what explains such changes. States and names are those of qlog's `congestion_state_updated`
//! (draft-ietf-quic-qlog-quic-events, section 7.2).

use crate::Nanos;
use std::collections::VecDeque;

/// Declares an enumeration whose values have names.
macro_rules! named {
    ($(#[$about:meta])* $Name:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $Name {
            $($(#[$doc])* $value,)+
        }

        impl $Name {
            /// The names, in the order of the values.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
            const ALL: &'static [Self] = &[$(Self::$value),+];
        }
    };
}

named! {
    /// The sender's congestion state.
    CongestionState {
        /// cwnd is below ssthresh; of BBR: Startup.
        SlowStart = "slow_start",
        /// cwnd has reached ssthresh.
        CongestionAvoidance = "congestion_avoidance",
        /// Until the data is acknowledged that was outstanding at a loss, a CE mark or a timeout.
        Recovery = "recovery",
    }
}

named! {
    /// The trigger of an event.
    Trigger {
        /// cwnd grew to ssthresh.
        Ssthresh = "ssthresh",
        /// HyStart: ACKs of a round came closely spaced for half of an RTT.
        AckTrain = "ack_train",
        /// HyStart: the RTT rose.
        Delay = "delay",
        /// HyStart++: the RTT stayed longer through conservative slow start.
        ConservativeSlowStart = "conservative_slow_start",
        /// Vegas: more segments in the bottleneck's queue than it allows.
        Queue = "queue",
        /// BBR: the delivery rate has stopped growing.
        FullPipe = "full_pipe",
        /// The start-up scheme has set ssthresh.
        Startup = "startup",
        /// The controller has set ssthresh and gives no reason.
        Controller = "controller",
        /// Duplicate ACKs or SACK blocks show a loss.
        Loss = "loss",
        /// A tail loss probe has recovered a loss.
        TailLoss = "tail_loss",
        /// The peer echoes a CE mark.
        Ecn = "ecn",
        /// The retransmission timer expired.
        Timeout = "timeout",
        /// The data that was outstanding is acknowledged.
        Recovered = "recovered",
        /// The recovery was spurious: cwnd and ssthresh are restored.
        Undo = "undo",
        /// Restart window after an idle time.
        IdleRestart = "idle_restart",
        /// A part of cwnd that the application did not use is given up (RFC 2861).
        ApplicationLimited = "application_limited",
        /// The timer of a tail loss probe expired.
        Probe = "probe",
        /// The persist timer expired: the peer's closed window is probed.
        WindowProbe = "window_probe",
    }
}

/// Something that happened to a sender. `old` and `new` are equal if the congestion state stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderEvent {
    /// Time of the event.
    pub time: Nanos,
    /// The congestion state before.
    pub old: CongestionState,
    /// The congestion state after it.
    pub new: CongestionState,
    /// Its trigger.
    pub trigger: Trigger,
    /// cwnd after it.
    pub cwnd_bytes: u32,
    /// ssthresh after it, if anything has set it.
    pub ssthresh_bytes: Option<u32>,
}

/// The event in words, for every old state, new state and trigger, each in the order of the values.
// A trigger alone says it where the state stays, and at the end of a recovery.
pub fn event_words() -> Vec<Vec<Vec<String>>> {
    let words = |old, new, trigger| {
        let [state, cause] = [CongestionState::NAMES[new as usize], Trigger::NAMES[trigger as usize]];
        let text = match (old, trigger) {
            _ if old == new => cause.to_owned(),
            (_, Trigger::Recovered | Trigger::Undo) => cause.to_owned(),
            (CongestionState::SlowStart, _) => format!("slow start ends ({cause})"),
            _ => format!("{state} ({cause})"),
        };
        text.replace('_', " ")
    };
    let of = |old, new| Trigger::ALL.iter().map(|&trigger| words(old, new, trigger)).collect();
    let from = |old| CongestionState::ALL.iter().map(|&new| of(old, new)).collect();
    CongestionState::ALL.iter().map(|&old| from(old)).collect()
}

#[derive(Clone, Debug)]
pub(crate) struct Listener {
    /// The state after the latest event.
    pub state: CongestionState,
    /// ssthresh when the sender last looked.
    pub ssthresh_bytes: u32,
    /// Not polled yet.
    pub events: VecDeque<SenderEvent>,
}
