//! Connections by the packets that they consist of.

use std::{collections::HashMap, net::SocketAddr};

use firstflight_records::NO_CONNECTION;
use firstflight_segment::{Flags, Ip, TCP, Tcp, UDP, ports};

/// Connections beyond these are not distinguished.
const MOST: usize = 1 << 20;

/// A packet's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Counted from 0, or [`NO_CONNECTION`].
    pub(crate) connection: u32,
    pub(crate) from_server: bool,
}

/// The connections seen so far.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// By protocol and ends, the one with the lower address first: the number, and the first sequence number.
    numbers: HashMap<(u8, SocketAddr, SocketAddr), (u32, u32)>,
    /// The ends of each, by number: the client, which sent its first packet, and the server.
    pub(crate) ends: Vec<[SocketAddr; 2]>,
}

impl Connections {
    /// The connection of a whole IP packet, of which the headers suffice. A new one begins with a packet between ends
    /// without one, and with a SYN that is not the repetition of theirs.
    pub(crate) fn of(&mut self, packet: &[u8]) -> Member {
        let nobody = Member { connection: NO_CONNECTION, from_server: false };
        let Some(Seen { protocol, from, to, begins_with }) = Seen::at(packet) else { return nobody };
        let key = if from < to { (protocol, from, to) } else { (protocol, to, from) };
        let known = self.numbers.get(&key).copied();
        let number = match (known, begins_with) {
            (Some((number, first)), Some(seq)) if first == seq => number,
            (Some((number, _)), None) => number,
            _ if self.ends.len() >= MOST => return nobody,
            _ => {
                let number = self.ends.len() as u32;
                self.ends.push([from, to]);
                self.numbers.insert(key, (number, begins_with.unwrap_or_default()));
                number
            }
        };
        Member { connection: number, from_server: self.ends[number as usize][1] == from }
    }

    /// Forgets all; numbers begin with 0 again.
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.ends.clear();
    }
}

/// The fields of a packet that identify its connection.
struct Seen {
    protocol: u8,
    from: SocketAddr,
    to: SocketAddr,
    /// The sequence number of a SYN that opens a connection.
    begins_with: Option<u32>,
}

impl Seen {
    fn at(packet: &[u8]) -> Option<Seen> {
        let ip = Ip::at(packet).filter(|ip| !ip.is_later_fragment)?;
        let protocol = ip.protocol;
        let body = packet.get(ip.header_bytes..)?;
        let [source, destination] = match protocol {
            TCP | UDP => ports(body)?,
            _ => return None,
        };
        let opens = |tcp: &Tcp<'_>| tcp.flags() & (Flags::SYN | Flags::ACK) == Flags::SYN;
        let begins_with = Tcp::at(body).filter(|tcp| protocol == TCP && opens(tcp)).map(Tcp::seq);
        let (from, to) = (SocketAddr::new(ip.source, source), SocketAddr::new(ip.destination, destination));
        Some(Seen { protocol, from, to, begins_with })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use firstflight_segment::{Envelope, Segment, write_packet};

    use super::*;

    fn packet(from: u16, to: u16, flags: Flags, seq: u32) -> Vec<u8> {
        let end = |port| SocketAddr::from((Ipv4Addr::new(10, 77, 0, 1), port));
        let (segment, envelope) = (Segment { flags, seq, ..Segment::EMPTY }, Envelope::between(end(from), end(to)));
        let mut bytes = Vec::new();
        write_packet(&segment, &envelope, 0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn both_directions_are_one_connection_and_who_spoke_first_is_the_client() {
        let mut connections = Connections::default();
        let syn = connections.of(&packet(4000, 80, Flags::SYN, 7));
        let answer = connections.of(&packet(80, 4000, Flags::SYN | Flags::ACK, 9));
        assert_eq!(syn, Member { connection: 0, from_server: false });
        assert_eq!(answer, Member { connection: 0, from_server: true });
        assert_eq!(connections.ends[0][1].port(), 80);
    }

    #[test]
    fn a_repeated_syn_is_the_same_connection_and_another_syn_a_new_one() {
        let mut connections = Connections::default();
        let numbers = [7, 7, 8].map(|seq| connections.of(&packet(4000, 80, Flags::SYN, seq)).connection);
        assert_eq!(numbers, [0, 0, 1]);
        assert_eq!(connections.of(&packet(4001, 80, Flags::SYN, 7)).connection, 2);
    }

    #[test]
    fn what_has_no_ports_has_no_connection() {
        let mut ping = packet(4000, 80, Flags::SYN, 7);
        ping[9] = 1;
        assert_eq!(Connections::default().of(&ping).connection, NO_CONNECTION);
    }
}
