//! Applications that are not TCP, as a plan has them: each gives the [`Flow`]s of its clients.

pub(crate) mod dns;
pub(crate) mod streams;
pub(crate) mod voice;

use firstflight_path::{Nanos, SpecError};
use serde::{Deserialize, Serialize};

use super::Kind;
use crate::distribution::Distribution;
use voice::Impairment;

/// As much as an IPv4 packet can carry over UDP.
pub(crate) const MOST_PAYLOAD_BYTES: f64 = 65_507.0;

/// An application that sends datagrams.
pub(crate) trait Datagrams {
    /// The datagrams of a client and its server.
    fn flows(&self) -> Vec<Flow>;

    /// Checks conditions that a type cannot express.
    fn validate(&self) -> Result<(), SpecError>;
}

impl Kind {
    /// The application, if it is one that sends datagrams.
    pub(crate) fn datagrams(&self) -> Option<&dyn Datagrams> {
        match self {
            Kind::ConstantRate(application) => Some(application),
            Kind::Dns(application) => Some(application),
            Kind::Game(application) => Some(application),
            Kind::Voice(application) => Some(application),
            _ => None,
        }
    }
}

/// The sending endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ways {
    /// The server.
    Download,
    /// The client.
    Upload,
    /// Both of them.
    Both,
}

impl Ways {
    /// True if the server sends, for each end that does.
    pub(crate) fn senders(self) -> &'static [bool] {
        match self {
            Ways::Download => &[true],
            Ways::Upload => &[false],
            Ways::Both => &[false, true],
        }
    }
}

/// When a datagram is of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Play {
    /// Whenever it comes.
    #[default]
    Always,
    /// At most so long after it was sent.
    AfterSending(Nanos),
    /// The first one so long after it arrived, and the others by the time between them at the sender.
    AfterFirst(Nanos),
}

/// The parameters of a voice stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// From the first sound of a frame to its datagram.
    pub(crate) coding_delay: Nanos,
    pub(crate) impairment: Option<Impairment>,
    pub(crate) rtp: Rtp,
}

/// The fields of a stream's RTP headers that depend on its codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp {
    /// Payload type.
    pub payload_type: u8,
    /// By how much the timestamp grows from frame to frame.
    pub timestamp_step: u32,
}

/// The stream of one endpoint: one datagram per interval. Serialized, it gives times and sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    pub(crate) from_server: bool,
    #[serde(rename = "interval_ns")]
    pub(crate) interval: Nanos,
    /// Bytes of payload.
    pub(crate) payload: Distribution,
    /// Bytes of all headers.
    pub(crate) header_bytes: u32,
    /// Duration of sending; none: to the end of the run.
    #[serde(rename = "length_ns")]
    pub(crate) length: Option<Nanos>,
    #[serde(skip)]
    pub(crate) play: Play,
    /// It sends at multiples of the interval only.
    pub(crate) at_ticks: bool,
    #[serde(skip)]
    pub(crate) call: Option<Call>,
}

impl Flow {
    /// Nothing in particular.
    fn new(from_server: bool) -> Flow {
        Flow {
            from_server,
            interval: 0,
            payload: Distribution::Constant { value: 0.0 },
            header_bytes: 0,
            length: None,
            play: Play::Always,
            at_ticks: false,
            call: None,
        }
    }

    /// Checks the sizes and times.
    fn validate(&self) -> Result<(), SpecError> {
        if self.interval == 0 {
            return Err(SpecError::new("the time between datagrams", 0, "give at least 1 ns"));
        }
        self.payload.validate("payload")?;
        if let Some(largest) = self.payload.largest() {
            if !(1.0..=MOST_PAYLOAD_BYTES).contains(&largest) {
                let right = format!("a datagram must have 1 to {MOST_PAYLOAD_BYTES} bytes");
                return Err(SpecError::new("payload", largest, right));
            }
        }
        if self.header_bytes >= 1 << 16 {
            return Err(SpecError::new("datagram_header_bytes", self.header_bytes, "it must be at most 65535"));
        }
        Ok(())
    }
}
