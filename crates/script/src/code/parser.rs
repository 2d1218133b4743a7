//! From logical lines to statements.

use super::lexer::{Line, Token};
use super::{Expression, Operator, Program, Relation, Statement, StatementKind, Value};
use crate::problem::{DEEPEST, Problem};

/// Python's words that begin a statement which is not understood here.
const OTHER_STATEMENTS: [&str; 14] = [
    "def", "for", "while", "class", "try", "with", "return", "del", "global", "lambda", "raise", "yield", "exec",
    "nonlocal",
];

const NO_COLON: &str = "a \":\" is missing after this condition";

pub(super) fn parse(lines: Vec<Line<'_>>) -> Result<Program, Problem> {
    let mut parser = Parser { lines: &lines, at: 0 };
    // The blanks before a block's first statement are not indentation.
    let statements = match lines.get(1) {
        Some(second) if lines[0].indent > second.indent => parser.block(second.indent, 0)?,
        _ => parser.block(lines.first().map_or(0, |line| line.indent), 0)?,
    };
    match parser.lines.get(parser.at) {
        Some(line) => Err(Problem::malformed(line.number, "the indentation of this statement fits nothing before it")),
        None => Ok(Program { statements }),
    }
}

struct Parser<'a, 'b> {
    lines: &'b [Line<'a>],
    at: usize,
}

impl<'a> Parser<'a, '_> {
    /// Statements of one indentation. The block's very first line may stand deeper.
    fn block(&mut self, indent: usize, depth: u32) -> Result<Vec<Statement>, Problem> {
        let mut statements = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            if line.indent != indent && self.at != 0 {
                break;
            }
            if depth > DEEPEST {
                return Err(Problem::malformed(line.number, format!("these statements nest deeper than {DEEPEST}")));
            }
            self.at += 1;
            if matches!(line.tokens.first(), Some((Token::Name("if"), ..))) {
                statements.push(self.conditional(line, indent, depth)?);
            } else {
                simple_statements(line, &line.tokens, &mut statements)?;
            }
        }
        Ok(statements)
    }

    fn conditional(&mut self, line: &Line<'a>, indent: usize, depth: u32) -> Result<Statement, Problem> {
        let number = line.number;
        let (condition, body) = self.branch(line, indent, depth)?;
        let mut branches = vec![(condition, body)];
        let mut otherwise = Vec::new();
        while let Some(next) = self.lines.get(self.at).filter(|next| next.indent == indent) {
            match next.tokens.first() {
                Some((Token::Name("elif"), ..)) => {
                    self.at += 1;
                    branches.push(self.branch(next, indent, depth)?);
                }
                Some((Token::Name("else"), ..)) => {
                    self.at += 1;
                    otherwise = self.suite(next, 1, indent, depth)?;
                    break;
                }
                _ => break,
            }
        }
        Ok(Statement { line: number, kind: StatementKind::If { branches, otherwise } })
    }

    /// `if condition:` or `elif condition:` and its block.
    fn branch(&mut self, line: &Line<'a>, indent: usize, depth: u32) -> Result<(Expression, Vec<Statement>), Problem> {
        let colon = line.tokens.iter().position(|(token, ..)| *token == Token::Sign(":"));
        let colon = colon.ok_or_else(|| Problem::malformed(line.number, NO_COLON))?;
        let condition = whole_expression(line.number, &line.tokens[1..colon])?;
        Ok((condition, self.suite(line, colon, indent, depth)?))
    }

    /// The statements after the colon, in the same line or indented in the next ones.
    fn suite(&mut self, line: &Line<'a>, colon: usize, indent: usize, depth: u32) -> Result<Vec<Statement>, Problem> {
        if !matches!(line.tokens.get(colon), Some((Token::Sign(":"), ..))) {
            return Err(Problem::malformed(line.number, NO_COLON));
        }
        let after = &line.tokens[colon + 1..];
        if !after.is_empty() {
            let mut statements = Vec::new();
            simple_statements(line, after, &mut statements)?;
            return Ok(statements);
        }
        match self.lines.get(self.at).filter(|next| next.indent > indent) {
            Some(next) => self.block(next.indent, depth + 1),
            None => Err(Problem::malformed(line.number, "no indented statement follows this condition")),
        }
    }
}

type Tokens<'a> = [(Token<'a>, usize, usize)];

/// Statements between semicolons.
fn simple_statements(line: &Line<'_>, tokens: &Tokens<'_>, statements: &mut Vec<Statement>) -> Result<(), Problem> {
    for tokens in tokens.split(|(token, ..)| *token == Token::Sign(";")) {
        if !tokens.is_empty() {
            statements.push(Statement { line: line.number, kind: simple_statement(line, tokens)? });
        }
    }
    Ok(())
}

