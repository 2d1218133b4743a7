//! TCP options: `<mss 1460,nop,nop,sackOK,nop,wscale 8>`, or `<...>` for any.

use super::Reader;
use crate::lexer::TokenKind;
use crate::problem::{Problem, malformed, unsupported};
use crate::wire::TcpOption;
use firstflight_tcp::MOST_SACK_BLOCKS;

/// Room for options in a TCP header, in bytes.
const MOST_BYTES: usize = 40;

impl Reader<'_> {
    /// None for `<...>`; empty if no options are written.
    pub(super) fn tcp_options(&mut self) -> Result<Option<Vec<TcpOption>>, Problem> {
        let line = self.line();
        if !self.take('<') {
            return Ok(Some(Vec::new()));
        }
        if self.peek() == TokenKind::Ellipsis {
            self.at += 1;
            self.need('>', "\"<...\"")?;
            return Ok(None);
        }
        let mut options = Vec::new();
        loop {
            options.push(self.tcp_option()?);
            if !self.take(',') {
                break;
            }
        }
        self.need('>', "the TCP options")?;
        let bytes: usize = options.iter().map(length).sum();
        if bytes > MOST_BYTES {
            malformed!(line, "these options take {bytes} bytes; a header has room for 40");
        }
        Ok(Some(options))
    }

    fn tcp_option(&mut self) -> Result<TcpOption, Problem> {
        let line = self.line();
        Ok(match self.next() {
            TokenKind::Word("nop") => TcpOption::Nop,
            TokenKind::Word("eol") => TcpOption::End,
            TokenKind::Word("mss") => TcpOption::Mss(self.integer("the MSS", 65535)? as u16),
            TokenKind::Word("wscale") => TcpOption::WindowScale(self.integer("the window scale", 255)? as u8),
            TokenKind::Word("sackOK") => TcpOption::SackPermitted,
            TokenKind::Word("sack") => TcpOption::Sack(self.sack_blocks()?),
            TokenKind::Word("TS") => {
                if !self.take_word("val") {
                    return Err(self.unexpected("\"val\" after TS"));
                }
                let value = self.integer("TSval", u32::MAX)?;
                if !self.take_word("ecr") {
                    return Err(self.unexpected("\"ecr\" after the value of TS"));
                }
                TcpOption::Timestamps { value, echo: self.integer("TSecr", u32::MAX)? }
            }
            TokenKind::Word("FO" | "FOEXP") => unsupported!(line, "TCP Fast Open is not modeled"),
            TokenKind::Word(word @ ("md5" | "ECN" | "AO")) => {
                unsupported!(line, "the TCP option {word} is not modeled")
            }
            other => malformed!(
                line,
                "{other} was found where a TCP option should stand: mss, sackOK, sack, TS, wscale, nop, eol"
            ),
        })
    }

    fn sack_blocks(&mut self) -> Result<Vec<[u32; 2]>, Problem> {
        let line = self.line();
        let mut blocks = Vec::new();
        loop {
            let left = self.integer("the left edge of a SACK block", u32::MAX)?;
            self.need(':', "the left edge of a SACK block")?;
            blocks.push([left, self.integer("the right edge of a SACK block", u32::MAX)?]);
            if !matches!(self.peek(), TokenKind::Integer(_)) {
                break;
            }
        }
        if blocks.len() > MOST_SACK_BLOCKS {
            malformed!(line, "a header has room for {MOST_SACK_BLOCKS} SACK blocks");
        }
        Ok(blocks)
    }
}

/// Bytes that an option takes in the header.
fn length(option: &TcpOption) -> usize {
    match option {
        TcpOption::End | TcpOption::Nop => 1,
        TcpOption::SackPermitted => 2,
        TcpOption::WindowScale(_) => 3,
        TcpOption::Mss(_) => 4,
        TcpOption::Timestamps { .. } => 10,
        TcpOption::Sack(blocks) => 2 + 8 * blocks.len(),
    }
}
