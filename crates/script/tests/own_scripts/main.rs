//! The project's own packet scripts (`tests/packet_scripts`): each passes, and survives careless edits.

mod checks;
mod corpus;
mod mistakes;

use corpus::{Script, own_scripts};
use firstflight_script::{Verdict, run_text};
use proptest::prelude::*;

const MICROSECOND_NS: u64 = 1_000;

#[test]
fn each_of_them_cites_its_rule_in_its_first_line() {
    for Script { path, text } in own_scripts() {
        let first = text.lines().next().unwrap_or("");
        assert!(first.starts_with("// ") && first.len() > 20, "{path} begins with \"{first}\"");
    }
}

/// Random edits of a text, as made in haste.
#[derive(Clone, Debug)]
enum Slip {
    Delete { at: usize, length: usize },
    Insert { at: usize, text: String },
    Replace { at: usize, by: char },
    Swap { line: usize, with: usize },
    Repeat { line: usize },
}

fn slip() -> impl Strategy<Value = Slip> {
    let place = 0usize..2000;
    prop_oneof![
        (place.clone(), 1usize..12).prop_map(|(at, length)| Slip::Delete { at, length }),
        (place.clone(), "[-+~.0-9:()<>%{}`\"'=|,\\[\\] \n/*#SFPRackwin]{1,6}")
            .prop_map(|(at, text)| Slip::Insert { at, text }),
        (place.clone(), any::<char>()).prop_map(|(at, by)| Slip::Replace { at, by }),
        (0usize..60, 0usize..60).prop_map(|(line, with)| Slip::Swap { line, with }),
        (0usize..60).prop_map(|line| Slip::Repeat { line }),
    ]
}

fn slipped(text: &str, slip: &Slip) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    let in_text = |at: &usize| at % (text.chars().count() + 1);
    match slip {
        Slip::Delete { at, length } => {
            let start = in_text(at);
            let end = (start + length).min(characters.len());
            characters.drain(start..end);
        }
        Slip::Insert { at, text: inserted } => {
            let at = in_text(at);
            characters.splice(at..at, inserted.chars());
        }
        Slip::Replace { at, by } => {
            if let Some(character) = characters.get_mut(in_text(at)) {
                *character = *by;
            }
        }
        Slip::Swap { line, with } if !lines.is_empty() => {
            let (line, with) = (line % lines.len(), with % lines.len());
            lines.swap(line, with);
            return lines.join("\n");
        }
        Slip::Repeat { line } if !lines.is_empty() => {
            let line = line % lines.len();
            lines.insert(line, lines[line]);
            return lines.join("\n");
        }
        Slip::Swap { .. } | Slip::Repeat { .. } => {}
    }
    characters.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_mangled_script_never_panics_and_every_problem_has_its_line(
        which in any::<prop::sample::Index>(),
        slips in prop::collection::vec(slip(), 1..5),
    ) {
        let scripts = own_scripts();
        let mut text = which.get(scripts).text.clone();
        for slip in &slips {
            text = slipped(&text, slip);
        }
        let report = run_text(&text, MICROSECOND_NS);
        if report.verdict != Verdict::Pass {
            prop_assert!(report.line >= 1);
            let line = format!("line {}: ", report.line);
            prop_assert!(report.reason.starts_with(&line), "{}", report.reason);
        }
    }

    #[test]
    fn any_text_at_all_is_read_or_refused(text in "\\PC{0,200}") {
        prop_assert!(run_text(&text, MICROSECOND_NS).verdict != Verdict::Pass);
    }
}
