//! From text to a script: a recursive descent over the tokens, one file a concern.

mod call;
mod packet;
mod tcp_options;
mod time;

use crate::lexer::{Token, TokenKind, tokens};
use crate::problem::{Problem, malformed, unsupported};
use crate::script::{Action, Block, Event, OptionLine, Script};

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The first thing that is wrong, or that is not modeled here, with its line.
    pub fn read(text: &str) -> Result<Self, Problem> {
        let mut reader = Reader { tokens: tokens(text)?, at: 0 };
        let options = reader.options();
        let preamble = reader.preamble();
        let mut events = Vec::new();
        // A shell block without a time at the end cleans up after the script, which leaves nothing behind here.
        while reader.peek() != TokenKind::End
            && !matches!((reader.peek(), reader.peek_second()), (TokenKind::Shell(_), TokenKind::End))
        {
            events.push(reader.event()?);
        }
        if events.is_empty() {
            return Err(Problem::malformed(
                reader.line(),
                "there is no event in this script; an event is a time and what happens, such as \
                 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
            ));
        }
        Ok(Self { options, preamble, events, lines: text.lines().map(str::to_owned).collect() })
    }
}

/// The tokens and the place in them.
struct Reader<'a> {
    /// The last one is [`TokenKind::End`].
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn token(&self) -> Token<'a> {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> TokenKind<'a> {
        self.token().kind
    }

    /// The token after the next one.
    fn peek_second(&self) -> TokenKind<'a> {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    fn line(&self) -> u32 {
        self.token().line
    }

    fn next(&mut self) -> TokenKind<'a> {
        let kind = self.peek();
        self.at += 1;
        kind
    }

    /// Takes the token if it is that sign.
    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == TokenKind::Sign(sign);
        self.at += usize::from(found);
        found
    }

    /// Takes the token if it is that word.
    fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek() == TokenKind::Word(word);
        self.at += usize::from(found);
        found
    }

    /// Takes the token if it is a word, whichever.
    fn word(&mut self) -> Option<&'a str> {
        let TokenKind::Word(word) = self.peek() else { return None };
        self.at += 1;
        Some(word)
    }

    /// Items with commas between them up to `close`, which is taken; `kind` names one of them.
    fn list<T>(
        &mut self,
        close: char,
        kind: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, Problem>,
    ) -> Result<Vec<T>, Problem> {
        let mut items = Vec::new();
        while !self.take(close) {
            if !items.is_empty() {
                self.need(',', &format!("{kind} (or \"{close}\" after the last)"))?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn need(&mut self, sign: char, after: &str) -> Result<(), Problem> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("\"{sign}\" after {after}"))) }
    }

    /// Not the expected item here.
    fn unexpected(&self, right: &str) -> Problem {
        Problem::malformed(self.line(), format!("{} was found where {right} should stand", self.peek()))
    }

    /// A whole number from 0 to `largest`.
    fn integer(&mut self, what: &str, largest: u32) -> Result<u32, Problem> {
        let line = self.line();
        let text = match self.peek() {
            TokenKind::Integer(text) => text,
            TokenKind::Word(symbol) if symbol.starts_with(|c: char| c.is_ascii_uppercase()) => {
                unsupported!(line, "{what} is the symbol {symbol}; symbols that --define sets are not modeled")
            }
            _ => return Err(self.unexpected(&format!("{what}, a whole number,"))),
        };
        self.at += 1;
        text.parse::<u32>()
            .ok()
            .filter(|value| *value <= largest)
            .ok_or_else(|| Problem::malformed(line, format!("{what} is {text}; it must be 0 to {largest}")))
    }

    fn options(&mut self) -> Vec<OptionLine> {
        let mut options = Vec::new();
        while let TokenKind::Option(name, value) = self.peek() {
            let line = self.line();
            self.at += 1;
            options.push(OptionLine { line, name: name.to_owned(), value: value.map(str::to_owned) });
        }
        options
    }

    fn preamble(&mut self) -> Option<Block> {
        let TokenKind::Shell(text) = self.peek() else { return None };
        Some(self.block(text))
    }

    /// Takes the block that stands next.
    fn block(&mut self, text: &str) -> Block {
        let block = Block { line: self.line(), text: text.to_owned() };
        self.at += 1;
        block
    }

    fn event(&mut self) -> Result<Event, Problem> {
        let line = self.line();
        if let TokenKind::Option(name, _) = self.peek() {
            malformed!(line, "the option --{name} stands among the events; options come before anything else");
        }
        let when = self.when()?;
        let action = match self.peek() {
            TokenKind::Sign('<') => Action::Inject(self.packet(true)?),
            TokenKind::Sign('>') => Action::Expect(self.packet(false)?),
            TokenKind::Word(_) | TokenKind::Ellipsis => Action::Call(self.call(line, when)?),
            TokenKind::Shell(text) => Action::Command(self.block(text)),
            TokenKind::Code(text) => Action::Check(self.block(text)),
            _ => {
                return Err(self
                    .unexpected("a packet (< or >), a system call, a shell block or a %{ }% block, after the time,"));
            }
        };
        let expected_packet = matches!(action, Action::Expect(_));
        if !expected_packet && when.from != when.to {
            malformed!(line, "only an expected packet (>) may come at any time or within a range");
        }
        Ok(Event { line, when, action })
    }
}
