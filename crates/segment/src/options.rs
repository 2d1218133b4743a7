//! The options of a header: IPv4 and TCP spell them alike.

/// The header length counts up to 15 words, and a header without options has five.
pub(crate) const MOST_BYTES: usize = 40;

/// The end of the list.
const END: u8 = 0;

/// The kinds that are read or written here.
pub mod kind {
    /// Padding.
    pub const NO_OPERATION: u8 = 1;
    /// Maximum segment size (RFC 9293 section 3.2).
    pub const MSS: u8 = 2;
    /// Window scale (RFC 7323 section 2.2).
    pub const WINDOW_SCALE: u8 = 3;
    /// SACK permitted (RFC 2018 section 2).
    pub const SACK_PERMITTED: u8 = 4;
    /// SACK (RFC 2018 section 3).
    pub const SACK: u8 = 5;
    /// Timestamps (RFC 7323 section 3.2).
    pub const TIMESTAMPS: u8 = 8;
    /// Quick-Start in the IP header (RFC 4782 section 3.1): not copied on fragmentation, class 0.
    pub const QUICK_START: u8 = 25;
    /// Quick-Start's response in the TCP header (RFC 4782 section 4.2).
    pub const QUICK_START_RESPONSE: u8 = 27;
}

/// Bytes of the timestamps option with the two no-operations that align it.
pub const TIMESTAMPS_BYTES: u32 = 12;

/// Bytes of Quick-Start's options, in the IP header and in the TCP header.
pub const QUICK_START_BYTES: u32 = 8;

/// Bytes of a SACK option with this number of ranges and the two no-operations that align it.
pub(crate) fn sack_bytes(ranges: usize) -> u32 {
    if ranges == 0 { 0 } else { 4 + 8 * ranges as u32 }
}

/// The options that stand in these bytes, one after the other: kind and value; the kind alone of one whose length cannot
/// be, after which there are no others.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(pub &'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Result<(u8, &'a [u8]), u8>;

    // RFC 791 section 3.1 and RFC 9293 section 3.1: 0 ends the list, 1 pads, and all others have a length that counts
    // kind and length.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.0 {
                [] | [END, ..] => return None,
                [kind::NO_OPERATION, ref rest @ ..] => self.0 = rest,
                [kind, ref rest @ ..] => {
                    let length = rest.first().map_or(0, |&length| usize::from(length));
                    // RFC 9293 section 3.1, MUST-7: be prepared to handle an illegal option length.
                    let Some(value) = self.0.get(2..length) else {
                        self.0 = &[];
                        return Some(Err(kind));
                    };
                    self.0 = &self.0[length..];
                    return Some(Ok((kind, value)));
                }
            }
        }
    }
}
