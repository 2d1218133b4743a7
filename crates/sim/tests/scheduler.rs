//! The tournament tree against a plain sort.

use firstflight_sim::scheduler::{IDLE, Scheduler, key};
use proptest::prelude::*;

proptest! {
    #[test]
    fn events_leave_in_the_order_of_time_and_then_of_scheduling(
        times in prop::collection::vec(prop::collection::vec(0u64..50, 0..20), 1..40),
    ) {
        // Each source hands in its own events in order, as a link does.
        let mut queues: Vec<Vec<(u64, u64)>> = Vec::new();
        let mut order = 0;
        for times in &times {
            let mut times = times.clone();
            times.sort_unstable();
            let mut queue: Vec<(u64, u64)> = times.iter().map(|&time| { order += 1; (time, order) }).collect();
            queue.reverse();
            queues.push(queue);
        }
        let mut expected: Vec<(u64, u64)> = queues.iter().flatten().copied().collect();
        expected.sort_unstable();

        let mut tree = Scheduler::new(queues.len());
        let head = |queue: &Vec<(u64, u64)>, source: usize| {
            queue.last().map_or(IDLE, |&(time, order)| key(time, order, source as u32))
        };
        for (source, queue) in queues.iter().enumerate() {
            tree.set(source as u32, head(queue, source));
        }
        let mut left = Vec::new();
        while let Some((time, source)) = tree.next() {
            let event = queues[source as usize].pop().unwrap();
            prop_assert_eq!(event.0, time);
            left.push(event);
            tree.set(source, head(&queues[source as usize], source as usize));
        }
        prop_assert_eq!(left, expected);
    }
}
