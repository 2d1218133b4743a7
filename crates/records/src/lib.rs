//! The records, which have one schema for all engines: rows in, named columns out.
//!
//! The schema is declared here and nowhere else: a column is added in `rows.rs` and filled where its value is known, and
//! Python reads it from the native module. A leaf, but for the segments whose rows it makes.

mod rows;
mod sight;
pub mod table;

pub use rows::*;
pub use sight::{AtEnd, DROPPED, LOST, RECEIVED, SENT, Sight};
pub use table::{NamedColumns, Row};

/// Number of the schema. It is raised when a column or a file of a cell comes, goes or changes its name, type or meaning:
/// records of another number are not read.
pub const SCHEMA_VERSION: u32 = 11;

/// What `aggregates` and `histograms` count, by the index in their column `unit`.
pub const COUNTED: [&str; 2] = ["transfer", "page"];

/// By what they sort it into buckets, by the index in their column `dimension`.
pub const DIMENSIONS: [&str; 5] = ["all", "rtt_s", "down_bps", "bdp_bytes", "segments"];

/// Bin b of a histogram holds completion times above GAMMA^(b-1) ns, up to GAMMA^b ns.
pub const GAMMA: f64 = 1.01;
