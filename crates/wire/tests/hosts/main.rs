//! Two hosts on a wire in virtual time.

mod disturbed;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU16,
    rc::Rc,
    sync::Arc,
};

use disturbed::{Disturbance, Disturbed};
use firstflight_segment::{read_packet, write_packet_with, write_payload};
use firstflight_tcp::{Choices, Deadline, Flags, Nanos, Profile, Segment, Startup};
use firstflight_wire::{
    End, Host, Listener, Opening, Report, Response, Wire,
    http::{Client, Fetch, Server},
};
use sha2::{Digest, Sha256};

const MS: Nanos = 1_000_000;
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Packets in flight, by when they arrive; ties in the order of sending.
type InFlight = Rc<RefCell<BTreeMap<(Nanos, u64), (usize, Vec<u8>)>>>;

/// One host's end of the wire.
struct Side {
    side: usize,
    now: Nanos,
    delay: Nanos,
    sent: u64,
    in_flight: InFlight,
    disturbed: Disturbed,
}

impl Wire for Side {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn send(&mut self, packet: &[u8]) {
        let (at, side) = (self.now + self.delay, self.side);
        let (in_flight, sent) = (&self.in_flight, &mut self.sent);
        self.disturbed.pass(packet, |packet| {
            *sent += 1;
            in_flight.borrow_mut().insert((at, 2 * *sent + side as u64), (1 - side, packet.to_vec()));
        });
    }
}

struct World {
    hosts: [Host; 2],
    ends: [Side; 2],
    in_flight: InFlight,
    reports: Vec<(usize, Report)>,
}

impl World {
    fn new(server: &Profile, disturbance: Disturbance) -> World {
        let in_flight = InFlight::default();
        let end = |side| Side {
            side,
            now: 0,
            delay: 10 * MS,
            sent: 0,
            in_flight: Rc::clone(&in_flight),
            disturbed: Disturbed::new(disturbance, side as u64),
        };
        let mut hosts = [Host::new(CLIENT, 1), Host::new(SERVER, 2)];
        let profile = Arc::new(server.clone());
        hosts[1].listen(Listener { port: 80, profile, application: Box::new(|| Box::new(Server::new(0))) });
        World { hosts, ends: [end(0), end(1)], in_flight, reports: Vec::new() }
    }

    fn fetch(&mut self, client: &Profile, fetch: Fetch) -> u32 {
        let now = self.ends[0].now;
        let opening = Opening {
            peer: fetch.server,
            profile: Arc::new(client.clone()),
            application: Box::new(move |number| Box::new(Client::new(fetch, number, now))),
        };
        self.hosts[0].open(opening, &mut self.ends[0]).unwrap().0
    }

    /// Runs until nothing is to happen before `end`.
    fn run(&mut self, end: Nanos) {
        loop {
            let arrival: Deadline = self.in_flight.borrow().keys().next().map(|&(at, _)| at).into();
            let timer = self.hosts.iter().map(Host::poll_timeout).min().unwrap();
            let Some(now) = arrival.earliest(timer).time().filter(|&now| now <= end) else { break };
            self.ends.iter_mut().for_each(|side| side.now = now);
            if arrival <= timer {
                let (_, (side, packet)) = self.in_flight.borrow_mut().pop_first().unwrap();
                self.hosts[side].handle_packet(&packet, &mut self.ends[side]);
            } else {
                for side in 0..2 {
                    self.hosts[side].handle_timeout(&mut self.ends[side]);
                }
            }
            for side in 0..2 {
                self.reports.extend(self.hosts[side].poll_reports().into_iter().map(|report| (side, report)));
            }
        }
    }

    fn responses(&self) -> Vec<&Response> {
        let response = |(_, report): &'_ (usize, Report)| matches!(report, Report::Response(_));
        self.reports
            .iter()
            .filter(|&entry| response(entry))
            .map(|(_, report)| match report {
                Report::Response(response) => &**response,
                Report::Connection(_) => unreachable!(),
            })
            .collect()
    }

    fn ends(&self) -> Vec<(usize, End)> {
        let end = |(side, report): &(usize, Report)| match report {
            Report::Connection(facts) => Some((*side, facts.end)),
            Report::Response(_) => None,
        };
        self.reports.iter().filter_map(end).collect()
    }
}

fn fetch(paths: &[&str]) -> Fetch {
    Fetch {
        fetch: 0,
        server: "10.0.0.2:80".parse().unwrap(),
        paths: paths.iter().map(|&path| path.to_owned()).collect(),
        close: false,
        request_bytes: 0,
        sha256: true,
        most_ns: None,
    }
}

