//! TCP connections as the kernel destroys them: the multicast groups of sock_diag, with the TCP_INFO of the last moment.

use std::{
    io::{IoSliceMut, Result},
    os::fd::{AsRawFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::socket::{
        AddressFamily, MsgFlags, MultiHeaders, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvmmsg, socket,
    },
};

use crate::{get_option, set_option};

/// SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY (linux/sock_diag.h), as a mask.
const GROUPS: u32 = 1 << 0 | 1 << 2;

/// Reports that may wait in the socket, asked for; the kernel may grant less (`net.core.rmem_max`).
const RECEIVE_BUFFER_BYTES: libc::c_int = 16 << 20;

/// Time between two polls: reports are taken in batches, since a wake-up for each would cost more than reading it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The largest report is below 600 bytes: an inet_diag_msg, TCP_INFO and small attributes.
const REPORT_BYTES: usize = 2048;

/// Reports taken with one call.
const BATCH: usize = 64;

/// SO_MEMINFO and its place of dropped messages, SK_MEMINFO_DROPS (linux/sock_diag.h).
const SO_MEMINFO: libc::c_int = 55;
const MEMINFO_DROPS: usize = 8;

/// One destroyed connection that had sent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The peer's network: its address with the bits behind the prefix length cleared. IPv4 is mapped into IPv6.
    pub network: [u8; 16],
    /// Local port.
    pub port: u16,
    /// The socket's cookie, by which BPF programs know it, too.
    pub cookie: u64,
    /// TCP_CA_Loss was the state at the end.
    pub ended_in_loss: bool,
    /// Largest data of a segment sent.
    pub mss_bytes: u32,
    /// Congestion window at the end, in segments.
    pub cwnd: u32,
    /// Segments retransmitted, SYN/ACKs among them.
    pub retransmissions: u32,
    /// Data acknowledged.
    pub acked_bytes: u64,
    /// Data segments sent, retransmissions among them.
    pub data_segments: u32,
    /// Data sent, retransmissions among them.
    pub sent_bytes: u64,
    /// Data retransmitted.
    pub retransmitted_bytes: u64,
    /// DSACKs received: retransmissions of data that had arrived.
    pub dsacks: u32,
    /// Segments acknowledged with CE marks.
    pub marks: u32,
    /// Smallest RTT in microseconds, once there was a sample.
    pub min_rtt_us: Option<u32>,
    /// Last rate sample, in bytes per second.
    pub delivery_rate: u64,
    /// Retransmission timeouts; kernels before 6.7 do not count them.
    pub timeouts: Option<u16>,
}

impl Closed {
    /// Segments of data retransmitted. `retransmissions` has the SYN/ACK's, too (`tcp_create_openreq_child`), but their
    /// number of bytes is 0.
    pub fn data_retransmissions(&self) -> u32 {
        if self.retransmitted_bytes == 0 { 0 } else { self.retransmissions.max(1) }
    }
}

/// Counts since the socket was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections reported, those below among them.
    pub reported: u64,
    /// Over loopback, of another port, or closed before any data was acknowledged.
    pub passed_over: u64,
    /// Beyond the number of connections asked for: not read.
    pub beyond: u64,
    /// Reports that the kernel dropped because the socket was full.
    pub dropped: u64,
}

/// The connections that are reported.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Local ports; empty: all.
    pub ports: Vec<u16>,
    /// Prefix length of networks, of IPv4 and IPv6.
    pub prefix_lengths: (u8, u8),
}

/// A socket in both groups, of the network namespace of the thread that opened it.
pub struct ClosedConnections {
    socket: OwnedFd,
    filter: Filter,
    counts: Counts,
    looked_at: Option<Instant>,
    room: Box<[[u8; REPORT_BYTES]; BATCH]>,
}

