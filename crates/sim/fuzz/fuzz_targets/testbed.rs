//! Feeds arbitrary text to the readers of the emulator's plans, the link box's and the host's with its commands: nothing
//! panics, and a plan is refused with a sentence. Accepted plans need devices, so they are not run.
//!
//! `cargo fuzz run testbed` in `crates/sim`.

#![no_main]

use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let refusals = [
        firstflight_linkbox::Plan::from_json(text).err().map(|error| error.to_string()),
        firstflight_wire::Plan::from_json(text).err().map(|error| error.to_string()),
        firstflight_wire::Command::from_json(text, Ipv4Addr::LOCALHOST.into(), 1500)
            .err()
            .map(|error| error.to_string()),
    ];
    assert!(refusals.iter().flatten().all(|sentence| !sentence.is_empty()));
});
