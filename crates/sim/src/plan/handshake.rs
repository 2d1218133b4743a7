//! What passes on a new connection before its first request: TLS, or any other dialog of fixed order.

use std::num::NonZeroU32;

use firstflight_path::{Nanos, SpecError};
use serde::Deserialize;

use super::{LARGEST_BYTES, kind::validate_law};
use crate::{PlanError, distribution::Distribution};

/// A record of TLS 1.3 adds to its payload a header of 5 bytes, a content type of one and a tag of 16 (RFC 8446 section
/// 5.2, AEAD of RFC 8446 section 9.1).
const RECORD_OVERHEAD_BYTES: u64 = 22;

/// Each has a number of its own among the draws of a connection.
const MOST_FLIGHTS: usize = 255;
/// A connection's kind is numbered with 8 bits.
const MOST_KINDS: usize = 256;

/// The handshakes of an application's connections.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handshakes {
    /// Each connection draws one of them.
    pub kinds: Vec<Handshake>,
    /// Largest payload of a record of requests and responses; none: they are not in records.
    pub record_bytes: Option<u32>,
    /// True if a user's row of the table of paths has the handshake: its exchanges choose the kind, from 1, and its bytes
    /// are those of the server's first flight.
    #[serde(default)]
    pub from_row: bool,
}

/// A handshake.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handshake {
    /// Fraction of the connections; those of all kinds add up to 1.
    pub fraction: f64,
    /// In their order. An end writes a flight once it has all flights of its peer that are before it.
    pub flights: Vec<Flight>,
    /// Bytes that the server writes after the last flight and before its first response.
    #[serde(default)]
    pub tickets_bytes: u32,
    /// The column `resumption` of its row.
    #[serde(default)]
    pub resumption: Resumption,
}

/// How much of an earlier connection a handshake uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumption {
    /// Nothing: a full handshake.
    #[default]
    None,
    /// Its keys.
    Resumed,
    /// Its keys, and the requests follow the client's first flight.
    EarlyData,
}

/// Bytes that an end sends when its turn comes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flight {
    /// The end that writes it.
    pub from: From,
    /// How many bytes.
    pub bytes: Distribution,
    /// How many in addition.
    #[serde(default)]
    pub more_bytes: u32,
    /// Most bytes of one write: each write sends at once what it may. None: all are one.
    pub write_bytes: Option<NonZeroU32>,
    /// How long that end computes before.
    #[serde(default)]
    pub compute_ns: Nanos,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// The one that opens it.
    Client = 0,
    /// The other.
    Server = 1,
}

/// The end that opens a connection, as its place among the two.
pub const CLIENT: usize = From::Client as usize;
/// The other.
pub const SERVER: usize = From::Server as usize;

impl Handshakes {
    /// Bytes that the records of `payload` bytes add to them.
    pub(crate) fn overhead(&self, payload: u64) -> u64 {
        self.record_bytes.map_or(0, |most| RECORD_OVERHEAD_BYTES * payload.div_ceil(u64::from(most)))
    }

    /// Bytes of the stream after which the first of `payload` bytes can be used: the end of their first record.
    pub(crate) fn first_record(&self, payload: u64) -> u64 {
        self.record_bytes.map_or(1, |most| payload.min(u64::from(most)) + RECORD_OVERHEAD_BYTES)
    }

    pub(super) fn validate(&self) -> Result<(), PlanError> {
        if self.record_bytes == Some(0) {
            return Err(SpecError::new("record_bytes", 0, "a record holds at least 1 byte").into());
        }
        if self.kinds.len() > MOST_KINDS {
            return Err(SpecError::new("kinds", self.kinds.len(), format!("at most {MOST_KINDS} are possible")).into());
        }
        let sum: f64 = self.kinds.iter().map(|kind| kind.fraction).sum();
        if self.kinds.iter().any(|kind| kind.fraction < 0.0) || (sum - 1.0).abs() > 1e-9 {
            return Err(misfit!("the fractions of the kinds of handshake add up to {sum}, but must add up to 1"));
        }
        self.kinds.iter().try_for_each(Handshake::validate)
    }
}

impl Handshake {
    fn validate(&self) -> Result<(), PlanError> {
        if self.flights.is_empty() || self.flights.len() > MOST_FLIGHTS {
            let right = format!("a handshake has 1 to {MOST_FLIGHTS}");
            return Err(SpecError::new("flights", self.flights.len(), right).into());
        }
        for flight in &self.flights {
            validate_law("bytes", &flight.bytes, LARGEST_BYTES as f64)?;
        }
        let is_possible = self.flights.first().is_some_and(|flight| flight.from == From::Client)
            && self.flights.iter().filter(|flight| flight.from == From::Client).count() > 1;
        if self.resumption == Resumption::EarlyData && !is_possible {
            return Err(misfit!(
                "early data follow the client's first flight: the first and a later flight must be its own"
            ));
        }
        Ok(())
    }
}