fn simple_statement(line: &Line<'_>, tokens: &Tokens<'_>) -> Result<StatementKind, Problem> {
    let number = line.number;
    match (tokens[0].0, tokens.get(1).map(|(token, ..)| *token)) {
        (Token::Name("assert"), _) => {
            let mut cursor = Cursor { line: number, tokens: &tokens[1..], at: 0 };
            let condition = cursor.expression(0)?;
            let text = match (tokens.get(1), cursor.at.checked_sub(1).and_then(|last| cursor.tokens.get(last))) {
                (Some((_, from, _)), Some((_, _, to))) => line.text[*from..*to].to_owned(),
                _ => String::new(),
            };
            let message = if cursor.take(",") { Some(cursor.expression(0)?) } else { None };
            cursor.finish()?;
            Ok(StatementKind::Assert { condition, message, text })
        }
        (Token::Name("print"), _) => {
            let mut cursor = Cursor { line: number, tokens: &tokens[1..], at: 0 };
            let mut values = Vec::new();
            while cursor.at < cursor.tokens.len() {
                values.push(cursor.expression(0)?);
                if !cursor.take(",") {
                    break;
                }
            }
            cursor.finish()?;
            Ok(StatementKind::Print(values))
        }
        (Token::Name("import" | "from" | "pass"), _) => Ok(StatementKind::Nothing),
        (Token::Name(word), _) if OTHER_STATEMENTS.contains(&word) => {
            Err(Problem::unsupported(number, format!("\"{word}\" in a %{{ }}% block is not understood")))
        }
        (Token::Name(name), Some(Token::Sign("="))) => {
            let value = whole_expression(number, &tokens[2..])?;
            Ok(StatementKind::Assign { name: name.to_owned(), value })
        }
        (Token::Name(name), Some(Token::Sign(sign))) if augmented(sign).is_some() => {
            let operator = augmented(sign).unwrap_or(Operator::Add);
            let change = Box::new(whole_expression(number, &tokens[2..])?);
            let before = Box::new(Expression::Name(name.to_owned()));
            Ok(StatementKind::Assign { name: name.to_owned(), value: Expression::Arithmetic(before, operator, change) })
        }
        _ => whole_expression(number, tokens).map(StatementKind::Evaluate),
    }
}

fn augmented(sign: &str) -> Option<Operator> {
    Some(match sign {
        "+=" => Operator::Add,
        "-=" => Operator::Subtract,
        "*=" => Operator::Multiply,
        "/=" => Operator::Divide,
        "//=" => Operator::DivideWhole,
        "%=" => Operator::Remainder,
        _ => return None,
    })
}

fn whole_expression(line: u32, tokens: &Tokens<'_>) -> Result<Expression, Problem> {
    let mut cursor = Cursor { line, tokens, at: 0 };
    let first = cursor.expression(0)?;
    let expression = cursor.tuple_after(first, 0)?;
    cursor.finish()?;
    Ok(expression)
}

/// Binary operators by how tightly they bind, loosest first.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("|", Operator::Or)],
    &[("&", Operator::And)],
    &[("<<", Operator::ShiftLeft), (">>", Operator::ShiftRight)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("//", Operator::DivideWhole), ("/", Operator::Divide), ("%", Operator::Remainder)],
];

