//! Counters of events.

use firstflight_path::LinkOutcome;
use serde::Serialize;

/// Packets and their bytes, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    pub packets: u64,
    pub bytes: u64,
}

impl Count {
    /// One packet more.
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Of a link's direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounts {
    /// Came to it.
    pub offered: Count,
    /// Refused by the queue.
    pub dropped: Count,
    /// Lost after their transmission.
    pub lost: Count,
    /// Let in with a mark.
    pub marked: Count,
    /// Came twice.
    pub duplicated: Count,
    /// Accepted for transmission, those included that are lost after it.
    pub sent: Count,
}

impl LinkCounts {
    /// One packet more.
    pub(crate) fn record(&mut self, bytes: u32, outcome: LinkOutcome) {
        self.offered.add(bytes);
        match outcome {
            LinkOutcome::Dropped => self.dropped.add(bytes),
            LinkOutcome::Lost => self.lost.add(bytes),
            LinkOutcome::Marked(_) => self.marked.add(bytes),
            LinkOutcome::Arrives(_) => {}
        }
        if outcome != LinkOutcome::Dropped {
            self.sent.add(bytes);
        }
    }
}

/// Of a port. A run with any of `foreign` to `socket_drops` above 0 is void.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortCounts {
    /// Packets that the host sent and that have a route.
    #[serde(rename = "in")]
    pub incoming: Count,
    /// Packets that were handed over to the host.
    pub out: Count,
    /// Not IPv4, or no whole packet: not forwarded.
    pub foreign: u64,
    /// To an address without a route from here: not forwarded.
    pub unroutable: u64,
    /// Longer than the MTU: an offload is on. Not forwarded.
    pub oversized: u64,
    /// Without a checksum: an offload is on. Not forwarded.
    pub unchecksummed: u64,
    /// Packets that the device did not accept.
    pub write_errors: u64,
    /// Times that reading failed, as with an interface that is down.
    pub read_errors: u64,
    /// Packets lost before the box could read them, as far as the device reports it (packet sockets do, TUN does not).
    pub socket_drops: u64,
    /// Packets stamped before events that the network had already processed: they count as arrived after those.
    pub belated: u64,
    pub last_error: Option<String>,
}
