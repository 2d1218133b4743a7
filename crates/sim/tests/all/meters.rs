//! The links' meters, per interval.

use crate::world::{profile, run, web};
use firstflight_sim::records::LinkInterval;
use serde_json::json;

#[test]
fn short_intervals_add_up_to_the_whole_run() {
    let mut plan = web(16, 2, &profile("rfc", json!({})));
    plan["meter_interval_ns"] = json!(70_000_000);
    let fine = run(&plan, 4).links;
    plan.as_object_mut().unwrap().remove("meter_interval_ns");
    let whole = run(&plan, 4).links;
    for whole in &whole {
        let of_link = || fine.iter().filter(|row| row.link == whole.link);
        let sum = |count: fn(&LinkInterval) -> u64| of_link().map(count).sum::<u64>();
        assert_eq!(sum(|row| row.offered_packets), whole.offered_packets);
        assert_eq!(sum(|row| row.dropped_packets), whole.dropped_packets);
        assert_eq!(sum(|row| row.sent_packets), whole.sent_packets);
        assert_eq!(sum(|row| row.sent_bytes), whole.sent_bytes);
        let seconds: f64 = of_link().map(|row| row.interval_s).sum();
        assert!((seconds - 60.0).abs() < 1e-6);
        let busy: f64 = of_link().map(|row| row.busy_s).sum();
        assert!((busy - whole.busy_s).abs() < 1e-6);
        let waited: f64 = of_link().map(|row| row.queue_mean_packets * row.interval_s).sum();
        assert!((waited / 60.0 - whole.queue_mean_packets).abs() < 1e-9);
        assert_eq!(of_link().map(|row| row.queue_max_packets).max(), Some(whole.queue_max_packets));
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
    for row in &links {
        assert!(row.queue_mean_packets <= f64::from(row.queue_max_packets) + 1e-9);
        assert!(row.busy_s <= row.interval_s + 1e-12);
        waited += u32::from(row.queue_mean_packets > 20.0);
    }
    assert!(waited > 100, "the bottleneck's queue filled only {waited} times");
}

#[test]
fn the_bottleneck_is_utilised_by_what_it_sent() {
    let links = run(&web(16, 2, &profile("rfc", json!({}))), 4).links;
    for row in &links {
        // The bottleneck is the first pair of links; a packet may straddle two intervals.
        if row.link < 2 {
            let sent_s = row.sent_bytes as f64 * 8.0 / 1.5e6;
            assert!((sent_s - row.busy_s).abs() < 0.0085, "{sent_s} s of {}", row.busy_s);
        }
    }
}
