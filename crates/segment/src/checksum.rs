//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

/// A sum in progress, in one's complement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checksum(u64);

impl Checksum {
    /// Adds bytes that begin at an even offset of the sum.
    // RFC 1071 §2: a sum of 32-bit words folds into the same sum of 16-bit ones, and takes half the additions. §4.1: what
    // is left is padded on the right with zeros.
    pub(crate) fn add(mut self, bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(4);
        let rest = words.remainder();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.0 += u64::from(u32::from_be_bytes(last));
        self.0 += words.map(|word| u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))).sum::<u64>();
        self
    }

    fn add_address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.add(&address.octets()),
            IpAddr::V6(address) => self.add(&address.octets()),
        }
    }

    /// The checksum of a header in which two bytes at an even place have changed.
    // RFC 1624 section 3, equation 3: HC' = ~(~HC + ~m + m').
    pub(crate) fn updated(checksum: [u8; 2], before: [u8; 2], after: [u8; 2]) -> [u8; 2] {
        let inverse = |word: [u8; 2]| !u16::from_be_bytes(word);
        let sum = u64::from(inverse(checksum)) + u64::from(inverse(before)) + u64::from(u16::from_be_bytes(after));
        Self(sum).finish().to_be_bytes()
    }

    /// The checksum for the header.
    pub(crate) fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// The checksum of a header of a transport protocol and its payload: for one in which the field is zero, the value
/// that belongs there; for one in which it is filled, zero.
// RFC 9293 section 3.1, RFC 768, RFC 8200 section 8.1: a pseudo-header of both addresses, protocol and length is summed
// as well. That IPv6 gives more room to the last two changes no sum.
pub(crate) fn transport(protocol: u8, source: IpAddr, destination: IpAddr, bytes: &[u8]) -> u16 {
    Checksum::default()
        .add_address(source)
        .add_address(destination)
        .add(&[0, protocol])
        .add(&(bytes.len() as u32).to_be_bytes())
        .add(bytes)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_section_3_comes_out() {
        let sum = Checksum::default().add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).finish();
        assert_eq!(sum, !0xddf2);
    }

    #[test]
    fn the_sum_is_that_of_16_bit_words_with_an_odd_byte_as_the_left_one_of_its_word() {
        let bytes: Vec<u8> = (0..3000u32).map(|at| ((at * at) >> 3) as u8 | 0x80).collect();
        for length in (0..70).chain(2990..3000) {
            let words = bytes[..length]
                .chunks(2)
                .map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |&low| low.into()));
            assert_eq!(Checksum::default().add(&bytes[..length]).finish(), Checksum(words.sum()).finish(), "{length}");
        }
    }
}
