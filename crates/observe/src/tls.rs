//! TLS over TCP, as far as the record layer shows it: where the handshake ends, and which bytes answer a request.
//!
//! A record begins with its type, a version and its length (RFC 8446 §5.1, RFC 5246 §6.2.1), which are not encrypted. The
//! rule, which `docs/observe.md` has in full:
//!
//! - A connection whose client begins with a handshake record is TLS.
//! - Up to 1.2, the client's first record of application data is its request. In 1.3, whose handshake ends in records
//!   of that type, the request is the data after its Finished, which is recognized by its length.
//! - Data from the server before that belongs to the handshake. Of later data, so do, up to 1.2, records that are no
//!   application data, and in 1.3 session tickets: small records of one length at the beginning, if others follow.
//!
//! In a truncated packet, the records that begin in the kept part are seen. A place in a stream that is not known is
//! found again where a packet begins with a record, as it does after each pause.

use crate::{packet::Seen, stream::SeqNum};

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const HEADER: usize = 5;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;
/// Extensions (RFC 8446 §4.2).
const PRE_SHARED_KEY: u16 = 41;
const SUPPORTED_VERSIONS: u16 = 43;
const KEY_SHARE: u16 = 51;
/// The version of TLS 1.2 (RFC 5246 §6.2.1).
const TLS_1_2: usize = 0x0303;
/// The random of a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, //
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
/// RFC 5246 §6.2.3; those of RFC 8446 §5.2 are shorter.
const LONGEST: u32 = (1 << 14) + 2048;
/// A Finished of 1.3 by SHA-256 and by SHA-384: header of the message, hash, type and tag (RFC 8446 §4.4.4, §5.2).
const FINISHED: [u32; 2] = [4 + 32 + 1 + 16, 4 + 48 + 1 + 16];
/// The EndOfEarlyData of 1.3, likewise (RFC 8446 §4.5).
const END_OF_EARLY_DATA: u32 = 4 + 1 + 16;
/// An alert of 1.3: level, description, type and tag (RFC 8446 §6).
const HIDDEN_ALERT: u32 = 2 + 1 + 16;
/// The Finished of 1.2 takes less, encrypted by whatever cipher; a ClientHello takes more.
const SHORTEST_HELLO: u32 = 100;
/// Tickets of common servers take 60 to 300 bytes.
const LONGEST_TICKET: u32 = 512;

#[derive(Clone, Copy, Debug)]
struct Record {
    kind: u8,
    length: u32,
    start: SeqNum,
    end: SeqNum,
}

/// Type and length of the record that begins with these bytes, `rest` bytes before the end of the segment; None if they
/// are no record's header. Where its length was not kept, it is taken to end with the segment.
fn header(bytes: &[u8], rest: u32) -> Option<(u8, u32)> {
    let &[kind, major, minor] = bytes.first_chunk::<3>()?;
    let length = match bytes[3..] {
        [high, low, ..] => u16::from_be_bytes([high, low]).into(),
        // RFC 5246 §7.1: a ChangeCipherSpec has one byte.
        _ if kind == CHANGE_CIPHER_SPEC => 1,
        _ => rest.saturating_sub(HEADER as u32),
    };
    let plausible = (CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(&kind) && major == 3 && minor <= 4;
    (plausible && (1..=LONGEST).contains(&length)).then_some((kind, length))
}

/// A number of `width` bytes at a place, and the place behind it; None if it was not kept.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<(usize, usize)> {
    let digits = bytes.get(at..at + width)?;
    Some((digits.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)), at + width))
}

/// Types and lengths of the extensions of a hello (RFC 8446 §4.1.2 and §4.1.3), as far as it was kept.
fn extensions(hello: &[u8], from_client: bool) -> impl Iterator<Item = (u16, u32)> + use<'_> {
    let first = || {
        // Version, random, session; then lists of ciphers and compressions, or one of each.
        let (session, at) = number(hello, 2 + 32, 1)?;
        let mut at = at + session;
        if from_client {
            for width in [2, 1] {
                let (length, begin) = number(hello, at, width)?;
                at = begin + length;
            }
        } else {
            at += 2 + 1;
        }
        Some(at + 2)
    };
    let mut at = first().unwrap_or(hello.len());
    std::iter::from_fn(move || {
        let (kind, length_at) = number(hello, at, 2)?;
        let (length, begin) = number(hello, length_at, 2)?;
        at = begin + length;
        Some((kind as u16, length as u32))
    })
}

