//! The `%{ }%` blocks of the project's own scripts, as far as these go in Python: comparisons of a name with a sum.

use firstflight_script::{Known, Report, Verdict};
use std::collections::BTreeMap;

/// True if the script passed and each assertion in its blocks holds.
///
/// # Panics
/// On a statement of another form.
pub fn passes(report: &Report) -> bool {
    let mut assigned = BTreeMap::new();
    report.verdict == Verdict::Pass
        && report.checks.iter().all(|check| {
            check.code.split([';', '\n']).map(str::trim).all(|statement| {
                let term = |term: &str| -> i64 {
                    let number = term.strip_prefix("0x").map_or_else(|| term.parse(), |x| i64::from_str_radix(x, 16));
                    number.ok().or_else(|| assigned.get(term).copied()).unwrap_or_else(|| {
                        match check.values.get(term) {
                            Some(Known::Value(value)) => *value,
                            other => panic!("line {}: {term} is {other:?}", check.line),
                        }
                    })
                };
                let value = |sum: &str| sum.split('+').map(|part| term(part.trim())).sum::<i64>();
                if let Some(condition) = statement.strip_prefix("assert ") {
                    return condition.split(',').next().unwrap_or("").split(" and ").all(|comparison| {
                        let words = comparison.trim().splitn(3, ' ').collect::<Vec<_>>();
                        let [name, relation, sum] = words[..] else { panic!("{statement}") };
                        match relation {
                            "==" => term(name) == value(sum),
                            ">" => term(name) > value(sum),
                            _ => panic!("{statement}"),
                        }
                    });
                }
                if let Some((name, sum)) = statement.split_once(" = ") {
                    let sum = value(sum);
                    assigned.insert(name.to_owned(), sum);
                } else {
                    assert!(statement.is_empty() || statement.starts_with("print("), "{statement}");
                }
                true
            })
        })
}
