//! The state of an endpoint that can be read from outside.

use super::{Endpoint, State, feature};
use crate::Nanos;
use crate::connection::Stats;
use crate::connection::timestamps::OPTION_BYTES;
use crate::profile::Profile;
use crate::segment::{Flags, Segment};
use crate::sender::recovery::Recovery;
use crate::sequence::near;

/// A snapshot of the sender, in Linux's terms (`struct tcp_info`), counted in segments.
///
/// Only a scoreboard keeps `sacked`, `lost`, `retransmitted`, `reordering`, `reordering_seen`,
/// `delivered`, `delivered_marked`, `dsack_duplicates` and `min_rtt_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Info {
    /// `tcpi_snd_cwnd`.
    pub cwnd_segments: u32,
    /// `tcpi_snd_ssthresh`, if anything has set it.
    pub ssthresh_segments: Option<u32>,
    /// `tcpi_ca_state`: 0 open, 1 disorder, 2 window reduced, 3 recovery, 4 loss.
    pub recovery_state: u8,
    /// `tcpi_unacked`: segments sent and not acknowledged cumulatively.
    pub unacked: u32,
    /// `tcpi_sacked`: of these, acknowledged selectively (or counted so by duplicate acknowledgments).
    pub sacked: u32,
    /// `tcpi_lost`: of these, marked lost.
    pub lost: u32,
    /// `tcpi_retrans`: of these, retransmitted and not yet acknowledged.
    pub retransmitted: u32,
    /// `tcpi_total_retrans`.
    pub total_retransmitted: u32,
    /// `tcpi_retransmits`: consecutive timeouts.
    pub retries: u32,
    /// `tcpi_backoff`: times that the timeout, or the interval between probes of a closed window, was lengthened.
    pub backoff: u32,
    /// `tcpi_reordering`: segments by which the network is known to reorder.
    pub reordering: u32,
    /// `tcpi_reord_seen`: times that reordering was noticed.
    pub reordering_seen: u32,
    /// `tcpi_rtt`, smoothed, 0 without a sample.
    pub srtt_ns: Nanos,
    /// `tcpi_rttvar`.
    pub rttvar_ns: Nanos,
    /// `tcpi_min_rtt`; none without a sample.
    pub min_rtt_ns: Option<Nanos>,
    /// `tcpi_rto`.
    pub rto_ns: Nanos,
    /// `tcpi_snd_mss`.
    pub mss_bytes: u32,
    /// `tcpi_advmss`.
    pub announced_mss_bytes: u32,
    /// `tcpi_delivered`, in segments.
    pub delivered: u32,
    /// `tcpi_delivered_ce`: of these, acknowledged with an echo of a congestion mark.
    pub delivered_marked: u32,
    /// `tcpi_dsack_dups`.
    pub dsack_duplicates: u32,
    /// `tcpi_notsent_bytes`.
    pub not_sent_bytes: u64,
    /// `tcpi_pacing_rate` in bytes a second, if segments are paced.
    pub pacing_rate: Option<u64>,
    /// True if the sender keeps a scoreboard.
    pub scoreboard: bool,
    /// True if timestamps are in use on the connection.
    pub timestamps: bool,
    /// True if selective acknowledgments are in use on the connection.
    pub sack: bool,
    /// True if window scaling is in use on the connection.
    pub window_scaling: bool,
    /// True if ECN is in use on the connection.
    pub ecn: bool,
}

impl Endpoint {
    /// The values that a stack developer would look at.
    pub fn info(&self) -> Info {
        let mss = self.mss.max(1);
        let mut info = Info {
            cwnd_segments: self.cwnd_bytes() / mss,
            ssthresh_segments: self.ssthresh_bytes().map(|ssthresh| ssthresh / mss),
            unacked: self.flight_bytes().div_ceil(mss),
            total_retransmitted: self.stats.retransmissions,
            retries: self.timers.retries,
            backoff: if self.timers.persisting { self.timers.persist_backoff.into() } else { self.rtt.backoffs() },
            srtt_ns: self.srtt().unwrap_or(0),
            rttvar_ns: self.rtt.variation(&self.profile.rto),
            rto_ns: self.rto(),
            mss_bytes: self.mss,
            // Linux takes the timestamps off (`advmss`).
            announced_mss_bytes: if self.features & feature::TIMESTAMPS == 0 {
                self.profile.mss_bytes
            } else {
                self.profile.mss_bytes.saturating_sub(OPTION_BYTES)
            },
            pacing_rate: self.extras.pacer().and_then(|pacer| pacer.rate()),
            not_sent_bytes: self.snd.data_end.saturating_sub(self.snd.nxt),
            scoreboard: self.recovery.scoreboard().is_some(),
            window_scaling: self.scaling.is_on,
            timestamps: self.features & feature::TIMESTAMPS != 0,
            sack: self.features & feature::SACK != 0,
            ecn: self.features & feature::ECN != 0,
            ..Info::default()
        };
        match &self.recovery {
            Recovery::Counting(counting) => info.recovery_state = counting.state(self.snd.una),
            Recovery::Scoreboard(scoreboard) => scoreboard.describe(&mut info),
        }
        info
    }

