//! Initial windows drawn for each accepted connection: a BPF program of type `sock_ops` on a cgroup.
//!
//! The program draws when a connection is accepted, sets its window (`TCP_BPF_IW`) before any data is sent, and marks it
//! when a segment of its first flight is retransmitted. It is attached by a link: when the process ends, however it ends,
//! the kernel takes it away, and further connections begin as if it had never been there.

use std::{
    collections::HashMap,
    fs::File,
    io::{Error, Result},
    mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::Path,
};

use crate::{checked, get_option, socket};

/// Maximum number of prefixes with a window. The draws are kept for this number of connections that are open or just
/// closed.
const MOST: u32 = 65_536;

/// The initial window on Linux without a route attribute (TCP_INIT_CWND).
const LINUX_SEGMENTS: i32 = 10;

// linux/bpf.h: commands, map types, program and attach types, helpers.
const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const MAP_DELETE: libc::c_long = 3;
const PROGRAM_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const LRU_HASH: u32 = 9;
const LPM_TRIE: u32 = 11;
const NO_PREALLOCATION: u32 = 1;
const SOCK_OPS: u32 = 13;
const CGROUP_SOCK_OPS: u32 = 3;
const CALL_LOOKUP: i32 = 1;
const CALL_UPDATE: i32 = 2;
const CALL_RANDOM: i32 = 7;
const CALL_COOKIE: i32 = 46;
const CALL_SETSOCKOPT: i32 = 49;
const CALL_SET_FLAGS: i32 = 59;
const CALL_NAMESPACE: i32 = 122;
const TCP_BPF_IW: i32 = 1001;
const PASSIVE_ESTABLISHED: i32 = 5;
const RETRANSMITTED: i32 = 9;
const TELL_RETRANSMISSIONS: i32 = 2;

// Places in struct bpf_sock_ops.
const OP: i16 = 0;
const ARGUMENT: i16 = 4;
const FAMILY: i16 = 20;
const PEER_V4: i16 = 24;
const PEER_V6: i16 = 32;
const LOCAL_PORT: i16 = 68;
const CWND: i16 = 76;
const FLAGS: i16 = 84;
const NEXT_SEQUENCE: i16 = 104;
const MSS: i16 = 112;

/// The draws for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Its initial window.
    pub segments: u32,
    /// True if one of its first segments was retransmitted: of as many as [`DrawnWindows::attach`] was given.
    pub first_flight_lost: bool,
}

/// A program on a cgroup, and its maps. It acts until this is dropped.
pub struct DrawnWindows {
    windows: OwnedFd,
    drawn: OwnedFd,
    _link: OwnedFd,
}

impl DrawnWindows {
    /// Attaches the program to a cgroup (version 2), for connections accepted by its processes in the network namespace of
    /// the calling thread on `ports` (empty: all). A retransmission among the first `compared` segments counts as a loss,
    /// in both arms alike.
    ///
    /// # Errors
    /// Without CAP_BPF and CAP_NET_ADMIN in the first user namespace, or on a kernel before 5.15.
    pub fn attach(cgroup: &Path, ports: &[u16], compared: u32) -> Result<Self> {
        let directory = File::open(cgroup)?;
        let windows = bpf_fd(MAP_CREATE, &[LPM_TRIE, 20, 8, MOST, NO_PREALLOCATION])?;
        let drawn = bpf_fd(MAP_CREATE, &[LRU_HASH, 8, 12, MOST, 0])?;
        let code = program(windows.as_raw_fd(), drawn.as_raw_fd(), namespace_cookie()?, ports, compared)?;
        let (licence, code_at) = (c"GPL".as_ptr() as u64, code.as_ptr() as u64);
        let mut load = vec![SOCK_OPS, code.len() as u32];
        load.extend([code_at as u32, (code_at >> 32) as u32, licence as u32, (licence >> 32) as u32]);
        // Log level, size and place; kernel version, flags, name, device; then the attach type.
        load.extend([0; 11]);
        load.push(CGROUP_SOCK_OPS);
        let loaded = bpf_fd(PROGRAM_LOAD, &load)?;
        let target = [loaded.as_raw_fd() as u32, directory.as_raw_fd() as u32, CGROUP_SOCK_OPS, 0];
        Ok(DrawnWindows { windows, drawn, _link: bpf_fd(LINK_CREATE, &target)? })
    }

