//! Whatever the network does, the streams arrive.

use crate::wire::*;
use firstflight_tcp::{
    AckPolicy, AdaptiveAck, CongestionAlgorithm, CongestionAvoidance, Ecn, EcnPolicy, Events, Flags, InitialWindow,
    Nagle, Nanos, Profile, ReceiveWindowGrowth, RecoveryAlgorithm, RestartWindow, RtoEstimator, RtoRules, SackBlocks,
    SackCompression, ScoreboardRules, Segment, SendBuffer, SlowStartGrowth, Startup, SynLossResponse, TailLossProbe,
    TimerTick, Timestamps, Trains, WindowPacing, WindowValidation,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::num::NonZeroU16;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

/// A small generator for the wire's decisions: the runs must repeat exactly for proptest to shrink them.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.roll() % 100 < chance
    }
}

fn profiles() -> impl Strategy<Value = Profile> {
    let windows = prop_oneof![
        (1u32..20).prop_map(|segments| InitialWindow::Fixed { segments }),
        Just(InitialWindow::Rfc2581),
        Just(InitialWindow::Rfc3390),
        Just(InitialWindow::Rfc6928),
        Just(InitialWindow::Linux),
    ];
    let restarts = prop_oneof![
        Just(RestartWindow::Off),
        Just(RestartWindow::Rfc5681),
        Just(RestartWindow::Rfc6928),
        Just(RestartWindow::Halving),
        (1u32..4).prop_map(|segments| RestartWindow::Fixed { segments }),
    ];
    let compression =
        proptest::option::of((0u64..5, 1u32..40, 0u16..50).prop_map(|(ms, rtt_divisor, max_segments)| {
            SackCompression { delay_max_ns: ms * MS, rtt_divisor, max_segments }
        }));
    let acks = prop_oneof![
        Just(AckPolicy::EverySegment),
        (1u32..4, 0u64..500).prop_map(|(segments, ms)| AckPolicy::Delayed { segments, timer_ns: ms * MS }),
        (1u32..4, 1u64..500, proptest::option::of(1u32..20_000)).prop_map(|(segments, ms, every_segment_bytes)| {
            AckPolicy::Heartbeat { segments, interval_ns: ms * MS, every_segment_bytes }
        }),
        (1u64..100, 0u64..300, 0u16..20, compression).prop_map(|(least, more, max_quickacks, sack_compression)| {
            AckPolicy::Adaptive(AdaptiveAck {
                delay_min_ns: least * MS,
                delay_max_ns: (least + more) * MS,
                max_quickacks,
                sack_compression,
            })
        }),
    ];
    let recovery = prop_oneof![
        Just(RecoveryAlgorithm::Tahoe),
        Just(RecoveryAlgorithm::RENO),
        Just(RecoveryAlgorithm::NEW_RENO),
        Just(RecoveryAlgorithm::SCOREBOARD)
    ];
    let refinements = prop::collection::vec(any::<bool>(), 15);
    let syn_loss_response =
        prop_oneof![Just(SynLossResponse::Rfc3390), Just(SynLossResponse::Rfc6928), Just(SynLossResponse::Keep)];
    let sizes = (1u32..9000, 1u32..200_000, any::<bool>(), 1u32..4);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let ecn = prop_oneof![Just(EcnPolicy::Off), Just(EcnPolicy::Passive), Just(EcnPolicy::On)];
    let options = (any::<bool>(), any::<bool>(), any::<bool>(), ecn);
    let limits = (prop::option::of(1u32..30), prop::option::of(1u32..30));
    let startups = prop_oneof![
        Just(Startup::Window),
        (1u32..=100).prop_map(|over_rtt_percent| Startup::Paced { over_rtt_percent }),
        Just(Startup::JumpStart),
        (1u8..=15, 1u32..20)
            .prop_map(|(rate, segments)| Startup::QuickStart { rate, limited_slow_start_segments: segments }),
        (1u32..=10, 2u32..=4, 1u64..20, 1u32..50).prop_map(|(window_factor, growth, ms, queue_delay_percent)| {
            Startup::RapidStart { window_factor, growth, queue_delay_ns: ms * MS, queue_delay_percent }
        }),
        Just(Startup::Suss),
        (2u32..300, 1u64..400).prop_map(|(saved_window_segments, ms)| Startup::CarefulResume {
            saved_window_segments,
            saved_rtt_ns: ms * MS
        }),
    ];
    let controls = proptest::sample::select(congestion_controls());
    let validations = prop_oneof![
        Just(WindowValidation::Off),
        any::<bool>().prop_map(|app_limited_decay| WindowValidation::CwndLimited { app_limited_decay }),
    ];
    let growth = (startups, controls, validations);
    (windows, restarts, acks, recovery, syn_loss_response, sizes, switches, (limits, options, refinements, growth))
        .prop_map(|(initial_window, restart_window, ack, recovery, syn_loss_response, sizes, switches, rest)| {
            let (limits, options, refinements, (startup, congestion_control, window_validation)) = rest;
            // BBR measures rates, which takes the scoreboard, and sets its own pace.
            let (recovery, startup) = match congestion_control {
                CongestionAlgorithm::Bbr => (RecoveryAlgorithm::SCOREBOARD, Startup::Window),
                _ => (recovery, startup),
            };
            let (mss_bytes, window, window_scaling, loss_window_segments) = sizes;
            let (sack, dsack, timestamps, ecn) = options;
            let (per_ack, per_window, data_on_handshake_ack, quantized_rtt) = switches;
            let bbr = congestion_control == CongestionAlgorithm::Bbr;
            let estimator = if refinements[13] { RtoEstimator::Linux } else { RtoEstimator::Rfc6298 { quantized_rtt } };
            Profile {
                mss_bytes: if timestamps { mss_bytes.max(13) } else { mss_bytes },
                sack,
                dsack: dsack && sack,
                timestamps,
                ecn,
                initial_window,
                restart_window,
                loss_window_segments,
                syn_loss_response,
                initial_ssthresh_segments: if bbr { None } else { limits.0 },
                max_send_window_segments: limits.1,
                receive_window_bytes: if window_scaling { window } else { window.min(65535) },
                send_buffer: refinements[13]
                    .then_some(SendBuffer { initial_bytes: 4_608, maximum_bytes: 4_608 + window / 2 }),
                // A buffer smaller than the memory of a segment takes a byte at a time.
                receive_window_growth: (refinements[12] && window >= 32_768)
                    .then(|| ReceiveWindowGrowth { initial_bytes: window.min(65535) / 2 }),
                timer_tick: refinements[14].then_some(TimerTick { period_ns: 4 * MS, wheel: refinements[13] }),
                window_scaling,
                ack,
                recovery: match recovery {
                    RecoveryAlgorithm::Scoreboard(_) => RecoveryAlgorithm::Scoreboard(ScoreboardRules {
                        rack: refinements[3] && sack,
                        tail_loss_probe: (refinements[4] && sack)
                            .then_some(TailLossProbe { max_ack_delay_ns: 200 * MS }),
                        prr: refinements[5],
                        undo_by_timestamps: refinements[8],
                        undo_by_dsack: refinements[9] && sack,
                        f_rto: refinements[10],
                        timer_restart: !refinements[7],
                        trains: None,
                    }),
                    other => other,
                },
                duplicate_ack_threshold: 3,
                slow_start_growth: if per_ack { SlowStartGrowth::PerAck } else { SlowStartGrowth::AbcL1 },
                congestion_avoidance: if per_window {
                    CongestionAvoidance::PerWindow
                } else {
                    CongestionAvoidance::PerAck
                },
                rto: RtoRules {
                    minimum_ns: 200 * MS,
                    maximum_ns: 2 * SECOND,
                    granularity_ns: 100 * MS,
                    after_syn_loss: None,
                    estimator,
                    ..Profile::rfc().rto
                },
                data_on_handshake_ack,
                max_retries: 1000,
                max_syn_retries: 1000,
                max_syn_ack_retries: 1000,
                limited_transmit: refinements[6],
                early_retransmit: refinements[7],
                undo_spurious_syn: refinements[9] && timestamps,
                loose_sequence_check: refinements[2],
                ignore_shrinking_duplicates: refinements[2],
                retry_stale_syn_ack: refinements[3],
                min_mss_bytes: if refinements[3] { 48 } else { 1 },
                mss_within_half_window: refinements[3],
                nagle: if refinements[11] { Nagle::Minshall } else { Nagle::Off },
                pacing: (startup == Startup::Window && refinements[4] && !bbr).then_some(WindowPacing {
                    slow_start_percent: 200,
                    avoidance_percent: 120,
                    burst_segments: 2,
                }),
                startup,
                congestion_control,
                window_validation,
                ..Profile::rfc()
            }
        })
}

