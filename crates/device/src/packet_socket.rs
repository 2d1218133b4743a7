//! AF_PACKET: the IP packets of an interface that has a link layer, with the kernel's stamps of arrival.

use std::{
    array,
    io::{Error, ErrorKind, Result},
    mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use crate::{
    Nanos, bind, checked, checked_length,
    clock::{monotonic_ns, nanos, realtime_ns},
    get_option, interface_request, set_option, socket,
};

/// Packets taken with one call at most.
pub const BATCH: usize = 64;

/// An Ethernet address.
pub type MacAddress = [u8; 6];

/// The address in its usual form, six bytes in hexadecimal with colons.
pub fn mac_address(text: &str) -> Option<MacAddress> {
    let byte = |part: &str| u8::from_str_radix(part, 16).ok().filter(|_| part.len() == 2);
    text.split(':').map(byte).collect::<Option<Vec<u8>>>()?.try_into().ok()
}

/// Packets that may wait in the socket: a burst that comes while the reader is held up for tens of milliseconds.
const RECEIVE_BUFFER_BYTES: libc::c_int = 64 << 20;

/// Room for the time stamp and for the kernel's data on the packet.
const CONTROL_BYTES: usize = 96;

/// A packet socket on one interface. It takes and gives IP packets; the kernel deals with the link layer's header.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    interface: libc::c_int,
    /// Packets read from now on arrived after this time.
    empty_at: Nanos,
}

/// Metadata of a received packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Length of the packet; its slice may be shorter.
    pub length: usize,
    /// When it came to the interface. Of CLOCK_MONOTONIC; exact unless the wall clock is set in just that moment, and
    /// then not earlier than the last look that found nothing and not later than now.
    pub time: Nanos,
    /// The host of the interface sent it.
    pub outgoing: bool,
    /// The link layer calls it IPv4 or IPv6.
    pub is_ip: bool,
    /// The sender left the checksum to the interface: an offload is on.
    pub lacks_checksum: bool,
}

/// Room for the packets of one call, to be kept from call to call.
pub struct Batch {
    bytes: Vec<u8>,
    packet_bytes: usize,
    taken: [Taken; BATCH],
    addresses: [libc::sockaddr_ll; BATCH],
    control: [Control; BATCH],
}

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

impl Batch {
    /// Room for packets. Longer packets are cut to `packet_bytes`.
    pub fn new(packet_bytes: usize) -> Box<Batch> {
        Box::new(Batch {
            bytes: vec![0; BATCH * packet_bytes],
            packet_bytes,
            taken: [Taken::default(); BATCH],
            // SAFETY: a sockaddr_ll is plain numbers, for which zeros are values.
            addresses: array::from_fn(|_| unsafe { mem::zeroed() }),
            control: [Control([0; CONTROL_BYTES]); BATCH],
        })
    }
}

