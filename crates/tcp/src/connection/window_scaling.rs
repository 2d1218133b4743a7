//! The window scale option (RFC 7323 §2).

/// What both SYNs agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowScaling {
    /// Both SYNs carry the option.
    pub is_on: bool,
    /// Snd.Wind.Shift: of the window fields that we receive.
    pub snd_shift: u8,
    /// Rcv.Wind.Shift: of the window fields that we send.
    pub rcv_shift: u8,
}
