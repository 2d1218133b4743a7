//! A script once read: settings, preamble and events.

use crate::wire::TcpOption;
use firstflight_tcp::{Flags, Nanos};

/// A script, ready to be run.
#[derive(Clone, Debug)]
pub struct Script {
    /// `--name=value` lines at the top.
    pub options: Vec<OptionLine>,
    /// Shell block before the first event.
    pub preamble: Option<Block>,
    /// The events, in order.
    pub events: Vec<Event>,
    /// The script's lines, to be shown with a difference.
    pub lines: Vec<String>,
}

impl Script {
    /// The text of a line (counted from 1), without the blanks around it.
    pub fn line(&self, line: u32) -> &str {
        self.lines.get(line as usize - 1).map_or("", |text| text.trim())
    }
}

/// `--name=value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionLine {
    /// Line of the script.
    pub line: u32,
    /// Without the dashes.
    pub name: String,
    /// The value after the equals sign.
    pub value: Option<String>,
}

/// A block of shell commands or of Python; never executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Line of the script where the block begins.
    pub line: u32,
    /// The text between its marks.
    pub text: String,
}

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Line of the script.
    pub line: u32,
    /// When it happens, or is expected to.
    pub when: When,
    /// The event.
    pub action: Action,
}

/// When an event happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// So long after the script's beginning.
    At(Nanos),
    /// So long after the event before it.
    After(Nanos),
    /// Between two times after the script's beginning.
    Between(Nanos, Nanos),
    /// Between two times after the event before it.
    Within(Nanos, Nanos),
    /// At any time.
    Any,
}

/// The event.
#[derive(Clone, Debug)]
pub enum Action {
    /// `<`: a packet arrives.
    Inject(Packet),
    /// `>`: a packet is expected.
    Expect(Packet),
    /// A system call is made.
    Call(Call),
    /// A shell block, understood as settings.
    Command(Block),
    /// `%{ }%`: statements about the connection.
    Check(Block),
}

/// A packet as a script writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The ECN bits of the IP header, if stated.
    pub ecn: Option<EcnMark>,
    /// Control bits.
    pub flags: Flags,
    /// Sequence number, relative to the initial one unless the packet is a SYN.
    pub seq: u32,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// Acknowledgment, relative likewise.
    pub ack: Option<u32>,
    /// Window field.
    pub window: Option<u16>,
    /// TCP options in order; none: `<...>`, whatever they are.
    pub options: Option<Vec<TcpOption>>,
}

/// The ECN bits that a packet has or is expected to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnMark {
    /// `[noecn]`
    NotCapable,
    /// `[ect0]`
    Capable0,
    /// `[ect1]`
    Capable1,
    /// `[ect01]`: either, for expected packets only.
    Capable,
    /// `[ce]`
    Congestion,
}

/// A system call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Line of the script.
    pub line: u32,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Its return value. None: `= ...`, not compared.
    pub result: Option<Argument>,
    /// The error it ends with, such as `EAGAIN`.
    pub error: Option<String>,
    /// For `a...b`: when it returns, on the scale of the event's time.
    pub returns: Option<Nanos>,
}

/// An argument of a system call.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// `...`: left to the runner.
    Ellipsis,
    /// A whole number.
    Integer(i64),
    /// A symbol, or several joined by `|`.
    Symbols(Vec<String>),
    /// A text in quotes.
    Text(String),
    /// `[a, b]`
    List(Vec<Argument>),
    /// `{a, b}` or `{name=value, ...}`
    Structure(Vec<(Option<String>, Argument)>),
    /// `name(a, b)`, such as `htons(8080)`.
    Function(String, Vec<Argument>),
}
