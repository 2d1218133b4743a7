//! The state of a connection, and what its handshake agreed on.

/// Largest window field of a SYN, and of any segment without scaling.
pub(crate) const LARGEST_FIELD: u32 = 65535;

/// Segment size towards a peer that announced none.
// RFC 9293 §3.7.1: if an MSS option is not received, assume 536 for IPv4.
pub(crate) const DEFAULT_MSS: u32 = 536;

/// The states of RFC 9293 §3.3.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// No connection: not opened yet, or over.
    Closed,
    /// A server that waits for a SYN.
    Listen,
    /// A client that sent its SYN.
    SynSent,
    /// SYNs went both ways, ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// Our FIN is sent.
    FinWait1,
    /// Our FIN is acknowledged.
    FinWait2,
    /// The peer's FIN arrived, ours is not sent.
    CloseWait,
    /// Both FINs are sent, ours is not acknowledged.
    Closing,
    /// As `Closing`, but the peer's FIN came first.
    LastAck,
    /// Over; late segments are still acknowledged.
    TimeWait,
}

/// The work of every segment of a connection in addition to carrying data, as a set of bits. None for plain TCP, so one
/// test skips it all.
pub(crate) mod feature {
    /// Selective acknowledgments are agreed on.
    pub const SACK: u8 = 1;
    /// Timestamps are agreed on.
    pub const TIMESTAMPS: u8 = 2;
    /// Explicit congestion notification is agreed on.
    pub const ECN: u8 = 4;
    /// Acknowledgments follow arriving data.
    pub const ADAPTIVE_ACK: u8 = 8;
    /// The receiver stores state of arriving data.
    pub const RECEIVER: u8 = 16;
    /// An option for the routers on the path, or the answer to one, waits for the next segment.
    pub const PATH_OPTION: u8 = 32;
    /// Segments note when they were sent, and ACKs are timed by that.
    pub const ACK_ONE_WAY: u8 = 64;
    /// Somebody listens to the sender's events.
    pub const LISTENER: u8 = 128;
}

/// Window scaling (RFC 7323 §2), as both SYNs agreed on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowScaling {
    /// Both SYNs carry the option.
    pub is_on: bool,
    /// Snd.Wind.Shift: of the window fields that we receive.
    pub snd_shift: u8,
    /// Rcv.Wind.Shift: of the window fields that we send.
    pub rcv_shift: u8,
}

/// The state of a connection, and what both SYNs agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    pub(super) state: State,
    /// Effective segment size in both directions.
    mss: u16,
    /// Work of every segment, of [`feature`].
    pub(super) features: u8,
    pub(super) scaling: WindowScaling,
}

impl Handshake {
    pub fn new(state: State, mss: u32, features: u8) -> Self {
        Self { state, mss: mss as u16, features, scaling: WindowScaling::default() }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn mss(&self) -> u32 {
        self.mss.into()
    }

    // The option's field has 16 bits.
    pub(super) fn set_mss(&mut self, bytes: u32) {
        self.mss = bytes as u16;
    }

    pub fn scaling(&self) -> WindowScaling {
        self.scaling
    }

    /// Whether segments have any of this work, of [`feature`].
    pub fn has(&self, features: u8) -> bool {
        self.features & features != 0
    }

    /// Whether segments have no such work.
    pub fn is_plain(&self) -> bool {
        self.features == 0
    }
}
