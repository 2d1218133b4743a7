//! The tournament tree against a plain sort.

use firstflight_sim::{Deadline, scheduler::Scheduler};
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
        let event = |queue: &Vec<(u64, u64)>, index: usize| queue.iter().rev().nth(index).copied();
        for (source, queue) in queues.iter().enumerate() {
            tree.set(source as u32, event(queue, 0).map(|(time, _)| time).into());
        }
        let mut left = Vec::new();
        loop {
            let (time, mut source) = tree.earliest();
            if time == tree.end_of_time() {
                break;
            }
            let following = |source| Deadline::from(event(&queues[source as usize], 1).map(|(time, _)| time));
            if !tree.follow(time, source, following(source)) {
                tree.set(source, Deadline::at(time));
                source = tree.first_scheduled(|source| event(&queues[source as usize], 0).unwrap().1);
                tree.set(source, following(source));
            }
            let event = queues[source as usize].pop().unwrap();
            prop_assert_eq!(event.0, time);
            left.push(event);
        }
        prop_assert_eq!(left, expected);
    }
}

#[test]
fn what_no_key_has_room_for_never_happens() {
    let mut tree = Scheduler::new(3);
    for next in [Deadline::at(tree.end_of_time()), Deadline::NEVER] {
        tree.set(1, next);
        assert_eq!(tree.earliest().0, tree.end_of_time());
    }
    tree.set(2, Deadline::at(tree.end_of_time() - 1));
    assert_eq!(tree.earliest(), (tree.end_of_time() - 1, 2));
}
