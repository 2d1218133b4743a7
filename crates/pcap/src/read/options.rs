//! The options of a header: IPv4 and TCP spell them alike.

use super::Malformed;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;

/// Calls `found` with the number and the value of each option.
// RFC 791 §3.1 and RFC 9293 §3.1: 0 ends the list, 1 pads, and all others have a length that counts number and length.
pub(super) fn each(
    header: &'static str,
    mut bytes: &[u8],
    mut found: impl FnMut(u8, &[u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    loop {
        match *bytes {
            [] | [END, ..] => return Ok(()),
            [NO_OPERATION, ref rest @ ..] => bytes = rest,
            [kind, ref rest @ ..] => {
                let length = rest.first().map_or(0, |&length| usize::from(length));
                // RFC 9293 §3.1, MUST-7: be prepared to handle an illegal option length.
                let value = bytes.get(2..length).ok_or(Malformed::Option { header, kind })?;
                found(kind, value)?;
                bytes = &bytes[length..];
            }
        }
    }
}
