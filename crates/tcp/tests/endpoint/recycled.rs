//! An endpoint in the memory of a connection that is over behaves as a new one.

use crate::wire::*;
use firstflight_tcp::{Endpoint, Nanos, Profile, Segment};
use std::sync::Arc;

/// What both ends send in a transfer with losses that is left before its end.
fn transfer(client: Endpoint, server: Endpoint) -> (Wire, Vec<(Nanos, Side, Segment)>) {
    let mut wire = Wire::new(&rfc(), 20 * MS);
    (wire.client, wire.server) = (client, server);
    wire.lose_data_of_server(20 * MS, &[5, 6, 30, 61]);
    wire.client.connect(0);
    wire.client.write(0, 400);
    wire.run_until(100 * MS);
    wire.server.end_record();
    wire.server.write(wire.now, 150_000);
    wire.run_until(2 * SECOND);
    wire.server.write(wire.now, 200_000);
    wire.run_until(wire.now + 50 * MS);
    let sent = wire.log.iter().map(|sent| (sent.at, sent.from, sent.segment)).collect();
    (wire, sent)
}

fn new(profile: &Arc<Profile>) -> (Endpoint, Endpoint) {
    (Endpoint::client(Arc::clone(profile), CLIENT_ISN), Endpoint::server(Arc::clone(profile), SERVER_ISN))
}

#[test]
fn a_connection_in_the_memory_of_another_sends_what_a_new_one_sends() {
    let with = |congestion_control| Profile { congestion_control, ..Profile::linux() };
    let profiles = [rfc(), ns2()].into_iter().chain(congestion_controls().into_iter().map(with));
    let profiles: Vec<_> = profiles.map(Arc::new).collect();
    for after in &profiles {
        let (client, server) = new(after);
        let (_, expected) = transfer(client, server);
        assert!(expected.len() > 100, "{} segments", expected.len());
        for before in &profiles {
            let (client, server) = new(before);
            let (mut wire, _) = transfer(client, server);
            wire.client.restart_as_client(after, CLIENT_ISN);
            wire.server.restart_as_server(after, SERVER_ISN);
            let (_, found) = transfer(wire.client, wire.server);
            assert!(found == expected, "{:?} after {:?}", after.congestion_control, before.congestion_control);
        }
    }
}
