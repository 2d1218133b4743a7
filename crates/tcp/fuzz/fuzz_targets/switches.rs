//! Every switch of a profile, each within its range.

use arbitrary::{Arbitrary, Result, Unstructured};
use firstflight_tcp::{
    AckPolicy, AdaptiveAck, Choices, CongestionAlgorithm, CongestionAvoidance, EcnPolicy, IdleCheck, InitialWindow,
    Nagle, Nanos, NewRenoRules, Profile, ReceiveWindowGrowth, RecoveryAlgorithm, RecoveryExit, RenoRules,
    RestartWindow, RtoEstimator, RtoRules, RttSamples, SackCompression, ScoreboardRules, SendBuffer, SlowStartGrowth,
    SsthreshBase, SsthreshRules, Startup, SynLossResponse, TailLossProbe, TimerTick, Trains, WindowPacing,
    WindowValidation,
};

const MS: Nanos = 1_000_000;

/// A profile of any settings that belong together.
pub fn profile(u: &mut Unstructured<'_>) -> Result<Profile> {
    let timestamps = u.arbitrary()?;
    let window_scaling = u.arbitrary()?;
    let receive_window_bytes = u.int_in_range(1..=if window_scaling { 1 << 22 } else { 65535 })?;
    let choices = Choices::all();
    let mut congestion_control = *u.choose(&choices.congestion_control)?;
    if let CongestionAlgorithm::Cubic { hystart } = &mut congestion_control {
        *hystart = *u.choose(&choices.hystart)?;
    }
    let paced_by_itself = congestion_control == CongestionAlgorithm::Bbr;
    let minimum = u.int_in_range(1..=2000)?;
    let timer_tick = some(u, 1, 10)?.map(|ms| TimerTick { period_ns: Nanos::from(ms) * MS, wheel: ms % 2 == 0 });
    let pacing = if paced_by_itself { None } else { pacing(u)? };
    let window_validation = *u.choose(&[
        WindowValidation::Off,
        WindowValidation::CwndLimited { app_limited_decay: false },
        WindowValidation::CwndLimited { app_limited_decay: true },
    ])?;
    let sack = u.arbitrary()?;
    let mut profile = Profile {
        min_mss_bytes: u.int_in_range(1..=100)?,
        mss_within_half_window: u.arbitrary()?,
        mss_bytes: u.int_in_range(if timestamps { 13 } else { 1 }..=9000)?,
        initial_window: initial_window(u)?,
        restart_window: *u.choose(&[
            RestartWindow::Off,
            RestartWindow::Rfc5681,
            RestartWindow::Rfc6928,
            RestartWindow::Halving,
            RestartWindow::Fixed { segments: 2 },
        ])?,
        idle_check: *u.choose(&[IdleCheck::OnSend, IdleCheck::OnWrite])?,
        loss_window_segments: u.int_in_range(1..=4)?,
        syn_loss_response: *u.choose(&[SynLossResponse::Rfc3390, SynLossResponse::Rfc6928, SynLossResponse::Keep])?,
        initial_ssthresh_segments: if paced_by_itself { None } else { some(u, 1, 30)? },
        max_send_window_segments: some(u, 1, 30)?,
        send_buffer: some(u, 4_608, 60_000)?.map(|maximum_bytes| SendBuffer { initial_bytes: 4_608, maximum_bytes }),
        receive_window_bytes,
        receive_window_growth: some(u, 1, receive_window_bytes)?
            .map(|initial_bytes| ReceiveWindowGrowth { initial_bytes }),
        window_scaling,
        loose_sequence_check: u.arbitrary()?,
        ignore_shrinking_duplicates: u.arbitrary()?,
        ack: acknowledgments(u)?,
        sack,
        dsack: sack && u.arbitrary()?,
        timestamps,
        ecn: *u.choose(&[EcnPolicy::Off, EcnPolicy::Passive, EcnPolicy::On])?,
        nagle: *u.choose(&[Nagle::Off, Nagle::Minshall])?,
        recovery: if paced_by_itself {
            scoreboard(u, sack)?
        } else {
            match u.int_in_range(0..=3)? {
                0 => RecoveryAlgorithm::Tahoe,
                1 => RecoveryAlgorithm::Reno(RenoRules {
                    exit: *u.choose(&[RecoveryExit::Ssthresh, RecoveryExit::FlightPlusTwo])?,
                }),
                2 => RecoveryAlgorithm::NewReno(NewRenoRules {
                    slow_but_steady: u.arbitrary()?,
                    ack_heuristic: u.arbitrary()?,
                }),
                _ => scoreboard(u, sack)?,
            }
        },
        limited_transmit: u.arbitrary()?,
        early_retransmit: u.arbitrary()?,
        undo_spurious_syn: u.arbitrary()?,
        timer_tick,
        duplicate_ack_threshold: u.int_in_range(1..=5)?,
        congestion_control,
        window_validation,
        startup: if paced_by_itself || pacing.is_some() { Startup::Window } else { startup(u)? },
        pacing,
        slow_start_growth: *u.choose(&[
            SlowStartGrowth::PerAck,
            SlowStartGrowth::AbcL1,
            SlowStartGrowth::AbcUnlimited,
        ])?,
        congestion_avoidance: *u.choose(&[CongestionAvoidance::PerAck, CongestionAvoidance::PerWindow])?,
        ssthresh: SsthreshRules {
            base: *u.choose(&[SsthreshBase::FlightSize, SsthreshBase::Cwnd])?,
            whole_segments: u.arbitrary()?,
        },
        rto: RtoRules {
            initial_ns: minimum * MS,
            minimum_ns: minimum * MS,
            maximum_ns: (minimum + u.int_in_range(0..=60_000)?) * MS,
            granularity_ns: u.int_in_range(1..=200)? * MS,
            samples: *u.choose(&[RttSamples::RoundTrip, RttSamples::AckOneWay])?,
            estimator: *u.choose(&[
                RtoEstimator::RFC6298,
                RtoEstimator::Rfc6298 { quantized_rtt: true },
                RtoEstimator::Linux,
            ])?,
            backoff: u.int_in_range(1..=4)?,
            backoff_at_fast_retransmit: u.arbitrary()?,
            after_syn_loss: None,
        },
        data_on_handshake_ack: u.arbitrary()?,
        piggyback_fin: u.arbitrary()?,
        max_retries: u.int_in_range(0..=20)?,
        max_syn_retries: u.int_in_range(0..=20)?,
        max_syn_ack_retries: u.int_in_range(0..=20)?,
        linear_syn_timeouts: u.int_in_range(0..=4)?,
        retry_stale_syn_ack: u.arbitrary()?,
    };
    // Switches without effect are refused.
    profile.undo_spurious_syn &= timestamps;
    profile.rto.backoff_at_fast_retransmit &= !profile.recovery.is_scoreboard();
    // Other combinations that a profile refuses are no input.
    profile.validate().map_err(|_| arbitrary::Error::IncorrectFormat)?;
    Ok(profile)
}

