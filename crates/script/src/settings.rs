//! The TCP that a script runs against: a profile, and fields of it that are set otherwise.
//!
//! Fields are set on the profile's JSON, so every one of them can be, under its own name; one that ends in `_ns` or
//! `_bytes` may be written without the ending, with a unit: `rto.minimum=200ms`.

use crate::problem::{Refusal, refuse};
use firstflight_tcp::{Choices, CongestionAlgorithm, Profile};
use serde_json::{Map, Number, Value};

/// Fields that say which of several policies a table is.
const TAGS: [&str; 3] = ["policy", "algorithm", "scheme"];

/// A profile whose fields can be set by name.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    fields: Value,
}

impl Settings {
    /// The profile of that name.
    ///
    /// # Errors
    /// A [`Refusal`] that lists the known ones.
    pub fn named(name: &str) -> Result<Self, Refusal> {
        let profile = Profile::named(name).ok_or_else(|| {
            refuse!("there is no profile \"{name}\"; the known ones are {}", Profile::NAMES.join(", "))
        })?;
        Ok(Self { fields: serde_json::to_value(profile)? })
    }

    /// The profile as it now is.
    ///
    /// # Errors
    /// A [`Refusal`] about a field that is missing, out of its range, or without effect together with the others.
    pub fn profile(&self) -> Result<Profile, Refusal> {
        let profile = self.read()?;
        profile.validate()?;
        Ok(profile)
    }

    fn read(&self) -> Result<Profile, Refusal> {
        Ok(serde_json::from_value(self.fields.clone())?)
    }

    pub fn get(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(&self.fields, |table, name| {
            let table = table.as_object()?;
            table.get(&field_of(table, name)?)
        })
    }

    /// Sets a field from the text that a script writes: a number, a quantity with its unit, a word, `none`, `true`,
    /// `false`, or `{ name = value, ... }`.
    ///
    /// # Errors
    /// A [`Refusal`] with the name of the field and the correct form.
    pub fn write(&mut self, path: &str, text: &str) -> Result<(), Refusal> {
        let literal = Literal::read(text).map_err(Refusal::within(path))?;
        let before = self.fields.clone();
        let (parent, name) = path.rsplit_once('.').map_or(("", path), |(parent, name)| (parent, name));
        let table = self.table(parent)?;
        // An invalid combination may be followed by a setting that makes it valid.
        set(table, parent, name, literal).and_then(|()| Ok(self.read()?.validate_ranges()?)).map_err(|refusal| {
            self.fields = before;
            Refusal::within(format_args!("{path}={text}"))(refusal)
        })
    }

    /// Switches off settings without effect, as a kernel does silently.
    pub(crate) fn switch_off_unused(&mut self) -> Result<(), Refusal> {
        let profile = self.read()?;
        if !profile.sack {
            self.write("dsack", "false")?;
            if profile.recovery.is_scoreboard() {
                self.write("recovery.scoreboard.rack", "false")?;
                self.write("recovery.scoreboard.tail_loss_probe", "none")?;
                self.write("recovery.scoreboard.undo_by_dsack", "false")?;
            }
        }
        if !profile.timestamps {
            self.write("undo_spurious_syn", "false")?;
        }
        if profile.congestion_control == CongestionAlgorithm::Bbr {
            self.write("pacing", "none")?;
            self.write("initial_ssthresh_segments", "none")?;
        }
        Ok(())
    }

    fn table(&mut self, path: &str) -> Result<&mut Map<String, Value>, Refusal> {
        let mut table = &mut self.fields;
        for name in path.split('.').filter(|name| !name.is_empty()) {
            let fields = table.as_object_mut().ok_or_else(|| refuse!("{path} is not a table"))?;
            let known = field_of(fields, name).ok_or_else(|| unknown(fields, name))?;
            table = fields.entry(known).or_insert(Value::Null);
        }
        table.as_object_mut().ok_or_else(|| refuse!("{path} is not a table"))
    }
}

