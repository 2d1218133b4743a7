//! The example of a user's own controller compiles and behaves as described.

#[path = "../examples/own_controller.rs"]
mod example;

use firstflight_tcp::{CongestionAlgorithm, CustomController, Profile};

#[test]
fn a_controller_of_the_crates_user_governs_the_window() {
    let gentle = example::transfer(example::gentle());
    let cubic = example::transfer(Profile::linux());
    assert_eq!(gentle[..3], cubic[..3], "both begin with the initial window");
    let after_loss = |windows: &[u32]| windows.windows(2).find(|pair| pair[1] < pair[0]).map(|pair| pair[1]);
    // Both enter recovery with the same cwnd, CUBIC keeps 0.7 of it and the example 0.875.
    assert!(after_loss(&gentle) > after_loss(&cubic), "{gentle:?} {cubic:?}");
}

#[test]
fn a_controller_is_known_by_its_name() {
    let CongestionAlgorithm::Custom(gentle) = example::gentle().congestion_control else { panic!("the user's own") };
    assert_eq!(gentle, CustomController { name: "gentle", ..gentle });
    assert_ne!(gentle, CustomController { name: "harsh", ..gentle });
}
