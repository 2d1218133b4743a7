//! Which profiles make sense: every field within its range, and none without effect beside the others.

use super::{LARGEST_WINDOW, Profile, RtoEstimator, RtoRules, RttSamples, SECOND};
use crate::Nanos;
use crate::connection::timestamps::OPTION_BYTES;
use crate::receiver::ack::AckPolicy;
use crate::sender::congestion::CongestionAlgorithm;
use crate::sender::initial_window::RestartWindow;
use crate::sender::startup::{self, Startup};

impl Profile {
    /// Checks that every field is within its range, and that none is without effect beside the others.
    ///
    /// # Errors
    /// One sentence that names the field, its value and what would be right.
    pub fn validate(&self) -> Result<(), String> {
        self.validate_ranges()?;
        self.validate_combinations()
    }

    /// Checks that every field is within its range: what holds of a profile some of whose fields are not set yet.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn validate_ranges(&self) -> Result<(), String> {
        let within = |field: &str, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{field} is {value}, but must be from {low} to {high}"))
            }
        };
        let largest = u64::from(LARGEST_WINDOW);
        // A window in segments must stay expressible in bytes.
        let most_segments = largest / u64::from(self.mss_bytes.max(1));
        within("mss_bytes", self.mss_bytes.into(), 1, 65535)?;
        if self.timestamps {
            within("mss_bytes", self.mss_bytes.into(), 1 + u64::from(OPTION_BYTES), 65535)
                .map_err(|sentence| format!("{sentence} with timestamps"))?;
        }
        self.initial_window.validate(within, most_segments, LONGEST_TIMEOUT)?;
        if let RestartWindow::Fixed { segments } = self.restart_window {
            within("restart_window.segments", segments.into(), 1, most_segments)?;
        }
        within("loss_window_segments", self.loss_window_segments.into(), 1, most_segments)?;
        if let Some(segments) = self.initial_ssthresh_segments {
            within("initial_ssthresh_segments", segments.into(), 1, most_segments)?;
        }
        if let Some(segments) = self.max_send_window_segments {
            within("max_send_window_segments", segments.into(), 1, most_segments)?;
        }
        let largest_receive = if self.window_scaling { largest } else { 65535 };
        within("receive_window_bytes", self.receive_window_bytes.into(), 1, largest_receive).map_err(|sentence| {
            if self.window_scaling { sentence } else { format!("{sentence} without window_scaling") }
        })?;
        if let Some(growth) = self.receive_window_growth {
            let largest = self.receive_window_bytes.into();
            within("receive_window_growth.initial_bytes", growth.initial_bytes.into(), 1, largest)?;
        }
        if let Some(tick) = self.timer_tick {
            within("timer_tick.period_ns", tick.period_ns, 1, SECOND)?;
        }
        match self.ack {
            AckPolicy::EverySegment => {}
            AckPolicy::Delayed { segments, timer_ns } => {
                within("ack.segments", segments.into(), 1, u32::MAX.into())?;
                within("ack.timer_ns", timer_ns, 0, LONGEST_TIMEOUT)?;
            }
            AckPolicy::Heartbeat { segments, interval_ns, every_segment_bytes } => {
                within("ack.segments", segments.into(), 1, u32::MAX.into())?;
                within("ack.interval_ns", interval_ns, 1, LONGEST_TIMEOUT)?;
                if let Some(bytes) = every_segment_bytes {
                    within("ack.every_segment_bytes", bytes.into(), 1, largest)?;
                }
            }
            AckPolicy::Adaptive(rules) => {
                within("ack.delay_min_ns", rules.delay_min_ns, 1, LONGEST_TIMEOUT)?;
                within("ack.delay_max_ns", rules.delay_max_ns, rules.delay_min_ns, LONGEST_TIMEOUT)?;
                if let Some(compression) = rules.sack_compression {
                    within("ack.sack_compression.delay_max_ns", compression.delay_max_ns, 0, LONGEST_TIMEOUT)?;
                    within("ack.sack_compression.rtt_divisor", compression.rtt_divisor.into(), 1, u32::MAX.into())?;
                }
            }
        }
        self.recovery.validate(within, LONGEST_TIMEOUT)?;
        within("duplicate_ack_threshold", self.duplicate_ack_threshold.into(), 1, 255)?;
        if let Some(pacing) = &self.pacing {
            pacing.validate(within)?;
        }
        let limits = startup::Limits { segments: most_segments, time: LONGEST_TIMEOUT };
        self.startup.validate(within, &limits)?;
        self.rto.validate(within)
    }

    /// Refuses what does not go together, and what would have no effect.
    fn validate_combinations(&self) -> Result<(), String> {
        let bbr = self.congestion_control == CongestionAlgorithm::Bbr;
        let scoreboard = self.recovery.is_scoreboard();
        // The rate of delivery is measured segment by segment, which takes the scoreboard.
        if bbr && !scoreboard {
            return Err(
                "congestion_control is bbr, but recovery is not scoreboard, which measures the rate of delivery".into(),
            );
        }
        if self.rto.samples == RttSamples::AckOneWay && (scoreboard || self.rto.estimator == RtoEstimator::Linux) {
            return Err(
                "rto.samples is ack_one_way, but recovery is scoreboard or rto.estimator is linux, which need round \
                 trips"
                    .into(),
            );
        }
        if self.pacing.is_some() && self.startup != Startup::Window {
            return Err("startup must be window with pacing, which paces the first flight its own way".into());
        }
        if bbr && self.startup != Startup::Window {
            return Err("startup must be window with congestion_control = bbr, which sets its own pace".into());
        }
        if bbr && self.pacing.is_some() {
            return Err(
                "pacing has no effect with congestion_control = bbr, which sets its own pace; set it to none".into()
            );
        }
        if bbr && self.initial_ssthresh_segments.is_some() {
            return Err(
                "initial_ssthresh_segments has no effect with congestion_control = bbr, which has no slow start \
                 threshold; set it to none"
                    .into(),
            );
        }
        let rules = self.recovery.scoreboard();
        only_with(
            "sack = true",
            self.sack,
            &[
                ("dsack", self.dsack),
                ("recovery.scoreboard.rack", rules.rack),
                ("recovery.scoreboard.tail_loss_probe", rules.tail_loss_probe.is_some()),
                ("recovery.scoreboard.undo_by_dsack", rules.undo_by_dsack),
            ],
        )?;
        only_with(
            "a recovery other than \"scoreboard\"",
            !scoreboard,
            &[("rto.backoff_at_fast_retransmit", self.rto.backoff_at_fast_retransmit)],
        )?;
        only_with("timestamps = true", self.timestamps, &[("undo_spurious_syn", self.undo_spurious_syn)])
    }
}

