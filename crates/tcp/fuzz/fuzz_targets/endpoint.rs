//! Feeds arbitrary segments, calls and times to an endpoint: whatever comes, it must not panic, must not lose its
//! bearings, and must not send more than it was given.
//!
//! `cargo fuzz run endpoint --sanitizer none` in `crates/tcp` (the crate forbids unsafe code, so an address sanitizer has
//! nothing to find).

#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use firstflight_tcp::{Endpoint, Flags, NEVER, NO_WINDOW_SCALE, Nanos, Profile, Segment};
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
    Segment {
        seq: i16,
        ack: i16,
        payload: u16,
        window: u16,
        mss: u16,
        scale: u8,
        flags: u8,
    },
    /// What a peer would send next: SYN while there was none, then data and an ACK that may lag behind.
    Answer {
        data: Option<u16>,
        ack: Acknowledge,
    },
    /// The peer's FIN.
    Fin,
    /// A segment of arbitrary numbers.
    Wild {
        seq: u32,
        ack: u32,
        payload: u32,
        flags: u8,
    },
    Write(u16),
    Read(u16),
    Close,
    Abort,
    Wait(u32),
    Timeout,
}

/// What an ACK covers.
#[derive(Arbitrary, Debug)]
enum Acknowledge {
    Everything,
    OneMoreSegment,
    NothingNew,
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
                    ..Segment::EMPTY
                };
                endpoint.handle_segment(now, &segment);
            }
            Step::Fin => {
                let segment = Segment {
                    seq: last.1,
                    ack: last.0,
                    payload_bytes: 0,
                    window: 65_535,
                    mss: 0,
                    window_scale: NO_WINDOW_SCALE,
                    flags: Flags::FIN | Flags::ACK,
                    ..Segment::EMPTY
                };
                endpoint.handle_segment(now, &segment);
            }
            Step::Answer { data, ack } => {
                let greeting = endpoint.peer_initial_sequence().is_none();
                let acknowledged = endpoint.initial_sequence().wrapping_add(1 + endpoint.acknowledged_bytes() as u32);
                let mut flags = if greeting { Flags::SYN } else { Flags::NONE };
                if !(greeting && input.server) {
                    flags = flags | Flags::ACK;
                }
                let segment = Segment {
                    seq: last.1,
                    ack: match ack {
                        Acknowledge::NothingNew if !greeting => acknowledged,
                        Acknowledge::OneMoreSegment if !greeting => acknowledged.wrapping_add(1460),
                        _ => last.0,
                    },
                    payload_bytes: if greeting { 0 } else { data.unwrap_or(0).into() },
                    window: 65_535,
                    mss: if greeting { 1460 } else { 0 },
                    window_scale: if greeting { 3 } else { NO_WINDOW_SCALE },
                    flags,
                    ..Segment::EMPTY
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
                    ..Segment::EMPTY
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
