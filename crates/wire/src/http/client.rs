//! A client that fetches files over one connection, one after the other.

use std::net::SocketAddr;

use firstflight_linkbox::refused;
use firstflight_tcp::{Deadline, Nanos};
use httparse::{EMPTY_HEADER, Status};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{MOST_BYTES, MOST_FIELDS, values};
use crate::{
    Error,
    application::{Application, Conversation},
    report::{End, Report, Response},
};

/// The object to fetch.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Number that the reports carry.
    pub fetch: u64,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// The paths, asked for one after the other.
    pub paths: Vec<String>,
    /// Asks the server to close after the last response; otherwise the client closes.
    #[serde(default)]
    pub close: bool,
    /// Length that each request is padded to, in bytes; 0: as it comes.
    #[serde(default)]
    pub request_bytes: u32,
    /// Whether to compute a digest of each body.
    #[serde(default)]
    pub sha256: bool,
    /// When to give up, in nanoseconds after the beginning; none: never.
    pub most_ns: Option<Nanos>,
}

impl Fetch {
    /// Checks that it can be asked for.
    ///
    /// # Errors
    /// One sentence: what is wrong and what would be right.
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |problem: String| Err(refused!("fetch {}: {problem}", self.fetch));
        if self.paths.is_empty() {
            return wrong("there are no paths; give at least one".into());
        }
        let bad = |path: &&String| !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic());
        if let Some(path) = self.paths.iter().find(bad) {
            return wrong(format!("{path:?} is no path; it begins with / and has no spaces"));
        }
        let least = (0..self.paths.len()).map(|index| self.request(index, "").len()).max().unwrap_or(0);
        if self.request_bytes > 0 && (self.request_bytes as usize) < least {
            let asked = self.request_bytes;
            return wrong(format!("request_bytes is {asked}; the request takes at least {least}"));
        }
        Ok(())
    }

    fn request(&self, index: usize, padding: &str) -> String {
        let last = self.close && index + 1 == self.paths.len();
        let close = if last { "Connection: close\r\n" } else { "" };
        let (path, host) = (&self.paths[index], self.server);
        // RFC 9110 §4.2.1: the default port may be left out.
        let host = host.to_string();
        let host = host.strip_suffix(":80").unwrap_or(&host);
        format!("GET {path}{padding} HTTP/1.1\r\nHost: {host}\r\n{close}\r\n")
    }

    fn padded_request(&self, index: usize) -> String {
        let missing = (self.request_bytes as usize).saturating_sub(self.request(index, "").len());
        // A query, at which servers of files do not look.
        let begun = missing == 0 || self.paths[index].contains('?');
        let padding = "x".repeat(missing - usize::from(!begun));
        self.request(index, &if begun { padding } else { format!("?{padding}") })
    }
}

/// One connection's client.
#[derive(Debug)]
pub struct Client {
    fetch: Fetch,
    connection: u32,
    gives_up_at: Deadline,
    /// The path that is in progress; none once all are.
    index: usize,
    response: Response,
    /// The head of a response that is not complete.
    partial: Vec<u8>,
    /// Bytes of the body that are still to come, once the head has come.
    missing: Option<u64>,
    digest: Sha256,
}

impl Client {
    /// A client whose connection has this number.
    pub fn new(fetch: Fetch, connection: u32, now: Nanos) -> Self {
        let gives_up_at = fetch.most_ns.map(|most| now.saturating_add(most)).into();
        Self {
            fetch,
            connection,
            gives_up_at,
            index: 0,
            response: Response::default(),
            partial: Vec::new(),
            missing: None,
            digest: Sha256::new(),
        }
    }

    fn ask(&mut self, now: Nanos, conversation: &mut Conversation) {
        self.response = Response {
            fetch: self.fetch.fetch,
            object: self.index as u32,
            path: self.fetch.paths[self.index].clone(),
            connection: self.connection,
            started_at_ns: now,
            ..Response::default()
        };
        conversation.write(self.fetch.padded_request(self.index).into_bytes());
    }