/// A client's hello.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hello {
    /// Its bytes, with the header of its record.
    pub(crate) bytes: u32,
    /// Bytes of its key shares; 0 if they were not kept.
    pub(crate) key_share_bytes: u32,
}

/// True if a segment begins with a record.
pub(crate) fn begins_with_record(seen: &Seen<'_>) -> bool {
    header(seen.kept, seen.payload).is_some()
}

/// True if a record is as long as a Finished of 1.3, header included.
fn is_finished(bytes: u32) -> bool {
    FINISHED.contains(&bytes.wrapping_sub(HEADER as u32))
}

/// True if a segment is an alert and nothing else, such as the last word of an end that closes.
pub(crate) fn is_alert(seen: &Seen<'_>) -> bool {
    header(seen.kept, seen.payload).is_some_and(|(kind, length)| {
        seen.payload == length + HEADER as u32 && (kind == ALERT || kind == APPLICATION_DATA && length == HIDDEN_ALERT)
    })
}

/// Sequence number of the next record of one endpoint, if it is known.
#[derive(Clone, Copy, Default, Debug)]
struct Records {
    next: SeqNum,
}

impl Records {
    /// The next record that begins in a segment at `start`. None after the last one, or where a header was not kept: then
    /// the next segment is taken to begin with a record, if it looks so.
    fn next_in(&mut self, start: SeqNum, seen: &Seen<'_>) -> Option<Record> {
        let end = start + i64::from(seen.payload);
        let at = self.next.max(start);
        if at >= end {
            return None;
        }
        let kept = seen.kept.get((at - start) as usize..);
        let Some((kind, length)) = kept.and_then(|bytes| header(bytes, (end - at) as u32)) else {
            self.next = end;
            return None;
        };
        self.next = at + HEADER as i64 + i64::from(length);
        Some(Record { kind, length, start: at, end: self.next })
    }
}

/// The stage of a connection's handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// The client has said hello.
    #[default]
    Hello,
    /// It is 1.2 or older: the client has gone on with a record of the handshake.
    Keys,
    /// It is 1.3, and the client's Finished ends here.
    Finished {
        end: SeqNum,
    },
    Asked {
        version: Version,
    },
    /// The client asked before the handshake was over (RFC 8446 §2.3): the answer cannot be distinguished from the
    /// handshake.
    Early,
}

/// As far as the records show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    UpTo12,
    V13,
}

/// The kind of a server's segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Handshake,
    /// Session tickets, if something else follows; else the answer.
    Tickets,
    /// The answer begins here, which may be within the segment.
    Answer(SeqNum),
}

#[derive(Debug, Default)]
pub(crate) struct Handshake {
    stage: Stage,
    client: Records,
    server: Records,
    /// The client has sent its ChangeCipherSpec, behind which handshakes of 1.2 are encrypted.
    changed: bool,
    /// The client has sent records of application data before its Finished was seen: its certificate of 1.3, or a
    /// request that came before the Finished.
    sent_data: bool,
    /// Number of times that the client waited for the server.
    pub(crate) exchanges: u8,
    /// The server has sent something since the client did.
    answered: bool,
    /// Length of the session tickets, and how many of them came.
    tickets: Option<(u32, u32)>,
    pub(crate) hello: Hello,
    /// The server's hello was one of 1.2.
    is_old: bool,
    /// The server's first hello asked for another of the client's.
    retried: bool,
    /// The server used keys of an earlier connection.
    pub(crate) resumed: Option<bool>,
}

impl Handshake {
    /// Of a client that begins with this segment; None if that is no ClientHello.
    pub(crate) fn begin(seen: &Seen<'_>) -> Option<Self> {
        let (kind, length) = header(seen.kept, seen.payload)?;
        let is_hello = seen.kept.get(HEADER).is_none_or(|&message| message == CLIENT_HELLO);
        let message = seen.kept.get(HEADER + 4..).unwrap_or_default();
        let share = extensions(message, true).find(|&(kind, _)| kind == KEY_SHARE);
        // A list of groups with their keys.
        let key_share_bytes = share.map_or(0, |(_, length)| length.saturating_sub(2));
        (kind == HANDSHAKE && is_hello)
            .then(|| Self { hello: Hello { bytes: length + HEADER as u32, key_share_bytes }, ..Self::default() })
    }