/// Up to four blocks of any kind.
fn stray_blocks(dice: &mut Dice, base: u32) -> SackBlocks {
    let mut blocks = SackBlocks::NONE;
    for _ in 0..dice.roll() % 5 {
        let left = base.wrapping_add(dice.roll() as u32 % 20_000);
        blocks.push(left, left.wrapping_add(dice.roll() as u32 % 5000));
    }
    blocks
}

#[derive(Clone, Debug)]
struct Network {
    seed: u64,
    loss_percent: u64,
    duplicate_percent: u64,
    reorder_percent: u64,
    delay_ms: u64,
}

fn networks() -> impl Strategy<Value = Network> {
    (any::<u64>(), 0u64..=30, 0u64..=20, 0u64..=30, 0u64..150).prop_map(
        |(seed, loss_percent, duplicate_percent, reorder_percent, delay_ms)| Network {
            seed,
            loss_percent,
            duplicate_percent,
            reorder_percent,
            delay_ms,
        },
    )
}

impl Network {
    fn fate(&self) -> Fate {
        let network = self.clone();
        let mut dice = Dice(self.seed);
        Box::new(move |_| {
            let copies = if dice.percent(network.loss_percent) {
                0
            } else {
                1 + usize::from(dice.percent(network.duplicate_percent))
            };
            (0..copies)
                .map(|_| {
                    let late = if dice.percent(network.reorder_percent) { dice.roll() % 100 } else { 0 };
                    (network.delay_ms + late) * MS
                })
                .collect()
        })
    }
}