fn digest(bytes: u32) -> String {
    let mut body = Vec::new();
    write_payload(0, bytes, &mut body);
    Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn assert_fetched(world: &World, sizes: &[u32]) {
    let got: Vec<_> = world.responses().iter().map(|one| (one.status, one.error.clone(), one.sha256.clone())).collect();
    let expected: Vec<_> = sizes.iter().map(|&size| (200, None, Some(digest(size)))).collect();
    assert_eq!(got, expected);
}

#[test]
fn files_of_any_size_arrive_whole_and_both_sides_close() {
    let mut world = World::new(&Profile::linux(), Disturbance::default());
    world.fetch(&Profile::linux(), fetch(&["/0", "/1", "/100000", "/1447"]));
    world.run(60_000 * MS);
    assert_fetched(&world, &[0, 1, 100_000, 1447]);
    assert_eq!(world.ends(), [(0, End::Closed), (1, End::Closed)]);
    // The client closed first, so it lingers, and is then forgotten.
    assert_eq!(world.hosts.iter().map(Host::connections).collect::<Vec<_>>(), [1, 0]);
    world.run(120_000 * MS);
    assert_eq!(world.hosts[0].connections(), 0);
}

#[test]
fn bytes_are_equal_whatever_the_wire_does_to_packets() {
    let rules = [
        Disturbance { lose: 0.02, ..Disturbance::default() },
        Disturbance { duplicate: 0.05, ..Disturbance::default() },
        Disturbance { reorder: 0.02, reorder_by: 4, ..Disturbance::default() },
        Disturbance { lose: 0.02, duplicate: 0.02, reorder: 0.05, reorder_by: 9, seed: 3 },
    ];
    for profile in [Profile::linux(), Profile::rfc(), Profile::ns2_full_1998()] {
        for disturbance in rules {
            let mut world = World::new(&profile, disturbance);
            world.fetch(&profile, Fetch { close: true, ..fetch(&["/1000000", "/77"]) });
            world.run(600_000 * MS);
            assert_fetched(&world, &[1_000_000, 77]);
        }
    }
}

#[test]
fn start_up_schemes_send_real_bytes() {
    for mut startup in Choices::all().startup {
        if let Startup::QuickStart { rate, .. } = &mut startup {
            // It has no default.
            *rate = 10;
        }
        let mut world = World::new(&Profile { startup, ..Profile::linux() }, Disturbance::default());
        world.fetch(&Profile::linux(), fetch(&["/300000"]));
        world.run(60_000 * MS);
        assert_fetched(&world, &[300_000]);
    }
}

#[test]
fn a_segment_of_no_connection_is_reset() {
    let mut world = World::new(&Profile::linux(), Disturbance::default());
    world.fetch(&Profile::linux(), Fetch { server: "10.0.0.2:81".parse().unwrap(), ..fetch(&["/1"]) });
    world.run(1000 * MS);
    assert_eq!(world.responses()[0].error.as_deref(), Some("the connection was refused"));
    assert_eq!(world.ends(), [(0, End::Reset)]);
    assert_eq!((world.hosts[1].traffic().refused, world.hosts[0].connections()), (1, 0));
}

#[test]
fn a_client_gives_up_when_its_time_is_over() {
    let nothing = Disturbance { lose: 1.0, ..Disturbance::default() };
    let mut world = World::new(&Profile::linux(), nothing);
    world.fetch(&Profile::linux(), Fetch { most_ns: Some(500 * MS), ..fetch(&["/1"]) });
    world.run(1000 * MS);
    assert_eq!(world.responses()[0].error.as_deref(), Some("the time given for it was over"));
    assert_eq!((world.ends(), world.hosts[0].connections()), (vec![(0, End::Aborted)], 0));
}

#[test]
fn a_syn_takes_the_place_of_a_connection_in_time_wait() {
    let mut world = World::new(&Profile::linux(), Disturbance::default());
    world.fetch(&Profile::linux(), Fetch { close: true, ..fetch(&["/1"]) });
    world.run(1000 * MS);
    // The server closed first, so it is the one that lingers.
    assert_eq!(world.hosts.iter().map(Host::connections).collect::<Vec<_>>(), [0, 1]);
    let syn = |seq| Segment { seq, flags: Flags::SYN, window: 1000, mss: NonZeroU16::new(1460), ..Segment::EMPTY };
    let mut answers = Vec::new();
    for seq in [0u32, 1 << 31] {
        let [from, to] = ["10.0.0.1:49152", "10.0.0.2:80"].map(|end| end.parse().unwrap());
        let envelope = firstflight_segment::Envelope::between(from, to);
        let mut packet = Vec::new();
        write_packet_with(&syn(seq), &envelope, &[], &mut packet).unwrap();
        world.hosts[1].handle_packet(&packet, &mut world.ends[1]);
        let (_, (_, answer)) = world.in_flight.borrow_mut().pop_first().unwrap();
        answers.push(read_packet(&answer).unwrap().segment.flags);
    }
    // One of two numbers half the circle apart is new, the other is old: a new one opens, an old one is challenged.
    answers.sort_by_key(|flags| flags.bits());
    assert_eq!(answers, [Flags::ACK, Flags::SYN | Flags::ACK]);
}

#[test]
fn remembered_windows_grow_from_connection_to_connection() {
    let profile = Profile {
        initial_window: serde_json::from_str(r#"{"policy": "remembered", "of": "closed"}"#).unwrap(),
        ..Profile::linux()
    };
    let mut world = World::new(&profile, Disturbance::default());
    for turn in 0..3u64 {
        world.fetch(&Profile::linux(), Fetch { close: true, ..fetch(&["/300000"]) });
        world.run((turn + 1) * 5_000 * MS);
    }
    // Though the server, which closes first, keeps each in TIME-WAIT.
    assert_eq!(world.hosts[1].connections(), 3);
    let windows: Vec<u32> = world
        .reports
        .iter()
        .filter_map(|(side, report)| match report {
            Report::Connection(facts) if *side == 1 => Some(facts.initial_window_segments),
            _ => None,
        })
        .collect();
    assert_eq!(windows[0], 10);
    assert!(windows[1] > 10 && windows[2] >= windows[1], "{windows:?}");
}

#[test]
fn a_host_that_stops_tells_of_what_was_open() {
    let mut world = World::new(&Profile::linux(), Disturbance::default());
    world.fetch(&Profile::linux(), fetch(&["/100000000"]));
    world.run(100 * MS);
    world.hosts[0].stop(&mut world.ends[0]);
    world.run(200 * MS);
    assert_eq!(world.ends(), [(0, End::Stopped), (1, End::Reset)]);
    assert_eq!(world.responses()[0].error.as_deref(), Some("the client was stopped before all had come"));
}
