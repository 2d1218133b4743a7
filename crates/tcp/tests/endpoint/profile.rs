//! The profiles, their JSON and their validation.

use crate::wire::linux_with;
use firstflight_tcp::{
    AckPolicy, CongestionAlgorithm, Endpoint, Hystart, InitialWindow, Profile, RecoveryAlgorithm, RestartWindow,
    RtoRules, RttSamples, ScoreboardRules, Startup, TailLossProbe, Trains, WindowPacing,
};

#[test]
fn each_named_profile_is_valid_and_survives_json() {
    for name in Profile::NAMES {
        let profile = Profile::named(name).unwrap();
        profile.validate().unwrap();
        let json = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&json).unwrap(), profile, "{name}");
    }
    assert_eq!(Profile::named("linux-0.99"), None);
}

#[test]
fn the_json_of_the_rfc_profile_reads_as_agreed() {
    let json = serde_json::to_string_pretty(&Profile::rfc()).unwrap();
    assert_eq!(json, include_str!("profile_rfc.json").trim_end());
}

#[test]
fn policies_are_spelled_as_agreed() {
    let parse = |json| serde_json::from_str::<InitialWindow>(json).unwrap();
    assert_eq!(parse(r#"{"policy":"fixed","segments":3}"#), InitialWindow::Fixed { segments: 3 });
    assert_eq!(parse(r#"{"policy":"rfc2581"}"#), InitialWindow::Rfc2581);
    assert_eq!(parse(r#"{"policy":"rfc3390"}"#), InitialWindow::Rfc3390);
    assert_eq!(parse(r#"{"policy":"rfc6928"}"#), InitialWindow::Rfc6928);
    assert_eq!(parse(r#"{"policy":"linux"}"#), InitialWindow::Linux);
    let parse = |json| serde_json::from_str::<RestartWindow>(json).unwrap();
    assert_eq!(parse(r#"{"policy":"off"}"#), RestartWindow::Off);
    assert_eq!(parse(r#"{"policy":"fixed","segments":1}"#), RestartWindow::Fixed { segments: 1 });
    let parse = |json| serde_json::from_str::<AckPolicy>(json).unwrap();
    assert_eq!(parse(r#"{"policy":"every_segment"}"#), AckPolicy::EverySegment);
    let heartbeat = AckPolicy::Heartbeat { segments: 2, interval_ns: 100_000_000, every_segment_bytes: None };
    assert_eq!(parse(r#"{"policy":"heartbeat","segments":2,"interval_ns":100000000}"#), heartbeat);
}

#[test]
fn congestion_control_is_spelled_as_agreed() {
    let parse = |json: &str| serde_json::from_str::<CongestionAlgorithm>(json).unwrap();
    assert_eq!(parse(r#"{"algorithm":"reno"}"#), CongestionAlgorithm::Reno);
    assert_eq!(parse(r#"{"algorithm":"westwood"}"#), CongestionAlgorithm::Westwood);
    assert_eq!(parse(r#"{"algorithm":"vegas"}"#), CongestionAlgorithm::Vegas);
    assert_eq!(parse(r#"{"algorithm":"bbr"}"#), CongestionAlgorithm::Bbr);
    for (name, hystart) in [
        ("off", Hystart::Off),
        ("hystart", Hystart::Hystart),
        ("ack_train", Hystart::AckTrain),
        ("delay", Hystart::Delay),
        ("hystart_plus_plus", Hystart::HystartPlusPlus),
    ] {
        let json = format!(r#"{{"algorithm":"cubic","hystart":"{name}"}}"#);
        assert_eq!(serde_json::from_str::<CongestionAlgorithm>(&json).unwrap(), CongestionAlgorithm::Cubic { hystart });
    }
}

#[test]
fn bbr_needs_the_recovery_that_measures_rates_of_delivery() {
    let profile = Profile { congestion_control: CongestionAlgorithm::Bbr, ..Profile::rfc() };
    assert_eq!(
        profile.validate().unwrap_err().to_string(),
        "congestion_control = bbr needs recovery = scoreboard, which measures the rate of delivery; set that"
    );
    Profile { recovery: RecoveryAlgorithm::SCOREBOARD, ..profile }.validate().unwrap();
}

#[test]
fn an_unknown_key_is_refused() {
    let mut value = serde_json::to_value(Profile::rfc()).unwrap();
    value["initial_windows"] = 3.into();
    let error = serde_json::from_value::<Profile>(value).unwrap_err().to_string();
    assert!(error.contains("initial_windows"), "{error}");
}

#[test]
fn a_value_out_of_range_is_named_with_what_would_be_right() {
    let rfc = Profile::rfc;
    let rto = rfc().rto;
    for (profile, expected) in [
        (Profile { mss_bytes: 0, ..rfc() }, "mss_bytes is 0, but must be from 1 to 65535"),
        (
            Profile { initial_window: InitialWindow::Fixed { segments: 0 }, ..rfc() },
            "initial_window.segments is 0, but must be from 1 to 735439",
        ),
        (
            Profile { window_scaling: false, ..rfc() },
            "receive_window_bytes is 1048576, but must be from 1 to 65535 without window_scaling",
        ),
        (
            Profile { rto: RtoRules { minimum_ns: 2, maximum_ns: 1, ..rto }, ..rfc() },
            "rto.maximum_ns is 1, but must be from 2 to 86400000000000",
        ),
        (
            Profile { ack: AckPolicy::Heartbeat { segments: 2, interval_ns: 0, every_segment_bytes: None }, ..rfc() },
            "ack.interval_ns is 0, but must be from 1 to 86400000000000",
        ),
        (Profile { duplicate_ack_threshold: 0, ..rfc() }, "duplicate_ack_threshold is 0, but must be from 1 to 255"),
    ] {
        assert_eq!(profile.validate().unwrap_err().to_string(), expected);
    }
}

#[test]
fn the_scoreboards_values_are_bounded() {
    let range = |field: &str, value, low, high| {
        format!("recovery.scoreboard.{field} is {value}, but must be from {low} to {high}")
    };
    let day = 86_400_000_000_000;
    let probe = |max_ack_delay_ns| linux_with(|rules| rules.tail_loss_probe = Some(TailLossProbe { max_ack_delay_ns }));
    let trains =
        |min_segments, window_divisor| linux_with(|rules| rules.trains = Some(Trains { min_segments, window_divisor }));
    for valid in [probe(0), probe(day), trains(1, 1), trains(64, 255)] {
        valid.validate().unwrap();
    }
    for (profile, expected) in [
        (probe(day + 1), range("tail_loss_probe.max_ack_delay_ns", day + 1, 0, day)),
        (trains(0, 3), range("trains.min_segments", 0, 1, 64)),
        (trains(65, 3), range("trains.min_segments", 65, 1, 64)),
        (trains(2, 0), range("trains.window_divisor", 0, 1, 255)),
        (trains(2, 256), range("trains.window_divisor", 256, 1, 255)),
    ] {
        assert_eq!(profile.validate().unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_endpoint_is_small() {
    assert!(size_of::<Endpoint>() <= 416, "{}", size_of::<Endpoint>());
}

#[test]
fn a_field_that_would_have_no_effect_is_refused_with_its_name_and_what_it_needs() {
    let (rfc, linux) = (Profile::rfc, Profile::linux);
    let bbr = Profile { congestion_control: CongestionAlgorithm::Bbr, ..linux() };
    let pacing = WindowPacing { slow_start_percent: 200, avoidance_percent: 120, burst_segments: 2 };
    let rack = RecoveryAlgorithm::Scoreboard(ScoreboardRules { rack: true, ..ScoreboardRules::default() });
    bbr.validate().unwrap();
    for (profile, expected) in [
        (
            Profile { recovery: rack, ..rfc() },
            "recovery.scoreboard.rack has no effect without sack = true; set that, or switch it off",
        ),
        (
            Profile { sack: false, ..linux() },
            "dsack, recovery.scoreboard.rack, recovery.scoreboard.tail_loss_probe, recovery.scoreboard.undo_by_dsack \
             have no effect without sack = true; set that, or switch these off",
        ),
        (
            Profile { timestamps: false, ..linux() },
            "undo_spurious_syn has no effect without timestamps = true; set that, or switch it off",
        ),
        (
            Profile { pacing: Some(pacing), ..bbr.clone() },
            "pacing has no effect with congestion_control = bbr, which sets its own pace; set it to none",
        ),
        (
            Profile { startup: Startup::JumpStart, ..bbr.clone() },
            "congestion_control = bbr needs startup = window, because BBR sets its own pace; set that",
        ),
        (
            Profile { startup: Startup::JumpStart, pacing: Some(pacing), ..linux() },
            "pacing needs startup = window, because it paces the first flight, too; set that",
        ),
        (
            Profile { rto: RtoRules { samples: RttSamples::AckOneWay, ..linux().rto }, ..linux() },
            "rto.samples = ack_one_way needs a recovery other than scoreboard and an rto.estimator other than linux, \
             because those two need round trips; set that",
        ),
        (
            Profile { initial_ssthresh_segments: Some(20), ..bbr },
            "initial_ssthresh_segments has no effect with congestion_control = bbr, which has no slow start threshold; \
             set it to none",
        ),
    ] {
        assert_eq!(profile.validate().unwrap_err().to_string(), expected);
        profile.validate_ranges().unwrap();
    }
}
