//! The IPv6 header (RFC 8200).

const FIXED_BYTES: usize = 40;

/// A look at an IPv6 header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6<'a> {
    fixed: &'a [u8; FIXED_BYTES],
    packet: &'a [u8],
}

/// What a packet carries, or why that is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upper {
    /// The header of this protocol, at this byte.
    At(u8, usize),
    /// It is a fragment that begins behind that header.
    Fragment,
    /// The bytes end before.
    Short,
}

impl<'a> Ipv6<'a> {
    /// The header at the beginning of these bytes, if it is complete there.
    #[inline]
    pub fn at(packet: &'a [u8]) -> Option<Self> {
        Some(Self { fixed: packet.first_chunk()?, packet })
    }

    /// Bytes of the packet as its header says, which is none where a card was to divide it.
    #[inline]
    pub fn total_bytes(self) -> Option<usize> {
        match u16::from_be_bytes([self.fixed[4], self.fixed[5]]) {
            0 => None,
            payload => Some(FIXED_BYTES + usize::from(payload)),
        }
    }

    /// Its source address.
    #[inline]
    pub fn source(self) -> u128 {
        self.address(8)
    }

    /// Its destination address.
    #[inline]
    pub fn destination(self) -> u128 {
        self.address(24)
    }

    /// The header behind any extension headers.
    pub fn upper(self) -> Upper {
        let (mut kind, mut at) = (self.fixed[6], FIXED_BYTES);
        // RFC 8200 section 4: extension headers, each with the kind of the next one.
        while matches!(kind, 0 | 43 | 44 | 51 | 60) {
            let extension: Option<&[u8; 4]> = self.packet.get(at..).and_then(|rest| rest.first_chunk());
            let Some(extension) = extension else { return Upper::Short };
            at += match kind {
                44 if u16::from_be_bytes([extension[2], extension[3]]) & 0xfff8 != 0 => return Upper::Fragment,
                44 => 8,
                // Authentication (RFC 4302): in units of four bytes, less two.
                51 => 8 + usize::from(extension[1]) * 4,
                // Hop-by-hop options, routing, destination options: in units of eight bytes after the first.
                _ => 8 + usize::from(extension[1]) * 8,
            };
            kind = extension[0];
        }
        Upper::At(kind, at)
    }

    #[inline]
    fn address(self, from: usize) -> u128 {
        self.fixed[from..from + 16].iter().fold(0, |sum: u128, &byte| sum << 8 | u128::from(byte))
    }
}