    /// All or nothing more of the response has come: reports it, and asks for the next one.
    fn finish(&mut self, now: Nanos, error: Option<String>, conversation: &mut Conversation) {
        let digest = std::mem::take(&mut self.digest).finalize();
        self.response.error = error;
        if self.response.error.is_none() {
            self.response.completed_at_ns = Some(now);
            self.response.sha256 =
                self.fetch.sha256.then(|| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
        conversation.report(Report::Response(Box::new(std::mem::take(&mut self.response))));
        self.missing = None;
        self.index += 1;
        if !self.is_done() {
            self.ask(now, conversation);
        } else if !self.fetch.close {
            conversation.close();
        }
    }

    fn is_done(&self) -> bool {
        self.index == self.fetch.paths.len()
    }

    /// Nothing that follows can be understood: all that is still to come fails.
    fn fail(&mut self, now: Nanos, reason: &str, conversation: &mut Conversation) {
        while !self.is_done() {
            self.finish(now, Some(reason.to_owned()), conversation);
        }
        conversation.written.clear();
        conversation.close();
    }

    /// Takes the head over once it is complete; returns its number of bytes.
    fn take_head(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let before = self.partial.len();
        self.partial.extend_from_slice(bytes);
        let mut fields = [EMPTY_HEADER; MOST_FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let length = match head.parse(&self.partial) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if self.partial.len() <= MOST_BYTES => return Ok(bytes.len()),
            Ok(Status::Partial) => return Err("the header of the response is longer than 8192 bytes"),
            Err(httparse::Error::TooManyHeaders) => return Err("the header of the response has more than 100 fields"),
            Err(_) => return Err("the header of the response is not one of HTTP/1.1"),
        };
        let status = head.code.filter(|_| head.version == Some(1));
        self.response.status = status.ok_or("the response is not one of HTTP/1.1")?;
        let content_length = values(head.headers, "Content-Length").next().and_then(|value| value.parse().ok());
        self.missing = Some(content_length.ok_or("the response has no Content-Length, which says where it ends")?);
        self.response.header_bytes = length as u64;
        self.partial.clear();
        Ok(length - before)
    }
}

impl Application for Client {
    fn open(&mut self, now: Nanos, conversation: &mut Conversation) {
        self.ask(now, conversation);
    }

    fn connected(&mut self, now: Nanos, _conversation: &mut Conversation) {
        self.response.connected_at_ns = Some(now);
    }

    fn received(&mut self, now: Nanos, mut bytes: &[u8], conversation: &mut Conversation) {
        while !bytes.is_empty() {
            if self.is_done() {
                // A response without a request has no recipient.
                return;
            }
            self.response.first_byte_at_ns.get_or_insert(now);
            if self.missing.is_none() {
                match self.take_head(bytes) {
                    Ok(length) => bytes = &bytes[length..],
                    Err(reason) => return self.fail(now, reason, conversation),
                }
            }
            let Some(missing) = self.missing else { return };
            let (body, rest) = bytes.split_at(missing.min(bytes.len() as u64) as usize);
            if self.fetch.sha256 {
                self.digest.update(body);
            }
            self.response.body_bytes += body.len() as u64;
            self.missing = Some(missing - body.len() as u64);
            bytes = rest;
            if self.missing == Some(0) {
                self.finish(now, None, conversation);
            }
        }
    }

    fn peer_closed(&mut self, now: Nanos, conversation: &mut Conversation) {
        self.fail(now, "the server closed the connection before all had come", conversation);
    }

    fn over(&mut self, now: Nanos, end: End, conversation: &mut Conversation) {
        let reason = match end {
            End::Closed => "the connection was closed before all had come",
            End::Reset if self.response.connected_at_ns.is_none() && self.index == 0 => "the connection was refused",
            End::Reset => "the server reset the connection",
            End::TimedOut => "the connection was given up after too many retransmissions",
            End::Aborted => "the time given for it was over",
            End::Stopped => "the client was stopped before all had come",
        };
        self.fail(now, reason, conversation);
    }

    fn patience(&self) -> Deadline {
        self.gives_up_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(paths: &[&str]) -> Fetch {
        Fetch {
            fetch: 4,
            server: "10.0.0.1:80".parse().unwrap(),
            paths: paths.iter().map(|&path| path.to_owned()).collect(),
            close: false,
            request_bytes: 0,
            sha256: true,
            most_ns: None,
        }
    }

    /// Reports of a client that gets these bytes in pieces of this size.
    fn responses(fetch: Fetch, bytes: &[u8], piece: usize) -> Vec<Response> {
        let mut conversation = Conversation::default();
        let mut client = Client::new(fetch, 0, 0);
        client.open(1, &mut conversation);
        client.connected(2, &mut conversation);
        bytes.chunks(piece).for_each(|bytes| client.received(3, bytes, &mut conversation));
        client.peer_closed(4, &mut conversation);
        let only_responses = |report| match report {
            Report::Response(response) => *response,
            other => panic!("{other:?}"),
        };
        conversation.reports.into_iter().map(only_responses).collect()
    }

    #[test]
    fn responses_are_told_apart_however_they_are_cut() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n";
        for piece in 1..=text.len() {
            let got = responses(fetch(&["/a", "/b"]), text, piece);
            let told: Vec<_> = got.iter().map(|one| (one.status, one.body_bytes, one.completed_at_ns)).collect();
            assert_eq!(told, [(200, 3, Some(3)), (404, 0, Some(3))], "pieces of {piece}");
            let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
            assert_eq!(got[0].sha256.as_deref(), Some(of_abc));
            assert_eq!((got[0].connected_at_ns, got[1].connected_at_ns), (Some(2), None));
        }
    }

    #[test]
    fn what_does_not_come_whole_is_an_error() {
        let cut = responses(fetch(&["/a", "/b"]), b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", 100);
        let errors: Vec<_> = cut.iter().map(|one| one.error.as_deref()).collect();
        assert_eq!(errors, [Some("the server closed the connection before all had come"); 2]);
        assert_eq!((cut[0].body_bytes, &cut[0].sha256, cut[0].completed_at_ns), (2, &None, None));
        let endless = responses(fetch(&["/a"]), b"HTTP/1.1 200 OK\r\n\r\n", 100);
        assert!(endless[0].error.as_deref().unwrap().contains("Content-Length"));
    }

    #[test]
    fn what_is_no_header_is_an_error() {
        let error = |header: &[u8]| responses(fetch(&["/a"]), header, 100).remove(0).error.unwrap();
        let fields = |number| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(number));
        assert!(error(fields(MOST_FIELDS).as_bytes()).contains("Content-Length"));
        assert_eq!(error(fields(MOST_FIELDS + 1).as_bytes()), "the header of the response has more than 100 fields");
        let not_one = "the header of the response is not one of HTTP/1.1";
        assert_eq!(error(b"\xff\r\n\r\n"), not_one);
        assert_eq!(error(b"HTTP/1.1 200 OK\r\nContent-Length 3\r\n\r\n"), not_one);
    }

    #[test]
    fn a_request_is_as_long_as_asked_or_refused() {
        let padded = Fetch { request_bytes: 300, ..fetch(&["/a", "/bcd"]) };
        assert!(padded.validate().is_ok());
        assert_eq!([padded.padded_request(0).len(), padded.padded_request(1).len()], [300, 300]);
        let least = padded.request(1, "").len() as u32;
        for request_bytes in least..least + 3 {
            let exact = Fetch { request_bytes, ..padded.clone() };
            assert_eq!(exact.padded_request(1).len(), request_bytes as usize);
        }
        assert!(padded.padded_request(0).starts_with("GET /a?xxx"));
        let short = Fetch { request_bytes: 20, ..padded.clone() };
        assert!(short.validate().unwrap_err().to_string().contains("request_bytes is 20"));
        assert!(Fetch { paths: vec!["a b".into()], ..padded.clone() }.validate().is_err());
        assert!(Fetch { paths: vec![], ..padded }.validate().is_err());
    }
}
