//! Draws are functions of their stream and their number, the same in every version.

use firstflight_random::{Purpose, Sequence, Stream};

const SEED: u64 = 0x0123_4567_89ab_cdef;

fn stream() -> Stream {
    Stream::new(SEED, 5, Purpose::Loss, 3, 7)
}

/// Computed from the definition of Philox4x32-10 with the counter `[index, index >> 32 | purpose << 16 | group << 24,
/// member, replicate]` and the seed as key, in other words than the crate's.
const KNOWN: [(u64, [u64; 2], [f64; 2]); 4] = [
    (0, [0x6a89_bb42_b7da_a083, 0x24cb_62e3_34b8_339c], [0.4161641157041722, 0.1437284283353797]),
    (1, [0xb350_356b_3796_86b4, 0x4e34_9b74_13ee_7ea4], [0.7004426371346089, 0.30549022277767246]),
    (1 << 32, [0x9795_2f7d_840d_3bd2, 0x9e80_e28d_67c4_8a81], [0.5921201402125477, 0.6191541285732162]),
    ((1 << 48) - 1, [0x5299_2879_f110_6556, 0xd555_8edb_bba4_11d0], [0.3226495073041078, 0.8333367620904399]),
];

#[test]
fn a_stream_gives_the_draws_that_its_counter_and_seed_define() {
    for (index, bits, uniforms) in KNOWN {
        assert_eq!(stream().bits(index), bits, "{index}");
        assert_eq!(stream().uniforms(index), uniforms, "{index}");
    }
}

#[test]
fn a_draw_does_not_depend_on_bits_of_its_number_beyond_the_48th() {
    assert_eq!(stream().bits(1 << 48), stream().bits(0));
}

#[test]
fn a_sequence_reads_the_first_of_each_pair_from_the_beginning() {
    let mut sequence = Sequence::new(stream());
    let read: Vec<f64> = (0..100).map(|_| sequence.uniform()).collect();
    let expected: Vec<f64> = (0..100).map(|index| stream().uniforms(index)[0]).collect();
    assert_eq!(read, expected);
}

#[test]
fn uniform_draws_fill_the_unit_interval_evenly() {
    const DRAWS: u64 = 10_000;
    let mut bins = [0u64; 10];
    for index in 0..DRAWS {
        for draw in stream().uniforms(index) {
            assert!((0.0..1.0).contains(&draw), "{draw}");
            bins[(draw * 10.0) as usize] += 1;
        }
    }
    // 2000 expected in each; the standard deviation is 42.
    assert!(bins.iter().all(|bin| (1790..=2210).contains(bin)), "{bins:?}");
}
