//! As much HTTP/1.1 (RFC 9112) as a transfer of files takes.

mod client;
mod head;
mod server;

pub use client::{Client, Fetch};
pub use server::{LEAST_HEADER_BYTES, Server};
