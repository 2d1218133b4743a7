//! The sender's part in the handshake, the window with which a connection begins, and its results for others.

use super::sequence::{PeerWindow, SendSequence};
use crate::amounts::LARGEST_WINDOW;
use crate::connection::handshake::{State, feature};
use crate::connection::shared::{Connection, due};
use crate::connection::timestamps::round_trip;
use crate::profile::Profile;
use crate::segment::{Segment, SentAt};
use crate::sender::congestion::controller::Controller;
use crate::sender::congestion::{CongestionAlgorithm, CubicSettings, Other, RenoSettings, Settings, Start};
use crate::sender::extras::{Inherited, SenderExtras};
use crate::sender::initial_window::bursts::Bursts;
use crate::sender::initial_window::{Outcome, Sharing, StartingPoint};
use crate::sender::recovery::{Recovery, RttSample, Scoreboard};
use crate::sender::rtt::{LinuxVariation, RttEstimator};
use crate::sender::{Sender, Timers};
use crate::sequence::{SeqNum, near, origin, wire};
use crate::{Deadline, Nanos};
use std::num::NonZeroU16;

/// Memory of a sender whose connection is over.
#[derive(Default)]
pub(crate) struct RecycledSender {
    controller: Option<Box<Other>>,
    rtt: Option<Box<LinuxVariation>>,
    scoreboard: Option<Box<Scoreboard>>,
    extras: SenderExtras,
}

impl Sender {
    /// A sender that has sent nothing, in the memory of one whose connection is over if there is any.
    pub fn new_in(old: RecycledSender, profile: &Profile, initial_sequence: u32) -> Self {
        let initial = origin(initial_sequence);
        let mss = profile.mss_bytes;
        let start = Self::start(profile, initial, mss, profile.initial_window.window_bytes(mss));
        Self {
            snd: SendSequence::new(initial_sequence, profile.nagle),
            peer_window: PeerWindow::default(),
            timers: Timers::default(),
            last_sent_at: None,
            controller: Controller::new_in(old.controller, Self::algorithm(profile), &start),
            recovery: Recovery::new_in(old.scoreboard, profile, initial),
            rtt: RttEstimator::new_in(old.rtt, profile),
            bursts: Bursts::new(initial + 1),
            sharing: Sharing::default(),
            extras: old.extras.for_another(profile),
        }
    }

    /// Gives up the memory that another sender can be built in.
    pub fn take_memory(&mut self, conn: &Connection) -> RecycledSender {
        let start = Self::start(&conn.profile, 0, conn.handshake.mss(), 0);
        RecycledSender {
            controller: self.controller.take_memory(&start),
            rtt: self.rtt.take_memory(),
            scoreboard: self.recovery.take_memory(),
            extras: std::mem::take(&mut self.extras),
        }
    }

    fn algorithm(profile: &Profile) -> CongestionAlgorithm {
        profile.startup.controller(profile.congestion_control)
    }

    fn start(profile: &Profile, initial: SeqNum, mss_bytes: u32, window_bytes: u32) -> Start {
        Start {
            mss_bytes,
            window_bytes: window_bytes.min(LARGEST_WINDOW),
            // RFC 5681 §3.1: the initial value of ssthresh SHOULD be set arbitrarily high.
            ssthresh_bytes: profile.initial_ssthresh_segments.map(|n| n.saturating_mul(mss_bytes)),
            loss_window_bytes: profile.loss_window_segments.saturating_mul(mss_bytes),
            rtt: None,
            established_at: None,
            settings: Settings {
                reno: RenoSettings {
                    slow_start_growth: profile.slow_start_growth,
                    congestion_avoidance: profile.congestion_avoidance,
                    whole_segment_ssthresh: profile.ssthresh.whole_segments,
                },
                cubic: CubicSettings { tick_ns: profile.cubic_tick(), paced: profile.pacing.is_some() },
                bbr_seed: wire(initial),
            },
        }
    }

