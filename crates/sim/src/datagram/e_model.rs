//! The E-model: how people would judge a call (ITU-T G.107, 06/2015), with all parameters but these at their defaults:
//! delay, codec and losses. Echo is taken to be cancelled, so that of the delay impairments Idd alone is left.

use crate::plan::datagram::voice::Impairment;

/// The rest of the basic signal-to-noise ratio where all parameters have their defaults (G.107 section 7.7).
const DEFAULT_R: f64 = 93.2;
/// Delay that is not perceived, in ms: mT for the default delay sensitivity (G.107 table 1, sT = 1).
const UNPERCEIVED_MS: f64 = 100.0;

/// Delay impairment factor Idd of a delay from mouth to ear in ms.
fn idd(delay_ms: f64) -> f64 {
    if delay_ms <= UNPERCEIVED_MS {
        return 0.0;
    }
    let x = libm::log2(delay_ms / UNPERCEIVED_MS);
    let root = |value: f64| libm::pow(1.0 + libm::pow(value, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

impl Impairment {
    /// Effective equipment impairment factor at this packet loss; `burst_ratio` is the mean length of bursts of losses
    /// over that of independent losses.
    fn effective(&self, loss_percent: f64, burst_ratio: f64) -> f64 {
        self.ie + (95.0 - self.ie) * loss_percent / (loss_percent / burst_ratio + self.bpl)
    }

    /// Transmission rating factor R.
    pub(crate) fn rating(&self, delay_ms: f64, loss_percent: f64, burst_ratio: f64) -> f64 {
        DEFAULT_R - idd(delay_ms) - self.effective(loss_percent, burst_ratio)
    }
}

/// Mean opinion score of a rating (G.107 annex B), 1 to 4.5.
pub(crate) fn mos(r: f64) -> f64 {
    // Below 6.5 the polynomial falls short of the scale's end.
    if r <= 6.5 {
        return 1.0;
    }
    if r >= 100.0 { 4.5 } else { 1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G.711 with and without concealment.
    const CONCEALED: Impairment = Impairment { ie: 0.0, bpl: 25.1 };
    const BARE: Impairment = Impairment { ie: 0.0, bpl: 4.3 };

    #[test]
    fn ratings_give_the_scores_of_annex_b() {
        // For 80 the formula gives 1 + 2.8 + 80 × 20 × 20 × 7e-6 = 4.024; the annex's table is quoted with 4.03, which
        // belongs to 80.15.
        for (r, score) in [(93.2, 4.41), (90.0, 4.34), (80.0, 4.02), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((mos(r) - score).abs() < 0.005, "{r}: {}", mos(r));
        }
        assert_eq!((mos(-5.0), mos(6.5), mos(100.0), mos(120.0)), (1.0, 1.0, 4.5, 4.5));
    }

    #[test]
    fn the_default_call_has_the_default_rating() {
        for delay_ms in [0.0, 50.0, 100.0] {
            assert_eq!(CONCEALED.rating(delay_ms, 0.0, 1.0), 93.2);
        }
    }

    #[test]
    fn delay_costs_what_the_formula_says_at_powers_of_two() {
        // X is 1 at 200 ms and 2 at 400 ms.
        let by_hand =
            |x: f64| 25.0 * ((1.0 + x.powi(6)).powf(1.0 / 6.0) - 3.0 * (1.0 + (x / 3.0).powi(6)).powf(1.0 / 6.0) + 2.0);
        for (delay_ms, x) in [(200.0, 1.0), (400.0, 2.0), (800.0, 3.0)] {
            assert!((idd(delay_ms) - by_hand(x)).abs() < 1e-12);
        }
        assert!((idd(200.0) - 3.04).abs() < 0.01 && (idd(400.0) - 24.08).abs() < 0.01, "{} {}", idd(200.0), idd(400.0));
    }

    #[test]
    fn losses_cost_less_where_they_are_concealed_and_more_where_they_come_in_bursts() {
        assert!((CONCEALED.effective(1.0, 1.0) - 95.0 / 26.1).abs() < 1e-12);
        assert!((BARE.effective(1.0, 1.0) - 95.0 / 5.3).abs() < 1e-12);
        assert!(CONCEALED.effective(2.0, 2.0) > CONCEALED.effective(2.0, 1.0));
        // Everything lost at random: the limit of the formula.
        assert!((BARE.effective(100.0, 1.0) - 95.0 * 100.0 / 104.3).abs() < 1e-12);
    }
}