fn some(u: &mut Unstructured<'_>, low: u32, high: u32) -> Result<Option<u32>> {
    Ok(if u.arbitrary()? { Some(u.int_in_range(low..=high)?) } else { None })
}

fn initial_window(u: &mut Unstructured<'_>) -> Result<InitialWindow> {
    Ok(match u.int_in_range(0..=4)? {
        0 => InitialWindow::Fixed { segments: u.int_in_range(1..=40)? },
        1 => InitialWindow::Rfc2581,
        2 => InitialWindow::Rfc3390,
        3 => InitialWindow::Rfc6928,
        _ => InitialWindow::Linux,
    })
}

fn acknowledgments(u: &mut Unstructured<'_>) -> Result<AckPolicy> {
    let milliseconds = |u: &mut Unstructured<'_>| Ok::<_, arbitrary::Error>(u.int_in_range(1..=500)? * MS);
    Ok(match u.int_in_range(0..=3)? {
        0 => AckPolicy::EverySegment,
        1 => AckPolicy::Delayed { segments: u.int_in_range(1..=4)?, timer_ns: milliseconds(u)? },
        2 => AckPolicy::Heartbeat {
            segments: u.int_in_range(1..=4)?,
            interval_ns: milliseconds(u)?,
            every_segment_bytes: u.arbitrary::<Option<u16>>()?.map(u32::from),
        },
        _ => {
            let delay_min_ns = milliseconds(u)?;
            AckPolicy::Adaptive(AdaptiveAck {
                delay_min_ns,
                delay_max_ns: delay_min_ns + milliseconds(u)?,
                max_quickacks: u.int_in_range(0..=20)?,
                sack_compression: compression(u)?,
            })
        }
    })
}

