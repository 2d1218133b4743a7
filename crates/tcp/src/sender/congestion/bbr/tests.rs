//! BBR's response to a loss, a timeout and idleness, per acknowledgment.

use super::*;
use crate::MILLISECOND;
use std::collections::BTreeSet;

const MSS: u32 = 1000;
/// A thousand segments a second, in BBR's unit.
const THOUSAND: u64 = 16_777;

fn start(seed: u32) -> Start {
    let mut start = Start { established_at: Some(0), ..Start::of(10) };
    start.settings.bbr_seed = seed;
    start
}

/// A path of 100 ms that delivers `rate` bytes a second, one acknowledgment of 10 segments each 10 ms.
struct Feed {
    bbr: Bbr,
    window: Window,
    now: Nanos,
    delivered: u64,
    rate: u64,
    flight: u32,
}

impl Feed {
    fn new(seed: u32) -> Self {
        Self {
            bbr: Bbr::new(&start(seed)),
            window: Window::new(&start(seed)),
            now: 0,
            delivered: 0,
            rate: 1_000_000,
            flight: 100 * MSS,
        }
    }

    fn delivery(&self) -> Delivery {
        let round = self.rate / 10;
        Delivery {
            delivered_bytes: self.delivered,
            prior_delivered_bytes: self.delivered.saturating_sub(round),
            sample_bytes: round.min(self.delivered),
            interval_ns: 100 * MILLISECOND,
            app_limited: false,
            newly_delivered_bytes: 10 * MSS,
            newly_lost_bytes: 0,
            rtt: Some(100 * MILLISECOND),
            prior_flight_bytes: self.flight + 10 * MSS,
            flight_bytes: self.flight,
            ack_delayed: false,
            in_recovery: false,
            in_loss: false,
        }
    }

    fn deliver(&mut self, change: impl FnOnce(&mut Delivery)) {
        self.now += 10 * MILLISECOND;
        self.delivered += u64::from(10 * MSS);
        let mut delivery = self.delivery();
        change(&mut delivery);
        self.bbr.on_delivery(&mut self.window, self.now, &delivery);
    }

    /// In the middle of PROBE_BW.
    fn steady(seed: u32) -> Self {
        let mut feed = Self::new(seed);
        feed.bbr.on_start(&mut feed.window, 0, None);
        for _ in 0..200 {
            feed.deliver(|_| {});
        }
        assert_eq!(feed.bbr.mode, Mode::ProbeBandwidth);
        feed
    }
}

#[test]
fn the_bandwidth_is_the_rate_of_delivery_and_the_rate_is_a_percent_below() {
    let feed = Feed::steady(1);
    assert_eq!(feed.bbr.bandwidth.get(), THOUSAND);
    let gain = u64::from(feed.bbr.pacing_gain);
    assert_eq!(feed.bbr.pacing_rate(), Some((THOUSAND * 1_000 * gain / 256 * 990_000) >> 24));
}

// Linux, bbr_update_bw: of 66.8 units 66 are left, a percent less.
#[test]
fn the_bandwidth_of_few_segments_is_rounded_down_as_in_linux() {
    assert_eq!(bandwidth(4, 1_004_137_000), 66);
    assert_eq!(Feed::steady(1).bbr.rate(66, UNIT), 3_894);
}

#[test]
fn the_first_round_of_recovery_sends_what_was_delivered_and_its_end_restores_the_window() {
    let mut feed = Feed::steady(1);
    let before = feed.window.cwnd();
    feed.bbr.on_congestion(&mut feed.window, feed.now, Bytes(feed.flight));
    feed.flight = 60 * MSS;
    feed.deliver(|delivery| {
        delivery.in_recovery = true;
        delivery.newly_lost_bytes = 30 * MSS;
    });
    assert_eq!(feed.window.cwnd(), Bytes(70 * MSS));
    feed.deliver(|delivery| delivery.in_recovery = true);
    assert_eq!(feed.window.cwnd(), Bytes(70 * MSS));
    feed.deliver(|_| {});
    // Up to the two segments of the probing phase.
    assert!(feed.window.cwnd().0.abs_diff(before.0) <= 2 * MSS);
}

#[test]
fn a_timeout_cuts_the_window_and_the_end_of_its_recovery_restores_it() {
    let mut feed = Feed::steady(1);
    let before = feed.window.cwnd();
    feed.bbr.on_timeout(&mut feed.window, feed.now, Bytes(feed.flight), true);
    assert_eq!(feed.window.cwnd(), Bytes(MSS));
    feed.flight = 10 * MSS;
    feed.deliver(|delivery| delivery.in_loss = true);
    assert_eq!(feed.window.cwnd(), Bytes(11 * MSS));
    feed.deliver(|_| {});
    // Up to the two segments of the probing phase.
    assert!(feed.window.cwnd().0.abs_diff(before.0) <= 2 * MSS);
}

#[test]
fn a_sender_without_data_does_not_lower_the_bandwidth() {
    let mut feed = Feed::steady(1);
    for _ in 0..300 {
        feed.deliver(|delivery| {
            delivery.app_limited = true;
            delivery.sample_bytes = 10 * u64::from(MSS);
        });
    }
    assert_eq!(feed.bbr.bandwidth.get(), THOUSAND);
}

#[test]
fn after_an_idle_time_sending_resumes_at_the_bandwidth() {
    let mut feed = Feed::steady(1);
    feed.bbr.on_start(&mut feed.window, feed.now + SECOND, None);
    assert_eq!(feed.bbr.pacing_rate(), Some((THOUSAND * 1_000 * 990_000) >> 24));
}

// Linux, bbr_cwnd_event: without data to send no acknowledgment ends PROBE_RTT.
#[test]
fn what_is_sent_after_an_idle_time_ends_probe_rtt_once_its_time_is_over() {
    let mut feed = Feed::steady(1);
    while feed.bbr.mode != Mode::ProbeRtt {
        feed.deliver(|delivery| delivery.rtt = Some(110 * MILLISECOND));
    }
    feed.flight = 4 * MSS;
    feed.deliver(|_| {});
    let end = feed.bbr.probe_rtt_end.expect("the flight is down");
    feed.bbr.on_start(&mut feed.window, end, None);
    assert_eq!(feed.bbr.mode, Mode::ProbeRtt);
    feed.bbr.on_start(&mut feed.window, end + 1, None);
    assert_eq!(feed.bbr.mode, Mode::ProbeBandwidth);
}

#[test]
fn the_cycle_begins_in_any_phase_but_the_draining_one() {
    let mut seen = [0; 8];
    let mut bbr = Bbr::new(&start(1));
    for _ in 0..7000 {
        bbr.enter_probe_bandwidth(0);
        seen[bbr.phase] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!(seen.iter().enumerate().all(|(phase, &count)| phase == 1 || (800..1200).contains(&count)), "{seen:?}");
}

#[test]
fn the_initial_sequence_numbers_of_conform_begin_in_each_phase_but_the_draining_one() {
    let phases = [u32::MAX - 5_000, 3, 6, 1, 4, 7, 2].map(|sequence| {
        let mut bbr = Bbr::new(&start(sequence));
        bbr.enter_probe_bandwidth(0);
        bbr.phase
    });
    assert_eq!(BTreeSet::from(phases), BTreeSet::from([0, 2, 3, 4, 5, 6, 7]));
}
