//! Feeds arbitrary segments, calls and times to an endpoint of any profile: whatever comes, it must not panic, must not
//! lose its bearings, and must not send more than it was given.
//!
//! `cargo fuzz run endpoint` in `crates/tcp`.

#![no_main]

mod switches;

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arbitrary::Arbitrary;
use firstflight_tcp::{
    Ecn, Endpoint, Flags, Nagle, Nanos, PathOption, QuickStart, SackBlocks, Segment, State, Timestamps,
};
use libfuzzer_sys::fuzz_target;
use switches::Switches;

/// Segments handled so far, reported now and then.
static HANDLED: AtomicU64 = AtomicU64::new(0);
const REPORT_EVERY: u64 = 10_000_000;

#[derive(Arbitrary, Debug)]
struct Input {
    switches: Switches,
    server: bool,
    initial_sequence: u32,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// A segment, its numbers relative to the endpoint's last segment, so that many hit the window.
    Segment {
        seq: i16,
        ack: i16,
        payload: u16,
        window: u16,
        mss: u16,
        scale: u8,
        flags: u16,
        options: Options,
    },
    /// The next segment of a peer: SYN while there was none, then data and an ACK that may lag behind.
    Answer {
        data: Option<u16>,
        ack: Acknowledge,
        options: Options,
    },
    /// A peer that misses the first outstanding segment and has these segments after it: first and number.
    Missing {
        blocks: [Option<(u8, u8)>; 3],
        options: Options,
    },
    /// The peer's FIN.
    Fin,
    /// A segment of arbitrary numbers.
    Wild {
        seq: u32,
        ack: u32,
        payload: u32,
        flags: u16,
        options: Options,
    },
    Write(u16),
    Read(u16),
    EndRecord,
    Nagle(bool),
    Cork(bool),
    QuickAck(bool),
    Close,
    Abort,
    Wait(u32),
    Timeout,
}

/// The range that an ACK covers.
#[derive(Arbitrary, Debug)]
enum Acknowledge {
    Everything,
    OneMoreSegment,
    NothingNew,
}

/// Options and IP bits of a segment.
#[derive(Arbitrary, Debug)]
struct Options {
    sack_permitted: bool,
    /// Blocks relative to the acknowledged data.
    blocks: [Option<(i16, u16)>; 2],
    /// Milliseconds by which value and echo differ from the time.
    timestamps: Option<(i16, i16)>,
    ecn: u8,
    quick_start: Option<(bool, u8, bool)>,
    quick_start_response: Option<u8>,
}

impl Options {
    fn put_on(&self, segment: &mut Segment, endpoint: &Endpoint, now: Nanos) {
        segment.sack_permitted = self.sack_permitted;
        for (left, length) in self.blocks.iter().flatten() {
            let left = acknowledged(endpoint).wrapping_add_signed((*left).into());
            segment.sack.push(left, left.wrapping_add((*length).into()));
        }
        let clock = (now / 1_000_000) as u32;
        segment.timestamps = self.timestamps.map(|(value, echo)| Timestamps {
            value: clock.wrapping_add_signed(value.into()),
            echo: endpoint.initial_sequence().wrapping_add(clock).wrapping_add_signed(echo.into()),
        });
        segment.ecn = [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::Congestion][usize::from(self.ecn) % 4];
        let quick_start = match self.quick_start {
            None => QuickStart::None,
            Some((true, rate, approved)) => QuickStart::Request { rate: rate % 16, approved },
            Some((false, rate, _)) => QuickStart::Report { rate: rate % 16 },
        };
        segment.path_option = PathOption::new(quick_start, self.quick_start_response.map(|rate| rate % 16));
    }
}

/// Next sequence number that the peer expects of the endpoint.
fn acknowledged(endpoint: &Endpoint) -> u32 {
    endpoint.initial_sequence().wrapping_add(1 + endpoint.acknowledged_bytes() as u32)
}

fn handle(endpoint: &mut Endpoint, now: Nanos, segment: &Segment) {
    endpoint.handle_segment(now, segment);
    let handled = HANDLED.fetch_add(1, Ordering::Relaxed) + 1;
    if handled % REPORT_EVERY == 0 {
        eprintln!("{handled} segments handled");
    }
}

/// Takes all that the endpoint has to send; the numbers after the last segment, if there was one.
fn drain(endpoint: &mut Endpoint, now: Nanos) -> Option<(u32, u32)> {
    let mut last = None;
    for sent in 0.. {
        assert!(sent < 100_000, "an endpoint that never stops sending");
        let Some(segment) = endpoint.poll_transmit(now) else { break };
        assert!(segment.payload_bytes <= endpoint.mss_bytes());
        last = Some((segment.seq.wrapping_add(segment.sequence_length()), segment.ack));
    }
    last
}

