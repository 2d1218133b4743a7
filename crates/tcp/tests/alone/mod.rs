//! Each controller alone, on an idealised path: one bottleneck with a drop-tail buffer, every segment acknowledged by
//! itself, a loss noticed when the segment behind the lost one is acknowledged and recovered immediately. There is no
//! endpoint: the controller's window is sent exactly.

mod laws;
mod snapshots;

use super::controller::Controller;
use super::{Acknowledged, CongestionAlgorithm, Delivery, RoundTrip, Start};
use crate::Nanos;
use crate::amounts::Bytes;
use crate::sequence::SeqNum;
use std::collections::VecDeque;

const MSS: u32 = 1000;
const SECOND: Nanos = 1_000_000_000;
const MILLISECOND: Nanos = 1_000_000;

/// The idealised path.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Time that the bottleneck takes for a segment.
    segment_time: Nanos,
    /// Round trip of the empty path, without the bottleneck's time.
    round_trip: Nanos,
    /// Segments that may wait at the bottleneck.
    buffer_segments: u64,
    /// Additional loss of every n-th segment.
    lose_every: Option<u64>,
}

impl Path {
    /// 10 Mbit/s, 100 ms: 125 segments of 1000 bytes; the buffer holds as many.
    const USUAL: Self =
        Self { segment_time: 800_000, round_trip: 100 * MILLISECOND, buffer_segments: 125, lose_every: None };

    /// No bottleneck: the round trip is constant.
    fn unlimited(round_trip: Nanos, lose_every: Option<u64>) -> Self {
        Self { segment_time: 0, round_trip, buffer_segments: u64::MAX, lose_every }
    }
}

/// A segment in flight, with the delivery-rate sampler's data on it.
#[derive(Clone, Copy, Debug)]
struct Flying {
    end: SeqNum,
    sent_at: Nanos,
    acknowledged_at: Nanos,
    lost: bool,
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
}

/// A round trip of data, at its end.
#[derive(Clone, Debug)]
struct Round {
    number: u32,
    time: Nanos,
    window: u32,
    ssthresh: Option<u32>,
    rtt: Nanos,
    queue: u64,
    /// Bytes a second, if the controller paces.
    pacing_rate: Option<u64>,
    events: Vec<&'static str>,
}

struct Alone {
    controller: Controller,
    path: Path,
    now: Nanos,
    una: SeqNum,
    nxt: SeqNum,
    flying: VecDeque<Flying>,
    /// When the bottleneck has served its accepted packets.
    free_at: Nanos,
    sent: u64,
    /// Losses before this position belong to an episode already answered.
    recover: SeqNum,
    losses: u32,
    /// When pacing lets the next segment leave.
    release: Nanos,
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
    last_sent_at: Option<Nanos>,
    min_rtt: Nanos,
    round_end: SeqNum,
    round: Round,
    rounds: Vec<Round>,
}

impl Alone {
    fn new(algorithm: CongestionAlgorithm, path: Path) -> Self {
        let mut start = Start { established_at: Some(0), ..Start::of(10) };
        start.settings.bbr_seed = 1;
        let round = Round {
            number: 1,
            time: 0,
            window: 10,
            ssthresh: None,
            rtt: 0,
            queue: 0,
            pacing_rate: None,
            events: Vec::new(),
        };
        Self {
            controller: Controller::new_in(None, algorithm, &start),
            path,
            now: 0,
            una: 1,
            nxt: 1,
            flying: VecDeque::new(),
            free_at: 0,
            sent: 0,
            recover: 0,
            losses: 0,
            release: 0,
            delivered: 0,
            delivered_at: 0,
            first_sent_at: 0,
            last_sent_at: None,
            min_rtt: Nanos::MAX,
            round_end: 1,
            round,
            rounds: Vec::new(),
        }
    }