impl ClosedConnections {
    /// Joins the groups.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN in the namespace, or where the kernel has no tcp_diag.
    pub fn open(filter: Filter) -> Result<Self> {
        let (flags, protocol) = (SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag);
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        // SO_RCVBUFFORCE goes beyond rmem_max, for those who have CAP_NET_ADMIN in the first user namespace. A refusal
        // leaves the smaller buffer.
        for option in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
            let _ = set_option(&socket, libc::SOL_SOCKET, option, RECEIVE_BUFFER_BYTES);
        }
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        let room = Box::new([[0; REPORT_BYTES]; BATCH]);
        Ok(ClosedConnections { socket, filter, counts: Counts::default(), looked_at: None, room })
    }

    /// Connections that are destroyed until `wait` is over, at most about `limit` in this time: at each poll a part of
    /// it in proportion to the time since the last one, so that the connections left out do not depend on their
    /// outcome.
    ///
    /// # Errors
    /// The kernel's error, except a full socket, which is counted.
    pub fn take(&mut self, wait: Duration, limit: usize) -> Result<Vec<Closed>> {
        let end = Instant::now() + wait;
        let mut found = Vec::new();
        loop {
            let now = Instant::now();
            let since = self.looked_at.replace(now).map_or(LOOK_EVERY, |last| now - last);
            let most = found.len() + part(limit, wait, since);
            self.look(&mut found, most)?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
        Ok(found)
    }

    /// The counts so far.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn counts(&self) -> Result<Counts> {
        let mut memory = [0u32; MEMINFO_DROPS + 1];
        get_option(&self.socket, libc::SOL_SOCKET, SO_MEMINFO, &mut memory)?;
        Ok(Counts { dropped: u64::from(memory[MEMINFO_DROPS]), ..self.counts })
    }

    fn look(&mut self, found: &mut Vec<Closed>, most: usize) -> Result<()> {
        loop {
            let lengths = match self.receive() {
                Ok(lengths) => lengths,
                Err(Errno::EAGAIN) => return Ok(()),
                // The socket was full: its counter has the drops.
                Err(Errno::ENOBUFS | Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            for (report, length) in self.room.iter().zip(lengths) {
                self.counts.reported += 1;
                if found.len() >= most {
                    self.counts.beyond += 1;
                } else if let Some(closed) = read(&report[..length.min(REPORT_BYTES)], &self.filter) {
                    found.push(closed);
                } else {
                    self.counts.passed_over += 1;
                }
            }
        }
    }

    /// Lengths of the reports that are now in `room`.
    fn receive(&mut self) -> nix::Result<Vec<usize>> {
        let mut pieces: Vec<_> = self.room.iter_mut().map(|report| [IoSliceMut::new(report)]).collect();
        let mut headers = MultiHeaders::<()>::preallocate(BATCH, None);
        let found = recvmmsg(self.socket.as_raw_fd(), &mut headers, pieces.iter_mut(), MsgFlags::empty(), None)?;
        Ok(found.map(|report| report.bytes).collect())
    }
}

/// The number of datagrams to read of `limit` connections in `wait` after the time `since` the last poll.
fn part(limit: usize, wait: Duration, since: Duration) -> usize {
    if since >= wait {
        return limit;
    }
    (limit as u128 * since.as_nanos()).div_ceil(wait.as_nanos()) as usize
}

/// Sizes of a nlmsghdr and an inet_diag_msg; offsets in inet_diag_msg (linux/inet_diag.h).
const HEADER: usize = 16;
const MESSAGE: usize = 72;
const FAMILY: usize = 0;
const LOCAL_PORT: usize = 4;
const PEER: usize = 24;
const COOKIE: usize = 44;
/// INET_DIAG_INFO, an attribute that holds a tcp_info.
const INFO: u16 = 2;

/// The connection of a report, if it is one that the filter lets through and that delivered data.
fn read(report: &[u8], filter: &Filter) -> Option<Closed> {
    let message = report.get(HEADER..HEADER + MESSAGE)?;
    let port = u16::from_be_bytes(field(message, LOCAL_PORT)?);
    if !(filter.ports.is_empty() || filter.ports.contains(&port)) {
        return None;
    }
    let network = network(message, filter.prefix_lengths)?;
    let word = |place| Some(u32::from_ne_bytes(field(message, place)?));
    let info = attribute(report.get(HEADER + MESSAGE..)?, INFO)?;
    // Places in struct tcp_info (linux/tcp.h), which only grows at its end.
    let number = |place| Some(u32::from_ne_bytes(field(info, place)?));
    let long = |place| Some(u64::from_ne_bytes(field(info, place)?));
    let closed = Closed {
        network,
        port,
        // Two words, the lower one first (sock_diag_save_cookie).
        cookie: u64::from(word(COOKIE)?) | u64::from(word(COOKIE + 4)?) << 32,
        ended_in_loss: *info.get(1)? == 4,
        mss_bytes: number(16)?,
        cwnd: number(80)?,
        retransmissions: number(100)?,
        acked_bytes: long(120)?,
        data_segments: number(156)?,
        sent_bytes: long(200)?,
        retransmitted_bytes: long(208)?,
        dsacks: number(216)?,
        marks: number(196)?,
        // The kernel says `~0` before the first sample.
        min_rtt_us: Some(number(148)?).filter(|&rtt| rtt != u32::MAX),
        delivery_rate: long(160)?,
        timeouts: field(info, 240).map(u16::from_ne_bytes),
    };
    (closed.sent_bytes > 0 && closed.acked_bytes > 0).then_some(closed)
}

/// The peer's network; None for loopback and other families.
fn network(message: &[u8], (v4, v6): (u8, u8)) -> Option<[u8; 16]> {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    let mut address: [u8; 16] = field(message, PEER)?;
    match libc::c_int::from(message[FAMILY]) {
        libc::AF_INET => {
            address.copy_within(0..4, 12);
            address[..12].copy_from_slice(&MAPPED);
        }
        libc::AF_INET6 => {}
        _ => return None,
    }
    let is_v4 = address[..12] == MAPPED;
    let is_loopback = if is_v4 { address[12] == 127 } else { address[..15] == [0; 15] && address[15] == 1 };
    if is_loopback {
        return None;
    }
    let bits = 128 - u32::from(if is_v4 { v4.min(32) + 96 } else { v6.min(128) });
    let cleared = u128::from_be_bytes(address).checked_shr(bits).unwrap_or(0).checked_shl(bits).unwrap_or(0);
    Some(cleared.to_be_bytes())
}

/// The value of an attribute in a run of them (linux/netlink.h: each aligned to four bytes).
fn attribute(mut run: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(field(run, 0)?));
        let value = run.get(4..length)?;
        if u16::from_ne_bytes(field(run, 2)?) == wanted {
            return Some(value);
        }
        run = run.get(length.next_multiple_of(4)..)?;
    }
}