impl PacketSocket {
    /// Opens a socket on an interface of the calling thread's network namespace. `both_ways`: it also receives packets
    /// that the host of the interface sends, too.
    ///
    /// # Errors
    /// No such interface; without CAP_NET_RAW in the namespace, a socket at all.
    pub fn open(name: &str, both_ways: bool) -> Result<PacketSocket> {
        let request = interface_request(name)?;
        // SAFETY: the name in the request ends with a zero.
        let index = unsafe { libc::if_nametoindex(request.ifr_name.as_ptr()) };
        if index == 0 {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no interface {name:?}")));
        }
        // Protocol 0: nothing comes before the socket is bound to its interface.
        let socket = socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0)?;
        let socket = PacketSocket { socket, interface: index as libc::c_int, empty_at: monotonic_ns() };
        socket.prepare(both_ways)?;
        bind(&socket.socket, &socket.address(libc::ETH_P_ALL, [0; 6]))?;
        Ok(socket)
    }

    /// The socket of a descriptor that is a packet socket bound to an interface_request, opened by any process, for packets
    /// that arrive there.
    ///
    /// # Errors
    /// Another descriptor.
    pub fn adopt(socket: OwnedFd) -> Result<PacketSocket> {
        // SAFETY: a sockaddr_ll is plain numbers, for which zeros are values.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        let mut length = mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` has room for `length` bytes, and both outlive the call.
        checked(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &mut length) })?;
        if libc::c_int::from(address.sll_family) != libc::AF_PACKET || address.sll_ifindex == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "the descriptor is not a packet socket on an interface"));
        }
        let socket = PacketSocket { socket, interface: address.sll_ifindex, empty_at: monotonic_ns() };
        socket.prepare(false)?;
        // Spares each packet of a busy box the interface's queue. Captures do not see such packets leave, and its
        // interfaces have none.
        socket.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        Ok(socket)
    }

    fn prepare(&self, both_ways: bool) -> Result<()> {
        if !both_ways {
            self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        }
        self.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // Beyond the system's limit where that is allowed; `receive_buffer_bytes` reports the resulting size.
        if self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES).is_err() {
            self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES)?;
        }
        Ok(())
    }

    /// Bytes that may wait in the socket, with the kernel's overhead.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive_buffer_bytes(&self) -> Result<u32> {
        let mut bytes: libc::c_int = 0;
        get_option(&self.socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &mut bytes)?;
        Ok(bytes as u32)
    }

    /// Packets that were lost since the last call because they were not read in time.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn dropped_packets(&self) -> Result<u32> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        get_option(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut statistics)?;
        Ok(statistics.tp_drops)
    }

    /// Receives all waiting packets, up to [`BATCH`]: what is known of each, and as much of it as there is room for.
    ///
    /// # Errors
    /// An interface that went down (ENETDOWN) or away; no packet is none.
    pub fn read<'b>(
        &mut self,
        batch: &'b mut Batch,
    ) -> Result<impl ExactSizeIterator<Item = (Taken, &'b [u8])> + use<'b>> {
        let before = monotonic_ns();
        let mut parts: [libc::iovec; BATCH] =
            array::from_fn(|_| libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 });
        // SAFETY: an mmsghdr is numbers and pointers, for which zeros are values.
        let mut messages: [libc::mmsghdr; BATCH] = array::from_fn(|_| unsafe { mem::zeroed() });
        for (index, room) in batch.bytes.chunks_exact_mut(batch.packet_bytes).enumerate() {
            parts[index] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            let header = &mut messages[index].msg_hdr;
            header.msg_name = (&raw mut batch.addresses[index]).cast();
            header.msg_namelen = mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            header.msg_iov = &raw mut parts[index];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut batch.control[index]).cast();
            header.msg_controllen = CONTROL_BYTES;
        }
        // MSG_TRUNC: the whole length is reported, not the part that fits.
        let flags = (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _;
        // SAFETY: the headers point at buffers, addresses and control data that are borrowed for writing and have the
        // lengths given; no timeout is asked for.
        let found = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                flags,
                std::ptr::null_mut(),
            )
        };
        let found = match checked(found) {
            Ok(found) => found as usize,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        // A stamp says how long ago by the wall clock; counted back from now by the monotonic clock.
        let (wall, now) = (realtime_ns(), monotonic_ns());
        let earliest = self.empty_at;
        let mut last = earliest;
        for (index, message) in messages.iter().enumerate().take(found) {
            let address = &batch.addresses[index];
            let (stamp, lacks_checksum) = notes(&message.msg_hdr);
            let age = stamp.map_or(0, |stamp| wall.saturating_sub(stamp));
            last = now.saturating_sub(age).clamp(earliest, now.max(earliest));
            batch.taken[index] = Taken {
                length: message.msg_len as usize,
                time: last,
                outgoing: address.sll_pkttype == libc::PACKET_OUTGOING as libc::c_uchar,
                is_ip: matches!(u16::from_be(address.sll_protocol).into(), libc::ETH_P_IP | libc::ETH_P_IPV6),
                lacks_checksum,
            };
        }
        // Packets after the last one of a full batch may be as old as that one.
        self.empty_at = if found < BATCH { before.max(earliest) } else { last };
        let packets = batch.taken[..found].iter().zip(batch.bytes.chunks_exact(batch.packet_bytes));
        Ok(packets.map(|(taken, room)| (*taken, &room[..taken.length.min(room.len())])))
    }

    /// Sends an IP packet to a neighbor.
    ///
    /// # Errors
    /// An interface that is down (ENETDOWN), no room there (ENOBUFS), a packet that is too long for it (EMSGSIZE).
    pub fn write(&self, packet: &[u8], neighbour: MacAddress) -> Result<()> {
        let is_version_6 = packet.first().is_some_and(|first| first >> 4 == 6);
        let address = self.address(if is_version_6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP }, neighbour);
        // SAFETY: the pointers and lengths are those of a slice and of a sockaddr_ll, which outlive the call.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                libc::MSG_DONTWAIT,
                (&raw const address).cast(),
                mem::size_of_val(&address) as libc::socklen_t,
            )
        };
        checked_length(sent).map(drop)
    }

    fn address(&self, protocol: libc::c_int, neighbour: MacAddress) -> libc::sockaddr_ll {
        let [a, b, c, d, e, f] = neighbour;
        libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            sll_protocol: (protocol as u16).to_be(),
            sll_ifindex: self.interface,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: [a, b, c, d, e, f, 0, 0],
        }
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> Result<()> {
        set_option(&self.socket, level, option, value)
    }
}

/// The kernel's data on a packet: its timestamp by the wall clock, and whether its checksum is still to be made.
fn notes(header: &libc::msghdr) -> (Option<Nanos>, bool) {
    let (mut stamp, mut lacks_checksum) = (None, false);
    // SAFETY: the header is as the kernel filled it, so its control data is a list of whole messages; each is read, not
    // necessarily aligned, as what its type says it is.
    unsafe {
        let mut note = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = note.as_ref() {
            match (found.cmsg_level, found.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    stamp = Some(nanos(libc::CMSG_DATA(note).cast::<libc::timespec>().read_unaligned()));
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    let data = libc::CMSG_DATA(note).cast::<libc::tpacket_auxdata>().read_unaligned();
                    lacks_checksum = data.tp_status & libc::TP_STATUS_CSUMNOTREADY != 0;
                }
                _ => {}
            }
            note = libc::CMSG_NXTHDR(header, note);
        }
    }
    (stamp, lacks_checksum)
}

impl From<PacketSocket> for OwnedFd {
    fn from(socket: PacketSocket) -> OwnedFd {
        socket.socket
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ethernet_address_is_six_bytes_in_hexadecimal() {
        assert_eq!(mac_address("02:00:00:00:0a:ff"), Some([2, 0, 0, 0, 10, 255]));
        for wrong in ["", "02:00:00:00:0a", "02:00:00:00:0a:ff:01", "2:0:0:0:0:1", "02:00:00:00:0a:gg"] {
            assert_eq!(mac_address(wrong), None);
        }
    }
}