fuzz_target!(|input: Input| {
    let profile = Arc::new(input.switches.0);
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
        let received = endpoint.received_bytes();
        match step {
            Step::Segment { seq, ack, payload, window, mss, scale, flags, options } => {
                let mut segment = Segment {
                    seq: last.1.wrapping_add_signed(seq.into()),
                    ack: last.0.wrapping_add_signed(ack.into()),
                    payload_bytes: payload.into(),
                    window,
                    mss: NonZeroU16::new(mss),
                    window_scale: Some(scale),
                    flags: Flags::from_bits_truncate(flags),
                    ..Segment::EMPTY
                };
                options.put_on(&mut segment, &endpoint, now);
                handle(&mut endpoint, now, &segment);
            }
            Step::Fin => {
                let segment = Segment {
                    seq: last.1,
                    ack: last.0,
                    window: 65_535,
                    flags: Flags::FIN | Flags::ACK,
                    ..Segment::EMPTY
                };
                handle(&mut endpoint, now, &segment);
            }
            Step::Answer { data, ack, options } => {
                let greeting = endpoint.peer_initial_sequence().is_none();
                let acknowledged = acknowledged(&endpoint);
                let mut flags = if greeting { Flags::SYN } else { Flags::NONE };
                if !(greeting && input.server) {
                    flags |= Flags::ACK;
                }
                let mut segment = Segment {
                    seq: last.1,
                    ack: match ack {
                        Acknowledge::NothingNew if !greeting => acknowledged,
                        Acknowledge::OneMoreSegment if !greeting => acknowledged.wrapping_add(endpoint.mss_bytes()),
                        _ => last.0,
                    },
                    payload_bytes: if greeting { 0 } else { data.unwrap_or(0).into() },
                    window: 65_535,
                    mss: NonZeroU16::new(1460).filter(|_| greeting),
                    window_scale: greeting.then_some(3),
                    flags,
                    ..Segment::EMPTY
                };
                options.put_on(&mut segment, &endpoint, now);
                handle(&mut endpoint, now, &segment);
            }
            Step::Missing { blocks, options } => {
                let (ack, mss) = (acknowledged(&endpoint), endpoint.mss_bytes());
                let mut segment = Segment { seq: last.1, ack, window: 65_535, flags: Flags::ACK, ..Segment::EMPTY };
                options.put_on(&mut segment, &endpoint, now);
                segment.sack = SackBlocks::NONE;
                for (first, count) in blocks.iter().flatten() {
                    let left = ack.wrapping_add((1 + u32::from(*first)) * mss);
                    segment.sack.push(left, left.wrapping_add((1 + u32::from(*count)) * mss));
                }
                handle(&mut endpoint, now, &segment);
            }
            Step::Wild { seq, ack, payload, flags, options } => {
                let mut segment = Segment {
                    seq,
                    ack,
                    // An IP packet holds no more.
                    payload_bytes: payload % 65_536,
                    window: 65_535,
                    mss: NonZeroU16::new(1460),
                    window_scale: Some(3),
                    flags: Flags::from_bits_truncate(flags),
                    ..Segment::EMPTY
                };
                options.put_on(&mut segment, &endpoint, now);
                handle(&mut endpoint, now, &segment);
            }
            Step::Write(bytes) => {
                // Not more than 100 segments, so that tiny ones do not take all the time.
                let bytes = u64::from(bytes) % (100 * u64::from(endpoint.mss_bytes()));
                endpoint.write(now, bytes);
                written += bytes;
            }
            Step::Read(bytes) => {
                let before = endpoint.readable_bytes();
                assert!(endpoint.read(bytes.into()) <= before);
            }
            Step::EndRecord => endpoint.end_record(),
            Step::Nagle(on) => endpoint.set_nagle(if on { Nagle::Minshall } else { Nagle::Off }),
            Step::Cork(on) => endpoint.set_cork(on),
            Step::QuickAck(quick) => endpoint.set_quick_ack(quick),
            Step::Close => endpoint.close(now),
            Step::Abort => endpoint.abort(now),
            Step::Wait(nanos) => now += Nanos::from(nanos),
            Step::Timeout => {
                if let Some(time) = endpoint.poll_timeout().time() {
                    now = now.max(time);
                    endpoint.handle_timeout(now);
                }
            }
        }
        last = drain(&mut endpoint, now).unwrap_or(last);
        endpoint.poll_events();
        check(&mut endpoint, now, written, received);
    }
});

/// Invariants that hold at any time.
fn check(endpoint: &mut Endpoint, now: Nanos, written: u64, received: u64) {
    assert!(endpoint.acknowledged_bytes() <= written);
    assert!(endpoint.readable_bytes() <= endpoint.received_bytes());
    assert!(endpoint.received_bytes() >= received, "what was received in order stays received");
    assert!(endpoint.cwnd_bytes() >= endpoint.mss_bytes());
    assert!(u64::from(endpoint.flight_bytes()) <= written + 1);
    let info = endpoint.info();
    assert!(info.sacked + info.lost <= info.unacked, "{info:?}");
    assert!(info.retransmitted <= info.unacked, "{info:?}");
    assert!(info.rto_ns > 0);
    // A timer that is due does its work, and does not stay due.
    for expiry in 0.. {
        assert!(expiry < 1000, "a timer that is always due");
        if !endpoint.poll_timeout().is_due(now) {
            break;
        }
        endpoint.handle_timeout(now);
        drain(endpoint, now);
    }
    // Nobody waits for ever: outstanding data has a timer.
    if endpoint.state() >= State::Established && endpoint.flight_bytes() > 0 && !endpoint.is_finished() {
        assert!(endpoint.poll_timeout().is_set());
    }
}
