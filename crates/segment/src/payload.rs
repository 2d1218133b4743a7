//! The bytes that stand in for those of a stream.

/// Bytes of a line of the payload.
const LINE: u64 = 16;

/// Appends `length` bytes of the stream from `offset` on.
///
/// The stream is lines of 16 characters, each of them 15 hexadecimal digits that give the offset of the line,
/// so a reader of a packet sees which part of the stream it carries, and equal offsets mean equal bytes.
pub fn write_payload(offset: u64, length: u32, into: &mut Vec<u8>) {
    let mut at = offset;
    let end = offset.saturating_add(u64::from(length));
    while at < end {
        let line = at - at % LINE;
        let text = line_at(line);
        let upto = end.min(line.saturating_add(LINE));
        into.extend_from_slice(&text[(at - line) as usize..(upto - line) as usize]);
        at = upto;
    }
}

fn line_at(offset: u64) -> [u8; LINE as usize] {
    let mut text = [b'\n'; LINE as usize];
    for (place, digit) in text[..15].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(offset >> (4 * (14 - place)) & 15) as usize];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_offset_at_which_it_begins() {
        let mut bytes = Vec::new();
        write_payload(0x5a0, 32, &mut bytes);
        assert_eq!(bytes, b"0000000000005a0\n0000000000005b0\n");
    }

    #[test]
    fn pieces_of_any_size_make_up_the_same_stream() {
        let mut whole = Vec::new();
        write_payload(3, 1000, &mut whole);
        let mut pieces = Vec::new();
        let mut at = 3;
        for size in (1..).take_while(|size| size * (size + 1) / 2 <= 1000) {
            write_payload(at, size, &mut pieces);
            at += u64::from(size);
        }
        write_payload(at, (1003 - at) as u32, &mut pieces);
        assert_eq!(pieces, whole);
    }
}