fn compression(u: &mut Unstructured<'_>) -> Result<Option<SackCompression>> {
    if !u.arbitrary()? {
        return Ok(None);
    }
    Ok(Some(SackCompression {
        delay_max_ns: u.int_in_range(0..=5)? * MS,
        rtt_divisor: u.int_in_range(1..=40)?,
        max_segments: u.int_in_range(0..=50)?,
    }))
}

fn pacing(u: &mut Unstructured<'_>) -> Result<Option<WindowPacing>> {
    if !u.arbitrary()? {
        return Ok(None);
    }
    Ok(Some(WindowPacing {
        slow_start_percent: u.int_in_range(1..=1000)?,
        avoidance_percent: u.int_in_range(1..=1000)?,
        burst_segments: u.int_in_range(1..=64)?,
    }))
}

fn startup(u: &mut Unstructured<'_>) -> Result<Startup> {
    Ok(match u.int_in_range(0..=6)? {
        0 => Startup::Window,
        1 => Startup::Paced { over_rtt_percent: u.int_in_range(1..=100)? },
        2 => Startup::JumpStart,
        3 => {
            Startup::QuickStart { rate: u.int_in_range(1..=15)?, limited_slow_start_segments: u.int_in_range(1..=20)? }
        }
        4 => Startup::RapidStart {
            window_factor: u.int_in_range(1..=10)?,
            growth: u.int_in_range(2..=4)?,
            queue_delay_ns: u.int_in_range(1..=100)? * MS,
            queue_delay_percent: u.int_in_range(1..=1000)?,
        },
        5 => Startup::Suss,
        _ => Startup::CarefulResume {
            saved_window_segments: u.int_in_range(2..=300)?,
            saved_rtt_ns: u.int_in_range(1..=400)? * MS,
        },
    })
}

/// A profile, for types that derive [`Arbitrary`].
#[derive(Debug)]
pub struct Switches(pub Profile);

impl<'a> Arbitrary<'a> for Switches {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(match u.int_in_range(0..=7)? {
            0 => Profile::rfc(),
            1 => Profile::ns2_full_1998(),
            2 | 3 => Profile::linux(),
            _ => profile(u)?,
        }))
    }
}

/// A scoreboard without switches that have no effect.
fn scoreboard(u: &mut Unstructured<'_>, sack: bool) -> arbitrary::Result<RecoveryAlgorithm> {
    let max_ack_delay_ns = u.int_in_range(0..=500)? * MS;
    Ok(RecoveryAlgorithm::Scoreboard(ScoreboardRules {
        rack: sack && u.arbitrary()?,
        tail_loss_probe: (sack && u.arbitrary()?).then_some(TailLossProbe { max_ack_delay_ns }),
        prr: u.arbitrary()?,
        undo_by_timestamps: u.arbitrary()?,
        undo_by_dsack: sack && u.arbitrary()?,
        f_rto: u.arbitrary()?,
        timer_restart: u.arbitrary()?,
        trains: u.arbitrary::<bool>()?.then_some(Trains { min_segments: 2, window_divisor: 3 }),
    }))
}
