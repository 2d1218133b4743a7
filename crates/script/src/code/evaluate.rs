//! Runs the statements of a block.

use super::{Expression, Operator, Program, Relation, Statement, StatementKind, Value, format};
use std::collections::BTreeMap;

/// Variables that a script has assigned; they live until its end.
pub type Variables = BTreeMap<String, Value>;

/// Why a block came to a stop.
#[derive(Clone, PartialEq, Debug)]
pub enum Failure {
    /// An assertion does not hold.
    Assertion {
        /// Line of the script.
        line: u32,
        /// The condition as written.
        condition: String,
        /// The values of the names in it.
        found: Vec<(String, Value)>,
        /// The script's own message.
        message: Option<String>,
    },
    /// A name that `known` refuses, with its sentence.
    Unsupported(u32, String),
    /// An unknown name, or values that do not go together.
    Wrong(u32, String),
}

/// The runner's value of a name that the script has not assigned.
pub enum Known {
    /// Its value.
    Value(Value),
    /// It exists in Linux, but not here: one sentence.
    Unsupported(String),
    /// Nothing.
    Unknown,
}

impl Program {
    /// Runs the block; `known` answers for names that the script has not assigned; output goes to `printed`.
    pub fn run(
        &self,
        variables: &mut Variables,
        known: &dyn Fn(&str) -> Known,
        printed: &mut Vec<String>,
    ) -> Result<(), Failure> {
        Run { variables, known, printed }.all(&self.statements)
    }
}

struct Run<'a> {
    variables: &'a mut Variables,
    known: &'a dyn Fn(&str) -> Known,
    printed: &'a mut Vec<String>,
}

impl Run<'_> {
    fn all(&mut self, statements: &[Statement]) -> Result<(), Failure> {
        statements.iter().try_for_each(|statement| self.one(statement))
    }

    fn one(&mut self, statement: &Statement) -> Result<(), Failure> {
        let line = statement.line;
        match &statement.kind {
            StatementKind::Assert { condition, message, text } => {
                if self.value(condition, line)?.holds() {
                    return Ok(());
                }
                let mut names = Vec::new();
                names_in(condition, &mut names);
                let mut found = Vec::new();
                for name in names {
                    found.push((name.to_owned(), self.name(name, line)?));
                }
                let message = message.as_ref().map(|message| self.value(message, line)).transpose()?;
                Err(Failure::Assertion {
                    line,
                    condition: text.clone(),
                    found,
                    message: message.map(|message| message.to_string()),
                })
            }
            StatementKind::Print(values) => {
                let values: Result<Vec<_>, _> = values.iter().map(|value| self.value(value, line)).collect();
                self.printed.push(values?.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
                Ok(())
            }
            StatementKind::Assign { name, value } => {
                let value = self.value(value, line)?;
                self.variables.insert(name.clone(), value);
                Ok(())
            }
            StatementKind::Evaluate(expression) => self.value(expression, line).map(drop),
            StatementKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.value(condition, line)?.holds() {
                        return self.all(body);
                    }
                }
                self.all(otherwise)
            }
            StatementKind::Nothing => Ok(()),
        }
    }

    fn name(&self, name: &str, line: u32) -> Result<Value, Failure> {
        if let Some(value) = self.variables.get(name) {
            return Ok(value.clone());
        }
        match (self.known)(name) {
            Known::Value(value) => Ok(value),
            Known::Unsupported(sentence) => Err(Failure::Unsupported(line, sentence)),
            Known::Unknown => Err(Failure::Wrong(
                line,
                format!(
                    "nothing is called \"{name}\" in a %{{ }}% block: names are tcpi_..., TCP_CA_... and assigned ones"
                ),
            )),
        }
    }

    fn value(&self, expression: &Expression, line: u32) -> Result<Value, Failure> {
        let flag = |holds: bool| Ok(Value::Integer(i64::from(holds)));
        match expression {
            Expression::Constant(value) => Ok(value.clone()),
            Expression::Name(name) => self.name(name, line),
            Expression::Tuple(values) => {
                values.iter().map(|value| self.value(value, line)).collect::<Result<_, _>>().map(Value::Tuple)
            }
            Expression::Call(name, arguments) => {
                let arguments: Result<Vec<_>, _> = arguments.iter().map(|value| self.value(value, line)).collect();
                call(name, &arguments?, line)
            }
            Expression::Not(inner) => flag(!self.value(inner, line)?.holds()),
            Expression::Negative(inner) => {
                arithmetic(&Value::Integer(0), Operator::Subtract, &self.value(inner, line)?, line)
            }
            Expression::Both(left, right) => {
                let left = self.value(left, line)?;
                if left.holds() { self.value(right, line) } else { Ok(left) }
            }
            Expression::Either(left, right) => {
                let left = self.value(left, line)?;
                if left.holds() { Ok(left) } else { self.value(right, line) }
            }
            Expression::Arithmetic(left, operator, right) => {
                arithmetic(&self.value(left, line)?, *operator, &self.value(right, line)?, line)
            }
            Expression::Comparison(first, rest) => {
                let mut left = self.value(first, line)?;
                for (relation, right) in rest {
                    let right = self.value(right, line)?;
                    if !relates(&left, *relation, &right, line)? {
                        return flag(false);
                    }
                    left = right;
                }
                flag(true)
            }
        }
    }
}

