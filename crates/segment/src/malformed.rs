//! Why bytes are not a packet that can be read.

use thiserror::Error;

/// Why bytes are not an IP packet with a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Malformed {
    /// There are fewer bytes than a header says or needs.
    #[error("the packet has {has} bytes where its {header} header asks for {needs}")]
    Short {
        /// The header: "IPv4", "IPv6" or "TCP".
        header: &'static str,
        /// Bytes that there should be.
        needs: usize,
        /// Bytes that there are.
        has: usize,
    },
    /// The version of the Internet Protocol is neither 4 nor 6.
    #[error("the packet is of version {0} of the Internet Protocol, not 4 or 6")]
    Version(u8),
    /// A header ("IPv4", "IPv6" or "TCP") says that it is shorter than its fixed part, or longer than its packet.
    #[error("the {header} header gives its length as {bytes} bytes, which cannot be")]
    HeaderLength {
        /// Whose.
        header: &'static str,
        /// Its value, in bytes.
        bytes: usize,
    },
    /// The packet is a fragment of another.
    #[error("the packet is a fragment, which only the whole could explain")]
    Fragment,
    /// The packet carries this protocol, not TCP.
    #[error("the packet carries protocol {0}, not TCP (6)")]
    Protocol(u8),
    /// The checksum of a header ("IPv4" or "TCP") does not fit.
    #[error("the {0} checksum does not fit the packet")]
    Checksum(&'static str),
    /// An option of a header ("IPv4" or "TCP") has a length that it cannot have.
    #[error("option {kind} of the {header} header has a length that it cannot have")]
    Option {
        /// Whose.
        header: &'static str,
        /// The option's number.
        kind: u8,
    },
}
