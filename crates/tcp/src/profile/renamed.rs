//! Keys and words of profiles that earlier versions had.

use std::fmt::Display;

/// Each with what stands in its place, by path and without the unit's ending. A word is the last step of a path.
pub const RENAMED: &[(&str, &str)] = &[
    ("recovery.sack", "recovery.scoreboard"),
    ("rack", "recovery.scoreboard.rack"),
    ("tail_loss_probe", "recovery.scoreboard.tail_loss_probe"),
    ("tail_loss_probe_max_ack_delay", "recovery.scoreboard.tail_loss_probe.max_ack_delay"),
    ("proportional_rate_reduction", "recovery.scoreboard.prr"),
    ("undo_by_timestamps", "recovery.scoreboard.undo_by_timestamps"),
    ("undo_by_dsack", "recovery.scoreboard.undo_by_dsack"),
    ("f_rto", "recovery.scoreboard.f_rto"),
    ("trains", "recovery.scoreboard.trains"),
    ("recovery_exit", "recovery.reno.exit"),
    ("slow_but_steady", "recovery.new_reno.slow_but_steady"),
    ("timer_tick", "timer_tick.period"),
    ("timer_wheel", "timer_tick.wheel"),
    ("app_limited_decay", "window_validation.cwnd_limited.app_limited_decay"),
    ("rto.quantised_samples", "rto.estimator.rfc6298.quantized_rtt"),
    ("rto.after_syn_loss", "rto.after_syn_loss.timeout"),
    ("rto.after_syn_loss_unless_sampled", "rto.after_syn_loss.unless_sampled"),
    ("ssthresh_base", "ssthresh.base"),
    ("whole_segment_ssthresh", "ssthresh.whole_segments"),
    ("acknowledgement_heuristic", "recovery.new_reno.ack_heuristic"),
    ("lost_syn", "syn_loss_response"),
    ("ack.quick_segments", "ack.max_quickacks"),
    ("ack.sack_compression.most_segments", "ack.sack_compression.max_segments"),
    ("initial_window.least_segments", "initial_window.min_segments"),
    ("initial_window.most_segments", "initial_window.max_segments"),
    ("slow_start_growth.bytes", "slow_start_growth.abc_l1"),
    ("slow_start_growth.all_bytes", "slow_start_growth.abc_unlimited"),
];

/// Adds the new name to an error of `serde` about a profile, if it is about an old one.
pub fn name_renamed(error: impl Display) -> String {
    let message = error.to_string();
    let old = ["unknown field `", "unknown variant `"]
        .into_iter()
        .find_map(|before| message.split_once(before)?.1.split_once('`').map(|(old, _)| old));
    match old.and_then(renamed) {
        Some((old, new)) => format!("\"{old}\" is now \"{new}\"; write that instead ({message})"),
        None => message,
    }
}

fn renamed(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.strip_suffix("_ns").or_else(|| name.strip_suffix("_bytes")).unwrap_or(name);
    RENAMED.iter().copied().find(|(old, _)| old.rsplit('.').next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::name_renamed;
    use crate::Profile;

    #[test]
    fn an_old_key_and_an_old_word_are_answered_with_the_new_ones() {
        for (field, value, expected) in [
            ("rack", true.into(), "\"rack\" is now \"recovery.scoreboard.rack\"; write that instead"),
            (
                "tail_loss_probe_max_ack_delay_ns",
                1.into(),
                "\"tail_loss_probe_max_ack_delay\" is now \"recovery.scoreboard.tail_loss_probe.max_ack_delay\"",
            ),
            ("recovery", "sack".into(), "\"recovery.sack\" is now \"recovery.scoreboard\"; write that instead"),
            ("timer_tick_ns", 1.into(), "\"timer_tick\" is now \"timer_tick.period\"; write that instead"),
            ("recovry", 1.into(), "unknown field `recovry`"),
        ] {
            let mut json: serde_json::Value = serde_json::to_value(Profile::rfc()).unwrap();
            json[field] = value;
            let message = name_renamed(serde_json::from_value::<Profile>(json).unwrap_err());
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
