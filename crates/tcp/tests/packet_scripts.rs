//! The project's packet scripts (`tests/packet_scripts`) are this crate's tests, too: each passes.

#[path = "../../script/tests/own_scripts/checks.rs"]
mod checks;

use firstflight_script::run_text;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn each_packet_script_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/packet_scripts");
    let mut scripts = Vec::new();
    collect(&root, &mut scripts);
    assert!(scripts.len() >= 190, "{} scripts in {}", scripts.len(), root.display());
    let failed = scripts.iter().filter_map(|script| {
        let report = run_text(&fs::read_to_string(script).unwrap(), 1_000);
        let reason = format!("{}: {}\n{}", script.display(), report.reason, report.details.join("\n"));
        (!checks::passes(&report)).then_some(reason)
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

fn collect(directory: &Path, scripts: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, scripts);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            scripts.push(path);
        }
    }
}
