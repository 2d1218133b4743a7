//! A server of files that need not exist: `/N` has N bytes, those of [`firstflight_segment::write_payload`], and so has
//! `/H/N`, with a response header of H bytes.

use std::ops::RangeInclusive;

use firstflight_tcp::Nanos;
use httparse::{EMPTY_HEADER, Request, Status};

use super::{MOST_BYTES, MOST_FIELDS, values};
use crate::application::{Application, Conversation};

/// The shortest response header that every answer fits into.
pub const LEAST_HEADER_BYTES: u32 = 100;

/// Lengths of a header that a path may ask for.
const HEADER_BYTES: RangeInclusive<u32> = LEAST_HEADER_BYTES..=MOST_BYTES as u32;

/// The largest file: what a stream of 2^62 bytes has room for many times.
const LARGEST_BYTES: u64 = 1 << 43;

/// Requests on a connection; after the last the server closes. It is nginx's default, and bounds what is remembered of
/// requests that were not waited for.
const MOST_REQUESTS: u32 = 1000;

/// One connection's server.
#[derive(Debug)]
pub struct Server {
    header_bytes: u32,
    /// The beginning of a request that is not complete.
    partial: Vec<u8>,
    requests: u32,
    closing: bool,
}

impl Server {
    /// A server whose response headers are at least so long: padding in the Server field makes up for the difference.
    pub fn new(header_bytes: u32) -> Self {
        Self { header_bytes, partial: Vec::new(), requests: 0, closing: false }
    }

    fn answer(&mut self, answer: &Answer, conversation: &mut Conversation) {
        self.requests += 1;
        self.closing = answer.close || self.requests == MOST_REQUESTS;
        let least_bytes = answer.header_bytes.unwrap_or(self.header_bytes);
        conversation.write(header(answer, self.closing, least_bytes).into_bytes());
        if !answer.head_only {
            match answer.status {
                "200 OK" => conversation.write_pattern(answer.length),
                text => conversation.write(format!("{text}\n").into_bytes()),
            }
        }
        if self.closing {
            conversation.close();
        }
    }
}

impl Application for Server {
    fn received(&mut self, _now: Nanos, bytes: &[u8], conversation: &mut Conversation) {
        if self.closing {
            return;
        }
        self.partial.extend_from_slice(bytes);
        let requests = std::mem::take(&mut self.partial);
        let mut rest = &requests[..];
        while !self.closing {
            let mut fields = [EMPTY_HEADER; MOST_FIELDS];
            let mut request = Request::new(&mut fields);
            let answer = match request.parse(rest) {
                Ok(Status::Complete(length)) => {
                    rest = &rest[length..];
                    Answer::to(&request)
                }
                Ok(Status::Partial) if rest.len() <= MOST_BYTES => {
                    self.partial = rest.to_vec();
                    return;
                }
                _ => Answer::refusal("400 Bad Request"),
            };
            self.answer(&answer, conversation);
        }
    }

    fn peer_closed(&mut self, _now: Nanos, conversation: &mut Conversation) {
        self.closing = true;
        conversation.close();
    }
}

struct Answer {
    status: &'static str,
    /// Bytes of the body.
    length: u64,
    /// Bytes of the header, if the path says.
    header_bytes: Option<u32>,
    head_only: bool,
    close: bool,
}

impl Answer {
    fn refusal(status: &'static str) -> Answer {
        Answer { status, length: status.len() as u64 + 1, header_bytes: None, head_only: false, close: true }
    }

    /// The answer to a request that was read.
    fn to(request: &Request<'_, '_>) -> Answer {
        let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
        // RFC 9112 §3.2: a request of HTTP/1.1 has one Host field. A body would have to be read, and none is meant.
        let has_host = values(request.headers, "Host").count() == 1;
        let has_body = values(request.headers, "Transfer-Encoding").next().is_some()
            || values(request.headers, "Content-Length").any(|length| length != "0");
        let connection = |word: &str| {
            let words = values(request.headers, "Connection").flat_map(|value| value.split(','));
            words.map(str::trim).any(|found| found.eq_ignore_ascii_case(word))
        };
        if has_body || request.version == Some(1) && !has_host {
            return Answer::refusal("400 Bad Request");
        }
        let keeps_alive = request.version == Some(1) || connection("keep-alive");
        let head_only = method == "HEAD";
        if method != "GET" && !head_only {
            return Answer::refusal("501 Not Implemented");
        }
        let close = !keeps_alive || connection("close");
        match file(target) {
            Some((header_bytes, length)) => Answer { status: "200 OK", length, header_bytes, head_only, close },
            None => Answer { close, head_only, ..Answer::refusal("404 Not Found") },
        }
    }
}

/// Bytes of the header, if that is given, and of the file that a path names, whatever query follows it; none if it names
/// no file.
fn file(target: &str) -> Option<(Option<u32>, u64)> {
    let path = target.split('?').next()?.strip_prefix('/')?;
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|&number: &u64| plain && number <= LARGEST_BYTES)
    };
    let Some((header, size)) = path.split_once('/') else { return Some((None, number(path)?)) };
    let header = u32::try_from(number(header)?).ok().filter(|bytes| HEADER_BYTES.contains(bytes))?;
    Some((Some(header), number(size)?))
}