    /// Our SYN or SYN-ACK leaves, maybe not for the first time.
    pub fn on_syn_sent(&mut self, conn: &Connection, now: Nanos) {
        if !self.snd.has_sent() {
            self.last_sent_at = Some(SentAt::new(now));
        }
        self.snd.nxt = self.snd.initial() + 1;
        self.snd.max = self.snd.nxt;
        if !self.timers.retransmit.is_set() {
            self.restart_timer(conn, now);
        }
    }

    /// Our SYN or SYN-ACK is due again.
    pub fn repeat_syn(&mut self, conn: &mut Connection) {
        conn.stats.syn_retransmissions += 1;
        self.begin_again(conn);
    }

    /// Our SYN is due, and what acknowledges it may answer an earlier copy.
    // RFC 6298 §3: Karn's algorithm, no sample from a segment sent twice.
    pub fn begin_again(&mut self, conn: &mut Connection) {
        self.last_sent_at = None;
        conn.due |= due::SYN;
    }

    /// A SYN-ACK arrived that does not answer our SYN.
    pub fn on_stale_syn_ack(&mut self, conn: &Connection, now: Nanos) {
        if conn.profile.retry_stale_syn_ack && self.snd.has_sent() && self.timers.retries == 0 {
            self.set_retransmit_timer(conn, now, conn.profile.timeout_after_stale_syn_ack());
        }
    }

    /// The SYN-ACK was marked on the path.
    // RFC 9040 §C.3 step 3: it counts as an initial window that is too large.
    pub fn note_marked_syn_ack(&mut self) {
        self.sharing.initial_window_failed = true;
    }

    /// True if this acknowledges our SYN and nothing else.
    pub fn is_ack_of_syn(&self, ack: u32) -> bool {
        near(self.snd.una, ack) == self.snd.initial() + 1
    }

    /// The peer's SYN arrived.
    pub fn learn_peer(&mut self, conn: &Connection, segment: &Segment) {
        self.peer_window.set(u32::from(segment.window), self.max_send_window(conn));
        self.snd.begin_window(origin(segment.seq), self.snd.una);
        // The controller must not hold a window in segments of the old size; its algorithm begins when the handshake is
        // complete.
        let window = self.initial_window_bytes(conn);
        self.controller.reset_window(&Self::start(&conn.profile, self.snd.initial(), conn.handshake.mss(), window));
    }

    /// This window counts as the largest so far.
    pub fn restart_largest_window(&mut self, bytes: u32) {
        self.peer_window.largest_bytes = bytes;
    }

    /// Our SYN is acknowledged by this segment, and the peer's is known: data may be sent. `age`: if our SYN was
    /// retransmitted, time since the copy whose timestamp is echoed; `lost`: SYN losses that count for the initial window (0
    /// if the retransmission was spurious).
    #[cold]
    pub fn establish(&mut self, conn: &mut Connection, now: Nanos, segment: &Segment, age: Option<Nanos>, lost: u32) {
        self.snd.una = self.snd.initial() + 1;
        self.snd.nxt = self.snd.una;
        self.timers.retries = 0;
        self.timers.retransmit = Deadline::NEVER;
        self.queue_write(conn, now, 0);
        let (sample, rtt) = self.handshake_rtt(conn, now, segment, age);
        let timed = self.last_sent_at.is_some() || conn.handshake.has(feature::ACK_ONE_WAY);
        self.last_sent_at = None;
        self.sample_rtt(conn, now, sample);
        if !timed && conn.stats.syn_retransmissions > 0 {
            self.rtt.restart_after_syn_loss(&conn.profile.rto);
        }
        self.begin(conn, now, rtt, lost);
    }

