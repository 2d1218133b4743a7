//! Compares an expected packet with the actual one, in the fields that the script specifies.

use crate::problem::{Refusal, refuse};
use crate::script::{Packet, flags};
use crate::wire::TcpOption;
use firstflight_tcp::{Flags, Nanos};

/// Flags that consecutive segments of one expected packet may differ in: each says something about one byte of the
/// whole.
const OF_ONE_SEGMENT: Flags = Flags::PSH.union(Flags::FIN).union(Flags::CWR);

/// Adds `next` to `so_far`, if the two could have left as one packet.
///
/// As packetdrill adds them up: the same acknowledgment, flags and window, the sequence numbers in a row, and all but the last
/// of the same size (`largest` is the first one's).
pub(super) fn join(so_far: &Packet, next: &Packet, largest: u32, expected_bytes: u32) -> Result<Packet, Refusal> {
    let flags = |packet: &Packet| packet.flags.bits() & !OF_ONE_SEGMENT.bits();
    if next.seq != so_far.seq.wrapping_add(so_far.payload_bytes) {
        return Err(refuse!("its parts do not follow one another: after {so_far} came {next}"));
    }
    if flags(next) != flags(so_far) || next.ack != so_far.ack {
        return Err(refuse!("its parts differ in more than their payload: after {so_far} came {next}"));
    }
    if next.payload_bytes > largest
        || next.payload_bytes < largest && so_far.payload_bytes + next.payload_bytes < expected_bytes
    {
        return Err(refuse!(
            "its parts are not of one size: after segments of {largest} bytes came one of {}",
            next.payload_bytes
        ));
    }
    Ok(Packet {
        flags: so_far.flags | next.flags,
        payload_bytes: so_far.payload_bytes + next.payload_bytes,
        ..so_far.clone()
    })
}

/// The differences, each as a sentence; and whether PSH differs.
pub(super) fn differences(expected: &Packet, came: &Packet, tick: Option<(Nanos, Nanos)>) -> (Vec<String>, bool) {
    let mut found = Vec::new();
    let without_push = |packet: &Packet| Flags::from_bits_truncate(packet.flags.bits() & !Flags::PSH.bits());
    let (wanted, has) = (without_push(expected), without_push(came));
    if wanted != has {
        found.push(format!("flags {} instead of {}", flags(has), flags(wanted)));
    }
    if expected.seq != came.seq {
        found.push(format!("sequence number {} instead of {}", came.seq, expected.seq));
    }
    if expected.payload_bytes != came.payload_bytes {
        found.push(format!("{} bytes of payload instead of {}", came.payload_bytes, expected.payload_bytes));
    }
    if expected.ack != came.ack {
        let number = |ack: Option<u32>| ack.map_or("none".to_owned(), |ack| ack.to_string());
        found.push(format!("acknowledgement {} instead of {}", number(came.ack), number(expected.ack)));
    }
    if let (Some(wanted), Some(has)) = (expected.window, came.window) {
        if wanted != has {
            found.push(format!("window {has} instead of {wanted}"));
        }
    }
    if let (Some((wanted, allowed)), Some((has, codepoints))) = (expected.ecn, came.ecn) {
        if !allowed.contains(&codepoints[0]) {
            found.push(format!("ECN bits {has} instead of {wanted}"));
        }
    }
    if let (Some(wanted), Some(has)) = (&expected.options, &came.options) {
        let same =
            wanted.len() == has.len() && wanted.iter().zip(has).all(|(wanted, has)| same_option(wanted, has, tick));
        if !same {
            found.push(format!("options <{}> instead of <{}>", listed(has), listed(wanted)));
        }
    }
    let push = expected.flags.contains(Flags::PSH) != came.flags.contains(Flags::PSH);
    (found, push)
}

/// TSval counts only if the length of a tick is known, and then as closely as times do.
fn same_option(wanted: &TcpOption, has: &TcpOption, tick: Option<(Nanos, Nanos)>) -> bool {
    match (wanted, has) {
        (TcpOption::Timestamps { value: a, echo: b }, TcpOption::Timestamps { value: c, echo: d }) => {
            let near = tick.is_none_or(|(tick, tolerance)| {
                let apart = u64::from((a.wrapping_sub(*c) as i32).unsigned_abs());
                apart.saturating_mul(tick) <= tolerance
            });
            near && b == d
        }
        _ => wanted == has,
    }
}

fn listed(options: &[TcpOption]) -> String {
    options.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::ECN_MARKS;

    fn data(seq: u32, payload_bytes: u32, flags: Flags) -> Packet {
        Packet {
            ecn: None,
            flags: Flags::ACK | flags,
            seq,
            payload_bytes,
            ack: Some(1),
            window: None,
            options: Some(Vec::new()),
        }
    }

    #[test]
    fn consecutive_segments_add_up_to_one_packet() {
        let first = data(1, 1000, Flags::NONE);
        let two = join(&first, &data(1001, 1000, Flags::NONE), 1000, 2500).unwrap();
        let three = join(&two, &data(2001, 500, Flags::PSH | Flags::FIN), 1000, 2500).unwrap();
        let (found, push) = differences(&data(1, 2500, Flags::PSH | Flags::FIN), &three, None);
        assert_eq!((found, push), (Vec::new(), false));
    }

    #[test]
    fn segments_with_a_gap_or_of_uneven_size_do_not() {
        let first = data(1, 1000, Flags::NONE);
        assert!(join(&first, &data(2001, 1000, Flags::NONE), 1000, 3000).unwrap_err().to_string().contains("follow"));
        assert!(join(&first, &data(1001, 500, Flags::NONE), 1000, 3000).unwrap_err().to_string().contains("size"));
        assert!(join(&first, &data(1001, 500, Flags::ECE), 1000, 1500).unwrap_err().to_string().contains("differ"));
    }

    #[test]
    fn a_missing_push_is_only_a_note_and_an_unstated_window_is_not_looked_at() {
        let came = Packet { window: Some(17), ecn: Some(ECN_MARKS[1]), ..data(1, 10, Flags::NONE) };
        let (found, push) = differences(&data(1, 10, Flags::PSH), &came, None);
        assert_eq!((found, push), (Vec::new(), true));
        let wanted = Packet { ecn: Some(ECN_MARKS[3]), window: Some(18), ..data(2, 10, Flags::NONE) };
        let (found, _) = differences(&wanted, &came, None);
        assert_eq!(found, ["sequence number 1 instead of 2", "window 17 instead of 18"]);
    }
}
