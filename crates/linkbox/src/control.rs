//! The control socket: one command per line, one answer per line, and bytes after an answer that announces them.
//!
//! A command is JSON: `{"do": "take"}`. An answer is JSON with `ok`; if not `ok`, `error` is one sentence. With
//! `payload_bytes` above 0, this number of bytes follows the answer's line: the columns of the tables in `tables`, one
//! after the other in the order of that line, little endian.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    ops::ControlFlow,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::UnixStream,
    time::Duration,
};

use firstflight_records::{NamedColumns, table::Column};
use serde_json::{Map, Value, json};

use crate::Error;

/// The longest command names every link of a testbed of 4,000 hosts.
const MOST_LINE_BYTES: usize = 1 << 24;

/// Bytes that are sent in one call: a reader that keeps up with a table of many megabytes must not keep packets
/// waiting.
const MOST_SENT_BYTES: usize = 1 << 16;

/// Time that a last answer waits for a reader that does not read.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The other side, as far as this one knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// It may still read.
    Present,
    /// It has closed.
    Gone,
}

/// An answer to a command: its line, with `ok`, and its tables.
pub type Answer = (Value, Vec<NamedColumns>);

/// The socket with received data and data still to send.
#[derive(Debug)]
pub struct Control {
    socket: UnixStream,
    incoming: Vec<u8>,
    outgoing: VecDeque<u8>,
}

/// Runs `work` with the control socket; an error of `work` is sent as the last answer.
///
/// # Errors
/// A descriptor that is no connected stream socket of the Unix domain; the error of the work.
pub fn run(socket: OwnedFd, work: impl FnOnce(&mut Control) -> Result<(), Error>) -> Result<(), Error> {
    let mut control = Control::new(socket).map_err(Error::system("the control socket cannot be used"))?;
    let ended = work(&mut control);
    if let Err(error) = &ended {
        control.refuse(&error.to_string());
    }
    control.finish();
    ended
}

impl Control {
    fn new(socket: OwnedFd) -> io::Result<Control> {
        let socket = UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Control { socket, incoming: Vec::new(), outgoing: VecDeque::new() })
    }

    /// Answers the commands that have come, each as `handle` does, given its line, and sends what can be sent. The other side
    /// has gone when there is nothing more to do: it closed, or `handle` broke off with the last answer.
    pub fn serve(&mut self, mut handle: impl FnMut(&str) -> Result<ControlFlow<Answer, Answer>, Error>) -> Peer {
        let mut peer = self.receive();
        while let Some(line) = self.next_line() {
            match handle(&line) {
                Ok(ControlFlow::Continue((answer, tables))) => self.answer(answer, tables),
                Ok(ControlFlow::Break((answer, tables))) => {
                    self.answer(answer, tables);
                    return Peer::Gone;
                }
                Err(error) => self.refuse(&error.to_string()),
            }
        }
        if self.send() == Peer::Gone {
            peer = Peer::Gone;
        }
        peer
    }

    /// Reads the waiting data.
    fn receive(&mut self) -> Peer {
        let mut piece = [0; 4096];
        loop {
            match self.socket.read(&mut piece) {
                Ok(0) => return Peer::Gone,
                Ok(length) => self.incoming.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return Peer::Gone,
            }
            if self.incoming.len() > MOST_LINE_BYTES {
                return Peer::Gone;
            }
        }
        Peer::Present
    }

    /// The next whole line.
    fn next_line(&mut self) -> Option<String> {
        let end = self.incoming.iter().position(|&byte| byte == b'\n')?;
        let line = String::from_utf8_lossy(&self.incoming[..end]).into_owned();
        self.incoming.drain(..=end);
        Some(line)
    }

    /// Queues an answer with its tables.
    pub fn answer(&mut self, mut answer: Value, mut tables: Vec<NamedColumns>) {
        // The line lists them by name, and their bytes must come in the order of the line.
        tables.sort_by_key(|(name, _)| *name);
        let mut payload = Vec::new();
        let mut described = Map::new();
        for (name, columns) in tables {
            let columns: Vec<Value> = columns.into_iter().map(|column| append(column, &mut payload)).collect();
            described.insert(name.into(), Value::Array(columns));
        }
        answer["tables"] = Value::Object(described);
        answer["payload_bytes"] = payload.len().into();
        self.outgoing.extend(answer.to_string().into_bytes());
        self.outgoing.push_back(b'\n');
        self.outgoing.extend(payload);
    }

    /// Queues the answer that states the error.
    fn refuse(&mut self, error: &str) {
        self.answer(json!({"ok": false, "error": error}), Vec::new());
    }

    /// Sends the data that can be sent without waiting, at most 64 KiB.
    pub fn send(&mut self) -> Peer {
        let mut left = MOST_SENT_BYTES;
        while !self.outgoing.is_empty() && left > 0 {
            let (piece, _) = self.outgoing.as_slices();
            match self.socket.write(&piece[..piece.len().min(left)]) {
                Ok(sent) => {
                    self.outgoing.drain(..sent);
                    left -= sent;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return Peer::Gone,
            }
        }
        Peer::Present
    }

    /// True if something is still to go out.
    pub fn is_sending(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Sends the rest, waiting for the other side to take it, but not for one that has stopped.
    fn finish(&mut self) {
        // Whoever has gone does not want it any more.
        let waits = self.socket.set_nonblocking(false).and_then(|()| self.socket.set_write_timeout(Some(LAST_WAIT)));
        if waits.is_ok() {
            let (first, second) = self.outgoing.as_slices();
            let _ = self.socket.write_all(first).and_then(|()| self.socket.write_all(second));
        }
    }
}

/// A column's name, type and number of bytes; its values go to the payload.
fn append((name, column): (&'static str, Column), payload: &mut Vec<u8>) -> Value {
    payload.extend_from_slice(&column.bytes);
    json!([name, column.dtype, column.bytes.len()])
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_answer_goes_out_piece_by_piece_and_whole() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut control = Control::new(ours.into()).unwrap();
        let text = "x".repeat(3 * MOST_SENT_BYTES);
        control.refuse(&text);
        let mut got = Vec::new();
        theirs.set_nonblocking(true).unwrap();
        while control.is_sending() {
            assert_eq!(control.send(), Peer::Present);
            let before = got.len();
            let _ = theirs.read_to_end(&mut got);
            assert!((1..=MOST_SENT_BYTES).contains(&(got.len() - before)));
        }
        let answer: Value = serde_json::from_slice(&got).unwrap();
        assert_eq!((&answer["ok"], &answer["error"]), (&json!(false), &json!(text)));
    }
}
