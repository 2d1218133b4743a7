//! The settings of one shell command.

use super::Environment;
use super::shell::Command;
use super::sysctl;
use crate::problem::{Refusal, refuse};

/// Applies the command's settings.
pub(super) fn apply(environment: &mut Environment, command: &Command) -> Result<(), Refusal> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let name = words[0].rsplit('/').next().unwrap_or(words[0]);
    let arguments = &words[1..];
    match name {
        "defaults.sh" => DEFAULTS.iter().try_for_each(|(name, value)| sysctl::apply(environment, name, value)),
        "set_sysctls.py" => assignments(environment, arguments),
        "sysctl" => {
            let given: Vec<&str> = arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
            assignments(environment, &given)
        }
        "echo" => match &command.output {
            Some(file) => sysctl::apply(environment, file, &arguments.join(" ")),
            None => Ok(()),
        },
        "ip" => ip(environment, arguments),
        "tc" => queue(environment, arguments),
        // Offloads merge segments into larger packets; here every segment is a separate packet.
        "ethtool" => Ok(()),
        _ if name.starts_with("sysctl_restore_") => Ok(()),
        "true" | "modprobe" | "nstat" => Ok(()),
        _ => Err(refuse!("the command \"{}\" is not understood", words.join(" "))),
    }
}

fn assignments(environment: &mut Environment, words: &[&str]) -> Result<(), Refusal> {
    words.iter().try_for_each(|word| {
        let (name, value) = word.split_once('=').ok_or_else(|| refuse!("\"{word}\" sets nothing: a = is missing"))?;
        sysctl::apply(environment, name.trim(), value.trim())
    })
}

fn ip(environment: &mut Environment, words: &[&str]) -> Result<(), Refusal> {
    match words {
        ["tcp_metrics", ..] => Ok(()),
        ["route", "add" | "replace" | "change", attributes @ ..] => route(environment, attributes),
        _ => Err(refuse!("the command \"ip {}\" is not understood", words.join(" "))),
    }
}

fn route(environment: &mut Environment, words: &[&str]) -> Result<(), Refusal> {
    let mut words = words.iter().copied().filter(|word| *word != "lock");
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| refuse!("the route attribute {word} has no value"));
        match word {
            "default" | "onlink" => {}
            "dev" | "via" | "src" | "proto" | "scope" | "table" | "metric" => drop(value()?),
            "initcwnd" => environment.settings.write("initial_window", value()?)?,
            "ssthresh" => environment.settings.write("initial_ssthresh_segments", value()?)?,
            "advmss" => environment.settings.write("mss_bytes", value()?)?,
            "mtu" => {
                let text = value()?;
                let mtu: u32 = text.parse().map_err(|_| refuse!("the MTU {text} is not a number"))?;
                environment.settings.write("mss_bytes", &mtu.saturating_sub(IPV4_AND_TCP_HEADER_BYTES).to_string())?;
            }
            "rto_min" => sysctl::rto_min(environment, value()?)?,
            "congctl" => sysctl::apply(environment, "net.ipv4.tcp_congestion_control", value()?)?,
            address if address.starts_with(|c: char| c.is_ascii_digit()) => {}
            _ => return Err(refuse!("the route attribute {word} has no counterpart here")),
        }
    }
    Ok(())
}

/// Bytes of an IPv4 header and a TCP header without options.
pub(crate) const IPV4_AND_TCP_HEADER_BYTES: u32 = 40;

fn queue(environment: &mut Environment, words: &[&str]) -> Result<(), Refusal> {
    let not_understood = || refuse!("the command \"tc {}\" is not understood", words.join(" "));
    let ["qdisc", action, rest @ ..] = words else { return Err(not_understood()) };
    if *action == "del" || *action == "delete" {
        environment.interface_is_full = false;
        return environment.set_pacing(false);
    }
    if !matches!(*action, "add" | "replace" | "change") {
        return Err(not_understood());
    }
    let Some(root) = rest.iter().position(|word| *word == "root") else { return Err(not_understood()) };
    match &rest[root + 1..] {
        ["pfifo", "limit", "0"] => environment.interface_is_full = true,
        // A queue that the script's few packets cannot fill.
        ["pfifo" | "pfifo_fast" | "noqueue" | "fq", ..] => environment.interface_is_full = false,
        _ => return Err(not_understood()),
    }
    environment.set_pacing(rest[root + 1] == "fq")
}

/// The TCP settings of the public scripts' `defaults.sh`: names and values, in the form of `sysctl`.
const DEFAULTS: [(&str, &str); 16] = [
    ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.tcp_synack_retries", "5"),
    ("net.ipv4.tcp_frto", "2"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_dsack", "1"),
    ("net.ipv4.tcp_reordering", "3"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_early_retrans", "4"),
    ("net.ipv4.tcp_recovery", "1"),
    ("net.ipv4.tcp_tso_win_divisor", "3"),
    ("net.ipv4.tcp_ecn", "0"),
    ("net.ipv4.tcp_pacing_ss_ratio", "200"),
    ("net.ipv4.tcp_pacing_ca_ratio", "120"),
];
