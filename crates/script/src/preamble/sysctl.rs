//! Sysctls and module parameters by name: the field of the profile that each sets, or why it makes no difference here.

use super::Environment;
use crate::problem::{Refusal, refuse};
use firstflight_tcp::WindowPacing;
use serde_json::Value;
use std::path::Path;

/// The meaning of a setting here.
#[derive(Clone, Copy)]
enum Meaning {
    /// It sets the profile or the environment.
    Sets(fn(&mut Environment, &str) -> Result<(), Refusal>),
    /// No value of it affects the model.
    Harmless,
    /// It makes no difference as long as it has this value.
    Only(&'static str),
}

use Meaning::{Harmless, Only, Sets};

/// Sorted by name, without the directory.
const TABLE: &[(&str, Meaning)] = &[
    ("enabled", Harmless),
    ("hystart_ack_delta_us", Harmless),
    ("hystart_detect", Sets(hystart_detect)),
    ("hystart_low_window", Only("16")),
    ("ip_local_port_range", Harmless),
    ("tcp_autocorking", Harmless),
    ("tcp_comp_sack_delay_ns", Sets(|environment, value| compression(environment, "delay_max", &format!("{value}ns")))),
    ("tcp_comp_sack_nr", Sets(|environment, value| compression(environment, "max_segments", value))),
    ("tcp_comp_sack_slack_ns", Harmless),
    ("tcp_congestion_control", Sets(congestion_control)),
    ("tcp_dsack", Sets(|environment, value| flag(environment, "dsack", value))),
    ("tcp_early_retrans", Sets(tail_loss_probe)),
    ("tcp_ecn", Sets(ecn)),
    ("tcp_ecn_fallback", Harmless),
    ("tcp_fack", Harmless),
    ("tcp_fastopen", Harmless),
    ("tcp_fastopen_key", Harmless),
    ("tcp_frto", Sets(|environment, value| refine(environment, "f_rto", if value == "0" { "false" } else { "true" }))),
    ("tcp_invalid_ratelimit", Harmless),
    ("tcp_limit_output_bytes", Harmless),
    ("tcp_min_snd_mss", Sets(|environment, value| environment.settings.write("min_mss_bytes", value))),
    ("tcp_min_tso_segs", Sets(shortest_train)),
    ("tcp_moderate_rcvbuf", Harmless),
    ("tcp_mtu_probing", Only("0")),
    ("tcp_no_metrics_save", Harmless),
    ("tcp_notsent_lowat", Harmless),
    (
        "tcp_pacing_ca_ratio",
        Sets(|environment, value| pacing(environment, value, |pacing| &mut pacing.avoidance_percent)),
    ),
    (
        "tcp_pacing_ss_ratio",
        Sets(|environment, value| pacing(environment, value, |pacing| &mut pacing.slow_start_percent)),
    ),
    ("tcp_recovery", Sets(rack)),
    ("tcp_reordering", Sets(|environment, value| environment.settings.write("duplicate_ack_threshold", value))),
    ("tcp_retries2", Sets(|environment, value| environment.settings.write("max_retries", value))),
    ("tcp_rmem", Sets(receive_memory)),
    ("tcp_rto_max_ms", Sets(|environment, value| environment.settings.write("rto.maximum", &format!("{value}ms")))),
    ("tcp_rto_min_us", Sets(|environment, value| rto_min(environment, &format!("{value}us")))),
    ("tcp_sack", Sets(|environment, value| flag(environment, "sack", value))),
    ("tcp_slow_start_after_idle", Sets(restart_window)),
    ("tcp_syn_retries", Sets(syn_retries)),
    ("tcp_synack_retries", Sets(|environment, value| environment.settings.write("max_syn_ack_retries", value))),
    ("tcp_syncookies", Harmless),
    (
        "tcp_timestamps",
        Sets(|environment, value| flag(environment, "timestamps", if value == "0" { "0" } else { "1" })),
    ),
    ("tcp_tso_win_divisor", Sets(|environment, value| train(environment, "window_divisor", value))),
    ("tcp_tw_reuse", Harmless),
    ("tcp_window_scaling", Sets(window_scaling)),
    ("tcp_wmem", Sets(send_memory)),
];

/// Sets `name` (dotted, or a path below /proc/sys or /sys/module) to `value`.
pub(super) fn apply(environment: &mut Environment, name: &str, value: &str) -> Result<(), Refusal> {
    let dotted = name.rsplit('.').next().unwrap_or(name);
    let short = Path::new(dotted).file_name().and_then(|name| name.to_str()).unwrap_or(dotted);
    let meaning = TABLE.binary_search_by(|(known, _)| known.cmp(&short)).map(|found| TABLE[found].1);
    match meaning {
        Ok(Sets(set)) => set(environment, value).map_err(Refusal::within(format_args!("{short}={value}"))),
        Ok(Harmless) => Ok(()),
        Ok(Only(modeled)) if value == modeled => Ok(()),
        Ok(Only(modeled)) => Err(refuse!("{short}={value} has no counterpart here, only {modeled}")),
        Err(_) => Err(refuse!("the setting {name} is not known here")),
    }
}

// Linux, tcp_write_timeout: tcp_syn_linear_timeouts come on top.
fn syn_retries(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let retries: u64 = value.parse().map_err(|_| refuse!("it is not a number of retries"))?;
    let settings = &mut environment.settings;
    let linear = settings.get("linear_syn_timeouts").and_then(Value::as_u64).unwrap_or(0);
    settings.write("max_syn_retries", &retries.saturating_add(linear).to_string())
}

/// The floor of the timeout, `TCP_RTO_MIN`, is also the time that a tail loss probe allows a single segment.
pub(super) fn rto_min(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    if let Some(Value::Object(_)) = environment.settings.get("recovery.scoreboard.tail_loss_probe") {
        environment.settings.write("recovery.scoreboard.tail_loss_probe.max_ack_delay", value)?;
    }
    environment.settings.write("rto.minimum", value)
}

/// Sets a rule of the scoreboard. In a profile that has none it is off already.
fn refine(environment: &mut Environment, rule: &str, text: &str) -> Result<(), Refusal> {
    let settings = &mut environment.settings;
    if text == "false" && settings.get("recovery.scoreboard").is_none() {
        return Ok(());
    }
    settings.write(&format!("recovery.scoreboard.{rule}"), text)
}

fn flag(environment: &mut Environment, field: &str, value: &str) -> Result<(), Refusal> {
    let word = match value {
        "0" => "false",
        "1" => "true",
        _ => return Err(refuse!("only 0 and 1 are modeled")),
    };
    environment.settings.write(field, word)
}

/// Sets how a queue that paces does it.
fn pacing(environment: &mut Environment, value: &str, field: fn(&mut WindowPacing) -> &mut u32) -> Result<(), Refusal> {
    *field(&mut environment.pacing) = value.parse().map_err(|_| refuse!("it is not a whole number"))?;
    environment.set_pacing(environment.queue_paces)
}

/// The number of segments sent together, paced or not.
fn shortest_train(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    pacing(environment, value, |pacing| &mut pacing.burst_segments)?;
    train(environment, "min_segments", value)
}

/// A field of the trains, if the profile has any.
fn train(environment: &mut Environment, field: &str, value: &str) -> Result<(), Refusal> {
    match environment.settings.get("recovery.scoreboard.trains") {
        Some(Value::Object(_)) => refine(environment, &format!("trains.{field}"), value),
        _ => Ok(()),
    }
}

/// A field of how acknowledgments with selective blocks are merged, if the profile has any.
fn compression(environment: &mut Environment, field: &str, value: &str) -> Result<(), Refusal> {
    let name = "ack.sack_compression";
    match environment.settings.get(name) {
        Some(serde_json::Value::Object(_)) => environment.settings.write(&format!("{name}.{field}"), value),
        _ => Ok(()),
    }
}

fn congestion_control(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let algorithm = match value {
        // Linux's module comes with both detectors of HyStart.
        "cubic" => "{ algorithm = cubic, hystart = hystart }",
        name => name,
    };
    environment.settings.write("congestion_control", algorithm)
}

// Linux: net/ipv4/tcp_cubic.c, a bitmap of the length of ACK trains (1) and the rise of delay (2).
fn hystart_detect(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let detectors = match value {
        "0" => "off",
        "1" => "ack_train",
        "2" => "delay",
        "3" => "hystart",
        _ => return Err(refuse!("only 0 to 3 are known")),
    };
    environment.settings.write("congestion_control.hystart", detectors)
}

// ip-sysctl: 0 disables tail loss probes, 3 and 4 enable them; 1 and 2 are gone.
fn tail_loss_probe(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let settings = &mut environment.settings;
    match (value, settings.get("recovery.scoreboard.tail_loss_probe")) {
        ("0", None) => Ok(()),
        ("0", Some(_)) => settings.write("recovery.scoreboard.tail_loss_probe", "none"),
        (_, Some(Value::Object(_))) => Ok(()),
        _ => {
            let floor = settings.get("rto.minimum").and_then(Value::as_u64).unwrap_or_default();
            settings.write("recovery.scoreboard.tail_loss_probe", &format!("{{ max_ack_delay = {floor}ns }}"))
        }
    }
}

// ip-sysctl: a bitmap; 1 is RACK.
fn rack(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    match value {
        "0" => refine(environment, "rack", "false"),
        "1" | "0x1" => refine(environment, "rack", "true"),
        _ => Err(refuse!("only 0 and 1 are modeled")),
    }
}

// ip-sysctl: 0 off, 1 asked for and granted, 2 granted; 3 and more are accurate ECN.
fn ecn(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let policy = match value {
        "0" => "off",
        "1" => "on",
        "2" => "passive",
        _ => return Err(refuse!("accurate ECN is not modeled")),
    };
    environment.settings.write("ecn", policy)
}

// Linux: the switch is that of tcp_cwnd_application_limited as well.
fn restart_window(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let decay = "window_validation.cwnd_limited.app_limited_decay";
    if environment.settings.get(decay).is_some() {
        environment.settings.write(decay, if value == "0" { "false" } else { "true" })?;
    }
    environment.settings.write("restart_window", if value == "0" { "off" } else { "halving" })
}

fn window_scaling(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let settings = &mut environment.settings;
    if value == "0" && settings.get("receive_window_bytes").and_then(Value::as_u64) > Some(65535) {
        settings.write("receive_window_bytes", "65535")?;
    }
    flag(environment, "window_scaling", value)
}

/// Initial and largest of three buffers.
fn buffers(value: &str) -> Result<(u64, u64), Refusal> {
    match value.split_whitespace().map(bytes).collect::<Option<Vec<u64>>>().as_deref() {
        Some([_, initial, largest]) => Ok((*initial, *largest)),
        _ => Err(refuse!("three sizes in bytes are needed")),
    }
}

fn send_memory(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let (initial, largest) = buffers(value)?;
    let table = format!("{{ initial_bytes = {initial}, maximum_bytes = {} }}", largest.max(initial));
    environment.settings.write("send_buffer", &table)
}

fn receive_memory(environment: &mut Environment, value: &str) -> Result<(), Refusal> {
    let (initial, largest) = buffers(value)?;
    let settings = &mut environment.settings;
    // ip-sysctl, tcp_adv_win_scale = 1: half of a buffer is for payload, the rest for the kernel's overhead.
    settings.write("receive_window_bytes", &(largest / 2).to_string())?;
    settings.write("receive_window_growth", &format!("{{ initial_bytes = {} }}", initial / 2))
}

/// A size as a shell writes it: a number, or a product such as `$((15*1024*1024))`.
fn bytes(text: &str) -> Option<u64> {
    let product = text.strip_prefix("$((").and_then(|text| text.strip_suffix("))")).unwrap_or(text);
    product.split('*').try_fold(1u64, |bytes, factor| bytes.checked_mul(factor.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
