//! What holds for every queue, loss, rate and impairment. They come from the library's own list, so a new one is tested too.

use firstflight_path::{
    Field, Holding, Link, LinkOutcome, LinkSpec, Meter, Nanos, OfferedPacket, Part, parts,
    queue::{DropTailSpec, Limit, QueueSpec},
};
use serde_json::{Value, json};

const MS: Nanos = 1_000_000;
const END: Nanos = 20_000 * MS;

/// The keys of a part with its defaults, and with others where it has none.
fn example(part: &Part) -> Value {
    let kind: String = (part.name.char_indices())
        .flat_map(|(at, letter)| (at > 0 && letter.is_uppercase()).then_some('_').into_iter().chain([letter]))
        .collect();
    let mut table = json!({ "kind": kind.to_lowercase() });
    for Field { name, r#type, default, .. } in &part.fields {
        table[*name] = default.clone().unwrap_or_else(|| match r#type.as_str() {
            Some("limit") => json!({"packets": 20}),
            Some("number") => json!(0.25),
            Some("u32" | "u64") => json!(20),
            Some("integers") => json!([1, 3, 7]),
            Some("rates by time") => json!([[0, 1_000_000], [1000 * MS, 4_000_000]]),
            other => panic!("a value of the type {other:?} for {name} of {}", part.name),
        });
    }
    table
}

/// A link with a part at its place.
fn link(place: &str, part: &Value) -> Value {
    let mut link = json!({
        "rate_bps": 2_000_000, "delay_ns": 10 * MS, "queue": {"kind": "drop_tail", "limit": {"bytes": 30_000}},
    });
    link[place] = if place == "impairments" { json!([part]) } else { part.clone() };
    link
}

fn read(link: &Value) -> Result<LinkSpec, String> {
    let spec: LinkSpec = serde_json::from_value(link.clone()).map_err(|error| error.to_string())?;
    spec.check().map(|()| spec).map_err(|error| error.to_string())
}

#[test]
fn a_link_is_written_without_what_is_not_set() {
    let queue = QueueSpec::DropTail(DropTailSpec { limit: Limit::Packets(20), counts_packet_in_service: false });
    let Value::Object(written) = json!(LinkSpec::plain(Some(2_000_000), 10 * MS, queue)) else { panic!("no table") };
    let keys: Vec<&String> = written.keys().collect();
    assert_eq!(keys, ["delay_ns", "lose", "loss", "queue", "rate_bps"]);
}

fn examples() -> impl Iterator<Item = (&'static str, Part, Value)> {
    parts().into_iter().flat_map(|(place, parts)| {
        parts.into_iter().map(move |part| {
            let table = example(&part);
            (place, part, table)
        })
    })
}

#[test]
fn every_part_is_read_as_it_is_written_and_has_words_for_each_of_its_parameters() {
    assert!(examples().count() >= 13);
    for (place, part, table) in examples() {
        let spec = read(&link(place, &table)).unwrap_or_else(|error| panic!("{table}: {error}"));
        let written = &serde_json::to_value(&spec).unwrap()[place];
        assert_eq!(if place == "impairments" { &written[0] } else { written }, &table);
        assert!(!part.doc.is_empty() && part.fields.iter().all(|field| !field.doc.is_empty()), "{}", part.name);
    }
}

#[test]
fn every_part_refuses_a_key_that_it_does_not_have() {
    for (place, _, mut table) in examples() {
        table["nosuch"] = json!(1);
        let refusal = read(&link(place, &table)).unwrap_err();
        assert!(refusal.contains("unknown field `nosuch`"), "{table}: {refusal}");
    }
}