/// The field behind a name, which may lack its ending.
fn field_of(table: &Map<String, Value>, name: &str) -> Option<String> {
    ["", "_ns", "_bytes"].iter().map(|ending| format!("{name}{ending}")).find(|name| table.contains_key(name))
}

fn unknown(table: &Map<String, Value>, name: &str) -> Refusal {
    let known: Vec<&str> = table.keys().map(String::as_str).collect();
    refuse!("there is no field \"{name}\"; the fields are {}", known.join(", "))
}

/// Sets a field of the table at `parent`.
fn set(table: &mut Map<String, Value>, parent: &str, name: &str, literal: Literal) -> Result<(), Refusal> {
    let field = field_of(table, name).ok_or_else(|| unknown(table, name))?;
    let before = table.get(&field).cloned().unwrap_or(Value::Null);
    let path = if parent.is_empty() { field.clone() } else { format!("{parent}.{field}") };
    table.insert(field, value_of(&path, literal, &before)?);
    Ok(())
}

fn value_of(path: &str, literal: Literal, before: &Value) -> Result<Value, Refusal> {
    let tag = before.as_object().and_then(|table| TAGS.into_iter().find(|tag| table.contains_key(*tag)));
    Ok(match (literal, tag) {
        (Literal::None, _) => Value::Null,
        (Literal::Flag(flag), _) => Value::Bool(flag),
        // As in a scenario, a bare number of segments stands for the policy that fixes it.
        (Literal::Number(number), Some("policy")) => Value::Object(Map::from_iter([
            ("policy".to_owned(), "fixed".into()),
            ("segments".to_owned(), number.into()),
        ])),
        (Literal::Number(number), _) => Value::Number(number),
        (Literal::Nanoseconds(time), _) if path.ends_with("_ns") => time.into(),
        (Literal::Nanoseconds(_), _) => return Err(refuse!("this field takes no time")),
        (Literal::Bytes(bytes), _) if path.ends_with("_bytes") => bytes.into(),
        (Literal::Bytes(_), _) => return Err(refuse!("this field takes no size")),
        (Literal::Word(word), Some(tag)) => {
            let mut table = kept(path, before, tag, &word);
            table.insert(tag.to_owned(), word.into());
            Value::Object(table)
        }
        (Literal::Word(word), None) => variant(path, &word, before).unwrap_or_else(|| word.into()),
        (Literal::Table(entries), tag) => {
            let chosen = entries.iter().find_map(|(name, literal)| match literal {
                Literal::Word(word) if TAGS.contains(&name.as_str()) => Some((name.clone(), word.clone())),
                _ => None,
            });
            let mut table = match (&chosen, tag, before) {
                (Some((name, word)), _, before) => kept(path, before, name, word),
                (None, _, Value::Object(table)) => table.clone(),
                _ => Map::new(),
            };
            for (name, literal) in entries {
                let field = entry_name(&table, &name, &literal);
                let value = value_of(&format!("{path}.{field}"), literal, &Value::Null)?;
                table.insert(field, value);
            }
            Value::Object(table)
        }
    })
}

/// The table of a variant that has parameters: they stay as they are where the variant does, else they have their defaults.
fn variant(path: &str, word: &str, before: &Value) -> Option<Value> {
    if before.get(word).is_some() {
        return Some(before.clone());
    }
    let choices = serde_json::to_value(Choices::all()).ok()?;
    choices.get(path)?.as_array()?.iter().find(|choice| choice.get(word).is_some()).cloned()
}

