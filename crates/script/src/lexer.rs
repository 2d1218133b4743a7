//! From the text of a script to tokens.

use crate::problem::{Problem, malformed};
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind<'a> {
    /// A whole number, maybe negative.
    Integer(&'a str),
    /// A number with `0x`.
    Hexadecimal(&'a str),
    /// A number with a point, maybe negative.
    Decimal(&'a str),
    /// Letters, digits and underscores; also a dotted address.
    Word(&'a str),
    /// The text between double quotes.
    Text(&'a str),
    /// The text between backquotes: shell commands, which are data here.
    Shell(&'a str),
    /// The text between `%{` and `}%`.
    Code(&'a str),
    /// `--name` or `--name=value`; the value runs to the next option or the end of the line.
    Option(&'a str, Option<&'a str>),
    /// `...`
    Ellipsis,
    /// Any other character.
    Sign(char),
    End,
}

impl fmt::Display for TokenKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(text) | Self::Hexadecimal(text) | Self::Decimal(text) | Self::Word(text) => {
                write!(f, "\"{text}\"")
            }
            Self::Text(_) => f.write_str("a text in quotes"),
            Self::Shell(_) => f.write_str("a shell block"),
            Self::Code(_) => f.write_str("a %{ }% block"),
            Self::Option(name, _) => write!(f, "the option --{name}"),
            Self::Ellipsis => f.write_str("\"...\""),
            Self::Sign(sign) => write!(f, "\"{sign}\""),
            Self::End => f.write_str("the end of the script"),
        }
    }
}

/// A token and the line where it begins.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: TokenKind<'a>,
    /// Line, counted from 1.
    pub line: u32,
}

/// All tokens of a script, [`TokenKind::End`] last.
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, Problem> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut found = Vec::new();
    loop {
        lexer.skip_blank()?;
        let line = lexer.line;
        let kind = lexer.next()?;
        found.push(Token { kind, line });
        if kind == TokenKind::End {
            return Ok(found);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    /// Byte offset, always at a character's beginning.
    at: usize,
    line: u32,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Moves `bytes` on, which must end between two characters.
    fn take(&mut self, bytes: usize) -> &'a str {
        let taken = &self.text[self.at..self.at + bytes];
        self.line += taken.matches('\n').count() as u32;
        self.at += bytes;
        taken
    }

    fn skip_blank(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            self.take(blank);
            let rest = self.rest();
            if rest.starts_with("//") {
                let end = rest.find('\n').unwrap_or(rest.len());
                self.take(end);
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    malformed!(self.line, "this comment never ends; close it with */");
                };
                self.take(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<TokenKind<'a>, Problem> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(TokenKind::End) };
        if rest.starts_with("...") {
            self.take(3);
            return Ok(TokenKind::Ellipsis);
        }
        if rest.starts_with("%{") {
            return self.delimited("%{", "}%", "this code block never ends; close it with }%").map(TokenKind::Code);
        }
        if first == '`' {
            return self.delimited("`", "`", "this shell block never ends; close it with `").map(TokenKind::Shell);
        }
        if first == '"' {
            return self.delimited("\"", "\"", "this text never ends; close it with \"").map(TokenKind::Text);
        }
        if rest.starts_with("--") && rest[2..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(self.option());
        }
        if let Some(length) = number(rest) {
            return Ok(self.number(length));
        }
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if word > 0 {
            return Ok(TokenKind::Word(self.take(word)));
        }
        self.take(first.len_utf8());
        Ok(TokenKind::Sign(first))
    }

    /// The text between `open` and `close`; a backslash protects the character after it.
    fn delimited(&mut self, open: &str, close: &str, endless: &str) -> Result<&'a str, Problem> {
        let inside = &self.rest()[open.len()..];
        let mut from = 0;
        while let Some(found) = inside[from..].find(close) {
            let end = from + found;
            let escaped = close.len() == 1 && inside[..end].bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 1;
            if escaped {
                from = end + close.len();
                continue;
            }
            self.take(open.len() + end + close.len());
            return Ok(&inside[..end]);
        }
        Err(Problem::malformed(self.line, endless))
    }

    fn option(&mut self) -> TokenKind<'a> {
        let line_end = self.rest().find('\n').unwrap_or(self.rest().len());
        let line = &self.rest()[..line_end];
        let end = line[2..].find(" --").map_or(line.len(), |next| next + 2);
        let end = line.find("//").map_or(end, |comment| comment.min(end));
        let option = self.take(end)[2..].trim_end();
        match option.split_once('=') {
            Some((name, value)) => TokenKind::Option(name, Some(value)),
            None => TokenKind::Option(option, None),
        }
    }

    /// A number of `length` bytes, or the longer word or address that begins like one.
    fn number(&mut self, length: usize) -> TokenKind<'a> {
        let rest = self.rest();
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if word > length {
            let text = self.take(word);
            let hexadecimal = text.strip_prefix("0x").filter(|digits| !digits.is_empty());
            return match hexadecimal {
                Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => TokenKind::Hexadecimal(text),
                _ => TokenKind::Word(text),
            };
        }
        let address = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let dots = rest[..address].split('.');
        if dots.clone().count() == 4 && dots.clone().all(|part| !part.is_empty()) {
            return TokenKind::Word(self.take(address));
        }
        let text = self.take(length);
        if text.contains('.') { TokenKind::Decimal(text) } else { TokenKind::Integer(text) }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Length of the number at the beginning of `text`: digits, or digits around a point with at least one after it.
fn number(text: &str) -> Option<usize> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(unsigned);
    let fraction = match unsigned[whole..].strip_prefix('.') {
        Some(after) => digits(after),
        None => 0,
    };
    let length = if fraction > 0 { whole + 1 + fraction } else { whole };
    (length > 0).then_some(length + text.len() - unsigned.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind<'_>> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn times_and_blocking_ranges_are_numbers_around_an_ellipsis() {
        use TokenKind::{Decimal, Ellipsis, End, Integer, Sign};
        assert_eq!(kinds("+.08...0.180"), [Sign('+'), Decimal(".08"), Ellipsis, Decimal("0.180"), End]);
        assert_eq!(kinds("+0...0.2"), [Sign('+'), Integer("0"), Ellipsis, Decimal("0.2"), End]);
        assert_eq!(kinds("+.3~+.310"), [Sign('+'), Decimal(".3"), Sign('~'), Sign('+'), Decimal(".310"), End]);
    }

    #[test]
    fn flags_end_before_the_sequence_numbers() {
        use TokenKind::{End, Integer, Sign, Word};
        assert_eq!(
            kinds("> SE. 0:0(0)"),
            [
                Sign('>'),
                Word("SE"),
                Sign('.'),
                Integer("0"),
                Sign(':'),
                Integer("0"),
                Sign('('),
                Integer("0"),
                Sign(')'),
                End
            ]
        );
    }

    #[test]
    fn comments_and_blocks_keep_the_line_numbers_right() {
        let text = "// one\n/* two\nthree */ `a\nb` 5 %{ x\n}% z";
        let found = tokens(text).unwrap();
        let lines: Vec<u32> = found.iter().map(|token| token.line).collect();
        assert_eq!(lines, [3, 4, 4, 5, 5]);
        assert_eq!(found[0].kind, TokenKind::Shell("a\nb"));
    }

    #[test]
    fn an_option_takes_the_rest_of_its_line_but_no_comment_and_no_other_option() {
        use TokenKind::{End, Option};
        assert_eq!(
            kinds("--tolerance_usecs=4000 --ip_version=ipv4\n--set=ack={ policy = \"delayed\" } // why"),
            [
                Option("tolerance_usecs", Some("4000")),
                Option("ip_version", Some("ipv4")),
                Option("set", Some("ack={ policy = \"delayed\" }")),
                End
            ]
        );
    }

    #[test]
    fn what_never_ends_is_an_error_with_its_line() {
        for (text, line) in [("\n`echo", 2), ("%{ assert", 1), ("\n\n/* ", 3), ("\"", 1)] {
            let problem = tokens(text).unwrap_err();
            assert_eq!(problem.line, line);
            assert!(problem.sentence.contains("never ends"), "{problem}");
        }
    }
}
