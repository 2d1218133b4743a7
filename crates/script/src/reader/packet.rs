//! Packets: `< [ect0] P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 1 ecr 2>`.

use super::Reader;
use crate::lexer::TokenKind;
use crate::problem::{Problem, malformed, unsupported};
use crate::script::{ECN_MARKS, EcnMark, Packet};
use firstflight_tcp::Flags;

impl Reader<'_> {
    pub(super) fn packet(&mut self, arrives: bool) -> Result<Packet, Problem> {
        let line = self.line();
        self.at += 1;
        let ecn = self.ecn(arrives)?;
        if let (TokenKind::Integer(_), TokenKind::Sign('>')) = (self.peek(), self.peek_second()) {
            unsupported!(line, "port numbers of a packet are not modeled");
        }
        if self.peek() == TokenKind::Word("encap") {
            unsupported!(line, "encapsulated packets are not modeled");
        }
        if let TokenKind::Word(word @ ("icmp" | "udp" | "ipv4" | "ipv6" | "gre" | "GREv0" | "mpls")) = self.peek() {
            unsupported!(line, "packets of {word} are not modeled, only TCP");
        }
        let flags = self.flags()?;
        let (seq, payload_bytes) = self.sequence_numbers()?;
        let ack = if self.take_word("ack") { Some(self.integer("the acknowledgement", u32::MAX)?) } else { None };
        // packetdrill takes a packet that acknowledges and does not say what to acknowledge nothing.
        let ack = ack.or(flags.contains(Flags::ACK).then_some(0));
        let window = if self.take_word("win") { Some(self.integer("the window", 65535)? as u16) } else { None };
        if arrives && window.is_none() && !flags.contains(Flags::RST) {
            return Err(self.unexpected("\"win\" and the window of a packet that arrives"));
        }
        if self.take_word("urg") {
            unsupported!(line, "the urgent pointer is not modeled");
        }
        let options = self.tcp_options()?;
        if arrives && options.is_none() {
            malformed!(line, "<...> stands for any options; a packet that arrives must name its own");
        }
        if self.peek() == TokenKind::Sign('{') {
            unsupported!(line, "packets changed at random ({{...}}) are not modeled");
        }
        Ok(Packet { ecn, flags, seq, payload_bytes, ack, window, options })
    }

    /// `[ect0]` or `(ect0)`.
    fn ecn(&mut self, arrives: bool) -> Result<Option<EcnMark>, Problem> {
        let close = match self.peek() {
            TokenKind::Sign('[') => ']',
            TokenKind::Sign('(') => ')',
            _ => return Ok(None),
        };
        let line = self.line();
        self.at += 1;
        let token = self.next();
        let named = ECN_MARKS.into_iter().find(|(word, _)| token == TokenKind::Word(word));
        let mark = match (named, token) {
            (Some((word, codepoints)), _) if arrives && codepoints.len() > 1 => {
                malformed!(line, "{word} is for an expected packet (>) only: write ect0 or ect1")
            }
            (Some(mark), _) => mark,
            (_, TokenKind::Word(word @ ("tos" | "ttl" | "flowlabel"))) => {
                unsupported!(line, "{word} of the IP header is not modeled")
            }
            (_, TokenKind::Integer(_)) => unsupported!(line, "packets of icmp are not modeled, only TCP"),
            _ => malformed!(line, "{token} was found where ect0, ect1, ect01, ce or noecn should stand"),
        };
        if self.peek() == TokenKind::Sign(',') {
            unsupported!(line, "of the IP header only the ECN bits are modeled");
        }
        self.need(close, "the ECN bits")?;
        Ok(Some(mark))
    }

    /// `S`, `S.`, `P.`, `.`, `-`, `SEW`, ...
    fn flags(&mut self) -> Result<Flags, Problem> {
        let line = self.line();
        if let TokenKind::Decimal(_) = self.peek() {
            unsupported!(line, "the ACE counter of accurate ECN is not modeled");
        }
        if self.take('-') {
            return Ok(Flags::NONE);
        }
        let mut flags = Flags::NONE;
        let letters = self.word().unwrap_or_default();
        for letter in letters.chars() {
            flags |= match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'E' => Flags::ECE,
                'W' => Flags::CWR,
                'A' | 'U' => unsupported!(line, "the flag {letter} is not modeled"),
                _ => malformed!(
                    line,
                    "\"{letters}\" was found where flags should stand: some of SFRPEW, then \".\" for ACK"
                ),
            };
        }
        if let TokenKind::Decimal(_) = self.peek() {
            unsupported!(line, "the ACE counter of accurate ECN is not modeled");
        }
        if self.take('.') {
            flags |= Flags::ACK;
        } else if letters.is_empty() {
            return Err(self.unexpected("flags, such as S, S., P. or a single point,"));
        }
        Ok(flags)
    }

    /// `1:1001(1000)`.
    fn sequence_numbers(&mut self) -> Result<(u32, u32), Problem> {
        let line = self.line();
        let start = self.integer("the sequence number", u32::MAX)?;
        self.need(':', "the sequence number")?;
        let end = self.integer("the sequence number after the payload", u32::MAX)?;
        self.need('(', "the sequence numbers")?;
        let payload = self.integer("the length of the payload", u32::from(u16::MAX))?;
        self.need(')', "the length of the payload")?;
        if start.checked_add(payload) != Some(end) {
            malformed!(
                line,
                "{start}:{end}({payload}) does not add up: from {start} to {end} there are not {payload} bytes"
            );
        }
        Ok((start, payload))
    }
}
