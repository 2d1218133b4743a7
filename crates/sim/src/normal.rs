//! The normal distribution and its inverse.
//!
//! Logarithms and roots come from `libm`, so scores are the same numbers on every machine.

use std::f64::consts::FRAC_1_SQRT_2;

/// The largest number below 1.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// Probability that a standard normal variable is at most `score`.
pub fn distribution(score: f64) -> f64 {
    0.5 * libm::erfc(-score * FRAC_1_SQRT_2)
}

/// The score below which a standard normal variable lies with probability `p`; finite for each uniform draw in [0, 1),
/// and so 0 counts as the least that can be drawn, 2^-54.
///
/// Source: M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37
/// (1988), PPND16: relative accuracy about 1e-16.
pub fn quantile(p: f64) -> f64 {
    let p = p.clamp(f64::EPSILON / 4.0, BELOW_ONE);
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE);
    }
    let r = libm::sqrt(-libm::log(if q < 0.0 { p } else { 1.0 - p }));
    let score = if r <= 5.0 { ratio(r - 1.6, &FLANK) } else { ratio(r - 5.0, &TAIL) };
    if q < 0.0 { -score } else { score }
}

/// Coefficients of a numerator and a denominator, the constant terms first.
type Coefficients = [[f64; 8]; 2];

fn ratio(x: f64, [numerator, denominator]: &Coefficients) -> f64 {
    let polynomial = |terms: &[f64; 8]| terms.iter().rev().fold(0.0, |sum, term| sum * x + term);
    polynomial(numerator) / polynomial(denominator)
}

#[rustfmt::skip]
const CENTRE: Coefficients = [
    [3.387_132_872_796_366_5, 133.141_667_891_784_38, 1_971.590_950_306_551_3, 13_731.693_765_509_46,
     45_921.953_931_549_87, 67_265.770_927_008_7, 33_430.575_583_588_13, 2_509.080_928_730_122_7],
    [1.0, 42.313_330_701_600_91, 687.187_007_492_057_9, 5_394.196_021_424_751,
     21_213.794_301_586_597, 39_307.895_800_092_71, 28_729.085_735_721_943, 5_226.495_278_852_854],
];

#[rustfmt::skip]
const FLANK: Coefficients = [
    [1.423_437_110_749_683_5, 4.630_337_846_156_546, 5.769_497_221_460_691, 3.647_848_324_763_204_5,
     1.270_458_252_452_368_4, 0.241_780_725_177_450_6, 0.022_723_844_989_269_184, 7.745_450_142_783_414e-4],
    [1.0, 2.053_191_626_637_759, 1.676_384_830_183_803_8, 0.689_767_334_985_1,
     0.148_103_976_427_480_08, 0.015_198_666_563_616_457, 5.475_938_084_995_345e-4, 1.050_750_071_644_416_9e-9],
];

#[rustfmt::skip]
const TAIL: Coefficients = [
    [6.657_904_643_501_103, 5.463_784_911_164_114, 1.784_826_539_917_291_3, 0.296_560_571_828_504_87,
     0.026_532_189_526_576_124, 0.001_242_660_947_388_078_4, 2.711_555_568_743_487_6e-5, 2.010_334_399_292_288_1e-7],
    [1.0, 0.599_832_206_555_887_9, 0.136_929_880_922_735_8, 0.014_875_361_290_850_615,
     7.868_691_311_456_133e-4, 1.846_318_317_510_054_8e-5, 1.421_511_758_316_446e-7, 2.044_263_103_389_939_8e-15],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_points_of_the_normal_distribution() {
        for (p, score) in [
            (0.5, 0.0),
            (0.841_344_746_068_542_9, 1.0),
            (0.975, 1.959_963_984_540_054),
            (0.99, 2.326_347_874_040_841),
            (1e-9, -5.997_807_015_007_774),
            (1e-15, -7.941_345_326_170_998),
        ] {
            assert!((quantile(p) - score).abs() < 1e-13 * score.abs().max(1.0), "{p}: {} not {score}", quantile(p));
        }
    }

    #[test]
    fn the_quantile_of_a_probability_leads_back_to_it() {
        for step in 1..10_000 {
            for p in [f64::from(step) / 10_000.0, libm::pow(10.0, -f64::from(step) / 700.0)] {
                let score = quantile(p);
                let back = distribution(score);
                // A rounding error of the score counts as much as its square in a small probability.
                let rounding = 2e-15 * (1.0 + score * score);
                assert!((back / p - 1.0).abs() < rounding, "{p} came back as {back}");
            }
        }
    }

    #[test]
    fn every_uniform_draw_has_a_finite_score() {
        for p in [0.0, f64::EPSILON / 4.0, BELOW_ONE] {
            assert!(quantile(p).is_finite(), "{p}");
        }
        assert!(quantile(0.0) < -8.0 && quantile(BELOW_ONE) > 8.0);
    }
}
