//! The laws against their closed forms.

use std::f64::consts::FRAC_1_SQRT_2;

use firstflight_sim::{
    distribution::{Distribution, Interpolation},
    random::{Purpose, Stream},
};

const DRAWS: u64 = 200_000;

fn draws(law: &Distribution) -> Vec<f64> {
    law.validate("law").unwrap();
    let stream = Stream::new(7, 0, Purpose::ResponseSize, 0, 0);
    (0..DRAWS).map(|index| law.draw(&stream, index)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Share of the draws below `bound`.
fn below(values: &[f64], bound: f64) -> f64 {
    values.iter().filter(|&&value| value < bound).count() as f64 / values.len() as f64
}

/// Four standard errors of a share over the draws are at most 0.0045.
fn assert_share(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.0045, "{found} against {expected}");
}

fn assert_near(found: f64, expected: f64, relative: f64) {
    assert!((found / expected - 1.0).abs() < relative, "{found} against {expected}");
}

#[test]
fn a_constant_is_constant_and_a_uniform_law_flat() {
    assert!(draws(&Distribution::Constant { value: 3.5 }).iter().all(|&value| value == 3.5));
    let values = draws(&Distribution::Uniform { low: 1.0, high: 5.0 });
    assert!(values.iter().all(|value| (1.0..5.0).contains(value)));
    for quarter in 1..4 {
        assert_share(below(&values, 1.0 + f64::from(quarter)), f64::from(quarter) / 4.0);
    }
}

#[test]
fn an_exponential_law_has_its_mean_and_its_tail() {
    let values = draws(&Distribution::Exponential { mean: 4.0 });
    assert_near(mean(&values), 4.0, 0.01);
    for bound in [0.5, 4.0, 12.0f64] {
        assert_share(below(&values, bound), 1.0 - (-bound / 4.0).exp());
    }
}

#[test]
fn a_lognormal_law_has_its_median_its_mean_and_its_spread() {
    let (median, sigma) = (2000.0, 1.2f64);
    let values = draws(&Distribution::Lognormal { median, sigma, minimum: None, maximum: None });
    assert_share(below(&values, median), 0.5);
    // The normal distribution function at 1 and at -2.
    assert_share(below(&values, median * sigma.exp()), 0.841_345);
    assert_share(below(&values, median * (-2.0 * sigma).exp()), 0.022_750);
    assert_near(mean(&values), median * (sigma * sigma / 2.0).exp(), 0.03);
}

#[test]
fn a_lognormal_law_is_clipped_at_its_bounds() {
    let (median, sigma) = (1000.0, 1.0f64);
    let bounds = (Some(median / sigma.exp()), Some(median * sigma.exp()));
    let values = draws(&Distribution::Lognormal { median, sigma, minimum: bounds.0, maximum: bounds.1 });
    let at = |bound: Option<f64>| values.iter().filter(|&&value| Some(value) == bound).count() as f64 / DRAWS as f64;
    // Draws beyond a bound, 1 - 0.841345 of all, are set to it.
    assert_share(at(bounds.0), 0.158_655);
    assert_share(at(bounds.1), 0.158_655);
}

#[test]
fn a_pareto_law_has_its_tail_and_its_mean() {
    let (shape, minimum) = (2.5, 100.0);
    let values = draws(&Distribution::Pareto { shape, minimum, maximum: None });
    assert!(values.iter().all(|&value| value >= minimum));
    for factor in [1.5, 2.0, 4.0f64] {
        assert_share(below(&values, factor * minimum), 1.0 - factor.powf(-shape));
    }
    assert_near(mean(&values), shape * minimum / (shape - 1.0), 0.01);
}

#[test]
fn a_truncated_pareto_law_has_no_draw_beyond_its_maximum_and_no_heap_at_it() {
    let (shape, minimum, maximum) = (1.1, 100.0, 1000.0);
    let values = draws(&Distribution::Pareto { shape, minimum, maximum: Some(maximum) });
    assert!(values.iter().all(|value| (minimum..maximum).contains(value)));
    let whole = 1.0 - (minimum / maximum).powf(shape);
    for bound in [150.0, 300.0, 900.0f64] {
        assert_share(below(&values, bound), (1.0 - (minimum / bound).powf(shape)) / whole);
    }
}

fn tabulated(interpolation: Interpolation) -> Distribution {
    let points = vec![(0.0, 10.0), (0.25, 100.0), (0.75, 1000.0), (1.0, 100_000.0)].into();
    Distribution::Empirical { points, interpolation, scale: 1.0, minimum: None, maximum: None }
}

#[test]
fn a_tabulated_law_runs_through_its_points_and_between_them_as_asked() {
    for (interpolation, middle) in [(Interpolation::Linear, 550.0), (Interpolation::Log, 100_000.0f64.sqrt())] {
        let values = draws(&tabulated(interpolation));
        for (probability, value) in [(0.25, 100.0), (0.5, middle), (0.75, 1000.0)] {
            assert_share(below(&values, value), probability);
        }
        assert!(values.iter().all(|value| (10.0..100_000.0).contains(value)));
    }
}

#[test]
fn the_value_at_a_score_is_the_quantile_of_its_probability() {
    let scores = [0.0, 1.0, -1.959_963_984_540_054, 2.326_347_874_040_841];
    let at_scores = |law: &Distribution| {
        let mut values = scores;
        law.at_scores(&mut values);
        values
    };
    let of_table = |interpolation, scale, minimum, maximum| {
        let Distribution::Empirical { points, .. } = tabulated(interpolation) else { unreachable!() };
        Distribution::Empirical { points, interpolation, scale, minimum, maximum }
    };
    for law in [
        Distribution::Constant { value: 3.5 },
        Distribution::Uniform { low: 1.0, high: 5.0 },
        Distribution::Exponential { mean: 4.0 },
        Distribution::Pareto { shape: 1.2, minimum: 10.0, maximum: Some(1e6) },
        of_table(Interpolation::Linear, 1.0, None, None),
        of_table(Interpolation::Linear, 2.0, Some(150.0), Some(2000.0)),
        of_table(Interpolation::Log, 2.0, None, None),
        of_table(Interpolation::Log, 2.0, Some(150.0), Some(2000.0)),
    ] {
        let probability = |score: f64| 0.5 * libm::erfc(-score * FRAC_1_SQRT_2);
        assert_eq!(at_scores(&law), scores.map(|score| law.quantile(probability(score))), "{law:?}");
    }
    for (minimum, maximum) in [(None, None), (Some(8000.0), Some(10_000.0))] {
        let law = Distribution::Lognormal { median: 9000.0, sigma: 0.5, minimum, maximum };
        for (value, probability) in at_scores(&law).into_iter().zip([0.5, 0.841_344_746_068_542_9, 0.025, 0.99]) {
            assert_near(value, law.quantile(probability), 1e-12);
        }
    }
}

#[test]
fn a_tabulated_law_finds_the_points_of_a_probability_however_uneven_they_are() {
    let powers = [0.1, 0.5, 1.0, 2.0, 7.0].map(|power| {
        let p = |i: u32| (f64::from(i) / 300.0).powf(power);
        (0..=300).map(|i| (p(i), f64::from(i / 2))).collect::<Vec<_>>()
    });
    // Just below these points, 301 times a probability is rounded up to the next whole number.
    let steps = (0..=300).map(|i| (if i == 300 { 1.0 } else { f64::from(i) / 301.0 }, f64::from(i / 2))).collect();
    for points in powers.into_iter().chain([steps]) {
        let expected = |u: f64| {
            let upper = points.partition_point(|&(p, _)| p <= u).clamp(1, 300);
            let ((p0, x0), (p1, x1)) = (points[upper - 1], points[upper]);
            x0 + (x1 - x0) * ((u - p0) / (p1 - p0))
        };
        let law = Distribution::Empirical {
            points: points.clone().into(),
            interpolation: Interpolation::Linear,
            scale: 1.0,
            minimum: None,
            maximum: None,
        };
        for pair in points.windows(2) {
            let (p, above) = (pair[0].0, pair[1].0);
            for u in [p, f64::from_bits(p.to_bits() + 1), (p + above) / 2.0, f64::from_bits(above.to_bits() - 1)] {
                assert_eq!(law.quantile(u), expected(u), "at {u}");
            }
        }
        assert_eq!(law.quantile(1.0), 150.0);
    }
}

#[test]
fn a_tabulated_law_is_scaled_first_and_clipped_then() {
    let Distribution::Empirical { points, interpolation, .. } = tabulated(Interpolation::Linear) else {
        unreachable!()
    };
    let law =
        Distribution::Empirical { points, interpolation, scale: 2.0, minimum: Some(200.0), maximum: Some(2000.0) };
    assert_eq!(law.largest(), Some(2000.0));
    let values = draws(&law);
    let at = |bound: f64| values.iter().filter(|&&value| value == bound).count() as f64 / DRAWS as f64;
    assert_share(at(200.0), 0.25);
    assert_share(at(2000.0), 0.25);
    assert_share(below(&values, 1100.0), 0.5);
}

#[test]
fn laws_that_cannot_be_are_refused_by_name() {
    let empirical = |points: Vec<(f64, f64)>| Distribution::Empirical {
        points: points.into(),
        interpolation: Interpolation::Linear,
        scale: 1.0,
        minimum: None,
        maximum: None,
    };
    let lognormal = |minimum, maximum| Distribution::Lognormal { median: 1.0, sigma: 1.0, minimum, maximum };
    for law in [
        Distribution::Constant { value: -1.0 },
        Distribution::Constant { value: f64::NAN },
        Distribution::Constant { value: f64::INFINITY },
        Distribution::Uniform { low: 2.0, high: 1.0 },
        Distribution::Exponential { mean: 0.0 },
        lognormal(Some(2.0), Some(1.0)),
        lognormal(Some(-1.0), None),
        lognormal(None, Some(0.0)),
        lognormal(None, Some(f64::NAN)),
        Distribution::Pareto { shape: 0.0, minimum: 1.0, maximum: None },
        Distribution::Pareto { shape: 1.0, minimum: 2.0, maximum: Some(1.0) },
        empirical(vec![]),
        empirical(vec![(0.0, 1.0)]),
        empirical(vec![(0.0, 1.0), (0.5, 2.0)]),
        empirical(vec![(0.0, 1.0), (0.5, 0.5), (1.0, 2.0)]),
        empirical(vec![(0.0, 1.0), (0.6, 2.0), (0.5, 3.0), (1.0, 4.0)]),
    ] {
        let error = law.validate("size").unwrap_err().to_string();
        assert!(error.starts_with("size is "), "{error}");
    }
}
