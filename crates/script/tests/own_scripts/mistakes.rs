//! Deliberate mistakes in the TCP: each is caught by at least one of the project's own scripts.
//!
//! A mistake is a field of the profile with a wrong value, so that adding one is one line. It is set on top of the profile
//! of every script that does not set this field itself, because such a script is about something else.

use crate::MICROSECOND_NS;
use crate::checks::passes;
use crate::corpus::own_scripts;
use firstflight_script::{Verdict, run_text};
use std::thread::{self, ScopedJoinHandle};

/// A mistake, and how a profile makes it.
const MISTAKES: &[(&str, &[(&str, &str)])] = &[
    ("the initial window is one segment too large", &[("initial_window", "11")]),
    ("the initial window is one segment too small", &[("initial_window", "9")]),
    ("a lost SYN does nothing to the initial window", &[("syn_loss_response", "keep")]),
    ("a needless repetition of the SYN-ACK costs the initial window", &[("undo_spurious_syn", "false")]),
    ("one lost SYN resets the initial window", &[("syn_loss_response", "rfc3390")]),
    ("the window survives idleness", &[("restart_window", "off")]),
    (
        "the window grows by one segment an acknowledgement, whatever it acknowledges",
        &[("slow_start_growth", "per_ack")],
    ),
    ("a timeout leaves two segments", &[("loss_window_segments", "2")]),
    ("the retransmission timeout has no floor of one second", &[("rto.minimum", "200ms")]),
    ("the retransmission timeout triples", &[("rto.backoff", "3")]),
    ("the retransmission timeout has no cap at 60 s", &[("rto.maximum", "120s")]),
    ("the first retransmission timeout is three seconds", &[("rto.initial", "3s")]),
    ("every segment is acknowledged", &[("ack", "every_segment")]),
    ("every third segment is acknowledged", &[("ack", "{ segments = 3 }")]),
    ("an acknowledgement waits for 500 ms", &[("ack", "{ timer = 500ms }")]),
    ("two duplicates trigger fast retransmit", &[("duplicate_ack_threshold", "2")]),
    ("four duplicates trigger fast retransmit", &[("duplicate_ack_threshold", "4")]),
    ("recovery ends with the first partial acknowledgement", &[("recovery", "reno")]),
    ("fast retransmit has no fast recovery", &[("recovery", "tahoe")]),
    ("Linux begins with eleven segments", &[("initial_window", "{ policy = fixed, segments = 11 }")]),
    ("a loss halves the window at once", &[("recovery.scoreboard.prr", "false")]),
    ("a silent tail is not probed", &[("recovery.scoreboard.tail_loss_probe", "none")]),
    ("losses are counted rather than timed", &[("recovery.scoreboard.rack", "false")]),
    ("what is overtaken is lost at once", &[("duplicate_ack_threshold", "1")]),
    ("every acknowledgement lets the window grow, used or not", &[("window_validation", "off")]),
    ("the floor of the timeout is one second", &[("rto.minimum", "1s")]),
    ("the floor bounds the timeout rather than the variation", &[("rto.estimator", "rfc6298")]),
    ("F-RTO does not notice a needless timeout", &[("recovery.scoreboard.f_rto", "false")]),
    ("DSACKs undo nothing", &[("recovery.scoreboard.undo_by_dsack", "false")]),
    ("timestamps undo nothing", &[("recovery.scoreboard.undo_by_timestamps", "false")]),
    ("congestion marks are refused", &[("ecn", "off")]),
    ("congestion marks are asked for", &[("ecn", "on")]),
    (
        "SACK is not offered",
        &[
            ("sack", "false"),
            ("dsack", "false"),
            ("recovery.scoreboard.rack", "false"),
            ("recovery.scoreboard.tail_loss_probe", "none"),
            ("recovery.scoreboard.undo_by_dsack", "false"),
        ],
    ),
    ("duplicates are not reported", &[("dsack", "false")]),
    ("timestamps are not offered", &[("timestamps", "false"), ("undo_spurious_syn", "false")]),
    ("acknowledgments are never quick", &[("ack.max_quickacks", "0")]),
    ("an acknowledgement waits for 200 ms from the start", &[("ack.delay_min", "200ms")]),
    ("small segments never wait", &[("nagle", "off")]),
    ("a small segment waits while anything is outstanding", &[("nagle", "classic")]),
    ("no new data leaves on the first two duplicates", &[("limited_transmit", "false")]),
    ("every timeout of a SYN lengthens the next", &[("linear_syn_timeouts", "0")]),
    ("a loss keeps half of the window rather than 0.7", &[("congestion_control", "reno")]),
    ("idleness costs the whole window", &[("restart_window", "rfc5681")]),
];

#[test]
fn each_mistake_is_caught_by_a_script() {
    let scripts = own_scripts();
    let scripts: Vec<_> = scripts.iter().filter(|script| passes(&run_text(&script.text, MICROSECOND_NS))).collect();
    let is_caught = &|fields: &[(&str, &str)]| {
        let sets_it = |text: &str| fields.iter().any(|(field, _)| text.contains(&format!("--set={field}")));
        scripts.iter().filter(|script| !sets_it(&script.text)).any(|script| {
            let report = run_text(&with(&script.text, fields), MICROSECOND_NS);
            matches!(report.verdict, Verdict::Pass | Verdict::Differs) && !passes(&report)
        })
    };
    let uncaught: Vec<_> = thread::scope(|scope| {
        let parts = MISTAKES.chunks(MISTAKES.len().div_ceil(2)).map(|part| {
            scope.spawn(move || {
                part.iter().filter(|(_, fields)| !is_caught(fields)).map(|(mistake, _)| *mistake).collect()
            })
        });
        let parts: Vec<ScopedJoinHandle<Vec<&str>>> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(uncaught.is_empty(), "no script catches: {}", uncaught.join("; "));
}

#[test]
fn each_mistake_is_one_that_a_profile_can_make() {
    for (mistake, fields) in MISTAKES {
        let run = |profile: &str| {
            let script = format!("--profile={profile}\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
            run_text(&with(&script, fields), MICROSECOND_NS)
        };
        let reports = ["rfc", "linux"].map(run);
        let possible = reports.iter().any(|report| report.verdict == Verdict::Pass);
        assert!(possible, "{mistake}: {} {}", reports[0].reason, reports[1].reason);
    }
}

/// The script with these fields set after its own options.
fn with(text: &str, fields: &[(&str, &str)]) -> String {
    let sets: String = fields.iter().map(|(field, value)| format!("--set={field}={value}\n")).collect();
    let is_option = |line: &&str| line.starts_with("//") || line.starts_with("--") || line.trim().is_empty();
    let options: usize = text.split_inclusive('\n').take_while(is_option).map(str::len).sum();
    format!("{}{sets}{}", &text[..options], &text[options..])
}
