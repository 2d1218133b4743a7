//! Each rule is a separate field: setting another field does not change it.

use crate::wire::*;
use firstflight_tcp::{
    AfterSynLoss, Profile, RecoveryAlgorithm, RestartWindow, RtoEstimator, RtoRules, SsthreshBase, SsthreshRules,
    TailLossProbe, WindowValidation,
};

/// Slow start threshold in segments after the timeout of a flight of 4 segments under a window of 10.
fn ssthresh_after_timeout(profile: &Profile) -> u32 {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.lose(50 * MS, |sent| sent.from == Server);
    wire.server.write(wire.now, 4 * 1460);
    while wire.server.stats().timeouts == 0 {
        wire.step();
    }
    wire.server.ssthresh_bytes().unwrap() / 1460
}

#[test]
fn the_base_of_ssthresh_does_not_follow_from_window_validation_or_recovery() {
    for window_validation in [WindowValidation::Off, WindowValidation::CwndLimited { app_limited_decay: false }] {
        for recovery in [RecoveryAlgorithm::Tahoe, RecoveryAlgorithm::NEW_RENO, RecoveryAlgorithm::SCOREBOARD] {
            for (base, expected) in [(SsthreshBase::FlightSize, 2), (SsthreshBase::Cwnd, 5)] {
                let ssthresh = SsthreshRules { base, whole_segments: false };
                let profile = Profile { window_validation, recovery, ssthresh, ..rfc() };
                assert_eq!(ssthresh_after_timeout(&profile), expected, "{profile:?}");
            }
        }
    }
}

/// cwnd in segments before and after two small writes with more than an RTO between them.
fn cwnd_around_small_writes(profile: &Profile) -> (u32, u32) {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.server.write(wire.now, 100 * 1460);
    wire.run();
    let before = wire.server.cwnd_bytes();
    for _ in 0..2 {
        wire.server.write(wire.now, 1460);
        wire.run_until(wire.now + 500 * MS);
    }
    (before / wire.server.mss_bytes(), wire.server.cwnd_bytes() / wire.server.mss_bytes())
}

#[test]
fn unused_window_is_given_up_by_a_field_of_its_own_and_not_for_a_time_that_the_restart_window_covers() {
    for (restart_window, kept, decayed) in [(RestartWindow::Off, 1, 2), (RestartWindow::Halving, 2, 2)] {
        for (app_limited_decay, divisor) in [(false, kept), (true, decayed)] {
            let window_validation = WindowValidation::CwndLimited { app_limited_decay };
            let profile = Profile { restart_window, window_validation, ..Profile::linux() };
            let (before, after) = cwnd_around_small_writes(&profile);
            let expected = before / divisor;
            assert!((expected..expected + 10).contains(&after), "{restart_window:?}: {before} to {after}");
        }
    }
}

#[test]
fn the_timeout_after_a_lost_syn_does_not_follow_from_the_estimator() {
    for estimator in [RtoEstimator::RFC6298, RtoEstimator::Linux] {
        for (unless_sampled, three_seconds) in [(false, true), (true, false)] {
            let after_syn_loss = Some(AfterSynLoss { timeout_ns: 3 * SECOND, unless_sampled });
            let rto = RtoRules { estimator, after_syn_loss, ..rfc().rto };
            let mut wire = Wire::new(&Profile { rto, timestamps: true, ..rfc() }, 50 * MS);
            let mut first = true;
            wire.lose(50 * MS, move |_| std::mem::take(&mut first));
            wire.client.connect(0);
            wire.run();
            assert!(wire.client.srtt().is_some(), "timestamps tell the round trip");
            assert_eq!(wire.client.rto() == 3 * SECOND, three_seconds, "{estimator:?}");
        }
    }
}

#[test]
fn how_long_a_probe_of_a_single_segment_waits_does_not_follow_from_the_floor_of_the_timeout() {
    for floor in [200 * MS, 500 * MS] {
        for max_ack_delay in [30 * MS, 100 * MS] {
            let rto = RtoRules { minimum_ns: floor, ..Profile::linux().rto };
            let probe = TailLossProbe { max_ack_delay_ns: max_ack_delay };
            let profile = Profile { rto, ..linux_with(|rules| rules.tail_loss_probe = Some(probe)) };
            let mut wire = Wire::connected(&profile, 50 * MS);
            wire.lose_data_of_server(50 * MS, &[1]);
            let written = wire.now;
            wire.server.write(written, 1000);
            wire.run();
            assert_eq!(wire.server.stats().tail_loss_probes, 1);
            let sent = |sent: &&Sent| sent.from == Server && sent.segment.payload_bytes > 0;
            let probe = wire.log.iter().filter(sent).nth(1).unwrap().at - written;
            assert_eq!(probe, 200 * MS + max_ack_delay);
        }
    }
}
