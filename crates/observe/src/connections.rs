//! All connections that are in progress: found by their ends, and let go when they are over or have been silent for long,
//! so that memory does not grow with the length of a capture.

use std::collections::HashMap;

use firstflight_segment::Flags;

use crate::{
    connection::{Connection, Stage},
    packet::{End, Seen},
    problems::{Problems, Trouble},
    rows::Batch,
};

const SECOND: i64 = 1_000_000_000;
/// How long a connection may be silent, by its stage: a later packet begins another connection. After the end,
/// stragglers come; the ends of one that is over are known for as long as TIME-WAIT lasts on Linux.
const PATIENCE: [i64; 4] = [60 * SECOND, 300 * SECOND, 2 * SECOND, 60 * SECOND];
/// More concurrent ones are not kept: of those that are over, else of all, the one that was silent for the longest goes.
const MOST: usize = 1 << 18;
/// A packet so much earlier than another before it shows that the clock was set back, whichever interface it came from.
const SET_BACK: i64 = SECOND;
const NONE: u32 = u32::MAX;

/// The lower end first.
type Ends = (End, End);

#[derive(Debug)]
struct Slot {
    ends: Ends,
    /// None of one that is over.
    connection: Option<Box<Connection>>,
    last: i64,
    stage: Stage,
    before: u32,
    after: u32,
}

