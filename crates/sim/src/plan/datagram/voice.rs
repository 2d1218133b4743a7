//! Calls: a frame of voice each interval over RTP.

use firstflight_path::{Nanos, SpecError};
use serde::Deserialize;

use super::{Call, Datagrams, Flow, Play, Rtp, Ways};
use crate::distribution::Distribution;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Voice {
    /// The codec of a voice stream.
    pub codec: Codec,
    /// Bits a second of coded voice.
    pub bit_rate_bps: u64,
    /// Voice in a datagram.
    pub frame_ns: Nanos,
    /// Time that the receiver keeps the first datagram before it plays it.
    pub playout_ns: Nanos,
    /// The codec's effect on a listener. None: not given, so there is no rating.
    pub impairment: Option<Impairment>,
    /// Bytes of IP, UDP and RTP headers.
    pub datagram_header_bytes: u32,
    /// The speaking endpoints.
    pub direction: Ways,
    /// Its duration; none: to the end of the run.
    pub length_ns: Option<Nanos>,
}

/// The effect of a codec on a listener (ITU-T G.107).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Impairment {
    /// Equipment impairment factor Ie without losses.
    pub ie: f64,
    /// Robustness against packet loss, Bpl.
    pub bpl: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// ITU-T G.711.
    G711,
    /// RFC 6716.
    Opus,
}

impl Codec {
    /// Its look-ahead before it can code a frame.
    fn look_ahead(self) -> Nanos {
        match self {
            // G.711 codes each sample by itself.
            Codec::G711 => 0,
            // RFC 6716 section 2: 2.5 ms of CELT, which its encoder delays by another 4 ms so that modes can change.
            Codec::Opus => 6_500_000,
        }
    }

    /// Payload type and clock of RTP.
    fn rtp(self, frame_ns: Nanos) -> Rtp {
        let (payload_type, clock_hz) = match self {
            // RFC 3551 section 6: PCMU.
            Codec::G711 => (0, 8_000),
            // RFC 7587 section 4.1; the type is a dynamic one.
            Codec::Opus => (111, 48_000),
        };
        let step = u128::from(frame_ns) * clock_hz / 1_000_000_000;
        Rtp { payload_type, timestamp_step: step as u32 }
    }
}

impl Datagrams for Voice {
    fn flows(&self) -> Vec<Flow> {
        let payload_bytes = (u128::from(self.bit_rate_bps) * u128::from(self.frame_ns)).div_ceil(8_000_000_000);
        let flow = |&from_server: &bool| Flow {
            interval: self.frame_ns,
            payload: Distribution::Constant { value: payload_bytes as f64 },
            header_bytes: self.datagram_header_bytes,
            length: self.length_ns,
            play: Play::AfterFirst(self.playout_ns),
            call: Some(Call {
                coding_delay: self.frame_ns.saturating_add(self.codec.look_ahead()),
                impairment: self.impairment,
                rtp: self.codec.rtp(self.frame_ns),
            }),
            ..Flow::new(from_server)
        };
        self.direction.senders().iter().map(flow).collect()
    }

    fn validate(&self) -> Result<(), SpecError> {
        if let Some(Impairment { ie, bpl }) = self.impairment {
            if !((0.0..95.0).contains(&ie) && bpl > 0.0 && bpl.is_finite()) {
                let found = format!("ie {ie} with bpl {bpl}");
                return Err(SpecError::new("impairment", found, "ie must be 0 to below 95 and bpl above 0"));
            }
        }
        self.flows().iter().try_for_each(Flow::validate)
    }
}
