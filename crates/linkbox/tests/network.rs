//! The network in virtual time.

use firstflight_linkbox::{Event, LinkPlan, Network, Plan};
use firstflight_path::{Holding, Link, LinkOutcome, Meter, Nanos, OfferedPacket};
use firstflight_random::{Purpose, Sequence, Stream};
use proptest::prelude::*;
use serde_json::{Value, json};

const MILLISECOND: Nanos = 1_000_000;
const SEED: u64 = 5;

fn drop_tail(rate_bps: Option<u64>, delay_ns: Nanos, limit_packets: u32) -> Value {
    json!({
        "rate_bps": rate_bps, "delay_ns": delay_ns,
        "queue": {"kind": "drop_tail", "limit": {"packets": limit_packets}},
    })
}

/// Links in a row between two ports.
fn chain(links: &[Value]) -> Plan {
    let named: Vec<Value> = links
        .iter()
        .enumerate()
        .map(|(index, link)| json!({"name": format!("links[{index}]"), "forward": link, "reverse": link}))
        .collect();
    let there: Vec<Value> = (0..links.len()).map(|index| json!([format!("links[{index}]"), "forward"])).collect();
    let back: Vec<Value> = (0..links.len()).rev().map(|index| json!([format!("links[{index}]"), "reverse"])).collect();
    let plan = json!({
        "links": named,
        "ports": [{"name": "client", "address": "10.77.0.1"}, {"name": "server", "address": "10.77.0.2"}],
        "routes": [
            {"from": "client", "to": "server", "path": there},
            {"from": "server", "to": "client", "path": back},
        ],
        "duration_ns": 60_000 * MILLISECOND, "meter_interval_ns": 1000 * MILLISECOND, "seed": SEED,
    });
    Plan::from_json(&plan.to_string()).unwrap()
}

fn plain(bytes: u32) -> OfferedPacket {
    OfferedPacket { bytes, ecn_capable: false, carries_data: true, ends_train: false, connection: 0, class: 0 }
}

/// Sends packets at these times from the client and lets all happen that will.
fn send(network: &mut Network, times: &[Nanos], offered: OfferedPacket) -> Vec<Event> {
    let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
    for (packet, &time) in times.iter().enumerate() {
        network.enter(time, hop, packet as u32, offered);
    }
    std::iter::from_fn(|| network.next(Nanos::MAX - 1)).collect()
}

fn arrivals(events: &[Event]) -> Vec<(u32, Nanos)> {
    let found = events.iter().filter_map(|event| match *event {
        Event::Delivered { packet, at, .. } => Some((packet, at)),
        Event::Crossed { .. } => None,
    });
    found.collect()
}

fn outcomes(events: &[Event]) -> Vec<LinkOutcome> {
    let found = events.iter().filter_map(|event| match *event {
        Event::Crossed { outcome, .. } => Some(outcome),
        Event::Delivered { .. } => None,
    });
    found.collect()
}

/// The outcome of a link of the simulator for packets that arrive at these times.
fn simulated(plan: &Plan, times: &[Nanos], offered: OfferedPacket) -> Vec<LinkOutcome> {
    let mut link = Link::new(&plan.links[0].forward, Meter::new(1, 1), 0).unwrap();
    let [mut queue, mut loss] =
        [Purpose::Queue, Purpose::Loss].map(|purpose| Sequence::new(Stream::new(SEED, 0, purpose, 0, 0)));
    times.iter().map(|&time| link.offer(time, offered, || queue.uniform(), || loss.uniform())).collect()
}

