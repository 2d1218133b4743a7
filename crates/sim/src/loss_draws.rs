//! Random losses of a connection's packets: one draw for each packet on each link that loses at random, by its number
//! among the connection's packets there.
//!
//! So neither another connection nor a change of the initial window decides which of a connection's packets are
//! lost: the fifth data packet of a changed connection is lost if that of the unchanged one is.

use crate::random::{Purpose, Stream};

#[derive(Clone, Debug)]
pub(crate) struct LossDraws {
    key: u64,
    /// Packets so far on each link that loses at random.
    crossed: Vec<Crossed>,
}

#[derive(Clone, Debug)]
struct Crossed {
    link: u32,
    /// Without payload, and with.
    packets: [u32; 2],
}

impl LossDraws {
    /// Those of a connection with this key.
    pub(crate) fn new(key: u64) -> LossDraws {
        LossDraws { key, crossed: Vec::new() }
    }

    /// Becomes those of another connection in the same memory.
    pub(crate) fn restart(&mut self, key: u64) {
        self.key = key;
        self.crossed.clear();
    }

    /// The draw of the connection's next packet on a link, uniform in [0, 1).
    // Data packets are numbered apart, so that when to acknowledge does not decide which of them are lost.
    #[inline]
    pub(crate) fn draw(&mut self, link: u32, carries_data: bool) -> f64 {
        let known = self.crossed.iter().position(|crossed| crossed.link == link);
        let index = known.unwrap_or_else(|| {
            self.crossed.push(Crossed { link, packets: [0; 2] });
            self.crossed.len() - 1
        });
        let kind = usize::from(carries_data);
        let number = &mut self.crossed[index].packets[kind];
        let [without, with] = Stream::new(self.key, 0, Purpose::Loss, 0, link).uniforms(u64::from(*number));
        *number += 1;
        if carries_data { with } else { without }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packets_draw_depends_on_its_link_and_its_number_among_those_with_or_without_data() {
        let mut plain = LossDraws::new(7);
        let data: Vec<f64> = (0..4).map(|_| plain.draw(3, true)).collect();
        let mut mixed = LossDraws::new(9);
        mixed.draw(3, true);
        mixed.restart(7);
        let found: Vec<f64> = (0..4)
            .map(|_| {
                mixed.draw(3, false);
                mixed.draw(2, true);
                mixed.draw(3, true)
            })
            .collect();
        assert_eq!(found, data);
        assert_ne!(LossDraws::new(8).draw(3, true), data[0]);
        assert_ne!(LossDraws::new(7).draw(2, true), data[0]);
    }
}
