//! Times: `0.1`, `+.1`, `.1~.2`, `+.1~+.2`, `*`.

use super::Reader;
use crate::lexer::TokenKind;
use crate::problem::{Problem, malformed};
use crate::script::When;
use firstflight_tcp::Nanos;

/// The latest time a script may name, in seconds: a day.
const LATEST_SECONDS: u64 = 86_400;

impl Reader<'_> {
    pub(super) fn when(&mut self) -> Result<When, Problem> {
        let line = self.line();
        if self.take('*') {
            return Ok(When::ANY);
        }
        let relative = self.take('+');
        let what = if relative { "a time after \"+\"" } else { "the time of an event, such as +0 or 0.100," };
        let from = self.seconds(what)?;
        if !self.take('~') {
            return Ok(When { relative, from, to: from });
        }
        if relative {
            self.need('+', "\"~\", because the time before it is relative, too")?;
        }
        let to = self.seconds(if relative { what } else { "a time after \"~\"" })?;
        ordered(line, from, to).map(|()| When { relative, from, to })
    }

    /// `...b` after the time of a system call: when it returns.
    pub(super) fn returns(&mut self, when: When) -> Result<Option<Nanos>, Problem> {
        if self.peek() != TokenKind::Ellipsis {
            return Ok(None);
        }
        let line = self.line();
        self.at += 1;
        self.take('+');
        let end = self.seconds("the time at which the call returns, after \"...\",")?;
        if when.from != when.to {
            malformed!(line, "a call that blocks begins at one time, not in a range");
        }
        ordered(line, when.from, end).map(|()| Some(end))
    }

    fn seconds(&mut self, what: &str) -> Result<Nanos, Problem> {
        let line = self.line();
        let text = match self.peek() {
            TokenKind::Integer(text) | TokenKind::Decimal(text) => text,
            _ => return Err(self.unexpected(what)),
        };
        self.at += 1;
        nanoseconds(text).ok_or_else(|| {
            Problem::malformed(
                line,
                format!("the time {text} is not one in seconds from 0 to {LATEST_SECONDS}, to the nanosecond"),
            )
        })
    }
}

fn ordered(line: u32, start: Nanos, end: Nanos) -> Result<(), Problem> {
    if end < start {
        malformed!(line, "this range of times ends before it begins");
    }
    Ok(())
}

/// Seconds as a decimal number, exactly.
fn nanoseconds(text: &str) -> Option<Nanos> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let digits = fraction.trim_end_matches('0');
    if seconds > LATEST_SECONDS || digits.len() > 9 {
        return None;
    }
    let nanoseconds = if digits.is_empty() { 0 } else { format!("{digits:0<9}").parse::<u64>().ok()? };
    Some(seconds * 1_000_000_000 + nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_nanoseconds_exactly() {
        assert_eq!(nanoseconds(".027"), Some(27_000_000));
        assert_eq!(nanoseconds("1"), Some(1_000_000_000));
        assert_eq!(nanoseconds("0.1000000010"), Some(100_000_001));
        assert_eq!(nanoseconds("0.0000000001"), None);
        assert_eq!(nanoseconds("-1"), None);
        assert_eq!(nanoseconds("99999999999999999999"), None);
    }
}