/// The part of a table that stays: all for the same policy, else the set keys for which the new policy has a default.
fn kept(path: &str, before: &Value, tag: &str, word: &str) -> Map<String, Value> {
    let Value::Object(table) = before else { return Map::new() };
    if table.get(tag).and_then(Value::as_str) == Some(word) {
        return table.clone();
    }
    let choices = serde_json::to_value(Choices::all()).unwrap_or_default();
    let variants = choices.get(path).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let of = |word: &Value| variants.iter().find(|variant| variant.get(tag) == Some(word));
    let (Some(unset), Some(new)) = (table.get(tag).and_then(of), of(&word.into())) else { return Map::new() };
    let stays = |name: &str, value: &Value| {
        // 0 stands for a number that has no default.
        name != tag && unset.get(name) != Some(value) && new.get(name).is_some_and(|default| *default != 0)
    };
    table.iter().filter(|(name, value)| stays(name, value)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The field that an entry of a table stands for: known already, or recognized by its unit.
fn entry_name(table: &Map<String, Value>, name: &str, literal: &Literal) -> String {
    field_of(table, name).unwrap_or_else(|| match literal {
        Literal::Nanoseconds(_) if !name.ends_with("_ns") => format!("{name}_ns"),
        Literal::Bytes(_) if !name.ends_with("_bytes") => format!("{name}_bytes"),
        _ => name.to_owned(),
    })
}

/// A value as written.
#[derive(Clone, PartialEq, Debug)]
enum Literal {
    None,
    Flag(bool),
    Number(Number),
    Nanoseconds(u64),
    Bytes(u64),
    Word(String),
    Table(Vec<(String, Literal)>),
}

impl Literal {
    fn read(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        if let Some(inside) = text.strip_prefix('{') {
            let inside = inside.strip_suffix('}').ok_or_else(|| refuse!("a \"}}\" is missing at the end"))?;
            let entry = |entry: &str| {
                let (name, value) = entry.split_once('=').ok_or_else(|| refuse!("\"{entry}\" lacks a \"=\""))?;
                Ok((name.trim().to_owned(), Self::read_plain(value.trim())?))
            };
            let entries = inside.split(',').map(str::trim).filter(|entry| !entry.is_empty());
            return entries.map(entry).collect::<Result<_, Refusal>>().map(Self::Table);
        }
        Self::read_plain(text)
    }

    /// Anything but a table.
    fn read_plain(text: &str) -> Result<Self, Refusal> {
        let word = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        Ok(match word {
            "" => return Err(refuse!("there is no value")),
            "none" => Self::None,
            "true" => Self::Flag(true),
            "false" => Self::Flag(false),
            _ => match word.find(|c: char| !c.is_ascii_digit() && c != '.') {
                Some(0) => Self::Word(word.to_owned()),
                None => Self::Number(word.parse().map_err(|_| refuse!("\"{word}\" is not a number"))?),
                Some(unit) => quantity(&word[..unit], &word[unit..])
                    .ok_or_else(|| refuse!("\"{word}\" is not a quantity: write 200ms, 1s, 64KiB or 1460B"))?,
            },
        })
    }
}

/// A number with its unit; whole nanoseconds or bytes.
fn quantity(number: &str, unit: &str) -> Option<Literal> {
    let (scale, make): (u64, fn(u64) -> Literal) = match unit.trim() {
        "ns" => (1, Literal::Nanoseconds),
        "us" => (1_000, Literal::Nanoseconds),
        "ms" => (1_000_000, Literal::Nanoseconds),
        "s" => (1_000_000_000, Literal::Nanoseconds),
        "B" => (1, Literal::Bytes),
        "kB" => (1_000, Literal::Bytes),
        "MB" => (1_000_000, Literal::Bytes),
        "KiB" => (1 << 10, Literal::Bytes),
        "MiB" => (1 << 20, Literal::Bytes),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let part = if fraction.is_empty() {
        0
    } else {
        let unit = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let scaled = fraction.parse::<u64>().ok()?.checked_mul(scale)?;
        (scaled % unit == 0).then_some(scaled / unit)?
    };
    whole.checked_add(part).map(make)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstflight_tcp::{AckPolicy, InitialWindow, RecoveryAlgorithm, ScoreboardRules, TailLossProbe};

    #[test]
    fn fields_are_set_by_name_with_units_and_short_forms() {
        let mut settings = Settings::named("rfc").unwrap();
        for (path, text) in [
            ("initial_window", "3"),
            ("rto.minimum", "0.2s"),
            ("mss", "1000B"),
            ("restart_window", "off"),
            ("ack", "{ policy = \"delayed\", segments = 3, timer = 40ms }"),
            ("initial_ssthresh_segments", "20"),
        ] {
            settings.write(path, text).unwrap();
        }
        let profile = settings.profile().unwrap();
        assert_eq!(profile.initial_window, InitialWindow::Fixed { segments: 3 });
        assert_eq!(profile.rto.minimum_ns, 200_000_000);
        assert_eq!(profile.mss_bytes, 1000);
        assert_eq!(profile.ack, AckPolicy::Delayed { segments: 3, timer_ns: 40_000_000 });
        assert_eq!(profile.initial_ssthresh_segments, Some(20));
        settings.write("ack", "{ timer = 50ms }").unwrap();
        assert_eq!(settings.profile().unwrap().ack, AckPolicy::Delayed { segments: 3, timer_ns: 50_000_000 });
        settings.write("recovery", "scoreboard").unwrap();
        settings.write("recovery.scoreboard.prr", "true").unwrap();
        settings.write("recovery", "scoreboard").unwrap();
        settings.write("recovery.scoreboard.tail_loss_probe", "{ max_ack_delay = 70ms }").unwrap();
        let recovery = settings.profile().unwrap_err().to_string();
        assert!(recovery.starts_with("recovery.scoreboard.tail_loss_probe has no effect without sack"), "{recovery}");
        settings.write("sack", "true").unwrap();
        let tail_loss_probe = Some(TailLossProbe { max_ack_delay_ns: 70_000_000 });
        let rules = ScoreboardRules { prr: true, tail_loss_probe, ..ScoreboardRules::default() };
        assert_eq!(settings.profile().unwrap().recovery, RecoveryAlgorithm::Scoreboard(rules));
        settings.write("initial_window", "rfc3390").unwrap();
        settings.write("initial_ssthresh_segments", "none").unwrap();
        assert_eq!(settings.profile().unwrap().initial_window, InitialWindow::Rfc3390);
    }

    #[test]
    fn another_policy_keeps_the_parameters_that_were_set_and_that_it_has_too() {
        let mut settings = Settings::named("rfc").unwrap();
        for (set, expected) in [("", 10), ("max_segments = 20", 20)] {
            settings.write("initial_window", &format!("{{ policy = remembered, {set} }}")).unwrap();
            settings.write("initial_window", "adaptive").unwrap();
            let InitialWindow::Adaptive(rules) = settings.profile().unwrap().initial_window else { unreachable!() };
            assert_eq!(rules.max_segments, expected);
        }
        // Keys without a default are required.
        let sentence = settings.write("ack", "{ policy = heartbeat, interval = 100ms }").unwrap_err().to_string();
        assert!(sentence.contains("missing field `segments`"), "{sentence}");
    }

    #[test]
    fn a_wrong_value_is_refused_and_leaves_everything_as_it_was() {
        let mut settings = Settings::named("rfc").unwrap();
        let before = settings.clone();
        for (path, text, word) in [
            ("initial_windo", "3", "no field"),
            ("initial_window", "rfc1", "unknown variant"),
            ("rto.minimum", "5parsecs", "not a quantity"),
            ("mss_bytes", "0", "mss_bytes"),
            ("nagle", "40ms", "takes no time"),
            ("ack", "{ policy = delayed", "\"}\" is missing"),
            ("nagle.why", "1", "not a table"),
            ("recovery.scoreboard.rack", "true", "no field"),
        ] {
            let sentence = settings.write(path, text).unwrap_err().to_string();
            assert!(sentence.contains(word), "{sentence}");
            assert_eq!(settings, before);
        }
        assert!(Settings::named("linus").unwrap_err().to_string().contains("rfc"));
    }
}
