//! Feeds arbitrary text to the reader of the simulator's plans and runs accepted plans: nothing panics, and a plan is
//! refused with a sentence.
//!
//! `cargo fuzz run plan` in `crates/sim`. Time, users and rates are reduced to values that fit a second of
//! work, so that no input takes long.

#![no_main]

use firstflight_path::{LinkSpec, Nanos};
use firstflight_sim::{
    Plan,
    plan::{LinkPair, Network},
    simulate,
};
use libfuzzer_sys::fuzz_target;

const LONGEST_NS: Nanos = 1_000_000_000;
const FEW: u32 = 4;
const FASTEST_BPS: u64 = 10_000_000;

fuzz_target!(|text: &str| {
    let mut plan = match Plan::from_json(text) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    cut(&mut plan);
    if let Err(error) = simulate(&plan, 1, 0..1, true) {
        assert!(!error.to_string().is_empty());
    }
});

fn cut(plan: &mut Plan) {
    plan.duration_ns = plan.duration_ns.min(LONGEST_NS);
    plan.meter_interval_ns = plan.meter_interval_ns.map(|interval| interval.max(LONGEST_NS / 1000));
    for application in &mut plan.applications {
        application.clients = application.clients.min(FEW);
    }
    if let Some(population) = &mut plan.population {
        population.users = population.users.min(FEW);
    }
    let slow = |pair: &mut LinkPair| [&mut pair.forward, &mut pair.reverse].into_iter().for_each(cut_rate);
    match &mut plan.network {
        Some(Network::Dumbbell { bottleneck, left, right }) => {
            slow(bottleneck);
            left.iter_mut().chain(right).for_each(slow);
        }
        Some(Network::Star { hub, spokes }) => {
            slow(hub);
            spokes.iter_mut().for_each(slow);
        }
        Some(Network::Chain { links }) => links.iter_mut().for_each(slow),
        Some(Network::Tree { server, group }) => {
            server.iter_mut().for_each(slow);
            for group in group {
                group.count = group.count.min(FEW);
                slow(&mut group.link);
                group.draw = Default::default();
            }
        }
        None => {}
    }
}

fn cut_rate(link: &mut LinkSpec) {
    link.rate_bps = Some(link.rate_bps.map_or(FASTEST_BPS, |rate| rate.min(FASTEST_BPS)));
    link.rate_schedule = None;
}
