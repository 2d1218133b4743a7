//! Why bytes are not a packet that can be read.

use std::{error::Error, fmt};

/// Why bytes are not an IP packet with a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// There are fewer bytes than a header says or needs.
    Short {
        /// The header: "IPv4", "IPv6" or "TCP".
        header: &'static str,
        /// Bytes that there should be.
        needs: usize,
        /// Bytes that there are.
        has: usize,
    },
    /// The version of the Internet Protocol is neither 4 nor 6.
    Version(u8),
    /// A header ("IPv4", "IPv6" or "TCP") says that it is shorter than its fixed part, or longer than its packet.
    HeaderLength {
        /// Whose.
        header: &'static str,
        /// Its value, in bytes.
        bytes: usize,
    },
    /// The packet is a fragment of another.
    Fragment,
    /// The packet carries this protocol, not TCP.
    Protocol(u8),
    /// The checksum of a header ("IPv4" or "TCP") does not fit.
    Checksum(&'static str),
    /// An option of a header ("IPv4" or "TCP") has a length that it cannot have.
    Option {
        /// Whose.
        header: &'static str,
        /// The option's number.
        kind: u8,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { header, needs, has } => {
                write!(f, "the packet has {has} bytes where its {header} header asks for {needs}")
            }
            Self::Version(version) => {
                write!(f, "the packet is of version {version} of the Internet Protocol, not 4 or 6")
            }
            Self::HeaderLength { header, bytes } => {
                write!(f, "the {header} header gives its length as {bytes} bytes, which cannot be")
            }
            Self::Fragment => f.write_str("the packet is a fragment, which only the whole could explain"),
            Self::Protocol(number) => write!(f, "the packet carries protocol {number}, not TCP (6)"),
            Self::Checksum(header) => write!(f, "the {header} checksum does not fit the packet"),
            Self::Option { header, kind } => {
                write!(f, "option {kind} of the {header} header has a length that it cannot have")
            }
        }
    }
}

impl Error for Malformed {}
