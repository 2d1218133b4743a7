//! The packets that wait for a link, known by the time at which each one's service starts.

use crate::{Nanos, Ring};

/// Packets accepted by a link whose service has not started.
///
/// Start times are fixed when a packet is accepted, so the backlog at any later moment follows from comparing them
/// with the clock: no event is needed when a packet moves from the queue into service.
#[derive(Clone, Debug)]
pub struct Backlog {
    waiting: Ring<(Nanos, u32)>,
    waiting_bytes: u64,
    in_service_bytes: u32,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog { waiting: Ring::new((0, 0)), waiting_bytes: 0, in_service_bytes: 0 }
    }
}

impl Backlog {
    /// Forgets the packets whose service has started by `now`.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        while let Some(&(start, bytes)) = self.waiting.front() {
            if start > now {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(bytes);
            self.in_service_bytes = bytes;
        }
    }

    /// Forgets all packets: the link has become idle.
    #[inline]
    pub fn clear(&mut self) {
        if !self.waiting.is_empty() {
            self.waiting.clear();
            self.waiting_bytes = 0;
        }
    }

    /// Forgets everything.
    pub fn restart(&mut self) {
        self.clear();
        self.in_service_bytes = 0;
    }

    /// A packet goes straight into service.
    pub fn serve(&mut self, bytes: u32) {
        self.in_service_bytes = bytes;
    }

    /// A packet waits until `start`.
    #[inline]
    pub fn push(&mut self, start: Nanos, bytes: u32) {
        self.waiting.push_back((start, bytes));
        self.waiting_bytes += u64::from(bytes);
    }

    /// Another segment of the packet that was accepted last.
    pub fn join(&mut self, bytes: u32) {
        match self.waiting.back_mut() {
            Some((_, all)) => {
                *all += bytes;
                self.waiting_bytes += u64::from(bytes);
            }
            None => self.in_service_bytes += bytes,
        }
    }

    /// Packets that wait, without the one in service.
    pub fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// Bytes that wait, without the packet in service.
    pub fn bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Bytes of the packet that was last put into service.
    pub fn in_service_bytes(&self) -> u32 {
        self.in_service_bytes
    }
}
