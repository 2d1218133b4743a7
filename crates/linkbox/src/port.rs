//! Ports: devices with their counters.

use std::{
    io::{self, ErrorKind},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use firstflight_device::{BATCH, Batch, MacAddress, PacketSocket, Tun, mac_address, monotonic_ns};
use firstflight_path::Nanos;

use crate::{Error, accounts::PortCounts, header::PacketHeader, network::Network, plan::PortPlan, pool::Pool, refused};

/// The device or socket of a port.
#[derive(Debug)]
pub enum Device {
    /// A TUN interface in the host's namespace: packets come at the time at which they are read.
    Tun(Tun),
    /// A packet socket on the box's end of a veth pair: packets come at the kernel's stamp.
    Packet(PacketSocket),
}

impl Device {
    /// The device of a descriptor: "tun" or "packet".
    ///
    /// # Errors
    /// Another kind; a descriptor of something else.
    pub fn adopt(kind: &str, descriptor: OwnedFd) -> io::Result<Device> {
        match kind {
            "tun" => Ok(Device::Tun(Tun::adopt(descriptor)?)),
            "packet" => Ok(Device::Packet(PacketSocket::adopt(descriptor)?)),
            _ => {
                let reason = format!("a device is \"tun\" or \"packet\", not {kind:?}");
                Err(io::Error::new(ErrorKind::InvalidInput, reason))
            }
        }
    }
}

pub(crate) struct Port {
    pub(crate) name: String,
    device: Device,
    peer: MacAddress,
    index: u16,
    counts: PortCounts,
    /// The stamp of the last packet of a full batch, after which not everything has been read; none: nothing is known to
    /// be left.
    pub(crate) behind: Option<Nanos>,
}

/// The buffers for packets.
pub(crate) struct Inside<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) pool: &'a mut Pool,
    /// Number of packets in the box.
    pub(crate) packets: &'a mut i64,
    pub(crate) mtu: u16,
    /// The monotonic clock's time at which the network began.
    pub(crate) origin: Nanos,
}

/// This number of packets is in flight and there is no room for another.
pub(crate) fn crowded(packets: usize) -> Error {
    refused!("too many packets in flight ({packets}); raise most_packets, or lower rates, delays or queues")
}

impl Port {
    pub(crate) fn new(plan: &PortPlan, index: u16, device: Device) -> Result<Port, Error> {
        let peer = match (&device, &plan.peer_mac) {
            (Device::Packet(_), None) => {
                return Err(refused!(
                    "port {:?} is a packet socket and needs peer_mac, the Ethernet address of the host's end",
                    plan.name
                ));
            }
            (_, None) => [0; 6],
            (_, Some(text)) => mac_address(text)
                .ok_or_else(|| refused!("port {:?}: peer_mac {text:?} is not like \"02:00:00:00:00:01\"", plan.name))?,
        };
        let name = plan.name.clone();
        Ok(Port { name, device, peer, index, counts: PortCounts::default(), behind: None })
    }

    /// Reads the waiting packets, at most a batch.
    pub(crate) fn read(&mut self, inside: &mut Inside<'_>, batch: &mut Batch) -> Result<(), Error> {
        if !inside.pool.ensure(BATCH) {
            return Err(crowded(inside.pool.in_use()));
        }
        match self.device {
            Device::Tun(_) => self.read_tun(inside),
            Device::Packet(_) => self.read_socket(inside, batch),
        }
    }