fn relates(left: &Value, relation: Relation, right: &Value, line: u32) -> Result<bool, Failure> {
    let order = left.compare(right);
    let order = match (order, relation) {
        (Some(order), _) => order,
        (None, Relation::Equal) => return Ok(false),
        (None, Relation::Unequal) => return Ok(true),
        (None, _) => return Err(Failure::Wrong(line, format!("{left} and {right} cannot be compared"))),
    };
    Ok(match relation {
        Relation::Equal => order.is_eq(),
        Relation::Unequal => order.is_ne(),
        Relation::Less => order.is_lt(),
        Relation::LessOrEqual => order.is_le(),
        Relation::Greater => order.is_gt(),
        Relation::GreaterOrEqual => order.is_ge(),
    })
}

fn arithmetic(left: &Value, operator: Operator, right: &Value, line: u32) -> Result<Value, Failure> {
    let wrong = |why: &str| Failure::Wrong(line, format!("{why}: {left} and {right}"));
    match (left, operator, right) {
        (Value::Text(template), Operator::Remainder, values) => {
            format::fill(template, values).map(Value::Text).map_err(|refusal| Failure::Wrong(line, refusal.to_string()))
        }
        (Value::Text(a), Operator::Add, Value::Text(b)) => Ok(Value::Text(format!("{a}{b}"))),
        (Value::Integer(a), _, Value::Integer(b)) if operator != Operator::Divide => {
            let result = match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                // Python's quotient is the one below, and its remainder has the sign of the divisor.
                Operator::DivideWhole => {
                    a.checked_div(*b).map(|q| q - i64::from(a.wrapping_rem(*b) != 0 && (a < &0) != (b < &0)))
                }
                Operator::Remainder => a.checked_rem(*b).map(|r| if r != 0 && (r < 0) != (*b < 0) { r + b } else { r }),
                Operator::And => Some(a & b),
                Operator::Or => Some(a | b),
                Operator::ShiftLeft => u32::try_from(*b).ok().filter(|b| *b < 63).and_then(|b| a.checked_mul(1 << b)),
                Operator::ShiftRight => u32::try_from(*b).ok().map(|b| a >> b.min(63)),
                Operator::Divide => None,
            };
            result.map(Value::Integer).ok_or_else(|| wrong("the result is not defined for these numbers"))
        }
        _ => {
            let (Some(a), Some(b)) = (left.number(), right.number()) else {
                return Err(wrong("arithmetic on these values is not possible"));
            };
            let result = match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                Operator::Divide if b != 0.0 => a / b,
                Operator::DivideWhole if b != 0.0 => (a / b).floor(),
                Operator::Remainder if b != 0.0 => a - b * (a / b).floor(),
                _ => return Err(wrong("the result is not defined for these numbers")),
            };
            Ok(Value::Decimal(result))
        }
    }
}

