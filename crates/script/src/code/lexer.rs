//! From the text of a block to its logical lines.

use crate::problem::Problem;

/// A token of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// A number as written.
    Number(&'a str),
    /// A name or keyword.
    Name(&'a str),
    /// The inside of a text in quotes.
    Text(&'a str),
    /// An operator or bracket.
    Sign(&'a str),
}

/// A logical line: continued lines joined, comments and blank lines gone.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub number: u32,
    /// Blanks before the first token.
    pub indent: usize,
    /// Tokens with the place where each begins and ends in `text`.
    pub tokens: Vec<(Token<'a>, usize, usize)>,
    /// The whole block, in which the places count.
    pub text: &'a str,
}

/// Tokens of a logical line, which bounds the depth of its expressions.
const LONGEST: usize = 1000;

const SIGNS: [&str; 32] = [
    "**", "//=", "//", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "<", ">", "=", "+", "-", "*",
    "/", "%", "(", ")", "[", "]", ",", ":", ";", ".", "&", "|",
];

/// The logical lines of a block that begins in line `first` of the script.
pub(super) fn lines(text: &str, first: u32) -> Result<Vec<Line<'_>>, Problem> {
    let mut lines = Vec::new();
    let mut current: Option<Line<'_>> = None;
    let mut number = first;
    let mut brackets = 0u32;
    let mut at = 0;
    let mut indent = 0;
    while at < text.len() {
        let rest = &text[at..];
        let character = rest.chars().next().unwrap_or('\n');
        if character == '\n' {
            number += 1;
            at += 1;
            indent = 0;
            if brackets == 0 {
                lines.extend(current.take());
            }
        } else if let Some(joined) = continuation(rest) {
            number += 1;
            at += joined;
        } else if character.is_whitespace() {
            at += character.len_utf8();
            indent += 1;
        } else if character == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            let (token, length) = token(rest, number)?;
            match token {
                Token::Sign("(" | "[") => brackets += 1,
                Token::Sign(")" | "]") => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            let line = current.get_or_insert_with(|| Line { number, indent, tokens: Vec::new(), text });
            line.tokens.push((token, at, at + length));
            if line.tokens.len() > LONGEST {
                return Err(Problem::malformed(
                    number,
                    format!("this statement has more than {LONGEST} words and signs"),
                ));
            }
            number += text[at..at + length].matches('\n').count() as u32;
            at += length;
        }
    }
    lines.extend(current);
    Ok(lines)
}

/// Length of a backslash and the end of line after it.
fn continuation(text: &str) -> Option<usize> {
    let after = text.strip_prefix('\\')?;
    let blank = after.len() - after.trim_start_matches([' ', '\t', '\r']).len();
    after[blank..].starts_with('\n').then_some(blank + 2)
}

fn token(text: &str, line: u32) -> Result<(Token<'_>, usize), Problem> {
    let first = text.chars().next().unwrap_or(' ');
    if first == '"' || first == '\'' {
        let end =
            text[1..].find(first).ok_or_else(|| Problem::malformed(line, "this text in a %{ }% block never ends"))?;
        return Ok((Token::Text(&text[1..=end]), end + 2));
    }
    let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if first.is_ascii_digit() || first == '.' && text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        let fraction = text[word..]
            .strip_prefix('.')
            .map_or(0, |after| 1 + after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len()));
        return Ok((Token::Number(&text[..word + fraction]), word + fraction));
    }
    if word > 0 {
        return Ok((Token::Name(&text[..word]), word));
    }
    SIGNS
        .iter()
        .find(|sign| text.starts_with(**sign))
        .map(|sign| (Token::Sign(sign), sign.len()))
        .ok_or_else(|| Problem::unsupported(line, format!("\"{first}\" in a %{{ }}% block is not understood")))
}
