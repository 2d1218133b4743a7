//! The example of a user's own controller compiles and behaves as described.

#[path = "../examples/own_controller.rs"]
mod example;

use std::cell::RefCell;
use std::sync::Arc;

use firstflight_tcp::{
    Acknowledged, Bytes, CongestionAlgorithm, CongestionControl, CustomController, Endpoint, Nanos, Profile, Start,
    Window,
};

const MSS: u32 = 1460;

thread_local! {
    /// When [`Listener`] heard of a start, and of the data sent before it.
    static STARTS: RefCell<Vec<(Nanos, Option<Nanos>)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps cwnd as it is.
#[derive(Clone, Debug)]
struct Listener;

impl CongestionControl for Listener {
    fn on_start(&mut self, _window: &mut Window, now: Nanos, last_sent_at: Option<Nanos>) {
        STARTS.with_borrow_mut(|starts| starts.push((now, last_sent_at)));
    }

    fn on_ack(&mut self, _window: &mut Window, _now: Nanos, _acknowledged: Acknowledged) {}

    fn on_congestion(&mut self, _window: &mut Window, _now: Nanos, _flight: Bytes) {}

    fn on_timeout(&mut self, _window: &mut Window, _now: Nanos, _flight: Bytes, _first: bool) {}
}

#[test]
fn a_controller_hears_of_data_that_is_sent_with_nothing_in_flight() {
    let algorithm = CustomController { name: "listener", build: |_| Box::new(Listener) };
    let profile = Arc::new(Profile { congestion_control: CongestionAlgorithm::Custom(algorithm), ..Profile::rfc() });
    let mut ends = [Endpoint::client(Arc::clone(&profile), 1), Endpoint::server(profile, 2)];
    let delivered = |ends: &mut [Endpoint; 2], now: Nanos| {
        let mut segments = 0;
        loop {
            let mut any = false;
            for side in 0..2 {
                while let Some(segment) = ends[side].poll_transmit(now) {
                    segments += u32::from(segment.payload_bytes > 0);
                    ends[1 - side].handle_segment(now, &segment);
                    any = true;
                }
            }
            if !any {
                return segments;
            }
        }
    };
    ends[0].connect(0);
    delivered(&mut ends, 0);
    for now in [1_000_000, 2_000_000] {
        let two = 2 * u64::from(ends[0].mss_bytes());
        ends[0].write(now, two);
        assert_eq!(delivered(&mut ends, now), 2);
        ends[1].handle_timeout(now + 900_000);
        delivered(&mut ends, now + 900_000);
        assert_eq!(ends[0].flight_bytes(), 0);
    }
    let starts = STARTS.take();
    assert_eq!(starts, [(1_000_000, None), (2_000_000, Some(1_000_000))]);
}

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
fn a_controller_is_tried_without_a_connection() {
    let CongestionAlgorithm::Custom(gentle) = example::gentle().congestion_control else { panic!("the user's own") };
    let start = Start::new(MSS, 10 * MSS);
    assert_eq!((start.loss_window_bytes, start.rtt), (MSS, None));
    (gentle.build)(&start);
}

#[test]
fn a_controller_is_known_by_its_name() {
    let CongestionAlgorithm::Custom(gentle) = example::gentle().congestion_control else { panic!("the user's own") };
    assert_eq!(gentle, CustomController { name: "gentle", ..gentle });
    assert_ne!(gentle, CustomController { name: "harsh", ..gentle });
}