#[test]
fn one_link_gives_the_fates_and_times_of_the_simulator() {
    let red = json!({
        "rate_bps": 10_000_000, "delay_ns": 3 * MILLISECOND, "loss": 0.01, "lose": [5, 6, 700],
        "queue": {
            "kind": "red", "limit_packets": 60, "min_threshold_packets": 5.0, "max_threshold_packets": 15.0,
            "max_probability": 0.1, "weight": 0.02, "mean_packet_bytes": 1000, "gentle": true, "ecn": true,
        },
    });
    for link in [drop_tail(Some(10_000_000), 3 * MILLISECOND, 5), red] {
        let plan = chain(&[link]);
        // Bursts of 40 that overload the link, and gaps in which it falls idle.
        let times: Vec<Nanos> = (0..2000).map(|n| n / 40 * 40 * MILLISECOND + n % 40 * MILLISECOND / 2).collect();
        let offered = OfferedPacket {
            bytes: 1500,
            ecn_capable: true,
            carries_data: true,
            ends_train: false,
            connection: 0,
            class: 0,
        };
        let events = send(&mut Network::new(&plan).unwrap(), &times, offered);
        assert_eq!(outcomes(&events), simulated(&plan, &times, offered));
        let expected: Vec<Nanos> = simulated(&plan, &times, offered)
            .iter()
            .filter_map(|outcome| match outcome {
                LinkOutcome::Arrives(time) | LinkOutcome::Marked(time) => Some(*time),
                LinkOutcome::Dropped | LinkOutcome::Lost => None,
            })
            .collect();
        assert_eq!(arrivals(&events).iter().map(|&(_, at)| at).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_copy_goes_on_as_a_packet_of_its_own_and_late_packets_are_overtaken() {
    let plan = chain(&[
        json!({
            "rate_bps": 10_000_000, "delay_ns": 3 * MILLISECOND, "queue": {"kind": "drop_tail", "limit": {"packets": 100}},
            "impairments": [
                {"kind": "reordering", "share": 0.2, "delay_ns": 53 * MILLISECOND},
                {"kind": "duplication", "share": 0.3, "delay_ns": MILLISECOND},
            ],
        }),
        drop_tail(Some(20_000_000), MILLISECOND, 100),
    ]);
    let mut network = Network::new(&plan).unwrap();
    let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
    for packet in 0..1000u32 {
        network.enter(Nanos::from(packet) * 10 * MILLISECOND, hop, packet, plain(1000));
    }
    let (mut arrived, mut copies) = (Vec::new(), 0);
    while let Some(event) = network.next(Nanos::MAX - 1) {
        match event {
            Event::Crossed { packet, copy: Some(copy), .. } => {
                copies += 1;
                network.send_copy(copy, packet + 1000);
            }
            Event::Crossed { .. } => {}
            Event::Delivered { packet, at, .. } => arrived.push((packet, at)),
        }
    }
    assert_eq!((arrived.len(), network.under_way()), (1000 + copies, 0));
    assert!((240..360).contains(&copies), "{copies}");
    let at = |number: u32| arrived.iter().find(|(packet, _)| *packet == number).map(|&(_, at)| at);
    for packet in 0..1000 {
        if let Some(copy) = at(packet + 1000) {
            assert_eq!(copy - at(packet).unwrap(), MILLISECOND, "packet {packet}");
        }
    }
    let originals = arrived.iter().filter(|(packet, _)| *packet < 1000);
    let late = originals.clone().zip(originals.skip(1)).filter(|(one, next)| next.0 < one.0).count();
    assert!((100..250).contains(&late), "{late}");
    assert_eq!(network.take_counts(0).duplicated.packets, copies as u64);
}

/// As [`simulated`], of a link whose queue decides on departure: the packets in the order in which they left it.
fn simulated_departures(plan: &Plan, times: &[Nanos], offered: OfferedPacket) -> Vec<(u32, Nanos, LinkOutcome)> {
    let spec = &plan.links[0].forward;
    let [queue_key, link_key] = Stream::new(SEED, 0, Purpose::Queue, 0, 0).bits(0);
    let mut link = Link::new(spec, Meter::new(1, 1), link_key).unwrap();
    let mut holding = Holding::<u32>::new(spec, queue_key).unwrap().unwrap();
    let mut loss = Sequence::new(Stream::new(SEED, 0, Purpose::Loss, 0, 0));
    let mut left = Vec::new();
    for (packet, &time) in times.iter().enumerate() {
        holding.offer(&mut link, time, offered, packet as u32, |_| loss.uniform(), &mut left);
    }
    holding.advance(&mut link, Nanos::MAX - 1, |_| loss.uniform(), &mut left);
    left.iter().map(|left| (left.packet, left.arrived, left.outcome)).collect()
}

#[test]
fn queues_that_decide_on_departure_and_losses_in_bursts_are_those_of_the_simulator() {
    let codel = json!({
        "limit": {"packets": 60}, "target_ns": 5 * MILLISECOND, "interval_ns": 100 * MILLISECOND, "ecn": true,
    });
    let (mut plain, mut flows) = (codel.clone(), codel);
    plain["kind"] = json!("codel");
    (flows["kind"], flows["flows"], flows["quantum_bytes"]) = (json!("fq_codel"), json!(1024), json!(1514));
    for queue in [plain, flows, json!({"kind": "priority", "limit": {"bytes": 50_000}})] {
        let plan = chain(&[json!({
            "rate_bps": 10_000_000, "delay_ns": 3 * MILLISECOND, "loss": 0.01, "queue": queue,
            "loss_model": {
                "kind": "gilbert_elliott", "to_bad": 0.01, "to_good": 0.3, "loss_in_bad": 0.9, "loss_in_good": 0.0,
            },
        })]);
        let times: Vec<Nanos> = (0..2000).map(|n| n / 400 * 400 * MILLISECOND + n % 400 * MILLISECOND / 2).collect();
        for ecn_capable in [false, true] {
            let offered = OfferedPacket {
                bytes: 1500,
                ecn_capable,
                carries_data: true,
                ends_train: false,
                connection: 9,
                class: 3,
            };
            let mut network = Network::new(&plan).unwrap();
            let events = send(&mut network, &times, offered);
            let found = events.iter().filter_map(|event| match *event {
                Event::Crossed { packet, at, outcome, .. } => Some((packet, at, outcome)),
                Event::Delivered { .. } => None,
            });
            let found: Vec<_> = found.collect();
            assert_eq!(found, simulated_departures(&plan, &times, offered));
            let count = |is: fn(&LinkOutcome) -> bool| found.iter().filter(|(_, _, outcome)| is(outcome)).count();
            let (dropped, lost) =
                (count(|outcome| *outcome == LinkOutcome::Dropped), count(|outcome| *outcome == LinkOutcome::Lost));
            assert!(lost > 20 && (dropped > 0 || ecn_capable), "{lost} lost, {dropped} dropped");
            assert_eq!(arrivals(&events).len(), 2000 - lost - dropped);
            assert_eq!(network.under_way(), 0);
            network.reset(&["links[0]".into()], 1, times[1999] + 60_000 * MILLISECOND).unwrap();
        }
    }
}

#[test]
fn a_token_bucket_gives_the_fates_and_times_of_the_simulator() {
    let mut shaped = drop_tail(Some(256_000), 3 * MILLISECOND, 50);
    shaped["burst"] = json!({"bytes": 1600});
    let plan = chain(&[shaped]);
    let times: Vec<Nanos> = (0..200).map(|n| n / 20 * 700 * MILLISECOND).collect();
    let mut network = Network::new(&plan).unwrap();
    let events = send(&mut network, &times, plain(1500));
    assert_eq!(outcomes(&events), simulated(&plan, &times, plain(1500)));
    // 1600 bytes of tokens: two packets at once, then one as soon as the 1400 that are missing have come.
    let first: Vec<Nanos> = arrivals(&events).iter().take(4).map(|&(_, at)| at - 3 * MILLISECOND).collect();
    assert_eq!(first, [0, 0, 43_750_000, 90_625_000]);
    let Some(Event::Crossed { transmission, .. }) = events.first() else { panic!("{events:?}") };
    assert_eq!(*transmission, (0, 0));
}

#[test]
fn gso_packets_are_refused_because_a_box_gets_their_segments_one_by_one() {
    let mut shaped = drop_tail(Some(256_000), 3 * MILLISECOND, 50);
    shaped["gso"] = json!({"max_segs": 5});
    let refused = Network::new(&chain(&[shaped])).unwrap_err().to_string();
    assert!(refused.contains("links[0]") && refused.contains("leave it out"), "{refused}");
}

#[test]
fn a_queue_of_5_lets_6_of_a_burst_of_32_through() {
    let plan = chain(&[drop_tail(Some(5_000_000), MILLISECOND, 5)]);
    let mut network = Network::new(&plan).unwrap();
    let events = send(&mut network, &[0; 32], plain(1500));
    let expected: Vec<(u32, Nanos)> = (0..6).map(|n| (n, Nanos::from(n + 1) * 2_400_000 + MILLISECOND)).collect();
    assert_eq!(arrivals(&events), expected);
    let counts = network.take_counts(0);
    assert_eq!((counts.offered.packets, counts.dropped.packets, counts.sent.packets), (32, 26, 6));
    assert_eq!(network.take_counts(0).offered.packets, 0);
}

#[test]
fn several_links_are_crossed_in_their_order_each_at_its_virtual_time() {
    let plan = chain(&[
        drop_tail(Some(12_000_000), 2 * MILLISECOND, 100),
        drop_tail(Some(1_200_000), 3 * MILLISECOND, 2),
        drop_tail(None, 0, 100),
    ]);
    let mut network = Network::new(&plan).unwrap();
    let events = send(&mut network, &[0; 5], plain(1500));
    // 1 ms a packet on the first link, 10 ms on the second, which holds one and two more.
    assert_eq!(arrivals(&events), [(0, 16), (1, 26), (2, 36)].map(|(packet, at)| (packet, at * MILLISECOND)));
    let links: Vec<u16> = events
        .iter()
        .filter_map(|event| match *event {
            Event::Crossed { packet: 0, link, .. } => Some(link),
            _ => None,
        })
        .collect();
    assert_eq!(links, [0, 2, 4]);
    assert_eq!(network.take_counts(2).dropped.packets, 2);
}

#[test]
fn lateness_of_the_caller_changes_neither_queue_nor_times() {
    let plan = chain(&[drop_tail(Some(10_000_000), MILLISECOND, 5), drop_tail(Some(5_000_000), MILLISECOND, 5)]);
    // Not a divisor of the links' times, so that no two things happen at one moment.
    let times: Vec<Nanos> = (0..200).map(|n| n * 700_001).collect();
    let prompt = send(&mut Network::new(&plan).unwrap(), &times, plain(1000));
    // The other caller lets time pass before each packet is reported, and polls late for events.
    let mut network = Network::new(&plan).unwrap();
    let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
    let mut late = Vec::new();
    for (packet, &time) in times.iter().enumerate() {
        assert_eq!(network.enter(time, hop, packet as u32, plain(1000)), 0);
        if packet % 7 == 6 {
            late.extend(std::iter::from_fn(|| network.next(time)));
        }
    }
    late.extend(std::iter::from_fn(|| network.next(Nanos::MAX - 1)));
    assert!(late == prompt, "what happens depends on when the caller looks");
}

#[test]
fn a_stamp_before_what_has_been_done_counts_as_come_then_and_is_told() {
    let mut network = Network::new(&chain(&[drop_tail(None, MILLISECOND, 5)])).unwrap();
    let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
    assert_eq!(network.enter(1000, hop, 0, plain(100)), 0);
    assert!(network.next(1000).is_some());
    assert_eq!(network.enter(400, hop, 1, plain(100)), 600);
    let events: Vec<_> = std::iter::from_fn(|| network.next(Nanos::MAX - 1)).collect();
    assert_eq!(arrivals(&events), [(0, 1000 + MILLISECOND), (1, 1000 + MILLISECOND)]);
}

#[test]
fn listed_packets_are_lost_and_again_after_a_reset() {
    let mut link = drop_tail(Some(10_000_000), MILLISECOND, 100);
    link["lose"] = json!([2, 4]);
    let mut network = Network::new(&chain(&[link])).unwrap();
    let lost = |events: &[Event]| {
        outcomes(events)
            .iter()
            .enumerate()
            .filter(|(_, outcome)| **outcome == LinkOutcome::Lost)
            .map(|(n, _)| n)
            .collect::<Vec<_>>()
    };
    assert_eq!(lost(&send(&mut network, &[0; 6], plain(1000))), [1, 3]);
    let later = 50 * MILLISECOND;
    assert_eq!(lost(&send(&mut network, &[later; 6], plain(1000))), [0usize; 0]);
    network.reset(&["links[0]".into()], 0, 2 * later).unwrap();
    let again = send(&mut network, &[2 * later; 6], plain(1000));
    assert_eq!(lost(&again), [1, 3]);
    assert_eq!(arrivals(&again)[0], (0, 2 * later + 1_800_000));
}

#[test]
fn a_reset_gives_the_draws_of_the_replicate_that_it_names() {
    let mut link = drop_tail(None, MILLISECOND, 100);
    link["loss"] = json!(0.5);
    let mut network = Network::new(&chain(&[link])).unwrap();
    let names = ["links[0]".to_owned()];
    let mut run = |replicate: u32, at: Nanos| {
        network.reset(&names, replicate, at).unwrap();
        outcomes(&send(&mut network, &[at; 200], plain(1000)))
    };
    let (first, second, third) = (run(0, 0), run(1, MILLISECOND), run(0, 2 * MILLISECOND));
    let relative =
        |outcomes: &[LinkOutcome]| outcomes.iter().map(|outcome| *outcome == LinkOutcome::Lost).collect::<Vec<_>>();
    assert_eq!(relative(&first), relative(&third));
    assert_ne!(relative(&first), relative(&second));
}

#[test]
fn a_link_with_packets_on_it_is_not_reset_and_nothing_is_changed() {
    let mut network = Network::new(&chain(&[drop_tail(None, 10 * MILLISECOND, 5)])).unwrap();
    let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
    network.enter(0, hop, 0, plain(100));
    assert!(network.next(0).is_some());
    let refused = network.reset(&["links[0]".into()], 0, MILLISECOND).unwrap_err().to_string();
    assert_eq!(refused, "link \"links[0]\" cannot be reset while 1 packets are on it: wait for them");
    assert!(network.next(Nanos::MAX - 1).is_some());
    network.reset(&["links[0]".into()], 0, 11 * MILLISECOND).unwrap();
    let unknown = network.reset(&["nowhere".into()], 0, 11 * MILLISECOND).unwrap_err().to_string();
    assert_eq!(unknown, "there is no link \"nowhere\" to reset; the links are \"links[0]\"");
}

#[test]
fn a_changed_link_is_another_one_from_its_reset_on() {
    let mut network = Network::new(&chain(&[drop_tail(None, 10 * MILLISECOND, 5)])).unwrap();
    let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
    let sent = |network: &mut Network, at| {
        network.enter(at, hop, 0, plain(100));
        arrivals(&std::iter::from_fn(|| network.next(Nanos::MAX - 1)).collect::<Vec<_>>())[0].1 - at
    };
    let other = chain(&[drop_tail(None, 3 * MILLISECOND, 5)]).links;
    network.change(other.clone()).unwrap();
    assert_eq!(sent(&mut network, 0), 10 * MILLISECOND);
    network.reset(&["links[0]".into()], 0, 20 * MILLISECOND).unwrap();
    assert_eq!(sent(&mut network, 20 * MILLISECOND), 3 * MILLISECOND);
    let nowhere = LinkPlan { name: "nowhere".into(), ..other[0].clone() };
    assert!(network.change(vec![nowhere]).unwrap_err().to_string().starts_with("there is no link \"nowhere\""));
}

#[test]
fn what_is_on_its_way_to_a_link_at_its_reset_comes_to_the_new_one() {
    let mut network = Network::new(&chain(&[drop_tail(None, MILLISECOND, 5), drop_tail(None, 0, 5)])).unwrap();
    let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
    network.enter(0, hop, 0, plain(100));
    assert!(network.next(0).is_some());
    network.reset(&["links[1]".into()], 0, 3 * MILLISECOND).unwrap();
    let events: Vec<_> = std::iter::from_fn(|| network.next(Nanos::MAX - 1)).collect();
    assert_eq!(arrivals(&events), [(0, 3 * MILLISECOND)]);
}

#[test]
fn plans_that_do_not_fit_together_are_refused_with_a_sentence() {
    let good = chain(&[drop_tail(None, 0, 5)]);
    let mut unknown_link = good.clone();
    unknown_link.routes[0].path[0].0 = "nowhere".into();
    let mut unknown_port = good.clone();
    unknown_port.routes[0].to = "nobody".into();
    let mut twice = good.clone();
    twice.routes[1] = twice.routes[0].clone();
    let mut same_name = good.clone();
    same_name.links.push(same_name.links[0].clone());
    for (plan, reason) in [
        (unknown_link, "the route from \"client\" to \"server\" names a link \"nowhere\" that is not there"),
        (unknown_port, "there is no port \"nobody\" for a route; there are \"client\", \"server\""),
        (twice, "there are two routes from \"client\" to 10.77.0.2: give one"),
        (same_name, "two links have the name \"links[0]\"; give each a different name"),
    ] {
        assert_eq!(Network::new(&plan).unwrap_err().to_string(), reason);
    }
    assert!(Plan::from_json("{\"links\": [], \"speed\": 1}").is_err_and(|error| error.to_string().contains("speed")));
}

proptest! {
    /// For any arrivals, processed in any portions: every packet is delivered once, dropped, lost, or
    /// still in flight; time never runs back; no packet is delivered before its links' delays are over.
    #[test]
    fn no_packet_goes_astray(
        links in prop::collection::vec((prop::option::of(1_000_000u64..50_000_000), 0u64..20, 1u32..8, 0.0f64..0.3), 1..4),
        packets in prop::collection::vec((0u64..3_000_000, 40u32..1500, 0u64..5_000_000), 1..200),
    ) {
        let specs: Vec<Value> = links.iter().map(|&(rate, delay, limit, loss)| {
            let mut link = drop_tail(rate, delay * MILLISECOND, limit);
            link["loss"] = json!(loss);
            link
        }).collect();
        let least: Nanos = links.iter().map(|&(_, delay, ..)| delay * MILLISECOND).sum();
        let mut network = Network::new(&chain(&specs)).unwrap();
        let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
        let mut entered = Vec::new();
        let (mut delivered, mut gone, mut now, mut last) = (0, 0, 0, 0);
        let mut see = |event: Event, entered: &[Nanos]| {
            let at = match event {
                Event::Delivered { packet, at, .. } => {
                    delivered += 1;
                    assert!(at >= entered[packet as usize] + least);
                    at
                }
                Event::Crossed { at, outcome, .. } => {
                    gone += usize::from(matches!(outcome, LinkOutcome::Dropped | LinkOutcome::Lost));
                    at
                }
            };
            assert!(at >= last);
            last = at;
            delivered + gone
        };
        let mut ended = 0;
        for (packet, (gap, bytes, look)) in packets.into_iter().enumerate() {
            now += gap;
            entered.push(now + network.enter(now, hop, packet as u32, plain(bytes)));
            while let Some(event) = network.next((now + look).saturating_sub(2_500_000)) {
                ended = see(event, &entered);
            }
            prop_assert_eq!(entered.len(), ended + network.under_way());
        }
        while let Some(event) = network.next(Nanos::MAX - 1) {
            ended = see(event, &entered);
        }
        prop_assert_eq!((ended, network.under_way()), (entered.len(), 0));
    }
}

#[test]
fn packets_without_a_class_have_that_of_their_route() {
    let mut plan = chain(&[json!({
        "rate_bps": 10_000_000, "delay_ns": 0, "queue": {"kind": "priority", "limit": {"packets": 10}},
    })]);
    plan.routes[0].class = 3;
    let mut network = Network::new(&plan).unwrap();
    let hop = network.route(0, "10.77.0.2".parse().unwrap()).unwrap();
    for (packet, class) in [0, 2, 0, 5].into_iter().enumerate() {
        network.enter(0, hop, packet as u32, OfferedPacket { class, ..plain(1500) });
    }
    let events: Vec<Event> = std::iter::from_fn(|| network.next(Nanos::MAX - 1)).collect();
    // The first is on the line before the others come.
    let order: Vec<u32> = arrivals(&events).into_iter().map(|(packet, _)| packet).collect();
    assert_eq!(order, [0, 3, 2, 1]);
}
