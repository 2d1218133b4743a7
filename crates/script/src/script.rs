//! A script once read: settings, preamble and events; packets are shown as a script writes them.

use crate::wire::TcpOption;
use firstflight_tcp::{Ecn, Flags, Nanos};
use std::fmt;

/// A script, ready to be run.
#[derive(Clone, Debug)]
pub struct Script {
    /// `--name=value` lines at the top.
    pub options: Vec<OptionLine>,
    /// Shell block before the first event.
    pub preamble: Option<Block>,
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

#[derive(Clone, Debug)]
pub struct Event {
    pub line: u32,
    /// When it happens, or is expected to.
    pub when: When,
    pub action: Action,
}

/// When an event happens: between two times, which are equal except for expected packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    /// True if they count from the event before it, false if from the script's beginning.
    pub relative: bool,
    pub from: Nanos,
    pub to: Nanos,
}

impl When {
    pub const ANY: Self = Self { relative: false, from: 0, to: Nanos::MAX };

    /// The two times from the script's beginning, where the event before it was at `base`.
    pub fn times(self, base: Nanos) -> (Nanos, Nanos) {
        if self.relative { (base + self.from, base + self.to) } else { (self.from, self.to) }
    }
}

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
    pub window: Option<u16>,
    /// TCP options in order; none: `<...>`, whatever they are.
    pub options: Option<Vec<TcpOption>>,
}

/// ECN bits of a packet as a script writes them, and the codepoints that they stand for.
pub type EcnMark = (&'static str, &'static [Ecn]);

/// `ect01` is either of two, and for expected packets only.
pub const ECN_MARKS: [EcnMark; 5] = [
    ("noecn", &[Ecn::NotCapable]),
    ("ect0", &[Ecn::Capable0]),
    ("ect1", &[Ecn::Capable1]),
    ("ect01", &[Ecn::Capable0, Ecn::Capable1]),
    ("ce", &[Ecn::Congestion]),
];

#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    pub line: u32,
    pub name: String,
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
    Text(String),
    /// `[a, b]`
    List(Vec<Argument>),
    /// `{a, b}` or `{name=value, ...}`
    Structure(Vec<(Option<String>, Argument)>),
    /// `name(a, b)`, such as `htons(8080)`.
    Function(String, Vec<Argument>),
}

/// Flags in the letters of a script.
pub(crate) fn flags(flags: Flags) -> String {
    let letters = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    let set: String = letters.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| letter).collect();
    if set.is_empty() { "-".to_owned() } else { set }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((mark, _)) = self.ecn.filter(|(mark, _)| *mark != "noecn") {
            write!(f, "[{mark}] ")?;
        }
        let end = self.seq.wrapping_add(self.payload_bytes);
        write!(f, "{} {}:{end}({})", flags(self.flags), self.seq, self.payload_bytes)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        match &self.options {
            None => f.write_str(" <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let shown: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", shown.join(","))
            }
        }
    }
}

/// A time as a script writes it, in seconds to the microsecond, or to the nanosecond where that matters.
pub(crate) fn seconds(time: Nanos) -> String {
    let (whole, part) = (time / 1_000_000_000, time % 1_000_000_000);
    if part % 1_000 == 0 { format!("{whole}.{:06}", part / 1_000) } else { format!("{whole}.{part:09}") }
}