#[test]
fn every_part_refuses_a_value_beyond_each_of_its_bounds() {
    for (place, part, table) in examples() {
        for Field { name, bounds, .. } in &part.fields {
            for (relation, bound) in bounds {
                let beyond = bound.as_f64().unwrap()
                    + match *relation {
                        ">=" => -1.0,
                        "<=" => 1.0,
                        _ => 0.0,
                    };
                let mut beyond_it = table.clone();
                beyond_it[*name] = if bound.is_f64() { json!(beyond) } else { json!(beyond as i64) };
                let refusal = read(&link(place, &beyond_it)).unwrap_err();
                assert!(refusal.starts_with(&format!("{name} is {beyond}")), "{beyond_it}: {refusal}");
            }
        }
    }
}

/// A burst of packets every 10 ms, twice what the link can send, and time to send the rest.
fn carried(spec: &LinkSpec) -> Vec<(u64, LinkOutcome, Option<Nanos>)> {
    let mut link = Link::new(spec, Meter::new(END, END), 7).unwrap();
    let mut holding = Holding::new(spec, 7).unwrap();
    assert_eq!(holding.is_some(), spec.queue.decides_on_departure());
    let mut draw = 0u64;
    let mut uniform = move || {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draw >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut became, mut left) = (Vec::new(), Vec::new());
    for number in 0..2000u64 {
        let now = number / 10 * 10 * MS;
        let packet = OfferedPacket {
            bytes: 500,
            ecn_capable: number % 3 == 0,
            carries_data: true,
            ends_train: false,
            connection: (number % 4) as u32,
            class: (number % 4) as u8,
        };
        match &mut holding {
            Some(holding) => holding.offer(&mut link, now, packet, number, |_| 0.5, &mut left),
            None => {
                let outcome = link.offer(now, packet, &mut uniform, || 0.5 + number as f64 * 1e-6);
                let arrives = matches!(outcome, LinkOutcome::Arrives(_) | LinkOutcome::Marked(_));
                became.push((number, outcome, link.copy().filter(|_| arrives)));
            }
        }
    }
    if let Some(holding) = &mut holding {
        holding.advance(&mut link, END - 1, |_| 0.5, &mut left);
    }
    became.extend(left.iter().map(|left| (left.packet, left.outcome, left.copy)));
    let [(_, _, found)] = link.meter().intervals().collect::<Vec<_>>()[..] else { panic!("one interval") };
    let count = |is: fn(&LinkOutcome) -> bool| became.iter().filter(|(_, outcome, _)| is(outcome)).count() as u64;
    assert_eq!(found.offered_packets, 2000);
    assert_eq!(found.dropped_packets, count(|outcome| *outcome == LinkOutcome::Dropped));
    assert_eq!(found.lost_packets, count(|outcome| *outcome == LinkOutcome::Lost));
    assert_eq!(found.marked_packets, count(|outcome| matches!(outcome, LinkOutcome::Marked(_))));
    assert_eq!(found.duplicated_packets, became.iter().filter(|(_, _, copy)| copy.is_some()).count() as u64);
    became
}

#[test]
fn every_part_decides_once_on_each_packet_lets_some_pass_and_does_the_same_again() {
    for (place, part, table) in examples() {
        let spec = read(&link(place, &table)).unwrap();
        let became = carried(&spec);
        let mut numbers: Vec<u64> = became.iter().map(|(number, ..)| *number).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..2000), "{}", part.name);
        let arrived = became.iter().filter(|(_, outcome, _)| {
            matches!(outcome, LinkOutcome::Arrives(at) | LinkOutcome::Marked(at) if *at >= spec.delay_ns)
        });
        assert!(arrived.count() > 200, "{}", part.name);
        assert_eq!(became, carried(&spec), "{}", part.name);
    }
}

#[test]
fn the_limit_of_every_queue_but_red_can_be_drawn() {
    for (_, part, table) in examples().filter(|(place, ..)| *place == "queue") {
        let mut queue: QueueSpec = serde_json::from_value(table).unwrap();
        queue.set_limit(0);
        let limit = &serde_json::to_value(queue).unwrap()["limit"];
        assert_eq!(*limit, if part.name == "Red" { Value::Null } else { json!({"bytes": 1}) });
    }
}
