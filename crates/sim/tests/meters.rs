//! The links' meters, per interval.

mod world;

use serde_json::json;
use world::{profile, run, web};

#[test]
fn short_intervals_add_up_to_the_whole_run() {
    let mut plan = web(16, 2, &profile("rfc", json!({})));
    plan["meter_interval_ns"] = json!(70_000_000);
    let fine = run(&plan, 4).links;
    plan.as_object_mut().unwrap().remove("meter_interval_ns");
    let whole = run(&plan, 4).links;
    for (row, &link) in whole.link.iter().enumerate() {
        let of_link = || (0..fine.link.len()).filter(|&row| fine.link[row] == link);
        let sum = |column: &[u64]| of_link().map(|row| column[row]).sum::<u64>();
        assert_eq!(sum(&fine.offered_packets), whole.offered_packets[row]);
        assert_eq!(sum(&fine.dropped_packets), whole.dropped_packets[row]);
        assert_eq!(sum(&fine.sent_packets), whole.sent_packets[row]);
        assert_eq!(sum(&fine.sent_bytes), whole.sent_bytes[row]);
        let seconds: f64 = of_link().map(|row| fine.interval_s[row]).sum();
        assert!((seconds - 60.0).abs() < 1e-6);
        let busy: f64 = of_link().map(|row| fine.busy_s[row]).sum();
        assert!((busy - whole.busy_s[row]).abs() < 1e-6);
        let waited: f64 = of_link().map(|row| fine.queue_mean_packets[row] * fine.interval_s[row]).sum();
        assert!((waited / 60.0 - whole.queue_mean_packets[row]).abs() < 1e-9);
        assert_eq!(of_link().map(|row| fine.queue_max_packets[row]).max(), Some(whole.queue_max_packets[row]));
    }
}

#[test]
fn no_interval_has_more_waiting_on_average_than_at_its_worst() {
    let mut plan = web(32, 3, &profile("rfc", json!({})));
    // Shorter than the transmission of a packet: in most intervals no packet arrives.
    plan["meter_interval_ns"] = json!(5_000_000);
    plan["duration_ns"] = json!(20_000_000_000u64);
    let links = run(&plan, 4).links;
    let mut waited = 0;
    for row in 0..links.link.len() {
        assert!(links.queue_mean_packets[row] <= f64::from(links.queue_max_packets[row]) + 1e-9);
        assert!(links.busy_s[row] <= links.interval_s[row] + 1e-12);
        waited += u32::from(links.queue_mean_packets[row] > 20.0);
    }
    assert!(waited > 100, "the bottleneck's queue filled only {waited} times");
}

#[test]
fn the_bottleneck_is_utilised_by_what_it_sent() {
    let links = run(&web(16, 2, &profile("rfc", json!({}))), 4).links;
    for row in 0..links.link.len() {
        // The bottleneck is the first pair of links; a packet may straddle two intervals.
        if links.link[row] < 2 {
            let sent_s = links.sent_bytes[row] as f64 * 8.0 / 1.5e6;
            assert!((sent_s - links.busy_s[row]).abs() < 0.0085, "{sent_s} s of {}", links.busy_s[row]);
        }
    }
}