const RELATIONS: [(&str, Relation); 6] = [
    ("==", Relation::Equal),
    ("!=", Relation::Unequal),
    ("<=", Relation::LessOrEqual),
    (">=", Relation::GreaterOrEqual),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

struct Cursor<'a, 'b> {
    line: u32,
    tokens: &'b Tokens<'a>,
    at: usize,
}

impl Cursor<'_, '_> {
    fn peek(&self) -> Option<Token<'_>> {
        self.tokens.get(self.at).map(|(token, ..)| *token)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.peek() == Some(Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(Token::Name(word));
        self.at += usize::from(found);
        found
    }

    fn wrong(&self, right: &str) -> Problem {
        let found = match self.peek() {
            Some(Token::Number(text) | Token::Name(text) | Token::Sign(text)) => format!("\"{text}\""),
            Some(Token::Text(text)) => format!("the text \"{text}\""),
            None => "the end of the statement".to_owned(),
        };
        Problem::malformed(self.line, format!("{found} was found in a %{{ }}% block where {right} should stand"))
    }

    fn finish(&self) -> Result<(), Problem> {
        if self.at < self.tokens.len() { Err(self.wrong("the end of the statement")) } else { Ok(()) }
    }

    fn expression(&mut self, depth: u32) -> Result<Expression, Problem> {
        if depth > DEEPEST {
            return Err(Problem::malformed(self.line, format!("this expression nests deeper than {DEEPEST}")));
        }
        let mut left = self.conjunction(depth)?;
        while self.take_word("or") {
            left = Expression::Either(Box::new(left), Box::new(self.conjunction(depth)?));
        }
        Ok(left)
    }

    fn conjunction(&mut self, depth: u32) -> Result<Expression, Problem> {
        let mut left = self.negation(depth)?;
        while self.take_word("and") {
            left = Expression::Both(Box::new(left), Box::new(self.negation(depth)?));
        }
        Ok(left)
    }

    fn negation(&mut self, depth: u32) -> Result<Expression, Problem> {
        let mut times = 0;
        while self.take_word("not") {
            times += 1;
        }
        let inner = self.comparison(depth)?;
        Ok(match times {
            0 => inner,
            odd if odd % 2 == 1 => Expression::Not(Box::new(inner)),
            _ => Expression::Not(Box::new(Expression::Not(Box::new(inner)))),
        })
    }

    fn comparison(&mut self, depth: u32) -> Result<Expression, Problem> {
        let first = self.arithmetic(0, depth)?;
        let mut rest = Vec::new();
        while let Some((_, relation)) = RELATIONS.iter().find(|(sign, _)| self.peek() == Some(Token::Sign(sign))) {
            self.at += 1;
            rest.push((*relation, self.arithmetic(0, depth)?));
        }
        Ok(if rest.is_empty() { first } else { Expression::Comparison(Box::new(first), rest) })
    }

    fn arithmetic(&mut self, level: usize, depth: u32) -> Result<Expression, Problem> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(depth) };
        let mut left = self.arithmetic(level + 1, depth)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.peek() == Some(Token::Sign(sign))) {
            self.at += 1;
            let right = self.arithmetic(level + 1, depth)?;
            left = Expression::Arithmetic(Box::new(left), *operator, Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self, depth: u32) -> Result<Expression, Problem> {
        let mut negative = false;
        loop {
            if self.take("-") {
                negative = !negative;
            } else if !self.take("+") {
                break;
            }
        }
        let atom = self.atom(depth)?;
        Ok(if negative { Expression::Negative(Box::new(atom)) } else { atom })
    }

    fn atom(&mut self, depth: u32) -> Result<Expression, Problem> {
        let Some((token, ..)) = self.tokens.get(self.at) else { return Err(self.wrong("a value")) };
        match *token {
            Token::Number(text) => {
                let value = number(text).ok_or_else(|| {
                    Problem::malformed(self.line, format!("\"{text}\" in a %{{ }}% block is not a number that fits"))
                })?;
                self.at += 1;
                Ok(Expression::Constant(value))
            }
            Token::Text(text) => {
                self.at += 1;
                Ok(Expression::Constant(Value::Text(text.to_owned())))
            }
            Token::Name("True") => self.constant(1),
            Token::Name("False") => self.constant(0),
            Token::Name(name) => {
                self.at += 1;
                if self.take("(") {
                    return Ok(Expression::Call(name.to_owned(), self.values(depth + 1)?));
                }
                Ok(Expression::Name(name.to_owned()))
            }
            Token::Sign("(") => {
                self.at += 1;
                if self.take(")") {
                    return Ok(Expression::Tuple(Vec::new()));
                }
                let first = self.expression(depth + 1)?;
                let inside = self.tuple_after(first, depth + 1)?;
                if self.take(")") { Ok(inside) } else { Err(self.wrong("\")\"")) }
            }
            _ => Err(self.wrong("a value")),
        }
    }

    fn constant(&mut self, value: i64) -> Result<Expression, Problem> {
        self.at += 1;
        Ok(Expression::Constant(Value::Integer(value)))
    }

    /// `first`, or the tuple that it begins.
    fn tuple_after(&mut self, first: Expression, depth: u32) -> Result<Expression, Problem> {
        if self.peek() != Some(Token::Sign(",")) {
            return Ok(first);
        }
        let mut values = vec![first];
        while self.take(",") {
            if matches!(self.peek(), None | Some(Token::Sign(")"))) {
                break;
            }
            values.push(self.expression(depth)?);
        }
        Ok(Expression::Tuple(values))
    }

    /// Arguments of a call, the closing bracket included.
    fn values(&mut self, depth: u32) -> Result<Vec<Expression>, Problem> {
        let mut values = Vec::new();
        while !self.take(")") {
            values.push(self.expression(depth)?);
            if !self.take(",") && self.peek() != Some(Token::Sign(")")) {
                return Err(self.wrong("\",\" or \")\""));
            }
        }
        Ok(values)
    }
}

fn number(text: &str) -> Option<Value> {
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().map(Value::Integer);
    }
    if text.contains('.') {
        return text.parse().ok().map(Value::Decimal);
    }
    text.parse().ok().map(Value::Integer)
}
