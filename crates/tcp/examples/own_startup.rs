//! A start-up scheme of one's own: the initial window spread over half of the RTT, registered with one line in the profile.
//! Prints when the segments of the first flight leave.

use firstflight_tcp::{
    CustomStartup, Endpoint, FirstSend, InitialWindow, Nanos, PacedFlight, Profile, Rate, Segment, Startup,
    StartupScheme, Window,
};
use std::sync::Arc;

const MILLISECOND: Nanos = 1_000_000;
const RTT: Nanos = 100 * MILLISECOND;

/// Paces the initial window over a share of the RTT.
#[derive(Clone, Debug)]
struct Hasty {
    rtt_percent: u64,
}

impl StartupScheme for Hasty {
    fn begin(&mut self, first: &FirstSend, window: &mut Window) -> Option<PacedFlight> {
        let time = first.rtt? * self.rtt_percent / 100;
        let bytes = u64::from(window.cwnd());
        Some(PacedFlight { bytes, rate: Rate::new(bytes, time), time, until_ack: false })
    }

    // Slow start follows, and the controller needs no help with losses.
    fn is_over(&self) -> bool {
        true
    }
}

/// Times after the first at which the segments of the first flight leave, in milliseconds.
pub fn first_flight(profile: Profile) -> Vec<Nanos> {
    let profile = Arc::new(profile);
    let mut ends = [Endpoint::client(Arc::clone(&profile), 1), Endpoint::server(profile, 2)];
    let mut in_flight: Vec<(Nanos, usize, Segment)> = Vec::new();
    let mut departures: Vec<Nanos> = Vec::new();
    ends[0].connect(0);
    ends[0].write(0, 1_000_000);
    for now in (0..2 * RTT).step_by(MILLISECOND as usize) {
        for (side, end) in ends.iter_mut().enumerate() {
            end.handle_timeout(now);
            in_flight.retain(|&(at, to, ref segment)| {
                let arrives = at == now && to == side;
                if arrives {
                    end.handle_segment(now, segment);
                }
                !arrives
            });
            while let Some(segment) = end.poll_transmit(now) {
                if segment.payload_bytes > 0 {
                    departures.push(now / MILLISECOND);
                }
                in_flight.push((now + RTT / 2, 1 - side, segment));
            }
        }
    }
    departures.iter().map(|at| at - departures[0]).collect()
}

/// The line that registers it.
pub fn hasty() -> Profile {
    let scheme = CustomStartup { name: "hasty", build: || Box::new(Hasty { rtt_percent: 50 }) };
    Profile { startup: Startup::Custom(scheme), initial_window: InitialWindow::Fixed { segments: 5 }, ..Profile::rfc() }
}

#[allow(dead_code)]
fn main() {
    println!("hasty: {:?}", first_flight(hasty()));
    println!("window: {:?}", first_flight(Profile { startup: Startup::Window, ..hasty() }));
}
