//! System calls: `write(4, ..., 1000) = 1000`, `read(4, ..., 1) = -1 EAGAIN (why)`.

use super::Reader;
use crate::lexer::TokenKind;
use crate::problem::{DEEPEST, Problem, malformed};
use crate::script::{Argument, Call, When};

impl Reader<'_> {
    pub(super) fn call(&mut self, line: u32, when: When) -> Result<Call, Problem> {
        let returns = self.returns(when)?;
        let TokenKind::Word(name) = self.peek() else {
            return Err(self.unexpected("the name of a system call"));
        };
        self.at += 1;
        self.need('(', "the name of a system call")?;
        let arguments = self.arguments(')', 0)?;
        self.need('=', "a system call, with what it returns,")?;
        let result = if self.peek() == TokenKind::Ellipsis {
            self.at += 1;
            None
        } else {
            Some(self.argument(0)?)
        };
        let error = if let TokenKind::Word(word) = self.peek() {
            self.at += 1;
            Some(word.to_owned())
        } else {
            None
        };
        self.skip_note()?;
        Ok(Call { line, name: name.to_owned(), arguments, result, error, returns })
    }

    /// `(Broken pipe)` after an error or a result.
    fn skip_note(&mut self) -> Result<(), Problem> {
        let line = self.line();
        if !self.take('(') {
            return Ok(());
        }
        loop {
            match self.next() {
                TokenKind::Sign(')') => return Ok(()),
                TokenKind::End => malformed!(line, "this note never ends; close it with )"),
                _ => {}
            }
        }
    }

    /// Arguments up to `close`, which is taken.
    fn arguments(&mut self, close: char, depth: u32) -> Result<Vec<Argument>, Problem> {
        let mut arguments = Vec::new();
        if self.take(close) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.argument(depth)?);
            if self.take(close) {
                return Ok(arguments);
            }
            self.need(',', &format!("an argument (or \"{close}\" after the last)"))?;
        }
    }

    fn argument(&mut self, depth: u32) -> Result<Argument, Problem> {
        let line = self.line();
        if depth > DEEPEST {
            malformed!(line, "these arguments nest deeper than {DEEPEST}");
        }
        let number = |text: &str, radix: u32| {
            i64::from_str_radix(text, radix)
                .map(Argument::Integer)
                .map_err(|_| Problem::malformed(line, format!("the number {text} is too large")))
        };
        match self.peek() {
            TokenKind::Ellipsis => {
                self.at += 1;
                Ok(Argument::Ellipsis)
            }
            TokenKind::Integer(text) => {
                self.at += 1;
                number(text, 10)
            }
            TokenKind::Hexadecimal(text) => {
                self.at += 1;
                number(&text[2..], 16)
            }
            TokenKind::Text(text) => {
                self.at += 1;
                Ok(Argument::Text(text.to_owned()))
            }
            TokenKind::Sign('[') => {
                self.at += 1;
                self.arguments(']', depth + 1).map(Argument::List)
            }
            TokenKind::Sign('{') => {
                self.at += 1;
                self.structure(depth + 1)
            }
            TokenKind::Word(word) => {
                self.at += 1;
                if self.take('(') {
                    return Ok(Argument::Function(word.to_owned(), self.arguments(')', depth + 1)?));
                }
                let mut symbols = vec![word.to_owned()];
                while self.take('|') {
                    let TokenKind::Word(word) = self.peek() else {
                        return Err(self.unexpected("a symbol after \"|\""));
                    };
                    self.at += 1;
                    symbols.push(word.to_owned());
                }
                Ok(Argument::Symbols(symbols))
            }
            _ => Err(self.unexpected("an argument: ..., a number, a symbol, a text, [a list] or {a structure}")),
        }
    }

    /// `{name=value, ...}`, `{name(length)=value}`, or `{a, b}`; the brace is taken.
    fn structure(&mut self, depth: u32) -> Result<Argument, Problem> {
        let mut fields = Vec::new();
        if self.take('}') {
            return Ok(Argument::Structure(fields));
        }
        loop {
            let value = self.argument(depth)?;
            if self.take('=') {
                let name = match value {
                    Argument::Symbols(mut symbols) if symbols.len() == 1 => symbols.remove(0),
                    Argument::Function(name, _) => name,
                    _ => return Err(self.unexpected("the name of a field before \"=\"")),
                };
                let value = self.argument(depth)?;
                fields.push((Some(name), value));
            } else {
                fields.push((None, value));
            }
            if self.take('}') {
                return Ok(Argument::Structure(fields));
            }
            self.need(',', "a field (or \"}\" after the last)")?;
        }
    }
}
