//! `'cwnd: %d rtt: %.1f' % (tcpi_snd_cwnd, tcpi_rtt)`.

use super::Value;
use crate::refusal::{Refusal, refuse};

/// Puts the values into the template.
pub(super) fn fill(template: &str, values: &Value) -> Result<String, Refusal> {
    let one;
    let mut rest = match values {
        Value::Tuple(values) => values.iter(),
        value => {
            one = [value.clone()];
            one.iter()
        }
    };
    let mut filled = String::new();
    let mut parts = template.split('%');
    filled.push_str(parts.next().unwrap_or(""));
    while let Some(part) = parts.next() {
        if part.is_empty() {
            // "%%" stands for a percent sign.
            filled.push('%');
            filled.push_str(parts.next().unwrap_or(""));
            continue;
        }
        let end = part
            .find(|c: char| c.is_ascii_alphabetic())
            .ok_or_else(|| refuse!("a % in a text has no letter after it"))?;
        let precision = part[..end].split_once('.').and_then(|(_, digits)| digits.parse::<usize>().ok());
        let value = rest.next().ok_or_else(|| refuse!("a text has more % than values"))?;
        filled.push_str(&shown(value, part.as_bytes()[end], precision.map(|digits| digits.min(20)))?);
        filled.push_str(&part[end + 1..]);
    }
    if rest.next().is_some() {
        return Err(refuse!("a text has fewer % than there are values"));
    }
    Ok(filled)
}

fn shown(value: &Value, letter: u8, precision: Option<usize>) -> Result<String, Refusal> {
    let number = || value.number().ok_or_else(|| refuse!("%{} needs a number, not {value}", letter as char));
    Ok(match letter {
        b's' | b'r' => value.to_string(),
        b'd' | b'i' | b'u' => match value {
            Value::Integer(number) => number.to_string(),
            _ => format!("{:.0}", number()?.trunc()),
        },
        b'x' => match value {
            Value::Integer(number) => format!("{number:x}"),
            _ => return Err(refuse!("%x needs a whole number, not {value}")),
        },
        b'f' | b'g' | b'e' => format!("{:.*}", precision.unwrap_or(6), number()?),
        other => return Err(refuse!("%{} is not understood", other as char)),
    })
}
