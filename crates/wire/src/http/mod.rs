//! As much HTTP/1.1 (RFC 9112) as a transfer of files takes.

mod client;
mod server;

use httparse::Header;

pub use client::{Client, Fetch};
pub use server::{LEAST_HEADER_BYTES, Server};

/// Most bytes of a head; nginx's limit for a large one.
const MOST_BYTES: usize = 8192;

/// Most fields of a head. As RFC 9112 §2.2 allows, httparse also takes lines that end with LF alone, and skips empty lines
/// before a request.
const MOST_FIELDS: usize = 100;

/// The values of a field, in their order; one that is not text is empty.
fn values<'a>(fields: &'a [Header<'a>], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
    named.map(|field| std::str::from_utf8(field.value).unwrap_or_default())
}