    /// Bytes received in order and not read yet.
    #[inline]
    pub fn readable_bytes(&self) -> u64 {
        self.rcv.readable()
    }

    /// Bytes of the peer's stream received in order so far.
    #[inline]
    pub fn received_bytes(&self) -> u64 {
        self.rcv.first().map_or(0, |first| self.rcv.up_to_fin(self.rcv.nxt) - first)
    }

    /// Up to which offset of the peer's stream everything from `offset` on has arrived, in order or ahead of a hole;
    /// `offset` itself if that byte has not. A caller that keeps the bytes asks after
    /// [`handle_segment`](Self::handle_segment) which of them count. The peer's FIN may count as a byte.
    pub fn arrived_until(&self, offset: u64) -> u64 {
        let Some(first) = self.rcv.first() else { return offset };
        let position = first + offset;
        let until = if position < self.rcv.nxt { self.rcv.nxt } else { self.rcv.reassembly.held_until(position) };
        until - first
    }

    /// Bytes written that the peer has acknowledged.
    #[inline]
    pub fn acknowledged_bytes(&self) -> u64 {
        self.snd.una.min(self.snd.data_end).saturating_sub(self.snd.initial() + 1)
    }

    /// State of the connection.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the state is Closed or TimeWait: nothing more will happen by itself.
    #[inline]
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Congestion window in bytes, inflation during fast recovery included.
    #[inline]
    pub fn cwnd_bytes(&self) -> u32 {
        self.recovery.cwnd(self.controller.window(), self.mss)
    }

    /// Slow start threshold in bytes; none before the first congestion, unless the profile or a start-up scheme sets it.
    #[inline]
    pub fn ssthresh_bytes(&self) -> Option<u32> {
        self.controller.known_ssthresh()
    }

    /// Effective segment size in bytes: the smaller of both ends' (the profile's before the handshake).
    #[inline]
    pub fn mss_bytes(&self) -> u32 {
        self.mss
    }

    /// Sequence numbers sent and not acknowledged; a timeout takes those that it marks for retransmission away.
    #[inline]
    pub fn flight_bytes(&self) -> u32 {
        self.snd.flight()
    }

    /// Smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Nanos> {
        self.rtt.smoothed(&self.profile.rto)
    }

    /// Retransmission timeout in force, back-off included.
    pub fn rto(&self) -> Nanos {
        self.rtt.rto()
    }

    /// Our initial sequence number.
    pub fn initial_sequence(&self) -> u32 {
        self.snd.iss
    }

    /// The peer's initial sequence number, once its SYN arrived.
    pub fn peer_initial_sequence(&self) -> Option<u32> {
        self.rcv.irs()
    }

    /// Window in bytes that a segment *sent by this endpoint* announces.
    // RFC 7323 §2.2: the window field of a SYN is never scaled.
    pub fn advertised_window_bytes(&self, segment: &Segment) -> u64 {
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.scaling.rcv_shift };
        u64::from(segment.window) << shift
    }

    /// True if the data byte with this sequence number belongs to the first flight: the data sent before any is
    /// acknowledged for the first time.
    #[inline]
    pub fn in_first_flight(&self, seq: u32) -> bool {
        let position = near(self.snd.nxt, seq);
        let sent = self.snd.max.min(self.snd.data_end);
        let end = self.bursts.first_flight_end(self.snd.initial(), sent);
        position > self.snd.initial() && position < end
    }

    /// Counters.
    #[inline]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The profile in force.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }
}
