//! Packets as a script writes them.

use crate::script::{EcnMark, Packet};
use firstflight_tcp::{Flags, Nanos};
use std::fmt;

impl fmt::Display for EcnMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCapable => "noecn",
            Self::Capable0 => "ect0",
            Self::Capable1 => "ect1",
            Self::Capable => "ect01",
            Self::Congestion => "ce",
        })
    }
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
        if let Some(ecn) = self.ecn.filter(|ecn| *ecn != EcnMark::NotCapable) {
            write!(f, "[{ecn}] ")?;
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