fn call(name: &str, arguments: &[Value], line: u32) -> Result<Value, Failure> {
    let wrong = || Failure::Wrong(line, format!("{name}() cannot take these arguments"));
    match (name, arguments) {
        ("int", [Value::Text(text)]) => text.trim().parse().map(Value::Integer).map_err(|_| wrong()),
        ("int", [value]) => value.number().map(|number| Value::Integer(number as i64)).ok_or_else(wrong),
        ("float", [value]) => value.number().map(Value::Decimal).ok_or_else(wrong),
        ("round", [value]) => value.number().map(|number| Value::Integer(number.round() as i64)).ok_or_else(wrong),
        ("str", [value]) => Ok(Value::Text(value.to_string())),
        ("len", [Value::Text(text)]) => Ok(Value::Integer(text.chars().count() as i64)),
        ("abs", [Value::Integer(number)]) => number.checked_abs().map(Value::Integer).ok_or_else(wrong),
        ("abs", [value]) => value.number().map(|number| Value::Decimal(number.abs())).ok_or_else(wrong),
        ("min" | "max", [first, rest @ ..]) => {
            let mut best = first;
            for value in rest {
                let order = value.compare(best).ok_or_else(wrong)?;
                if if name == "min" { order.is_lt() } else { order.is_gt() } {
                    best = value;
                }
            }
            Ok(best.clone())
        }
        ("int" | "float" | "round" | "str" | "len" | "abs" | "min" | "max", _) => Err(wrong()),
        _ => Err(Failure::Unsupported(line, format!("{name}() in a %{{ }}% block is not understood"))),
    }
}

/// The names of an expression, each once, in the order in which they stand.
fn names_in<'a>(expression: &'a Expression, names: &mut Vec<&'a str>) {
    match expression {
        Expression::Constant(_) => {}
        Expression::Name(name) => {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        Expression::Tuple(values) | Expression::Call(_, values) => {
            values.iter().for_each(|value| names_in(value, names));
        }
        Expression::Not(inner) | Expression::Negative(inner) => names_in(inner, names),
        Expression::Both(left, right) | Expression::Either(left, right) | Expression::Arithmetic(left, _, right) => {
            names_in(left, names);
            names_in(right, names);
        }
        Expression::Comparison(first, rest) => {
            names_in(first, names);
            rest.iter().for_each(|(_, value)| names_in(value, names));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;

    fn run(text: &str) -> Result<Vec<String>, Failure> {
        let known = |name: &str| match name {
            "tcpi_snd_cwnd" => Known::Value(Value::Integer(10)),
            "tcpi_unknown_here" => Known::Unsupported("tcpi_unknown_here is not kept".to_owned()),
            _ => Known::Unknown,
        };
        let mut printed = Vec::new();
        code::read(text, 1).unwrap().run(&mut Variables::new(), &known, &mut printed).map(|()| printed)
    }

    #[test]
    fn an_assertion_that_fails_says_what_was_found() {
        let failure = run("x = 3\nassert tcpi_snd_cwnd == x + 1, 'cwnd=%d' % tcpi_snd_cwnd").unwrap_err();
        let Failure::Assertion { line, condition, found, message } = failure else { panic!("{failure:?}") };
        assert_eq!((line, condition.as_str()), (2, "tcpi_snd_cwnd == x + 1"));
        assert_eq!(found, [("tcpi_snd_cwnd".to_owned(), Value::Integer(10)), ("x".to_owned(), Value::Integer(3))]);
        assert_eq!(message.as_deref(), Some("cwnd=10"));
    }

    #[test]
    fn chains_continuations_comments_and_semicolons_are_pythons() {
        run("assert 9 <= tcpi_snd_cwnd <= 11, tcpi_snd_cwnd;\\\n   assert 1 # why\n").unwrap();
        run("assert not 2 < tcpi_snd_cwnd < 3 and (1 or nothing)").unwrap();
        assert_eq!(run("print(tcpi_snd_cwnd); y = 7 // 2; y += 0x10; print(y, -7 % 3)").unwrap(), ["10", "(19, 2)"]);
        assert_eq!(run("print('%s of %.1f%%' % ('a', 2.25))").unwrap(), ["a of 2.2%"]);
    }

    #[test]
    fn conditions_govern_one_line_or_an_indented_block() {
        let text = "import os\nif tcpi_snd_cwnd > 20:\n  print(1)\nelif tcpi_snd_cwnd > 5:\n  print(2)\n  if 1: print(3)\nelse: print(4)\nprint(5)";
        assert_eq!(run(text).unwrap(), ["2", "3", "5"]);
    }

    #[test]
    fn names_that_linux_has_and_this_endpoint_has_not_are_unsupported() {
        assert!(matches!(run("assert tcpi_unknown_here == 1"), Err(Failure::Unsupported(1, _))));
        assert!(matches!(run("assert cwnd == 1"), Err(Failure::Wrong(1, _))));
    }

    #[test]
    fn arithmetic_that_has_no_result_is_an_error() {
        for text in ["1 // 0", "1 / 0", "5 % 0", "9223372036854775807 + 1", "1 << 99", "'a' * 2", "abs('a')"] {
            assert!(matches!(run(text), Err(Failure::Wrong(1, _))), "{text}");
        }
    }
}
