//! System calls: `write(4, ..., 1000) = 1000`, `read(4, ..., 1) = -1 EAGAIN (why)`.

use super::Reader;
use crate::lexer::TokenKind;
use crate::problem::{DEEPEST, Problem, malformed};
use crate::script::{Argument, Call, When};

impl Reader<'_> {
    pub(super) fn call(&mut self, line: u32, when: When) -> Result<Call, Problem> {
        let returns = self.returns(when)?;
        let name = self.word().ok_or_else(|| self.unexpected("the name of a system call"))?;
        self.need('(', "the name of a system call")?;
        let arguments = self.arguments(')', 0)?;
        self.need('=', "a system call, with what it returns,")?;
        let result = if self.peek() == TokenKind::Ellipsis {
            self.at += 1;
            None
        } else {
            Some(self.argument(0)?)
        };
        let error = self.word().map(str::to_owned);
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
        self.list(close, "an argument", |reader| reader.argument(depth))
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
        match self.next() {
            TokenKind::Ellipsis => Ok(Argument::Ellipsis),
            TokenKind::Integer(text) => number(text, 10),
            TokenKind::Hexadecimal(text) => number(&text[2..], 16),
            TokenKind::Text(text) => Ok(Argument::Text(text.to_owned())),
            TokenKind::Sign('[') => self.arguments(']', depth + 1).map(Argument::List),
            TokenKind::Sign('{') => {
                let fields = self.list('}', "a field", |reader| reader.field(depth + 1));
                fields.map(Argument::Structure)
            }
            TokenKind::Word(word) => {
                if self.take('(') {
                    return Ok(Argument::Function(word.to_owned(), self.arguments(')', depth + 1)?));
                }
                let mut symbols = vec![word.to_owned()];
                while self.take('|') {
                    let symbol = self.word().ok_or_else(|| self.unexpected("a symbol after \"|\""))?;
                    symbols.push(symbol.to_owned());
                }
                Ok(Argument::Symbols(symbols))
            }
            _ => {
                // The error shows this token, not the one after it.
                self.at -= 1;
                Err(self.unexpected("an argument: ..., a number, a symbol, a text, [a list] or {a structure}"))
            }
        }
    }

    /// Of a structure: `name=value`, `name(length)=value`, or a value alone.
    fn field(&mut self, depth: u32) -> Result<(Option<String>, Argument), Problem> {
        let value = self.argument(depth)?;
        if !self.take('=') {
            return Ok((None, value));
        }
        let name = match value {
            Argument::Symbols(mut symbols) if symbols.len() == 1 => symbols.remove(0),
            Argument::Function(name, _) => name,
            _ => return Err(self.unexpected("the name of a field before \"=\"")),
        };
        Ok((Some(name), self.argument(depth)?))
    }
}