    /// From now on a connection to `network` (IPv4 mapped into IPv6, of `length` bits in that form) gets `segments` with
    /// probability `share`, and ten otherwise.
    ///
    /// # Errors
    /// The kernel's error, for more than 65,536 networks.
    pub fn set(&self, network: [u8; 16], length: u8, segments: u32, share: f64) -> Result<()> {
        let threshold = (share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        let mut value = [segments.to_ne_bytes(), threshold.to_ne_bytes()].concat();
        on_map(MAP_UPDATE, &self.windows, &prefix(network, length), Some(&mut value)).map(drop)
    }

    /// From now on nothing is drawn for connections to a network.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove(&self, network: [u8; 16], length: u8) -> Result<()> {
        on_map(MAP_DELETE, &self.windows, &prefix(network, length), None).map(drop)
    }

    /// The draw for the connection with a socket's cookie, which is then forgotten; None if nothing was drawn.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn take(&self, cookie: u64) -> Result<Option<Drawn>> {
        let (key, mut value) = (cookie.to_ne_bytes(), [0; 12]);
        if !on_map(MAP_LOOKUP, &self.drawn, &key, Some(&mut value))? {
            return Ok(None);
        }
        on_map(MAP_DELETE, &self.drawn, &key, None)?;
        let number = |place: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| value[place + byte]));
        Ok(Some(Drawn { segments: number(0), first_flight_lost: number(8) != 0 }))
    }
}

/// A key of the trie: the length in bits, then the address.
fn prefix(network: [u8; 16], length: u8) -> Vec<u8> {
    [&u32::from(length).to_ne_bytes()[..], &network].concat()
}

/// The bpf system call, with the union's words.
fn bpf(command: libc::c_long, words: &[u32]) -> Result<libc::c_int> {
    // The kernel requires zeros behind the part that a command uses.
    let mut all = [0u32; 32];
    all[..words.len()].copy_from_slice(words);
    // SAFETY: the kernel reads `all`, which has the size given and outlives the call, and what its addresses point to;
    // each caller gives addresses of its own that are as long as the kernel takes them to be.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, all.as_ptr(), mem::size_of_val(&all)) };
    checked(answer as libc::c_int)
}

