//! Which profiles make sense: every field within its range, and none without effect beside the others.

use super::error::{LONGEST_TIMEOUT, ProfileError, only_with, within, within_given};
use super::{AckPolicy, Profile, RestartWindow, RtoEstimator, RtoRules, RttSamples};
use crate::SECOND;
use crate::amounts::LARGEST_WINDOW;
use crate::segment::TIMESTAMPS_BYTES;
use crate::sender::congestion::CongestionAlgorithm;
use crate::sender::startup::Startup;

impl Profile {
    /// Checks that every field is within its range, and that none is without effect beside the others.
    ///
    /// # Errors
    /// The first field that is refused, with its value and what would be right.
    pub fn validate(&self) -> Result<(), ProfileError> {
        self.validate_ranges()?;
        self.validate_combinations()
    }

    /// Checks that every field is within its range: what holds of a profile some of whose fields are not set yet.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn validate_ranges(&self) -> Result<(), ProfileError> {
        let largest = u64::from(LARGEST_WINDOW);
        // A window in segments must stay expressible in bytes.
        let max_segments = largest / u64::from(self.mss_bytes.max(1));
        within("mss_bytes", self.mss_bytes, 1..=65535)?;
        within("min_mss_bytes", self.min_mss_bytes, 1..=65535)?;
        if self.timestamps {
            let least = 1 + u64::from(TIMESTAMPS_BYTES);
            within_given(Some("with timestamps"), "mss_bytes", self.mss_bytes, least..=65535)?;
        }
        self.initial_window.validate(max_segments)?;
        if let RestartWindow::Fixed { segments } = self.restart_window {
            within("restart_window.segments", segments, 1..=max_segments)?;
        }
        within("loss_window_segments", self.loss_window_segments, 1..=max_segments)?;
        if let Some(segments) = self.initial_ssthresh_segments {
            within("initial_ssthresh_segments", segments, 1..=max_segments)?;
        }
        if let Some(segments) = self.max_send_window_segments {
            within("max_send_window_segments", segments, 1..=max_segments)?;
        }
        if let Some(buffer) = self.send_buffer {
            buffer.validate()?;
        }
        let (condition, largest_receive) =
            if self.window_scaling { (None, largest) } else { (Some("without window_scaling"), 65535) };
        within_given(condition, "receive_window_bytes", self.receive_window_bytes, 1..=largest_receive)?;
        if let Some(growth) = self.receive_window_growth {
            let largest = self.receive_window_bytes.into();
            within("receive_window_growth.initial_bytes", growth.initial_bytes, 1..=largest)?;
        }
        if let Some(tick) = self.timer_tick {
            within("timer_tick.period_ns", tick.period_ns, 1..=SECOND)?;
        }
        match self.ack {
            AckPolicy::EverySegment => {}
            AckPolicy::Delayed { segments, timer_ns } => {
                within("ack.segments", segments, 1..=u64::from(u32::MAX))?;
                within("ack.timer_ns", timer_ns, 0..=LONGEST_TIMEOUT)?;
            }
            AckPolicy::Heartbeat { segments, interval_ns, every_segment_bytes } => {
                within("ack.segments", segments, 1..=u64::from(u32::MAX))?;
                within("ack.interval_ns", interval_ns, 1..=LONGEST_TIMEOUT)?;
                if let Some(bytes) = every_segment_bytes {
                    within("ack.every_segment_bytes", bytes, 1..=largest)?;
                }
            }
            AckPolicy::Adaptive(rules) => {
                within("ack.delay_min_ns", rules.delay_min_ns, 1..=LONGEST_TIMEOUT)?;
                within("ack.delay_max_ns", rules.delay_max_ns, rules.delay_min_ns..=LONGEST_TIMEOUT)?;
                if let Some(compression) = rules.sack_compression {
                    within("ack.sack_compression.delay_max_ns", compression.delay_max_ns, 0..=LONGEST_TIMEOUT)?;
                    within("ack.sack_compression.rtt_divisor", compression.rtt_divisor, 1..=u64::from(u32::MAX))?;
                }
            }
        }
        self.recovery.validate()?;
        within("duplicate_ack_threshold", self.duplicate_ack_threshold, 1..=255)?;
        if let Some(pacing) = &self.pacing {
            pacing.validate()?;
        }
        self.startup.validate(max_segments)?;
        self.rto.validate()
    }

    /// Refuses what does not go together, and what would have no effect.
    fn validate_combinations(&self) -> Result<(), ProfileError> {
        let bbr = self.congestion_control == CongestionAlgorithm::Bbr;
        let scoreboard = self.recovery.is_scoreboard();
        // The rate of delivery is measured segment by segment.
        if bbr && !scoreboard {
            return Err(ProfileError::Needs {
                setting: "congestion_control = bbr",
                needed: "recovery = scoreboard",
                reason: "which measures the rate of delivery",
            });
        }
        if self.rto.samples == RttSamples::AckOneWay && (scoreboard || self.rto.estimator == RtoEstimator::Linux) {
            return Err(ProfileError::Needs {
                setting: "rto.samples = ack_one_way",
                needed: "a recovery other than scoreboard and an rto.estimator other than linux",
                reason: "because those two need round trips",
            });
        }
        if self.pacing.is_some() && self.startup != Startup::Window {
            return Err(ProfileError::Needs {
                setting: "pacing",
                needed: "startup = window",
                reason: "because it paces the first flight, too",
            });
        }
        if bbr && self.startup != Startup::Window {
            return Err(ProfileError::Needs {
                setting: "congestion_control = bbr",
                needed: "startup = window",
                reason: "because BBR sets its own pace",
            });
        }
        let without_effect = [
            ("pacing", self.pacing.is_some(), "sets its own pace"),
            ("initial_ssthresh_segments", self.initial_ssthresh_segments.is_some(), "has no slow start threshold"),
        ];
        if let Some(&(field, _, reason)) = without_effect.iter().find(|(_, is_set, _)| bbr && *is_set) {
            return Err(ProfileError::NoEffectWith { field, setting: "congestion_control = bbr", reason });
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

impl RtoRules {
    fn validate(&self) -> Result<(), ProfileError> {
        within("rto.minimum_ns", self.minimum_ns, 1..=LONGEST_TIMEOUT)?;
        within("rto.maximum_ns", self.maximum_ns, self.minimum_ns..=LONGEST_TIMEOUT)?;
        within("rto.initial_ns", self.initial_ns, 1..=self.maximum_ns)?;
        within("rto.granularity_ns", self.granularity_ns, 1..=LONGEST_TIMEOUT)?;
        within("rto.backoff", self.backoff, 1..=16)?;
        match self.after_syn_loss {
            Some(after) => within("rto.after_syn_loss.timeout_ns", after.timeout_ns, 1..=self.maximum_ns),
            None => Ok(()),
        }
    }
}