/// Bytes for a number of segments, so that small segments do not make for endless tests.
fn stream(profile: &Profile, peer: &Profile, segments: u64, rest: u64) -> u64 {
    let mss = u64::from(profile.mss_bytes.min(peer.mss_bytes));
    let window = u64::from(peer.receive_window_bytes);
    segments * mss.min(window) + rest % mss.min(window)
}

/// Two ends, a network between them, and their segments to each other.
#[derive(Clone, Debug)]
struct Exchange {
    client: Profile,
    server: Profile,
    network: Network,
    isns: (u32, u32),
    segments: (u64, u64),
    rest: (u16, u16),
    reads: (bool, bool),
    /// Into how many records each stream is cut.
    records: u64,
}

fn exchanges() -> impl Strategy<Value = Exchange> {
    let ends = (profiles(), profiles(), networks(), any::<(u32, u32)>());
    let streams = ((0u64..60, 0u64..60), any::<(u16, u16)>(), any::<(bool, bool)>(), prop_oneof![Just(1u64), 2u64..9]);
    (ends, streams).prop_map(|((client, server, network, isns), (segments, rest, reads, records))| Exchange {
        client,
        server,
        network,
        isns,
        segments,
        rest,
        reads,
        records,
    })
}

impl Exchange {
    /// Runs it to its end and checks that both streams arrived; returns the segments that were sent.
    fn run(&self) -> usize {
        let Self { client, server, network, isns, segments, rest, reads, records } = self;
        // Near the wrap in half of the cases.
        let near_wrap = |isn: u32| if isn % 2 == 0 { isn } else { u32::MAX - isn % 50_000 };
        let mut wire = Wire::with_sequences(client, server, 0, near_wrap(isns.0), near_wrap(isns.1));
        wire.set_fate(network.fate());
        let up = stream(client, server, segments.0, rest.0.into());
        let down = stream(server, client, segments.1, rest.1.into());
        let say = |wire: &mut Wire, side: Side, bytes: u64| {
            let now = wire.now;
            for record in 1..=*records {
                wire.endpoint(side).write(now, bytes * record / records - bytes * (record - 1) / records);
                if record < *records {
                    wire.endpoint(side).end_record();
                }
            }
            wire.endpoint(side).close(now);
        };
        wire.client_reads = reads.0;
        wire.server_reads = reads.1;
        wire.client.connect(0);
        say(&mut wire, Client, up);
        let mut answered = false;
        let mut dice = Dice(network.seed ^ 1);
        wire.pump();
        for _ in 0..200_000 {
            if !wire.next().is_set() || wire.client.is_finished() && wire.server.is_finished() {
                break;
            }
            wire.step();
            if !answered && wire.server_events.contains(Events::CONNECTED) {
                answered = true;
                say(&mut wire, Server, down);
                wire.pump();
            }
            // Lazy readers take odd amounts now and then.
            if !(reads.0 && reads.1) && dice.percent(20) {
                let amount = dice.roll() % 5000;
                wire.client.read(amount);
                wire.server.read(amount);
                wire.pump();
            }
            for (side, bytes) in [(Client, up), (Server, down)] {
                let endpoint = wire.endpoint(side);
                // Everything counted as in flight was sent: positions, a FIN or a SYN included.
                assert!(u64::from(endpoint.flight_bytes()) <= bytes + 1);
                let info = endpoint.info();
                assert!(info.sacked + info.lost <= info.unacked, "{info:?}");
                assert!(info.retransmitted <= info.unacked, "{info:?}");
            }
        }
        assert_eq!((wire.server.received_bytes(), wire.client.received_bytes()), (up, down));
        assert!(wire.client_events.contains(Events::PEER_CLOSED));
        assert!(wire.server_events.contains(Events::PEER_CLOSED));
        // The side that ends in TIME-WAIT may be left with its peer's last FIN unanswered only while it is retried.
        let states = (wire.client.state(), wire.server.state());
        assert!(wire.client.is_finished() && wire.server.is_finished(), "{states:?}");
        wire.log.len()
    }
}

