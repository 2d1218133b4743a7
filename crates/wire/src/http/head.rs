//! The head of a message: its first line and its fields.

/// Most bytes of a head; nginx's limit for a large one.
pub(super) const MOST_BYTES: usize = 8192;

const END: &[u8] = b"\r\n\r\n";

/// The head at the beginning of the bytes, its empty line included; none while that has not come.
pub(super) fn end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(END.len()).position(|window| window == END).map(|at| at + END.len())
}

/// A head that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    /// The first line.
    pub line: &'a str,
    fields: &'a str,
}

impl<'a> Head<'a> {
    /// Reads a head with its empty line; none if it is not text of lines `name: value`.
    // RFC 9112 §5: no whitespace between name and colon, no folded lines.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Head<'a>> {
        let text = std::str::from_utf8(bytes.strip_suffix(END)?).ok()?;
        let (line, fields) = text.split_once("\r\n").unwrap_or((text, ""));
        let head = Head { line, fields };
        let is_field = |field: &str| {
            let name = field.split_once(':').map_or("", |(name, _)| name);
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        (fields.is_empty() || head.fields.split("\r\n").all(is_field)).then_some(head)
    }

    /// The values of a field, in their order.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let fields = self.fields.split("\r\n").filter_map(|field| field.split_once(':'));
        fields
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim_matches([' ', '\t']))
    }

    /// True if a field, a list of words, has this one.
    pub(super) fn has_word(&self, name: &str, word: &str) -> bool {
        self.values(name).flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_their_case() {
        let head = Head::read(b"GET / HTTP/1.1\r\nhost: a\r\nConnection: Keep-Alive, Close\r\n\r\n").unwrap();
        assert_eq!(head.line, "GET / HTTP/1.1");
        assert_eq!(head.values("Host").collect::<Vec<_>>(), ["a"]);
        assert!(head.has_word("connection", "close") && !head.has_word("connection", "clos"));
    }

    #[test]
    fn what_is_no_head_is_told() {
        for bytes in [
            &b"GET / HTTP/1.1\r\nhost a\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\n a: b\r\n\r\n",
            b"\xff\r\n\r\n",
            b"GET /\r\n",
        ] {
            assert!(Head::read(bytes).is_none(), "{bytes:?}");
        }
        assert_eq!(end(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(end(b"a\r\n\r\nb"), Some(5));
    }
}
