//! Feeds arbitrary text to the reader and runs what it accepts: whatever is written, nothing panics, and every problem
//! has a line and a sentence.
//!
//! `cargo fuzz run script` in `crates/script`; `tests/packet_scripts` is a corpus to start from.

#![no_main]

use firstflight_script::{Verdict, run_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let report = run_text(text, 1_000);
    if report.verdict != Verdict::Pass {
        assert!(report.line >= 1 && !report.reason.is_empty(), "{report:?}");
    }
});
