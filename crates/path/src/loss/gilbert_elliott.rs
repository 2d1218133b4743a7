//! Losses in bursts: a channel that is good or bad, of which each packet takes a step.
//!
//! E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39(5), 1960; E. O. Elliott, "Estimates
//! of Error Rates for Codes on Burst-Noise Channels", ibid. 42(5), 1963. Linux's `netem loss gemodel` is the same.

use crate::{SpecError, hash::uniform, spec::spec};

spec! {
    /// Losses in bursts: a channel that is good or bad (Gilbert 1960, Elliott 1963; Linux's `netem loss gemodel`).
    ///
    /// Each packet makes a good channel bad with probability `to_bad` and a bad one good with `to_good`, and is then lost
    /// with `loss_in_bad` or `loss_in_good`. The mean loss is that of the bad state in to_bad / (to_bad + to_good) of all
    /// packets; a burst has 1 / to_good packets.
    pub struct GilbertElliottSpec {
        /// transition probability from good to bad, per packet
        to_bad: f64 [>= 0.0, <= 1.0],
        /// transition probability from bad to good, per packet
        to_good: f64 [> 0.0, <= 1.0],
        /// loss probability in the bad state
        loss_in_bad: f64 [>= 0.0, <= 1.0] = 1.0,
        /// loss probability in the good state
        loss_in_good: f64 [>= 0.0, < 1.0] = 0.0,
    }
}

impl Copy for GilbertElliottSpec {}

/// A channel, good at first. Its draws are numbered by the link's packets.
#[derive(Clone, Debug)]
pub(super) struct GilbertElliott {
    spec: GilbertElliottSpec,
    key: u64,
    packets: u64,
    is_bad: bool,
}

impl GilbertElliott {
    /// A channel with draws by `key`.
    pub(super) fn new(spec: &GilbertElliottSpec, key: u64) -> Result<GilbertElliott, SpecError> {
        Ok(GilbertElliott { spec: *spec, key, packets: 0, is_bad: false })
    }

    /// A packet is transmitted: the channel takes its step, and then the packet is lost or not.
    pub(super) fn is_lost(&mut self, _carries_data: bool) -> bool {
        let [step, loss] = [0, 1].map(|draw| uniform(self.key, 2 * self.packets + draw));
        self.packets += 1;
        self.is_bad = if self.is_bad { step >= self.spec.to_good } else { step < self.spec.to_bad };
        loss < if self.is_bad { self.spec.loss_in_bad } else { self.spec.loss_in_good }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURSTS: GilbertElliottSpec =
        GilbertElliottSpec { to_bad: 0.01, to_good: 0.25, loss_in_bad: 1.0, loss_in_good: 0.0 };

    #[test]
    fn losses_are_as_many_and_come_in_bursts_as_long_as_the_channel_says() {
        let mut channel = GilbertElliott::new(&BURSTS, 5).unwrap();
        let lost: Vec<bool> = (0..200_000).map(|_| channel.is_lost(true)).collect();
        let losses = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.windows(2).filter(|pair| pair == &[false, true]).count() as f64;
        // The share of time in the bad state is to_bad / (to_bad + to_good), its mean length 1 / to_good.
        assert!((losses / 2e5 - 0.01 / 0.26).abs() < 0.002, "{losses} lost");
        assert!((losses / bursts - 4.0).abs() < 0.2, "{bursts} bursts");
    }

    #[test]
    fn a_packet_is_lost_by_another_draw_than_the_one_that_changes_the_channel() {
        let evenly = GilbertElliottSpec { to_bad: 0.5, to_good: 0.5, loss_in_bad: 0.5, loss_in_good: 0.0 };
        let mut channel = GilbertElliott::new(&evenly, 5).unwrap();
        let lost: Vec<bool> = (0..100_000).map(|_| channel.is_lost(true)).collect();
        // Each packet is lost with a probability of a quarter, whatever became of the one before.
        let losses = lost.iter().filter(|lost| **lost).count() as f64;
        let pairs = lost.windows(2).filter(|pair| pair == &[true, true]).count() as f64;
        assert!((losses / 1e5 - 0.25).abs() < 0.01, "{losses} lost");
        assert!((pairs / losses - 0.25).abs() < 0.02, "{pairs} pairs");
    }

    #[test]
    fn a_channel_that_never_turns_bad_or_loses_less_than_everything_is_accepted() {
        for spec in [GilbertElliottSpec { to_bad: 0.0, ..BURSTS }, GilbertElliottSpec { loss_in_good: 0.99, ..BURSTS }]
        {
            assert!(spec.check_bounds().is_ok(), "{spec:?}");
        }
    }

    #[test]
    fn the_same_key_loses_the_same_packets() {
        let lost = |key| {
            let mut channel = GilbertElliott::new(&BURSTS, key).unwrap();
            (0..1000).map(|_| channel.is_lost(true)).collect::<Vec<_>>()
        };
        assert_eq!(lost(1), lost(1));
        assert_ne!(lost(1), lost(2));
    }

    #[test]
    fn what_is_no_probability_or_loses_everything_is_refused() {
        for spec in [
            GilbertElliottSpec { to_bad: 1.1, ..BURSTS },
            GilbertElliottSpec { to_good: f64::NAN, ..BURSTS },
            GilbertElliottSpec { to_good: 0.0, ..BURSTS },
            GilbertElliottSpec { loss_in_good: 1.0, ..BURSTS },
        ] {
            assert!(spec.check_bounds().is_err(), "{spec:?}");
        }
    }
}