fn bpf_fd(command: libc::c_long, words: &[u32]) -> Result<OwnedFd> {
    let made = bpf(command, words)?;
    // SAFETY: the descriptor is new, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// True if the map has the key. `key` and `value` are as long as the map's.
fn on_map(command: libc::c_long, map: &OwnedFd, key: &[u8], value: Option<&mut [u8]>) -> Result<bool> {
    let (key, value) = (key.as_ptr() as u64, value.map_or(0, |value| value.as_mut_ptr() as u64));
    let split = |address: u64| [address as u32, (address >> 32) as u32];
    let words = [[map.as_raw_fd() as u32, 0], split(key), split(value), [0, 0]].concat();
    match bpf(command, &words) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The number by which BPF programs know the network namespace of the calling thread.
fn namespace_cookie() -> Result<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let mut cookie = 0u64;
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    get_option(&socket, libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut cookie)?;
    Ok(cookie)
}

/// Registers: the result, the arguments, what calls keep, and the stack's end.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
const CONTEXT: u8 = 6;
const ENTRY: u8 = 7;
const SEGMENTS: u8 = 8;
const STACK: u8 = 10;

/// Places on the stack: the trie's key, the drawn value, and the cookie.
const KEY: i16 = -24;
const VALUE: i16 = -40;
const COOKIE: i16 = -48;

/// The program. Its value for a connection: segments, the sequence number behind the segments compared, and a mark.
fn program(windows: i32, drawn: i32, namespace: u64, ports: &[u16], compared: u32) -> Result<Vec<u64>> {
    let mut code = Code::default();
    code.copy(CONTEXT, R1);
    code.load(R1, CONTEXT, OP);
    code.jump(EQUAL, R1, PASSIVE_ESTABLISHED, "accepted");
    code.jump(EQUAL, R1, RETRANSMITTED, "retransmitted");
    code.jump(ALWAYS, 0, 0, "end");

    code.label("accepted");
    // A route's `initcwnd` is an administrator's and stays; a SYN/ACK that was retransmitted leaves one segment.
    code.load(R1, CONTEXT, CWND);
    code.jump(NOT_EQUAL, R1, LINUX_SEGMENTS, "end");
    if !ports.is_empty() {
        code.load(R1, CONTEXT, LOCAL_PORT);
        for port in ports {
            code.jump(EQUAL, R1, i32::from(*port), "watched");
        }
        code.jump(ALWAYS, 0, 0, "end");
        code.label("watched");
    }
    code.copy(R1, CONTEXT);
    code.call(CALL_NAMESPACE);
    code.wide(R1, 0, namespace);
    code.jump_register(NOT_EQUAL, R0, R1, "end");
    code.store_number(KEY, 128);
    code.load(R1, CONTEXT, FAMILY);
    code.jump(EQUAL, R1, libc::AF_INET, "version 4");
    code.jump(NOT_EQUAL, R1, libc::AF_INET6, "end");
    for word in 0..4 {
        code.load(R1, CONTEXT, PEER_V6 + 4 * word);
        code.store(KEY + 4 + 4 * word, R1);
    }
    code.jump(ALWAYS, 0, 0, "look up");
    code.label("version 4");
    for (word, bytes) in [[0; 4], [0; 4], [0, 0, 0xff, 0xff]].into_iter().enumerate() {
        code.store_number(KEY + 4 + 4 * word as i16, i32::from_ne_bytes(bytes));
    }
    code.load(R1, CONTEXT, PEER_V4);
    code.store(KEY + 16, R1);

    code.label("look up");
    code.map_and_key(windows, KEY);
    code.call(CALL_LOOKUP);
    code.jump(EQUAL, R0, 0, "end");
    code.copy(ENTRY, R0);
    code.number(SEGMENTS, LINUX_SEGMENTS);
    code.call(CALL_RANDOM);
    code.copy_32(R0, R0);
    code.load(R1, ENTRY, 4);
    code.jump_register(AT_LEAST, R0, R1, "drawn");
    code.load(SEGMENTS, ENTRY, 0);
    code.label("drawn");
    code.store(VALUE, SEGMENTS);
    code.load(R1, CONTEXT, NEXT_SEQUENCE);
    code.load(R2, CONTEXT, MSS);
    code.number(R3, compared.min(i32::MAX as u32) as i32);
    code.arithmetic(MULTIPLY, R2, R3);
    code.arithmetic(ADD, R1, R2);
    code.store(VALUE + 4, R1);
    code.store_number(VALUE + 8, 0);
    code.copy(R1, CONTEXT);
    code.number(R2, libc::IPPROTO_TCP);
    code.number(R3, TCP_BPF_IW);
    code.stack_address(R4, VALUE);
    code.number(R5, 4);
    code.call(CALL_SETSOCKOPT);
    code.jump(NOT_EQUAL, R0, 0, "end");
    code.load(R2, CONTEXT, FLAGS);
    code.number(R1, TELL_RETRANSMISSIONS);
    code.arithmetic(OR, R2, R1);
    code.copy(R1, CONTEXT);
    code.call(CALL_SET_FLAGS);
    code.cookie();
    code.map_and_key(drawn, COOKIE);
    code.stack_address(R3, VALUE);
    code.number(R4, 0);
    code.call(CALL_UPDATE);
    code.jump(ALWAYS, 0, 0, "end");

    code.label("retransmitted");
    code.cookie();
    code.map_and_key(drawn, COOKIE);
    code.call(CALL_LOOKUP);
    code.jump(EQUAL, R0, 0, "end");
    // Of 32 bits, so that it is right where sequence numbers wrap.
    code.load(R1, CONTEXT, ARGUMENT);
    code.load(R2, R0, 4);
    code.arithmetic(SUBTRACT, R1, R2);
    code.number(R2, 31);
    code.arithmetic(SHIFT_RIGHT, R1, R2);
    code.jump(EQUAL, R1, 0, "end");
    code.store_at(R0, 8, R1);

    code.label("end");
    code.number(R0, 1);
    code.push(0x95, 0, 0, 0, 0);
    code.done()
}

// Opcodes: jumps, and arithmetic of 32 bits between registers (linux/bpf.h, linux/bpf_common.h).
const ALWAYS: u8 = 0x05;
const EQUAL: u8 = 0x15;
const NOT_EQUAL: u8 = 0x55;
const AT_LEAST: u8 = 0x35;
const FROM_REGISTER: u8 = 0x08;
const ADD: u8 = 0x0c;
const SUBTRACT: u8 = 0x1c;
const MULTIPLY: u8 = 0x2c;
const OR: u8 = 0x4c;
const SHIFT_RIGHT: u8 = 0x7c;

/// BPF instructions, with jumps to names.
#[derive(Default)]
struct Code {
    instructions: Vec<u64>,
    jumps: Vec<(usize, &'static str)>,
    labels: HashMap<&'static str, usize>,
}

impl Code {
    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, number: i32) {
        let registers = to | from << 4;
        let [low, high] = offset.to_ne_bytes();
        let [a, b, c, d] = number.to_ne_bytes();
        self.instructions.push(u64::from_ne_bytes([code, registers, low, high, a, b, c, d]));
    }

    fn label(&mut self, name: &'static str) {
        self.labels.insert(name, self.instructions.len());
    }

    fn jump(&mut self, code: u8, register: u8, number: i32, to: &'static str) {
        self.jumps.push((self.instructions.len(), to));
        self.push(code, register, 0, 0, number);
    }

    fn jump_register(&mut self, code: u8, left: u8, right: u8, to: &'static str) {
        self.jumps.push((self.instructions.len(), to));
        self.push(code | FROM_REGISTER, left, right, 0, 0);
    }

    fn copy(&mut self, to: u8, from: u8) {
        self.push(0xbf, to, from, 0, 0);
    }

    /// The lower 32 bits; the upper ones become 0.
    fn copy_32(&mut self, to: u8, from: u8) {
        self.push(0xbc, to, from, 0, 0);
    }

    fn number(&mut self, to: u8, number: i32) {
        self.push(0xb7, to, 0, 0, number);
    }

    /// A number of 64 bits, or with `kind` 1 a map by its descriptor.
    fn wide(&mut self, to: u8, kind: u8, number: u64) {
        self.push(0x18, to, kind, 0, number as u32 as i32);
        self.push(0, 0, 0, 0, (number >> 32) as u32 as i32);
    }

    /// A word of 32 bits.
    fn load(&mut self, to: u8, from: u8, offset: i16) {
        self.push(0x61, to, from, offset, 0);
    }

    fn store_at(&mut self, to: u8, offset: i16, from: u8) {
        self.push(0x63, to, from, offset, 0);
    }

    /// On the stack.
    fn store(&mut self, place: i16, from: u8) {
        self.store_at(STACK, place, from);
    }

    fn store_number(&mut self, place: i16, number: i32) {
        self.push(0x62, STACK, 0, place, number);
    }

    fn stack_address(&mut self, to: u8, place: i16) {
        self.copy(to, STACK);
        self.push(0x07, to, 0, 0, i32::from(place));
    }

    fn arithmetic(&mut self, code: u8, to: u8, from: u8) {
        self.push(code, to, from, 0, 0);
    }

    fn call(&mut self, helper: i32) {
        self.push(0x85, 0, 0, 0, helper);
    }

    /// The first two arguments of functions on a map.
    fn map_and_key(&mut self, map: i32, key: i16) {
        self.wide(R1, 1, map as u64);
        self.stack_address(R2, key);
    }

    /// The connection's cookie, to its place on the stack.
    fn cookie(&mut self) {
        self.copy(R1, CONTEXT);
        self.call(CALL_COOKIE);
        self.push(0x7b, STACK, R0, COOKIE, 0);
    }

    /// With each jump's distance.
    fn done(mut self) -> Result<Vec<u64>> {
        for (place, name) in self.jumps {
            let target = self.labels.get(name).copied().ok_or_else(|| Error::other(format!("no label {name}")))?;
            let mut bytes = self.instructions[place].to_ne_bytes();
            let distance = i16::try_from(target - place - 1).map_err(Error::other)?;
            bytes[2..4].copy_from_slice(&distance.to_ne_bytes());
            self.instructions[place] = u64::from_ne_bytes(bytes);
        }
        Ok(self.instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_leads_to_the_instruction_behind_its_label() {
        let mut code = Code::default();
        code.jump(EQUAL, R1, 7, "there");
        code.number(R0, 1);
        code.label("there");
        code.number(R0, 2);
        let made: Vec<[u8; 8]> = code.done().unwrap().iter().map(|one| one.to_ne_bytes()).collect();
        assert_eq!(made[0], [0x15, 1, 1, 0, 7, 0, 0, 0]);
        assert_eq!(made[2], [0xb7, 0, 0, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn a_program_of_any_number_of_ports_has_all_its_labels() {
        let none = program(3, 4, 1, &[], 20).unwrap().len();
        // One jump for each, the port's load, and the jump for all others.
        assert_eq!(program(3, 4, 1, &[80, 443], 20).unwrap().len(), none + 4);
    }

    #[test]
    fn a_file_that_is_no_cgroup_is_refused() {
        assert!(DrawnWindows::attach(Path::new("/nowhere"), &[], 20).is_err());
    }
}
