//! TCP options as they stand in a header, one after the other.

use firstflight_tcp::{Flags, Segment};
use std::fmt;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// End of the option list.
    End,
    /// Padding.
    Nop,
    /// Maximum segment size in bytes.
    Mss(u16),
    /// Window scale shift.
    WindowScale(u8),
    SackPermitted,
    /// Ranges received out of order.
    Sack(Vec<[u32; 2]>),
    Timestamps {
        /// TSval.
        value: u32,
        /// TSecr.
        echo: u32,
    },
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("eol"),
            Self::Nop => f.write_str("nop"),
            Self::Mss(bytes) => write!(f, "mss {bytes}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => f.write_str("sackOK"),
            Self::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|[left, right]| write!(f, " {left}:{right}"))
            }
            Self::Timestamps { value, echo } => write!(f, "TS val {value} ecr {echo}"),
        }
    }
}

/// The options of a segment in the order and with the padding that Linux gives them.
///
/// A timestamp takes the place of the padding before SACK-permitted on a SYN; elsewhere each option is preceded by two
/// bytes of padding.
pub fn options_of(segment: &Segment) -> Vec<TcpOption> {
    use TcpOption::{Mss, Nop, Sack, SackPermitted, Timestamps, WindowScale};
    let mut options = Vec::new();
    let stamp = segment.timestamps.map(|stamps| Timestamps { value: stamps.value, echo: stamps.echo });
    if segment.flags.contains(Flags::SYN) {
        options.extend(segment.mss.map(|bytes| Mss(bytes.get())));
        match (segment.sack_permitted, stamp) {
            (true, Some(stamp)) => options.extend([SackPermitted, stamp]),
            (true, None) => options.extend([Nop, Nop, SackPermitted]),
            (false, Some(stamp)) => options.extend([Nop, Nop, stamp]),
            (false, None) => {}
        }
        if let Some(shift) = segment.window_scale {
            options.extend([Nop, WindowScale(shift)]);
        }
    } else if let Some(stamp) = stamp {
        options.extend([Nop, Nop, stamp]);
    }
    if !segment.sack.is_empty() {
        options.extend([Nop, Nop, Sack(segment.sack.as_slice().to_vec())]);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstflight_tcp::{SackBlocks, Timestamps};
    use std::num::NonZeroU16;

    fn shown(segment: &Segment) -> String {
        options_of(segment).iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn a_syn_carries_its_options_in_the_order_of_linux() {
        let syn = Segment { flags: Flags::SYN, mss: NonZeroU16::new(1460), window_scale: Some(8), ..Segment::EMPTY };
        let stamps = Some(Timestamps { value: 100, echo: 0 });
        assert_eq!(shown(&syn), "mss 1460,nop,wscale 8");
        assert_eq!(shown(&Segment { sack_permitted: true, ..syn }), "mss 1460,nop,nop,sackOK,nop,wscale 8");
        assert_eq!(
            shown(&Segment { sack_permitted: true, timestamps: stamps, ..syn }),
            "mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8"
        );
    }

    #[test]
    fn an_acknowledgement_carries_timestamps_before_its_blocks() {
        let mut sack = SackBlocks::NONE;
        sack.push(1, 2);
        sack.push(5, 7);
        let stamps = Some(Timestamps { value: 3, echo: 4 });
        let ack = Segment { flags: Flags::ACK, timestamps: stamps, sack, ..Segment::EMPTY };
        assert_eq!(shown(&ack), "nop,nop,TS val 3 ecr 4,nop,nop,sack 1:2 5:7");
    }
}