impl Exchange {
    /// The segments of a server that writes from time to time; between the events both ends may be polled without
    /// effect.
    fn departures(&self, polls_between: bool) -> Vec<(Nanos, Segment)> {
        let mut wire = Wire::between(&self.client, &self.server, 0);
        wire.set_fate(self.network.fate());
        wire.client.connect(0);
        let mut dice = Dice(self.network.seed ^ 2);
        wire.pump();
        for _ in 0..400 {
            if (!wire.next().is_set() || dice.percent(10)) && wire.server_events.contains(Events::CONNECTED) {
                // Sometimes after more than a timeout.
                wire.now += if wire.next().is_set() { 0 } else { dice.roll() % (5 * SECOND) };
                let now = wire.now;
                wire.server.write(now, dice.roll() % stream(&self.server, &self.client, 30, 1).max(1));
                wire.pump();
            }
            let Some(next) = wire.next().time() else { break };
            if polls_between {
                wire.now = Nanos::midpoint(wire.now, next);
                wire.pump();
            }
            wire.step();
        }
        wire.log.iter().map(|sent| (sent.at, sent.segment)).collect()
    }
}

/// As the property, but for as long as `SOAK_SECONDS` says (a minute if it does not), from `SOAK_SEED` on:
/// `cargo test --release --test endpoint -- --ignored --nocapture soak`.
#[test]
#[ignore = "takes as long as it is given"]
fn soak() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(number("SOAK_SECONDS", 60));
    let (mut connections, mut segments) = (0u64, 0u64);
    for seed in number("SOAK_SEED", 1).. {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
        let exchange = exchanges().new_tree(&mut runner).unwrap().current();
        let sent = catch_unwind(|| exchange.run()).unwrap_or_else(|_| panic!("SOAK_SEED={seed}: {exchange:#?}"));
        connections += 1;
        segments += sent as u64;
        if Instant::now() >= end {
            break;
        }
    }
    println!("{connections} connections, {segments} segments");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_streams_arrive_complete_once_and_in_order(exchange in exchanges()) {
        exchange.run();
    }

    #[test]
    fn no_segment_whatever_breaks_an_endpoint(
        client in profiles(),
        server in profiles(),
        strays in prop::collection::vec(
            (any::<(bool, bool, u8, u8)>(), any::<(u32, u32, u16, u16)>(), 0u32..3000, 0u8..16), 1..60),
        seed in any::<u64>(),
    ) {
        let mut wire = Wire::with_sequences(&client, &server, 0, 7, u32::MAX - 5000);
        let mut dice = Dice(seed);
        wire.client.connect(0);
        wire.client.write(0, 20_000);
        for ((to_server, close_by, flags, action), (seq, ack, window, mss), payload_bytes, scale) in strays {
            let to = if to_server { Server } else { Client };
            // Half of the strays are near the numbers that the connection expects.
            let (theirs, ours) = if to_server { (7, u32::MAX - 5000) } else { (u32::MAX - 5000, 7) };
            let near = |base: u32, offset: u32| base.wrapping_add(offset % 8000).wrapping_sub(200);
            let segment = Segment {
                seq: if close_by { near(theirs, seq) } else { seq },
                ack: if close_by { near(ours, ack) } else { ack },
                payload_bytes,
                window,
                mss: NonZeroU16::new(mss),
                window_scale: Some(scale).filter(|&scale| scale < 15),
                flags: Flags::from_bits_truncate(u16::from(if dice.percent(60) { 16 | flags & 192 } else { flags })),
                sack_permitted: dice.percent(50),
                timestamps: dice.percent(50).then(|| Timestamps { value: dice.roll() as u32, echo: dice.roll() as u32 }),
                sack: stray_blocks(&mut dice, near(ours, ack)),
                ecn: [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::Congestion][dice.roll() as usize % 4],
                ..Segment::EMPTY
            };
            let now = wire.now;
            wire.endpoint(to).handle_segment(now, &segment);
            match action % 8 {
                0 => wire.endpoint(to).write(now, 1000),
                1 => wire.endpoint(to).close(now),
                2 if action > 250 => wire.endpoint(to).abort(now),
                3 => { wire.endpoint(to).read(500); }
                _ => {}
            }
            // Strays may acknowledge or deliver data that no one sent, so the wire's own checks are left out here.
            for side in [Client, Server] {
                let endpoint = wire.endpoint(side);
                let mut sent = 0;
                while endpoint.poll_transmit(now).is_some() {
                    sent += 1;
                    prop_assert!(sent < 100_000);
                }
                endpoint.poll_events();
            }
            wire.now += dice.roll() % (500 * MS);
            let now = wire.now;
            wire.client.handle_timeout(now);
            wire.server.handle_timeout(now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_poll_that_nothing_happened_before_changes_nothing(
        exchange in exchanges(),
        trains in any::<bool>(),
    ) {
        let mut exchange = exchange;
        if let RecoveryAlgorithm::Scoreboard(rules) = &mut exchange.server.recovery {
            rules.trains = trains.then_some(Trains { min_segments: 2, window_divisor: 3 });
        }
        prop_assert_eq!(exchange.departures(false), exchange.departures(true));
    }
}