    fn read_tun(&mut self, inside: &mut Inside<'_>) -> Result<(), Error> {
        for _ in 0..BATCH {
            let Device::Tun(tun) = &self.device else { break };
            let buffer = inside.pool.next();
            let time = monotonic_ns();
            let length = match tun.read(inside.pool.room(buffer)) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return self.failed_to_read(error),
            };
            if length > usize::from(inside.mtu) {
                self.counts.oversized += 1;
                continue;
            }
            let header = PacketHeader::at(&inside.pool.room(buffer)[..length]);
            if let Some((hop, header)) = self.route(header, inside) {
                self.enter(time, hop, &header, inside);
            }
        }
        Ok(())
    }

    fn read_socket(&mut self, inside: &mut Inside<'_>, batch: &mut Batch) -> Result<(), Error> {
        let Device::Packet(socket) = &mut self.device else { return Ok(()) };
        self.behind = None;
        let packets = match socket.read(batch) {
            Ok(packets) => packets,
            Err(error) => return self.failed_to_read(error),
        };
        let is_full = packets.len() == BATCH;
        for (taken, packet) in packets {
            self.behind = is_full.then_some(taken.time);
            if !taken.is_ip {
                self.counts.foreign += 1;
            } else if taken.length > usize::from(inside.mtu) {
                self.counts.oversized += 1;
            } else if taken.lacks_checksum {
                self.counts.unchecksummed += 1;
            } else if let Some((hop, header)) = self.route(PacketHeader::at(packet), inside) {
                let length = usize::from(header.total_bytes);
                let buffer = inside.pool.next();
                inside.pool.room(buffer)[..length].copy_from_slice(&packet[..length]);
                self.enter(taken.time, hop, &header, inside);
            }
        }
        Ok(())
    }

    /// True if a packet is forwarded: with its first hop.
    fn route(&mut self, header: Option<PacketHeader>, inside: &Inside<'_>) -> Option<(u32, PacketHeader)> {
        let Some(header) = header else {
            self.counts.foreign += 1;
            return None;
        };
        let Some(hop) = inside.network.route(self.index, header.destination) else {
            self.counts.unroutable += 1;
            return None;
        };
        Some((hop, header))
    }

    /// The packet in the next buffer enters the network.
    fn enter(&mut self, time: Nanos, hop: u32, header: &PacketHeader, inside: &mut Inside<'_>) {
        let Some(buffer) = inside.pool.take(header.total_bytes) else { return };
        self.counts.incoming.add(header.offered.bytes);
        *inside.packets += 1;
        let behind = inside.network.enter(time.saturating_sub(inside.origin), hop, buffer, header.offered);
        self.counts.belated += u64::from(behind > 0);
    }

    #[cold]
    fn failed_to_read(&mut self, source: io::Error) -> Result<(), Error> {
        self.counts.read_errors += 1;
        self.counts.last_error = Some(format!("reading: {source}"));
        match source.raw_os_error() {
            // Down, which may pass.
            Some(code) if code == ENETDOWN => Ok(()),
            _ => Err(Error::System { what: format!("port {:?}: its device cannot be read", self.name), source }),
        }
    }

    /// Hands a packet over.
    pub(crate) fn write(&mut self, packet: &[u8]) {
        let written = match &self.device {
            Device::Tun(tun) => tun.write(packet),
            Device::Packet(socket) => socket.write(packet, self.peer),
        };
        match written {
            Ok(()) => self.counts.out.add(packet.len() as u32),
            Err(error) => self.failed_to_write(&error),
        }
    }

    #[cold]
    fn failed_to_write(&mut self, error: &io::Error) {
        self.counts.write_errors += 1;
        self.counts.last_error = Some(format!("writing: {error}"));
    }

    /// The counters since the last call.
    pub(crate) fn take_counts(&mut self) -> PortCounts {
        if let Device::Packet(socket) = &self.device {
            match socket.dropped_packets() {
                Ok(dropped) => self.counts.socket_drops += u64::from(dropped),
                Err(error) => self.counts.last_error = Some(format!("asking for drops: {error}")),
            }
        }
        std::mem::take(&mut self.counts)
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::Tun(tun) => tun.as_fd(),
            Device::Packet(socket) => socket.as_fd(),
        }
    }
}

/// Linux's "network is down".
const ENETDOWN: i32 = 100;
