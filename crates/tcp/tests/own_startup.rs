//! The example of a user's own start-up scheme compiles and behaves as described.

#[path = "../examples/own_startup.rs"]
mod example;

use firstflight_tcp::{Profile, Startup};

#[test]
fn a_scheme_of_the_crates_user_governs_the_first_flight() {
    assert_eq!(example::first_flight(example::hasty()), [0, 10, 20, 30, 40]);
    let at_once = Profile { startup: Startup::Window, ..example::hasty() };
    assert_eq!(example::first_flight(at_once), [0; 5]);
}
