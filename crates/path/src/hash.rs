//! Numbers that look random and depend on a key alone, for a link's own draws and hashes.

/// The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The `number`-th draw of SplitMix64 with a key as its seed, uniform in [0, 1).
pub(crate) fn uniform(key: u64, number: u64) -> f64 {
    let state = key.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (mix(state) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_are_those_of_splitmix64() {
        // The first of seed 1234567, as the authors' reference gives it.
        assert_eq!(mix(1_234_567u64.wrapping_add(0x9e37_79b9_7f4a_7c15)), 6_457_827_717_110_365_317);
        let mean = (0..10_000).map(|number| uniform(7, number)).sum::<f64>() / 1e4;
        assert!((0.49..0.51).contains(&mean), "{mean}");
    }
}
