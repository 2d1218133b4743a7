//! A congestion controller of one's own: AIMD with a decrease of an eighth, registered with one line in the profile, and a
//! transfer over a path of 100 ms that loses its 40th data segment. Prints cwnd after each round trip.

use firstflight_tcp::{
    Acknowledged, Bytes, CongestionAlgorithm, CongestionControl, CustomController, Endpoint, Nanos, Profile, Segment,
    Segments, Start, Window,
};
use std::sync::Arc;

const MILLISECOND: Nanos = 1_000_000;

/// Slow start, then one segment per round trip; a loss takes an eighth.
#[derive(Clone, Debug)]
struct Gentle {
    loss_window: Bytes,
    counted: Bytes,
}

impl Gentle {
    fn new(start: &Start) -> Self {
        Self { loss_window: Bytes(start.loss_window_bytes), counted: Bytes::ZERO }
    }
}

impl CongestionControl for Gentle {
    fn on_ack(&mut self, window: &mut Window, _now: Nanos, acknowledged: Acknowledged) {
        if window.cwnd() < window.ssthresh {
            return window.grow(acknowledged.bytes);
        }
        self.counted += acknowledged.bytes;
        if self.counted >= window.cwnd() {
            self.counted -= window.cwnd();
            window.grow_segments(Segments(1));
        }
    }

    fn on_congestion(&mut self, window: &mut Window, _now: Nanos, flight: Bytes) {
        window.ssthresh = (flight - flight / 8).max(Segments(2) * window.mss);
        window.set_cwnd(window.ssthresh);
    }

    fn on_timeout(&mut self, window: &mut Window, now: Nanos, flight: Bytes, first: bool) {
        if first {
            self.on_congestion(window, now, flight);
        }
        window.set_cwnd(self.loss_window);
    }
}

/// cwnd in segments after each round trip of a transfer with this profile.
pub fn transfer(profile: Profile) -> Vec<u32> {
    let profile = Arc::new(profile);
    let mut ends = [Endpoint::client(Arc::clone(&profile), 1), Endpoint::server(profile, 2)];
    let mut in_flight: Vec<(Nanos, usize, Segment)> = Vec::new();
    let (mut data_segments, mut windows) = (0, Vec::new());
    ends[0].connect(0);
    ends[0].write(0, 1_000_000);
    for now in (0..1000).map(|tick| tick * MILLISECOND) {
        for (side, end) in ends.iter_mut().enumerate() {
            end.handle_timeout(now);
            in_flight.retain(|&(at, to, ref segment)| {
                let arrives = at == now && to == side;
                if arrives {
                    end.handle_segment(now, segment);
                }
                !arrives
            });
            end.read(u64::MAX);
            while let Some(segment) = end.poll_transmit(now) {
                data_segments += u32::from(segment.payload_bytes > 0);
                if segment.payload_bytes == 0 || data_segments != 40 {
                    in_flight.push((now + 50 * MILLISECOND, 1 - side, segment));
                }
            }
        }
        if now % (100 * MILLISECOND) == 0 {
            windows.push(ends[0].cwnd_bytes() / ends[0].mss_bytes());
        }
    }
    windows
}

/// The line that registers it.
pub fn gentle() -> Profile {
    let algorithm = CustomController { name: "gentle", build: |start| Box::new(Gentle::new(start)) };
    Profile { congestion_control: CongestionAlgorithm::Custom(algorithm), ..Profile::linux() }
}

#[allow(dead_code)]
fn main() {
    println!("gentle: {:?}", transfer(gentle()));
    println!("linux: {:?}", transfer(Profile::linux()));
}
