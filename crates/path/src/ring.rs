//! A queue of plain values in a ring that grows and never shrinks.

use crate::select;

/// First in, first out. Faster than `VecDeque` for small plain values, which are read in place and never moved out.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// A power of two of them.
    slots: Vec<T>,
    /// Values taken and values put in so far.
    head: usize,
    tail: usize,
}

impl<T: Copy> Ring<T> {
    /// An empty ring; `filler` fills the slots that hold nothing.
    pub fn new(filler: T) -> Ring<T> {
        Ring { slots: vec![filler; 8], head: 0, tail: 0 }
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    /// True if it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// The first value, if there is one.
    pub fn front(&self) -> Option<&T> {
        (!self.is_empty()).then(|| &self.slots[self.head & (self.slots.len() - 1)])
    }

    /// What `read` finds in the first value; `otherwise` if there is none: `read` is called with an old one then.
    #[inline(always)]
    pub fn read_front<U>(&self, otherwise: U, read: impl FnOnce(&T) -> U) -> U {
        // Whether anything is left cannot be predicted: a slot is read in either case.
        let found = read(&self.slots[self.head & (self.slots.len() - 1)]);
        select(self.is_empty(), otherwise, found)
    }

    /// The last value, if there is one.
    pub fn back_mut(&mut self) -> Option<&mut T> {
        let place = self.tail.wrapping_sub(1) & (self.slots.len() - 1);
        (!self.is_empty()).then(|| &mut self.slots[place])
    }

    /// All values, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let mask = self.slots.len() - 1;
        (0..self.len()).map(move |index| &self.slots[self.head.wrapping_add(index) & mask])
    }

    /// Takes the first value, if there is one.
    #[inline]
    pub fn pop_front(&mut self) -> Option<&T> {
        let head = self.head;
        (head != self.tail).then(|| {
            self.head = head.wrapping_add(1);
            &self.slots[head & (self.slots.len() - 1)]
        })
    }

    /// Puts back the value that was taken last, if none was added since.
    pub fn put_back(&mut self) {
        self.head = self.head.wrapping_sub(1);
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.head = self.tail;
    }

    /// Adds a value at the end.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        self.slots[self.tail & mask] = value;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Adds a value behind all that do not come `after` it.
    pub fn insert(&mut self, value: T, after: impl Fn(&T) -> bool) {
        self.push_back(value);
        let mask = self.slots.len() - 1;
        let place = |index: usize| self.head.wrapping_add(index) & mask;
        let mut index = self.len() - 1;
        while index > 0 && after(&self.slots[place(index - 1)]) {
            let (here, before) = (place(index), place(index - 1));
            self.slots.swap(here, before);
            index -= 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity(2 * self.slots.len());
        slots.extend(self.iter().copied());
        (self.head, self.tail) = (0, slots.len());
        slots.extend_from_within(..);
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_leave_in_the_order_in_which_they_came_while_the_ring_grows() {
        let mut ring = Ring::new(0u32);
        let (mut next_in, mut next_out) = (0, 0);
        for round in 1..200 {
            for _ in 0..round % 23 {
                ring.push_back(next_in);
                next_in += 1;
            }
            for _ in 0..round % 19 {
                if ring.is_empty() {
                    assert_eq!(ring.read_front(None, |&value| Some(value)), None);
                    break;
                }
                assert_eq!(ring.front(), Some(&next_out));
                assert_eq!(ring.read_front(None, |&value| Some(value)), Some(next_out));
                assert_eq!(ring.pop_front(), Some(&next_out));
                if next_out % 3 == 0 {
                    ring.put_back();
                    assert_eq!(ring.pop_front(), Some(&next_out));
                }
                next_out += 1;
            }
        }
        assert!(next_in > next_out && next_out > 1000);
    }

    #[test]
    fn a_value_is_inserted_behind_those_that_are_not_after_it() {
        let mut ring = Ring::new((0, 0));
        let values = [5, 3, 9, 3, 1, 7, 9, 2, 8, 0, 5].into_iter().zip(0..);
        for (value, number) in values.clone() {
            ring.insert((value, number), |&(other, _)| other > value);
        }
        let mut sorted: Vec<_> = values.collect();
        sorted.sort();
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), sorted);
    }
}
