//! Snapshots of runs, kept in `snapshots`. Set `FIRSTFLIGHT_WRITE_SNAPSHOTS` to write them again.

use super::{Alone, MILLISECOND, Path, Round};
use crate::sender::congestion::{CongestionAlgorithm, Hystart};
use std::fmt::Write;
use std::path::PathBuf;

const TITLE: &str = "10 Mbit/s, 100 ms, segments of 1000 bytes: the path holds 125 segments, and the buffer as many.";

/// A table of the rounds: each of the first thirty, each tenth, and those in which something happened.
fn table(name: &str, rounds: &[Round]) -> String {
    let mut text = format!("{name}\n{TITLE}\n\n");
    writeln!(text, "round    time_s   cwnd ssthresh   rtt_ms  queue  pacing_mbps  event").unwrap();
    for round in rounds {
        if round.number > 30 && round.number % 10 != 0 && round.events.is_empty() {
            continue;
        }
        let ssthresh = round.ssthresh.map_or("-".into(), |bytes| (bytes / super::MSS).to_string());
        let line = format!(
            "{:>5} {:>9.3} {:>6} {:>8} {:>8.1} {:>6} {:>12}  {}",
            round.number,
            round.time as f64 / 1e9,
            round.window,
            ssthresh,
            round.rtt as f64 / MILLISECOND as f64,
            round.queue,
            round.pacing_rate.map_or("-".into(), |rate| format!("{:.2}", rate as f64 * 8e-6)),
            round.events.join(", "),
        );
        writeln!(text, "{}", line.trim_end()).unwrap();
    }
    text
}

fn check(file: &str, name: &str, run: &Alone) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/alone/snapshots").join(file);
    let found = table(name, &run.rounds);
    if std::env::var_os("FIRSTFLIGHT_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, found).unwrap();
    } else {
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == found, "{} differs; found:\n{found}", path.display());
    }
}

fn run(algorithm: CongestionAlgorithm) -> Alone {
    let mut run = Alone::new(algorithm, Path::USUAL);
    run.run_rounds(300);
    run
}

/// A spurious timeout with a full window in flight, undone a round trip later.
fn timeout_and_undo(run: &mut Alone) {
    let (window, ssthresh) = (run.controller.cwnd(), run.controller.ssthresh());
    run.controller.on_timeout(run.now, run.flight_bytes(), true);
    run.round.events.push("timeout");
    run.run_rounds(1);
    run.controller.on_undo(run.now, window, ssthresh);
    run.round.events.push("undo");
}

#[test]
fn reno() {
    check("reno.txt", "Reno, counted as in Linux", &run(CongestionAlgorithm::Reno));
}

#[test]
fn cubic() {
    check("cubic.txt", "CUBIC without HyStart", &run(CongestionAlgorithm::Cubic { hystart: Hystart::Off }));
}

#[test]
fn cubic_with_hystart() {
    let run = run(CongestionAlgorithm::Cubic { hystart: Hystart::Hystart });
    check("cubic_hystart.txt", "CUBIC with HyStart", &run);
}

#[test]
fn cubic_with_hystart_plus_plus() {
    let run = run(CongestionAlgorithm::Cubic { hystart: Hystart::HystartPlusPlus });
    check("cubic_hystart_plus_plus.txt", "CUBIC with HyStart++", &run);
}

#[test]
fn cubic_with_a_timeout_and_its_undo() {
    let mut run = Alone::new(CongestionAlgorithm::Cubic { hystart: Hystart::Hystart }, Path::USUAL);
    run.run_rounds(20);
    timeout_and_undo(&mut run);
    run.run_rounds(20);
    check("cubic_undo.txt", "CUBIC with HyStart; a needless timeout is taken back", &run);
}

#[test]
fn westwood() {
    check("westwood.txt", "Westwood+", &run(CongestionAlgorithm::Westwood));
}

#[test]
fn vegas() {
    check("vegas.txt", "Vegas", &run(CongestionAlgorithm::Vegas));
}

#[test]
fn bbr() {
    check("bbr.txt", "BBR, version 1", &run(CongestionAlgorithm::Bbr));
}
