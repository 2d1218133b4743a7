//! The excess of cwnd over a rule, over a link with a queue and losses.

use crate::wire::*;
use firstflight_tcp::{Nanos, Profile};

/// Sends this number of bytes over a link that serves one in this time, drops arrivals that would wait behind `queue`
/// others, and loses each n-th. Returns the largest cwnd above the limit of `bound` for the largest flight before, and
/// that flight, in bytes.
pub fn excess(
    profile: &Profile,
    link: (Nanos, u64, u64),
    bytes: u64,
    bound: impl Fn(u32) -> u32,
) -> Option<(u32, u32)> {
    let (service, queue, every) = link;
    let mut wire = Wire::connected(profile, 50 * MS);
    let (mut free_at, mut count) = (0, 0);
    wire.set_fate(Box::new(move |sent| {
        let waiting: Nanos = free_at.max(sent.at) - sent.at;
        if sent.from == Client || sent.segment.payload_bytes == 0 {
            return vec![50 * MS];
        }
        count += 1;
        if waiting / service >= queue || count % every == 0 {
            return vec![];
        }
        free_at = free_at.max(sent.at) + service;
        vec![waiting + service + 50 * MS]
    }));
    wire.server.write(wire.now, bytes);
    wire.pump();
    let (mut flight, mut excess) = (wire.server.cwnd_bytes(), None);
    while wire.next().is_set() {
        wire.step();
        let cwnd = wire.server.cwnd_bytes();
        if cwnd > bound(flight) {
            excess = excess.max(Some((cwnd, flight)));
        }
        flight = flight.max(wire.server.flight_bytes());
    }
    assert_eq!(wire.client.received_bytes(), bytes);
    excess
}
