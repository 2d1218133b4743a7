//! A row for each packet at each link.

use firstflight_path::{LinkOutcome, Nanos};
use firstflight_records::Crossing;

use crate::connections::Connections;

/// Rows per allocation, so that none is moved later.
const PIECE: usize = 8192;

/// Rows kept between two takes.
const MOST: usize = 4 << 20;

/// The rows since the last take.
#[derive(Debug)]
pub(crate) struct Log {
    pieces: Vec<Vec<Crossing>>,
    pub(crate) connections: Connections,
    /// Rows that found no room.
    missed: u64,
}

impl Log {
    pub(crate) fn new() -> Log {
        let pieces = vec![Vec::with_capacity(PIECE)];
        Log { pieces, connections: Connections::default(), missed: 0 }
    }

    /// A packet crossed a link: `at` when it came there, `transmission` on its line; times of that link.
    pub(crate) fn add(
        &mut self,
        packet: &[u8],
        replicate: u32,
        link: u16,
        at: Nanos,
        transmission: (Nanos, Nanos),
        outcome: LinkOutcome,
    ) {
        let member = self.connections.of(packet);
        let row = Crossing {
            time_ns: at as i64,
            replicate,
            link,
            connection: member.connection,
            from_server: u8::from(member.from_server),
            bytes: packet.len() as u32,
            event: outcome.event(),
            start_ns: transmission.0 as i64,
            end_ns: transmission.1 as i64,
        };
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
            if self.pieces.len() * PIECE >= MOST {
                self.missed += 1;
                return;
            }
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push(row);
        }
    }

    /// The rows, in the order of time, and how many there was no room for.
    pub(crate) fn take(&mut self) -> (Vec<Crossing>, u64) {
        let rows = self.pieces.concat();
        self.pieces.truncate(1);
        self.pieces.iter_mut().for_each(Vec::clear);
        (rows, std::mem::take(&mut self.missed))
    }
}