fn header(answer: &Answer, close: bool, least_bytes: u32) -> String {
    let fields = |server: &str| {
        let connection = if close { "close" } else { "keep-alive" };
        let (status, length) = (answer.status, answer.length);
        format!("HTTP/1.1 {status}\r\nServer: {server}\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n")
    };
    let name = "firstflight";
    let missing = (least_bytes as usize).saturating_sub(fields(name).len());
    fields(&format!("{name}{}", "-".repeat(missing)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::Piece;

    fn ask(server: &mut Server, request: impl AsRef<[u8]>) -> (String, Option<u64>, bool) {
        let mut conversation = Conversation::default();
        server.received(0, request.as_ref(), &mut conversation);
        let (mut text, mut pattern) = (String::new(), None);
        for piece in &conversation.written {
            match piece {
                Piece::Bytes(bytes) => text += std::str::from_utf8(bytes).unwrap(),
                Piece::Pattern(length) => pattern = Some(*length),
            }
        }
        (text, pattern, conversation.close)
    }

    fn answer(request: impl AsRef<[u8]>) -> (String, Option<u64>, bool) {
        ask(&mut Server::new(0), request)
    }

    #[test]
    fn a_path_of_digits_is_so_many_bytes() {
        let (header, body, close) = answer("GET /1234 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(
            header.starts_with("HTTP/1.1 200 OK\r\n") && header.contains("\r\nContent-Length: 1234\r\n"),
            "{header}"
        );
        assert_eq!((body, close), (Some(1234), false));
        assert_eq!(answer("GET /77?padding HTTP/1.1\r\nHost: a\r\n\r\n").1, Some(77));
    }

    #[test]
    fn the_header_is_as_long_as_asked() {
        for least in [LEAST_HEADER_BYTES, 101, 1000] {
            for path in ["0", "8796093022208"] {
                let (header, ..) = ask(&mut Server::new(least), format!("HEAD /{path} HTTP/1.1\r\nHost: a\r\n\r\n"));
                assert_eq!(header.len(), least as usize, "{header}");
                let (header, ..) = answer(format!("HEAD /{least}/{path} HTTP/1.1\r\nHost: a\r\n\r\n"));
                assert_eq!(header.len(), least as usize, "{header}");
            }
        }
    }

    #[test]
    fn the_connection_is_kept_unless_the_client_wants_it_closed() {
        assert!(!answer("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").2);
        assert!(answer("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").2);
        assert!(answer("GET /1 HTTP/1.0\r\n\r\n").2);
        assert!(!answer("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").2);
        assert!(answer("GET /1 HTTP/1.1\r\nhost: a\r\nconnection: Keep-Alive, Close\r\n\r\n").2);
        assert!(!answer("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: clos\r\n\r\n").2);
        let mut server = Server::new(0);
        let closed: Vec<bool> = (0..1000).map(|_| ask(&mut server, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").2).collect();
        assert_eq!(closed.iter().position(|&closed| closed), Some(999));
    }

    #[test]
    fn requests_may_come_in_pieces_and_together() {
        let two = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
        for cut in 0..two.len() {
            let mut server = Server::new(0);
            let (first, second) = (ask(&mut server, &two[..cut]), ask(&mut server, &two[cut..]));
            assert_eq!((first.0 + &second.0).matches("200 OK").count(), 2, "cut at {cut}");
        }
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_its_status() {
        let host = "HTTP/1.1\r\nHost: a\r\n\r\n";
        for (request, status, closes) in [
            (format!("GET /x {host}"), "404", false),
            (format!("GET /9999999999999999 {host}"), "404", false),
            (format!("GET /+1 {host}"), "404", false),
            (format!("GET /99/1 {host}"), "404", false),
            (format!("GET /300/1/1 {host}"), "404", false),
            (format!("POST /1 {host}"), "501", true),
            ("GET /1 HTTP/1.1\r\n\r\n".into(), "400", true),
            ("GET /1 HTTP/2.0\r\nHost: a\r\n\r\n".into(), "400", true),
            ("GET /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".into(), "400", true),
            ("\r\n\r\nGET\r\n\r\n".into(), "400", true),
            ("GET /1 HTTP/1.1\r\n a: b\r\nHost: a\r\n\r\n".into(), "400", true),
            ("GET /1 HTTP/1.1\r\na b\r\nHost: a\r\n\r\n".into(), "400", true),
            ("x".repeat(MOST_BYTES + 1), "400", true),
        ] {
            let (header, body, close) = answer(&request);
            assert!(header.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {header}");
            assert_eq!((body, close), (None, closes), "{request}");
        }
    }

    #[test]
    fn a_field_that_is_not_text_says_nothing() {
        let status = |request: &[u8]| answer(request).0[9..12].to_owned();
        assert_eq!(status(b"GET /1 HTTP/1.1\r\nHost: a\r\nConnection: \xff\r\n\r\n"), "200");
        assert_eq!(status(b"GET /1 HTTP/1.1\r\nHost: a\r\nContent-Length: \xff\r\n\r\n"), "400");
        assert_eq!(status(b"GET /1 HTTP/1.1\r\nHost: a\r\n\xff: b\r\n\r\n"), "400");
        assert_eq!(status(b"\xff /1 HTTP/1.1\r\nHost: a\r\n\r\n"), "400");
    }
}
