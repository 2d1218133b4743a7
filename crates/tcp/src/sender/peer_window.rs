//! The peer's receive window, as its segments announce it.

/// The window, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerWindow {
    /// SND.WND.
    pub bytes: u32,
    /// As much of it as the profile lets us use.
    pub limited_bytes: u32,
    /// The largest that it has been.
    pub largest_bytes: u32,
}

impl PeerWindow {
    /// The peer announces a window, of which at most `max_bytes` are used.
    pub fn set(&mut self, bytes: u32, max_bytes: u32) {
        self.bytes = bytes;
        self.limited_bytes = bytes.min(max_bytes);
        self.largest_bytes = self.largest_bytes.max(bytes);
    }
}
