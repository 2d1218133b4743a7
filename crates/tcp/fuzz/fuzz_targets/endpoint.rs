//! Feeds arbitrary segments, calls and times to an endpoint: whatever comes, it must not panic, must not lose its
//! bearings, and must not send more than it was given.
//!
//! `cargo fuzz run endpoint --sanitizer none` in `crates/tcp` (the crate forbids unsafe code, so an address sanitizer has
//! nothing to find).

#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use firstflight_tcp::{Endpoint, Flags, NEVER, Nanos, Profile, Segment};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    profile: bool,
    server: bool,
    initial_sequence: u32,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// A segment, its numbers relative to what the endpoint last sent, so that many hit the window.
    Segment { seq: i16, ack: i16, payload: u16, window: u16, mss: u16, scale: u8, flags: u8 },
    /// A segment of arbitrary numbers.
    Wild { seq: u32, ack: u32, payload: u32, flags: u8 },
    Write(u16),
    Read(u16),
    Close,
    Abort,
    Wait(u32),
    Timeout,
}

/// Takes all that the endpoint has to send; the numbers after the last segment, if there was one.
fn drain(endpoint: &mut Endpoint, now: Nanos) -> Option<(u32, u32)> {
    let mut last = None;
    for sent in 0.. {
        assert!(sent < 100_000, "an endpoint that never stops sending");
        let Some(segment) = endpoint.poll_transmit(now) else { break };
        last = Some((segment.seq.wrapping_add(segment.sequence_length()), segment.ack));
    }
    last
}

fuzz_target!(|input: Input| {
    let profile = Arc::new(if input.profile { Profile::rfc() } else { Profile::ns2_full_1998() });
    let mut endpoint = if input.server {
        Endpoint::server(profile, input.initial_sequence)
    } else {
        Endpoint::client(profile, input.initial_sequence)
    };
    let mut now: Nanos = 0;
    let mut written = 0u64;
    let mut last = (0u32, 0u32);
    if !input.server {
        endpoint.connect(now);
        last = drain(&mut endpoint, now).unwrap_or(last);
    }
    for step in input.steps {
        match step {
            Step::Segment { seq, ack, payload, window, mss, scale, flags } => {
                let segment = Segment {
                    seq: last.1.wrapping_add_signed(seq.into()),
                    ack: last.0.wrapping_add_signed(ack.into()),
                    payload_bytes: payload.into(),
                    window,
                    mss,
                    window_scale: scale,
                    flags: Flags::from_bits(flags),
                    retransmission: false,
                };
                endpoint.handle_segment(now, &segment);
            }
            Step::Wild { seq, ack, payload, flags } => {
                let segment = Segment {
                    seq,
                    ack,
                    // An IP packet holds no more.
                    payload_bytes: payload % 65_536,
                    window: 65_535,
                    mss: 1460,
                    window_scale: 3,
                    flags: Flags::from_bits(flags),
                    retransmission: false,
                };
                endpoint.handle_segment(now, &segment);
            }
            Step::Write(bytes) => {
                endpoint.write(now, bytes.into());
                written += u64::from(bytes);
            }
            Step::Read(bytes) => {
                let before = endpoint.readable_bytes();
                assert!(endpoint.read(now, bytes.into()) <= before);
            }
            Step::Close => endpoint.close(now),
            Step::Abort => endpoint.abort(now),
            Step::Wait(nanos) => now += Nanos::from(nanos),
            Step::Timeout => {
                let deadline = endpoint.poll_timeout();
                if deadline != NEVER {
                    now = now.max(deadline);
                    endpoint.handle_timeout(now);
                }
            }
        }
        last = drain(&mut endpoint, now).unwrap_or(last);
        endpoint.poll_events();
        assert!(endpoint.acknowledged_bytes() <= written);
        assert!(endpoint.readable_bytes() <= endpoint.received_bytes());
        assert!(endpoint.cwnd_bytes() >= endpoint.mss_bytes().min(1));
    }
});