/// Connections of one stage, the one that was silent for the longest first.
#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Hashed with a key that differs from process to process: a sender of packets chooses addresses and ports, and
    /// could make them collide. The order is never used.
    places: HashMap<Ends, u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    queues: [Queue; PATIENCE.len()],
    begun: u32,
    now: i64,
    /// By how much the clock was set back, all in all: with it, times never go back.
    behind: i64,
    /// How often it was set back.
    era: u32,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            places: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            queues: [Queue { first: NONE, last: NONE }; PATIENCE.len()],
            begun: 0,
            now: i64::MIN,
            behind: 0,
            era: 0,
        }
    }

    /// The clock was set back before a packet of this time. Of connections that go on after it no time is known.
    pub(crate) fn set_back(&mut self, time: i64) {
        self.era += 1;
        // Before the first segment there is no time to go back from.
        self.behind = self.behind.max(self.now.saturating_sub(time).max(0));
    }

    /// Processes a segment at `offset` of the file; returns its connection.
    pub(crate) fn take(
        &mut self,
        seen: &Seen<'_>,
        time: i64,
        offset: u64,
        batch: &mut Batch,
        problems: &mut Problems,
    ) -> Option<&Connection> {
        if time.saturating_add(self.behind) < self.now.saturating_sub(SET_BACK) {
            self.set_back(time);
        }
        // Captures on several processors are not quite in order.
        self.now = self.now.max(time.saturating_add(self.behind));
        self.let_go(batch, problems);
        let ends = if seen.from < seen.to { (seen.from, seen.to) } else { (seen.to, seen.from) };
        let mut place = self.places.get(&ends).copied();
        let is_over = |it: Option<&Connection>| it.map_or(seen.flags.contains(Flags::SYN), |it| it.is_over_with(seen));
        if let Some(over) = place.filter(|&at| is_over(self.connection(at))) {
            self.end(over, batch, problems);
            place = None;
        }
        let at = match place {
            Some(at) => at,
            None => self.begin(ends, seen, time, offset, batch, problems),
        };
        let slot = &mut self.slots[at as usize];
        let Some(connection) = &mut slot.connection else {
            // The other end did not get the last acknowledgment, or sends what nobody wants.
            if seen.payload > 0 {
                problems.add(Trouble::AfterEnd, offset);
            }
            return None;
        };
        if let Some(trouble) = connection.take(seen, time, self.era, batch) {
            problems.add(trouble, offset);
        }
        let stage = connection.stage();
        self.queue(at, stage, self.now);
        self.connection(at)
    }

    /// Tells of all that are left.
    pub(crate) fn finish(&mut self, batch: &mut Batch, problems: &mut Problems) {
        for stage in 0..self.queues.len() {
            while self.queues[stage].first != NONE {
                self.end(self.queues[stage].first, batch, problems);
            }
        }
    }

    fn connection(&self, at: u32) -> Option<&Connection> {
        self.slots[at as usize].connection.as_deref()
    }

    fn let_go(&mut self, batch: &mut Batch, problems: &mut Problems) {
        for (stage, patience) in PATIENCE.into_iter().enumerate() {
            loop {
                let first = self.queues[stage].first;
                if first == NONE || self.now - self.slots[first as usize].last < patience {
                    break;
                }
                let cut_off = self.slots[first as usize].connection.as_mut().is_some_and(|it| it.is_cut_off(stage));
                if stage == Stage::Closed as usize || cut_off {
                    self.finish_connection(first, batch, problems);
                    self.queue(first, Stage::Gone, self.now);
                } else {
                    self.end(first, batch, problems);
                }
            }
        }
    }

    fn begin(
        &mut self,
        ends: Ends,
        seen: &Seen<'_>,
        time: i64,
        offset: u64,
        batch: &mut Batch,
        problems: &mut Problems,
    ) -> u32 {
        if self.places.len() >= MOST {
            let over = &self.queues[Stage::Gone as usize];
            let oldest =
                std::iter::once(over).chain(&self.queues).map(|queue| queue.first).find(|&first| first != NONE);
            if let Some(oldest) = oldest {
                self.end(oldest, batch, problems);
            }
        }
        let connection = Connection::new(self.begun, seen, time, self.era, offset);
        self.begun += 1;
        let stage = connection.stage();
        let slot =
            Slot { ends, connection: Some(Box::new(connection)), last: self.now, stage, before: NONE, after: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.places.insert(ends, at);
        self.append(at);
        at
    }

    fn end(&mut self, at: u32, batch: &mut Batch, problems: &mut Problems) {
        self.finish_connection(at, batch, problems);
        self.remove(at);
        self.places.remove(&self.slots[at as usize].ends);
        self.free.push(at);
    }

    fn finish_connection(&mut self, at: u32, batch: &mut Batch, problems: &mut Problems) {
        let finished = self.slots[at as usize].connection.take().and_then(|connection| connection.finish(batch));
        if let Some((trouble, offset)) = finished {
            problems.add(trouble, offset);
        }
    }

    /// Puts a connection behind the others of a stage.
    fn queue(&mut self, at: u32, stage: Stage, last: i64) {
        self.remove(at);
        let slot = &mut self.slots[at as usize];
        (slot.stage, slot.last) = (stage, last);
        self.append(at);
    }

    fn append(&mut self, at: u32) {
        let queue = &mut self.queues[self.slots[at as usize].stage as usize];
        let before = std::mem::replace(&mut queue.last, at);
        if before == NONE {
            queue.first = at;
        } else {
            self.slots[before as usize].after = at;
        }
        let slot = &mut self.slots[at as usize];
        (slot.before, slot.after) = (before, NONE);
    }

    fn remove(&mut self, at: u32) {
        let Slot { before, after, stage, .. } = self.slots[at as usize];
        let queue = &mut self.queues[stage as usize];
        if before == NONE {
            queue.first = after;
        }
        if after == NONE {
            queue.last = before;
        }
        if before != NONE {
            self.slots[before as usize].after = after;
        }
        if after != NONE {
            self.slots[after as usize].before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Found;

    const SYN: Flags = Flags::SYN;
    const ACK: Flags = Flags::ACK;
    const FIN: Flags = Flags::FIN;

    fn seen(from: u16, to: u16, flags: Flags) -> Seen<'static> {
        let end = |port| End { address: 7, port };
        Seen {
            from: end(from),
            to: end(to),
            seq: 1,
            ack: 1,
            flags,
            payload: 0,
            header: 52,
            options: Found::default(),
            kept: &[],
        }
    }

    #[test]
    fn connections_that_ended_or_fell_silent_are_not_kept() {
        let (mut table, mut batch, mut problems) = (Table::new(), Batch::default(), Problems::default());
        let mut take = |table: &mut Table, seconds: i64, seen: Seen<'_>| {
            table.take(&seen, seconds * SECOND, 0, &mut batch, &mut problems);
        };
        for second in 0..10_000 {
            let port = 1024 + (second % 60_000) as u16;
            take(&mut table, second, seen(port, 80, SYN));
            take(&mut table, second, seen(80, port, SYN | ACK));
            take(&mut table, second, seen(port, 80, ACK));
            if second % 2 == 0 {
                take(&mut table, second, seen(port, 80, ACK | FIN));
                take(&mut table, second, Seen { ack: 2, ..seen(80, port, ACK | FIN) });
                take(&mut table, second, Seen { seq: 2, ack: 2, ..seen(port, 80, ACK) });
            }
        }
        // Half of them are open for five minutes; of the other half the ends are known for one minute.
        let kept = table.slots.iter().filter(|slot| slot.connection.is_some()).count();
        assert!((140..=160).contains(&kept), "{kept}");
        assert!((170..=190).contains(&table.places.len()), "{}", table.places.len());
        assert!(table.slots.len() < 200, "{}", table.slots.len());
    }

    /// Addresses of one /64, a port each, that had the same 64 bits of hash when the hash had no key:
    /// `h = (rotate(h, 23) ^ word) * K` over the lower half of the address, the upper half and the port.
    fn chosen(port: u16) -> u128 {
        const K: u64 = 0x9e37_79b9_7f4a_7c15;
        const NETWORK: u64 = 0x2001_0db8_aaaa_0001;
        let inverse = (0..6).fold(1_u64, |x, _| x.wrapping_mul(2_u64.wrapping_sub(K.wrapping_mul(x))));
        let before_port = (0x1234_5678_9abc_def0 ^ u64::from(port)).rotate_right(23);
        let before_network = (before_port.wrapping_mul(inverse) ^ NETWORK).rotate_right(23);
        u128::from(NETWORK) << 64 | u128::from(before_network.wrapping_mul(inverse))
    }

    #[test]
    fn addresses_chosen_to_collide_cost_no_more_than_others() {
        let time_of = |address: &dyn Fn(u16) -> u128| {
            let (mut table, mut batch, mut problems) = (Table::new(), Batch::default(), Problems::default());
            let begin = std::time::Instant::now();
            for port in 0..u16::MAX {
                let mut syn = seen(port, 80, SYN);
                syn.from.address = address(port);
                syn.to.address = u128::MAX;
                table.take(&syn, 0, 0, &mut batch, &mut problems);
            }
            assert_eq!(table.places.len(), usize::from(u16::MAX));
            begin.elapsed()
        };
        let (plain, chosen) = (time_of(&|port| u128::from(port) << 7), time_of(&chosen));
        // With all in one place it was a thousand times.
        assert!(chosen < 20 * plain, "{chosen:?} for chosen addresses, {plain:?} for others");
    }

    #[test]
    fn however_many_begin_no_more_are_kept_than_there_is_room_for() {
        let (mut table, mut batch, mut problems) = (Table::new(), Batch::default(), Problems::default());
        for number in 0..MOST as u128 + 1000 {
            let mut syn = seen(1024, 80, SYN);
            syn.from.address = number;
            table.take(&syn, 0, 0, &mut batch, &mut problems);
        }
        assert_eq!(table.places.len(), MOST);
        assert_eq!(table.slots.len(), MOST);
    }
}