fn field<const N: usize>(bytes: &[u8], place: usize) -> Option<[u8; N]> {
    bytes.get(place..place + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: (u8, u8) = (24, 48);

    #[test]
    fn a_look_that_comes_late_may_read_as_many_as_those_that_it_replaces() {
        let (wait, ms) = (Duration::from_secs(1), Duration::from_millis);
        assert_eq!(part(2000, wait, ms(20)), 40);
        assert_eq!(part(2000, wait, ms(70)), 140);
        assert_eq!(part(2000, wait, ms(1)), 2);
        assert_eq!(part(3, wait, ms(20)), 1);
        // No more than in the whole time, and no wait is all of it.
        assert_eq!(part(2000, wait, ms(5000)), 2000);
        assert_eq!(part(2000, Duration::ZERO, ms(20)), 2000);
    }

    fn report(family: u8, peer: [u8; 16], info: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + MESSAGE];
        bytes[HEADER + FAMILY] = family;
        bytes[HEADER + LOCAL_PORT..][..2].copy_from_slice(&443u16.to_be_bytes());
        bytes[HEADER + PEER..][..16].copy_from_slice(&peer);
        bytes[HEADER + COOKIE..][..8].copy_from_slice(&[7, 0, 0, 0, 1, 0, 0, 0]);
        // An attribute before the one that is looked for, of a length that is no multiple of four.
        bytes.extend([5, 0, 8, 0, 0, 0, 0, 0]);
        bytes.extend(((info.len() + 4) as u16).to_ne_bytes());
        bytes.extend(INFO.to_ne_bytes());
        bytes.extend(info);
        bytes
    }

    fn info(length: usize) -> Vec<u8> {
        let mut info = vec![0; length];
        info[120..128].copy_from_slice(&5000u64.to_ne_bytes());
        info[200..208].copy_from_slice(&6448u64.to_ne_bytes());
        info[208..216].copy_from_slice(&1448u64.to_ne_bytes());
        info[156..160].copy_from_slice(&5u32.to_ne_bytes());
        if length > 241 {
            info[240..242].copy_from_slice(&1u16.to_ne_bytes());
        }
        info
    }

    fn filter(ports: &[u16]) -> Filter {
        Filter { ports: ports.to_vec(), prefix_lengths: ALL }
    }

    #[test]
    fn a_connection_is_read_with_its_network_alone() {
        let mut peer = [0; 16];
        peer[..4].copy_from_slice(&[192, 0, 2, 77]);
        let closed = read(&report(2, peer, &info(280)), &filter(&[])).unwrap();
        assert_eq!(closed.network[10..], [0xff, 0xff, 192, 0, 2, 0]);
        assert_eq!((closed.port, closed.data_segments, closed.timeouts), (443, 5, Some(1)));
        assert_eq!(closed.cookie, 1 << 32 | 7);
        assert_eq!((closed.acked_bytes, closed.sent_bytes, closed.retransmitted_bytes), (5000, 6448, 1448));
    }

    #[test]
    fn a_mapped_address_is_ipv4_and_an_older_kernel_knows_no_timeouts() {
        let mut peer = [0; 16];
        peer[10..].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 77]);
        let closed = read(&report(10, peer, &info(232)), &filter(&[443])).unwrap();
        assert_eq!(closed.network[12..], [192, 0, 2, 0]);
        assert_eq!(closed.timeouts, None);
    }

    #[test]
    fn loopback_other_ports_no_data_and_short_reports_are_passed_over() {
        let mut loopback = [0; 16];
        loopback[0] = 127;
        let mut peer = [0; 16];
        peer[0] = 0x20;
        let whole = report(10, peer, &info(280));
        assert!(read(&whole, &filter(&[443])).is_some());
        assert_eq!(read(&report(2, loopback, &info(280)), &filter(&[])), None);
        assert_eq!(read(&whole, &filter(&[80])), None);
        assert_eq!(read(&report(10, peer, &[0; 280]), &filter(&[])), None);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length], &filter(&[])), None);
        }
    }
}