    fn flight_bytes(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    fn window_segments(&self) -> u32 {
        self.controller.cwnd() / MSS
    }

    fn may_send(&self) -> bool {
        self.flight_bytes() + MSS <= self.controller.cwnd()
    }

    /// Segments that wait at the bottleneck, the one in service not counted.
    fn queue(&self) -> u64 {
        let waiting = self.free_at.saturating_sub(self.now);
        if self.path.segment_time == 0 { 0 } else { waiting.div_ceil(self.path.segment_time).saturating_sub(1) }
    }

    fn send(&mut self) {
        let last_sent_at = self.last_sent_at.replace(self.now);
        if self.flight_bytes() == 0 {
            self.controller.on_start(self.now, last_sent_at);
        }
        if self.flying.is_empty() {
            self.first_sent_at = self.now;
            self.delivered_at = self.now;
        }
        self.sent += 1;
        let fated = self.path.lose_every.is_some_and(|every| self.sent % every == 0);
        let lost = fated || self.queue() >= self.path.buffer_segments;
        let mut departs = self.free_at.max(self.now);
        if !lost {
            departs += self.path.segment_time;
            self.free_at = departs;
        }
        self.nxt += u64::from(MSS);
        self.flying.push_back(Flying {
            end: self.nxt,
            sent_at: self.now,
            acknowledged_at: departs + self.path.round_trip,
            lost,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        });
        if let Some(rate) = self.controller.pacing_rate() {
            self.release = self.release.max(self.now) + u64::from(MSS) * SECOND / rate.max(1);
        }
    }

    fn send_what_may_leave(&mut self) {
        while self.may_send() && self.release <= self.now {
            self.send();
        }
    }

    /// Goes on until the time, or until the next acknowledgment after it.
    fn run_until(&mut self, end: Nanos) {
        while self.now < end {
            self.step();
        }
    }

    /// Continues for this number of rounds.
    fn run_rounds(&mut self, count: usize) {
        let end = self.rounds.len() + count;
        while self.rounds.len() < end {
            self.step();
        }
    }

    /// The next event: a segment is released by pacing, or an acknowledgment arrives.
    fn step(&mut self) {
        self.send_what_may_leave();
        let acknowledged_at = self.flying.front().map_or(Nanos::MAX, |first| first.acknowledged_at);
        let release = if self.may_send() { self.release } else { Nanos::MAX };
        self.now = acknowledged_at.min(release);
        if acknowledged_at <= release {
            let first = self.flying.pop_front().expect("something is in flight");
            self.acknowledge(&first);
        }
    }

    /// The phase that the controller is in, for an event when it changes.
    fn phase(&self) -> &'static str {
        if let Some(bbr) = self.controller.bbr() {
            bbr.mode_name()
        } else if self.controller.known_ssthresh().is_none() {
            "slow start"
        } else {
            "slow start is over"
        }
    }

    fn acknowledge(&mut self, segment: &Flying) {
        let phase = self.phase();
        let prior_flight = self.flight_bytes();
        self.una = segment.end;
        let rtt = self.now - segment.sent_at;
        if segment.lost {
            if segment.end > self.recover {
                self.recover = self.nxt;
                self.losses += 1;
                self.controller.on_congestion(self.now, prior_flight);
                self.round.events.push("loss");
            }
        } else {
            self.delivered += u64::from(MSS);
            self.delivered_at = self.now;
            self.min_rtt = self.min_rtt.min(rtt);
            let sample = RoundTrip { rtt, una: self.una, nxt: self.nxt };
            self.controller.on_round_trip(self.now, &sample);
            if self.una > self.recover {
                self.controller.on_ack(self.now, Acknowledged { bytes: Bytes(MSS) });
            }
            self.round.rtt = rtt;
        }
        if self.controller.is_rate_based() {
            let delivery = self.delivery(segment, prior_flight, rtt);
            self.controller.on_delivery(self.now, &delivery);
        }
        self.first_sent_at = segment.sent_at;
        if self.phase() != phase {
            self.round.events.push(self.phase());
        }
        if self.una > self.round_end {
            self.end_round();
        }
    }

    // draft-cheng-iccrg-delivery-rate-estimation §3.3.
    fn delivery(&self, segment: &Flying, prior_flight_bytes: u32, rtt: Nanos) -> Delivery {
        let sending = segment.sent_at - segment.first_sent_at;
        let interval = sending.max(self.now - segment.delivered_at);
        let valid = !segment.lost && interval >= self.min_rtt;
        Delivery {
            delivered_bytes: self.delivered,
            prior_delivered_bytes: segment.delivered,
            sample_bytes: self.delivered - segment.delivered,
            interval_ns: if valid { interval } else { 0 },
            app_limited: false,
            newly_delivered_bytes: if segment.lost { 0 } else { MSS },
            newly_lost_bytes: if segment.lost { MSS } else { 0 },
            rtt: (!segment.lost).then_some(rtt),
            prior_flight_bytes,
            flight_bytes: self.flight_bytes(),
            ack_delayed: false,
            in_recovery: self.una <= self.recover,
            in_loss: false,
        }
    }

    fn end_round(&mut self) {
        self.round_end = self.nxt;
        let next = Round { number: self.round.number + 1, events: Vec::new(), ..self.round };
        let mut round = std::mem::replace(&mut self.round, next);
        round.time = self.now;
        round.window = self.window_segments();
        round.ssthresh = self.controller.known_ssthresh();
        round.queue = self.queue();
        round.pacing_rate = self.controller.pacing_rate();
        self.rounds.push(round);
    }

    /// Continues until this number of losses was answered since the beginning.
    fn run_until_losses(&mut self, count: u32) {
        while self.losses < count {
            self.step();
        }
    }

    /// Mean window in segments over this number of cycles between losses.
    fn mean_window(&mut self, cycles: u32) -> f64 {
        let (begin, end, mut area) = (self.now, self.losses + cycles, 0.0);
        while self.losses < end {
            let before = self.now;
            let window = f64::from(self.controller.cwnd()) / f64::from(MSS);
            self.step();
            area += window * (self.now - before) as f64;
        }
        area / (self.now - begin) as f64
    }
}
