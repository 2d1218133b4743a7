//! All connections that are in progress: found by their ends, and let go when they are over or have been silent for long,
//! so that memory does not grow with the length of a capture.

use std::hash::RandomState;

use firstflight_segment::Flags;
use hashlink::LinkedHashMap;

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
/// Stages in the order of how many segments are of theirs.
const BY_FREQUENCY: [Stage; 4] = [Stage::Open, Stage::Opening, Stage::Closed, Stage::Gone];
/// More concurrent ones are not kept: of those that are over, else of all, the one that was silent for the longest goes.
const MOST: usize = 1 << 18;
/// A packet so much earlier than another before it shows that the clock was set back, whichever interface it came from.
const SET_BACK: i64 = SECOND;

/// The lower end first.
type Ends = (End, End);

#[derive(Debug)]
struct Entry {
    /// None of one that is over.
    connection: Option<Box<Connection>>,
    last: i64,
}

#[derive(Debug)]
pub(crate) struct Table {
    /// By stage, the one that was silent for the longest first. Hashed with a key that differs from process to process: a
    /// sender of packets chooses addresses and ports, and could make them collide.
    stages: [LinkedHashMap<Ends, Entry, RandomState>; PATIENCE.len()],
    begun: u32,
    now: i64,
    /// By how much the clock was set back, all in all: with it, times never go back.
    behind: i64,
    /// How often it was set back.
    era: u32,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { stages: Default::default(), begun: 0, now: i64::MIN, behind: 0, era: 0 }
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
        let is_over = |entry: &Entry| match &entry.connection {
            Some(connection) => connection.is_over_with(seen),
            None => seen.flags.contains(Flags::SYN),
        };
        let known = |stage: Stage| Some((stage, is_over(self.stages[stage as usize].get(&ends)?)));
        let stage = match BY_FREQUENCY.into_iter().find_map(known) {
            Some((stage, false)) => stage,
            Some((stage, true)) => {
                self.end(stage as usize, &ends, batch, problems);
                self.begin(ends, seen, time, offset, batch, problems)
            }
            None => self.begin(ends, seen, time, offset, batch, problems),
        };
        if stage == Stage::Gone {
            // The other end did not get the last acknowledgment, or sends what nobody wants.
            if seen.payload > 0 {
                problems.add(Trouble::AfterEnd, offset);
            }
            return None;
        }
        let entry = self.stages[stage as usize].to_back(&ends)?;
        let connection = entry.connection.as_mut()?;
        if let Some(trouble) = connection.take(seen, time, self.era, batch) {
            problems.add(trouble, offset);
        }
        entry.last = self.now;
        let now_in = connection.stage();
        if now_in != stage {
            let entry = self.stages[stage as usize].remove(&ends)?;
            self.stages[now_in as usize].insert(ends, entry);
        }
        self.stages[now_in as usize].back()?.1.connection.as_deref()
    }

    /// Tells of all that are left.
    pub(crate) fn finish(&mut self, batch: &mut Batch, problems: &mut Problems) {
        for stage in 0..self.stages.len() {
            while let Some((&ends, _)) = self.stages[stage].front() {
                self.end(stage, &ends, batch, problems);
            }
        }
    }

    fn let_go(&mut self, batch: &mut Batch, problems: &mut Problems) {
        for (stage, patience) in PATIENCE.into_iter().enumerate() {
            while let Some((&ends, entry)) = self.stages[stage].iter_mut().next() {
                if self.now - entry.last < patience {
                    break;
                }
                let cut_off = entry.connection.as_mut().is_some_and(|connection| connection.is_cut_off(stage));
                self.end(stage, &ends, batch, problems);
                if stage == Stage::Closed as usize || cut_off {
                    self.stages[Stage::Gone as usize].insert(ends, Entry { connection: None, last: self.now });
                }
            }
        }
    }

    /// A connection begins; returns its stage.
    fn begin(
        &mut self,
        ends: Ends,
        seen: &Seen<'_>,
        time: i64,
        offset: u64,
        batch: &mut Batch,
        problems: &mut Problems,
    ) -> Stage {
        if self.len() >= MOST {
            let first = |stage: usize| Some((stage, *self.stages[stage].front()?.0));
            let oldest = std::iter::once(Stage::Gone as usize).chain(0..self.stages.len()).find_map(first);
            if let Some((stage, oldest)) = oldest {
                self.end(stage, &oldest, batch, problems);
            }
        }
        let connection = Connection::new(self.begun, seen, time, self.era, offset);
        self.begun += 1;
        let stage = connection.stage();
        let entry = Entry { connection: Some(Box::new(connection)), last: self.now };
        self.stages[stage as usize].insert(ends, entry);
        stage
    }

    fn end(&mut self, stage: usize, ends: &Ends, batch: &mut Batch, problems: &mut Problems) {
        let connection = self.stages[stage].remove(ends).and_then(|entry| entry.connection);
        if let Some((trouble, offset)) = connection.and_then(|connection| connection.finish(batch)) {
            problems.add(trouble, offset);
        }
    }

    /// Those that are known, by their ends at least.
    fn len(&self) -> usize {
        self.stages.iter().map(LinkedHashMap::len).sum()
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
        let kept = table.len() - table.stages[Stage::Gone as usize].len();
        assert!((140..=160).contains(&kept), "{kept}");
        assert!((170..=190).contains(&table.len()), "{}", table.len());
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
            assert_eq!(table.len(), usize::from(u16::MAX));
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
        assert_eq!(table.len(), MOST);
    }
}