    /// Data begins after this RTT of the handshake, in which this number of SYNs was lost.
    fn begin(&mut self, conn: &Connection, now: Nanos, handshake_rtt: Option<Nanos>, lost: u32) {
        let profile = &conn.profile;
        let window =
            profile.syn_loss_response.window_bytes(lost, self.initial_window_bytes(conn), conn.handshake.mss());
        let rtt = self.rtt.smoothed(&profile.rto);
        self.controller.restart(
            Self::algorithm(profile),
            &Start {
                rtt,
                established_at: Some(now),
                ..Self::start(profile, self.snd.initial(), conn.handshake.mss(), window)
            },
        );
        self.sharing.initial_segments =
            NonZeroU16::new(u16::try_from(window / conn.handshake.mss()).unwrap_or(u16::MAX));
        if let Some(segments) = self.extras.inherited().ssthresh {
            self.controller.set_ssthresh(u32::from(segments.get()).saturating_mul(conn.handshake.mss()));
        }
        let (sack, rate_based) = (conn.handshake.has(feature::SACK), self.controller.is_rate_based());
        if let Recovery::Scoreboard(scoreboard) = &mut self.recovery {
            scoreboard.establish(now, self.snd.una, sack, rate_based, handshake_rtt);
        }
        self.prepare_pacing(conn);
        if conn.handshake.has(feature::LISTENER) {
            self.listen(conn);
        }
    }

    /// The handshake's RTT: the sample for the estimator, and the first candidate for the shortest RTT.
    fn handshake_rtt(
        &self,
        conn: &Connection,
        now: Nanos,
        segment: &Segment,
        age: Option<Nanos>,
    ) -> (RttSample, Option<Nanos>) {
        if conn.handshake.has(feature::ACK_ONE_WAY) {
            let ends_backoff = self.last_sent_at.is_some();
            let sample = segment.sent_at.map(SentAt::nanos).map(|sent_at| RttSample::OneWay { sent_at, ends_backoff });
            (sample.unwrap_or_default(), None)
        } else if let Some(sent_at) = self.last_sent_at.map(SentAt::nanos) {
            (RttSample::Timed { sent_at }, Some(now - sent_at))
        } else {
            let rtt = age.map(round_trip);
            (rtt.map_or(RttSample::None, |rtt| RttSample::Timed { sent_at: now.saturating_sub(rtt) }), rtt)
        }
    }

    pub fn start_from(&mut self, conn: &Connection, start: StartingPoint) {
        if conn.handshake.state() < State::Established {
            self.extras.get_or_new(&conn.profile).inherited = Inherited {
                window: kept(start.window_segments.max(1)),
                ssthresh: start.ssthresh_segments.and_then(kept),
            };
        }
    }

    pub fn outcome(&self, conn: &Connection) -> Outcome {
        let segments = |bytes: u32| bytes / conn.handshake.mss().max(1);
        Outcome {
            window_segments: segments(self.controller.cwnd()),
            ssthresh_segments: self.controller.known_ssthresh().map(segments),
            initial_window_failed: self.sharing.initial_window_failed,
            initial_window_segments: self.initial_window_segments(conn),
            largest_window_segments: segments(self.controller.largest_cwnd()),
            delivered_segments: (self.snd.una - self.snd.initial()).div_ceil(conn.handshake.mss().max(1).into()) as u32,
            retransmissions: conn.stats.retransmissions,
        }
    }

    pub fn initial_window_bytes(&self, conn: &Connection) -> u32 {
        match self.extras.inherited().window {
            None => conn.profile.initial_window.window_bytes(conn.handshake.mss()),
            Some(segments) => u32::from(segments.get()).saturating_mul(conn.handshake.mss()),
        }
    }

    pub fn initial_window_segments(&self, conn: &Connection) -> u32 {
        match self.sharing.initial_segments {
            None => self.initial_window_bytes(conn) / conn.handshake.mss(),
            Some(segments) => segments.get().into(),
        }
    }

    /// Something is retransmitted: remember it if it was part of the initial window.
    // RFC 9040 §C.3 step 4: if (seqno - ISN) < IW, the re-sent segment fixes an IW loss.
    #[cold]
    pub(crate) fn note_retransmission(&mut self, conn: &Connection, position: SeqNum) {
        self.sharing.initial_window_failed |=
            position - self.snd.initial() <= u64::from(self.initial_window_bytes(conn));
    }
}

/// So many segments, as far as they can be kept; none for none.
fn kept(segments: u32) -> Option<NonZeroU16> {
    NonZeroU16::new(segments.min(u16::MAX.into()) as u16)
}
