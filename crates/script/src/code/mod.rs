//! `%{ }%` blocks: statements about the connection in a small part of Python: `assert`, `print`, assignment, `if`,
//! arithmetic, comparison, `and`, `or`, `not`, and `%` on texts. `import` is passed over.

mod evaluate;
mod format;
mod lexer;
mod parser;
mod value;

pub use evaluate::{Failure, Known, Variables};
pub use value::Value;

use crate::problem::Problem;

/// A block, ready to be evaluated.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    statements: Vec<Statement>,
}

/// Reads a block that begins in `line` of the script.
pub(crate) fn read(text: &str, line: u32) -> Result<Program, Problem> {
    parser::parse(lexer::lines(text, line)?)
}

#[derive(Clone, PartialEq, Debug)]
struct Statement {
    line: u32,
    kind: StatementKind,
}

#[derive(Clone, PartialEq, Debug)]
enum StatementKind {
    /// With the text of the condition, to be shown when it does not hold.
    Assert {
        condition: Expression,
        message: Option<Expression>,
        text: String,
    },
    Print(Vec<Expression>),
    Assign {
        name: String,
        value: Expression,
    },
    Evaluate(Expression),
    If {
        branches: Vec<(Expression, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    Nothing,
}

#[derive(Clone, PartialEq, Debug)]
enum Expression {
    Constant(Value),
    Name(String),
    Tuple(Vec<Expression>),
    Call(String, Vec<Expression>),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Both(Box<Expression>, Box<Expression>),
    Either(Box<Expression>, Box<Expression>),
    Arithmetic(Box<Expression>, Operator, Box<Expression>),
    /// `a <= b < c`
    Comparison(Box<Expression>, Vec<(Relation, Expression)>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    DivideWhole,
    Remainder,
    And,
    Or,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