/// Refuses those of the `switches` that are on, if what they need is not there.
fn only_with(needed: &str, is_there: bool, switches: &[(&str, bool)]) -> Result<(), String> {
    let on: Vec<&str> = switches.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    match on.as_slice() {
        [] => Ok(()),
        _ if is_there => Ok(()),
        [one] => Err(format!("{one} has no effect without {needed}; set that, or switch it off")),
        several => {
            let all = several.join(", ");
            Err(format!("{all} have no effect without {needed}; set that, or switch these off"))
        }
    }
}

/// Longest timeout that a profile may ask for: a day, which keeps the arithmetic far from overflow.
const LONGEST_TIMEOUT: Nanos = 86_400 * SECOND;

impl RtoRules {
    fn validate(&self, within: impl Fn(&str, u64, u64, u64) -> Result<(), String>) -> Result<(), String> {
        within("rto.minimum_ns", self.minimum_ns, 1, LONGEST_TIMEOUT)?;
        within("rto.maximum_ns", self.maximum_ns, self.minimum_ns, LONGEST_TIMEOUT)?;
        within("rto.initial_ns", self.initial_ns, 1, self.maximum_ns)?;
        within("rto.granularity_ns", self.granularity_ns, 1, LONGEST_TIMEOUT)?;
        within("rto.backoff", self.backoff.into(), 1, 16)?;
        match self.after_syn_loss {
            Some(after) => within("rto.after_syn_loss.timeout_ns", after.timeout_ns, 1, self.maximum_ns),
            None => Ok(()),
        }
    }
}
