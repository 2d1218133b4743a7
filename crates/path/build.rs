//! Sets `has_select_unpredictable` for compilers that support it, from 1.88 on: older ones may turn a choice into a jump,
//! which costs time and changes no result.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(has_select_unpredictable)");
    let version = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC")).arg("--version").output();
    let minor = version.ok().and_then(|output| {
        // "rustc 1.88.0 (...)"
        let text = String::from_utf8(output.stdout).ok()?;
        text.split('.').nth(1)?.parse::<u32>().ok()
    });
    if minor.is_some_and(|minor| minor >= 88) {
        println!("cargo::rustc-cfg=has_select_unpredictable");
    }
}