    /// True if the client has sent all of its handshake or its request.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.stage, Stage::Finished { .. } | Stage::Asked { .. })
    }

    /// A record of the flight with the server's hello, from its header: whether keys of an earlier connection are used.
    /// In 1.3 the hello has them (RFC 8446 §4.2.11); up to 1.2 no certificate follows it (RFC 5246 §7.3).
    fn see_resumption(&mut self, record: &[u8]) {
        let message = record.get(HEADER).copied();
        if self.is_old {
            self.resumed = message.map(|message| record[0] == CHANGE_CIPHER_SPEC || message != CERTIFICATE);
        } else if message == Some(SERVER_HELLO) {
            let Some((length, begin)) = number(record, HEADER + 1, 3) else { return };
            let hello = record.get(begin..(begin + length).min(record.len())).unwrap_or_default();
            let has = |wanted| extensions(hello, false).any(|(kind, _)| kind == wanted);
            // Drafts of 1.3 have later versions, and hellos of another form.
            let up_to_12 = number(hello, 0, 2).is_some_and(|(version, _)| version <= TLS_1_2);
            if hello.get(2..2 + 32) == Some(&RETRY) {
                self.retried = true;
            } else if has(SUPPORTED_VERSIONS) {
                self.resumed = Some(has(PRE_SHARED_KEY));
            } else if up_to_12 && hello.len() == length {
                self.is_old = true;
                // More messages may be in this record.
                let end = HEADER + number(record, HEADER - 2, 2).map_or(0, |(length, _)| length);
                let next = record.get(begin + length).filter(|_| begin + length < end);
                self.resumed = next.map(|&message| message != CERTIFICATE);
            }
        }
    }

    pub(crate) fn version(&self) -> Option<Version> {
        match self.stage {
            Stage::Hello => None,
            Stage::Keys => Some(Version::UpTo12),
            Stage::Finished { .. } | Stage::Early => Some(Version::V13),
            Stage::Asked { version } => Some(version),
        }
    }

    /// True if it is 1.3 and the client has sent its Finished, so that session tickets may come.
    pub(crate) fn has_finished(&self) -> bool {
        matches!(self.stage, Stage::Finished { .. })
    }

    pub(crate) fn is_early(&self) -> bool {
        self.stage == Stage::Early
    }

    /// True if a single small record has come since the client asked: if nothing follows, it is the answer.
    pub(crate) fn is_lone_ticket(&self) -> bool {
        matches!(self.tickets, Some((_, 1)))
    }

    /// The client sends data that was not seen yet; whether it asks for something. `late`: the data behind it was seen,
    /// for it was lost or overtaken.
    pub(crate) fn client_sends(&mut self, start: SeqNum, seen: &Seen<'_>, late: bool) -> bool {
        let next_flight = !late && std::mem::take(&mut self.answered);
        let end = start + i64::from(seen.payload);
        let mut records = if late { Records { next: start } } else { self.client };
        let mut known = records.next.clamp(start, end);
        loop {
            let record = records.next_in(start, seen);
            self.client.next = self.client.next.max(records.next);
            let Some(record) = record else { break };
            known = record.end.min(end);
            let message = seen.kept.get((record.start - start) as usize + HEADER).copied();
            if self.client_record(&record, message, next_flight) {
                return true;
            }
        }
        match self.stage {
            // The bytes behind it were the request.
            Stage::Finished { .. } if late && self.sent_data => self.ask(Version::V13),
            Stage::Keys if late && self.sent_data => self.ask(Version::UpTo12),
            // Whatever it is, the handshake was over with the flight before.
            Stage::Keys if known == start && next_flight => self.ask(Version::UpTo12),
            // No Finished of 1.2 is as long, with the ciphers that are in use.
            Stage::Hello if self.changed && self.exchanges > 0 && is_finished((end - known) as u32) => {
                self.stage = Stage::Finished { end };
                false
            }
            // The next header was not kept.
            Stage::Finished { end: finished } if known < end && end > finished => self.ask(Version::V13),
            _ => false,
        }
    }

    fn client_record(&mut self, record: &Record, message: Option<u8>, next_flight: bool) -> bool {
        match (self.stage, record.kind) {
            (_, CHANGE_CIPHER_SPEC) => self.changed = true,
            (Stage::Hello, HANDSHAKE) => {
                let hello = record.start == 0
                    || if self.changed { record.length >= SHORTEST_HELLO } else { message == Some(CLIENT_HELLO) };
                if !hello {
                    self.stage = Stage::Keys;
                }
            }
            (Stage::Hello, APPLICATION_DATA) => {
                if self.exchanges == 0 {
                    self.stage = Stage::Early;
                    return true;
                }
                if FINISHED.contains(&record.length) {
                    self.stage = Stage::Finished { end: record.end };
                } else if self.sent_data && next_flight {
                    return self.ask(Version::V13);
                } else {
                    self.sent_data = true;
                }
            }
            (Stage::Keys, APPLICATION_DATA) => return self.ask(Version::UpTo12),
            (Stage::Finished { end }, APPLICATION_DATA) => {
                return record.start >= end && record.length != HIDDEN_ALERT && self.ask(Version::V13);
            }
            (Stage::Early, APPLICATION_DATA) => {
                let ends_handshake = FINISHED.contains(&record.length) || record.length == END_OF_EARLY_DATA;
                return self.exchanges > 0 && !ends_handshake;
            }
            _ => {}
        }
        false
    }

    fn ask(&mut self, version: Version) -> bool {
        self.stage = Stage::Asked { version };
        self.tickets = self.tickets.map(|(length, _)| (length, 0));
        true
    }

    /// The server sends new data; `full`: as much as fits into a segment.
    pub(crate) fn server_sends(&mut self, start: SeqNum, seen: &Seen<'_>, full: bool) -> Part {
        let end = start + i64::from(seen.payload);
        // Nobody waits for tickets and other data without a request.
        if !self.answered && matches!(self.stage, Stage::Hello | Stage::Keys | Stage::Early) {
            self.exchanges = self.exchanges.saturating_add(1);
        }
        self.answered = true;
        let mut known = self.server.next.clamp(start, end);
        while let Some(record) = self.server.next_in(start, seen) {
            known = record.end.min(end);
            if self.resumed.is_none() && self.exchanges == 1 + u8::from(self.retried) {
                self.see_resumption(&seen.kept[(record.start - start) as usize..]);
            }
            match (self.stage, record.kind) {
                (Stage::Finished { .. }, APPLICATION_DATA) => self.add_ticket(record.length),
                (Stage::Asked { version: Version::UpTo12 }, APPLICATION_DATA) => return Part::Answer(record.start),
                (Stage::Asked { version: Version::V13 }, APPLICATION_DATA) => {
                    let like_others = self.tickets.is_none_or(|(length, _)| length == record.length);
                    if record.length > LONGEST_TICKET || !like_others {
                        return Part::Answer(record.start);
                    }
                    self.add_ticket(record.length);
                }
                _ => {}
            }
        }
        match self.stage {
            Stage::Asked { version: Version::UpTo12 } if known == start || known < end && full => Part::Answer(known),
            Stage::Asked { version: Version::UpTo12 } => Part::Handshake,
            Stage::Asked { version: Version::V13 } => self.tickets_up_to(known, end),
            _ => Part::Handshake,
        }
    }

    fn add_ticket(&mut self, length: u32) {
        let before = self.tickets.map_or(0, |(_, count)| count);
        self.tickets = Some((length, before + 1));
    }

    /// The records of a segment are tickets up to `known`; the headers behind were not kept.
    fn tickets_up_to(&mut self, known: SeqNum, end: SeqNum) -> Part {
        let Some((length, count)) = self.tickets.filter(|&(_, count)| count > 0) else { return Part::Answer(known) };
        let each = i64::from(length) + HEADER as i64;
        if (end - known) % each != 0 {
            return Part::Answer(known);
        }
        self.tickets = Some((length, count + ((end - known) / each) as u32));
        Part::Tickets
    }
}
