//! Losses by number: the third data packet, the fourteenth, and no other.

use crate::SpecError;

/// Numbers of data packets, counted from 1 in the order of their transmission, and how far the count is.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    numbers: Vec<u32>,
    /// Of `numbers`, those that were reached.
    reached: usize,
    transmitted: u32,
}

impl Listed {
    /// Checks that `numbers` ascend from 1 on.
    pub(super) fn new(numbers: &[u32]) -> Result<Listed, SpecError> {
        if numbers.first() == Some(&0) || !numbers.is_sorted_by(|one, next| one < next) {
            return Err(SpecError::new(
                "lose",
                format_args!("{numbers:?}"),
                "write ascending numbers of data packets, the first of which is 1",
            ));
        }
        Ok(Listed { numbers: numbers.to_vec(), reached: 0, transmitted: 0 })
    }

    /// A packet is transmitted: is it one of those?
    pub(super) fn is_lost(&mut self, carries_data: bool) -> bool {
        if !carries_data {
            return false;
        }
        let Some(&next) = self.numbers.get(self.reached) else { return false };
        self.transmitted += 1;
        let is_lost = self.transmitted == next;
        self.reached += usize::from(is_lost);
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::Listed;

    #[test]
    fn the_listed_packets_are_lost_and_no_others() {
        let mut listed = Listed::new(&[1, 3, 4]).unwrap();
        let lost: Vec<bool> = (0..6).map(|_| listed.is_lost(true)).collect();
        assert_eq!(lost, [true, false, true, true, false, false]);
    }

    #[test]
    fn numbers_that_do_not_ascend_from_1_are_refused() {
        for numbers in [&[0][..], &[0, 1], &[3, 2], &[2, 2]] {
            assert!(Listed::new(numbers).is_err(), "{numbers:?}");
        }
    }
}
