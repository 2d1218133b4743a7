//! The simulator and the reader of captures as WebAssembly, for the explorer.
//!
//! The module imports nothing. A page writes a plan (JSON) or a capture into [`input`]'s memory, calls [`simulate`] or
//! [`observe`] and reads [`output`]. No logic lives here; `crates/python` is the same for Python.

mod boundary;

pub use boundary::{input, observe, output, output_length, segments, simulate};

use std::path::Path;

use firstflight_observe::{ReadError, Reader};
use firstflight_sim::{
    Plan, PlanError,
    records::{Row, event_words},
    table::NamedColumns,
};
use serde_json::{Value, json};

/// Simulates replicate 0 of a plan and packs its tables; `capture` keeps every segment.
///
/// # Errors
/// Something that is no plan, or a plan whose parts do not fit together.
pub fn run(plan: &str, seed: u64, capture: bool) -> Result<Vec<u8>, PlanError> {
    let records = firstflight_sim::simulate(&Plan::from_json(plan)?, seed, 0..1, capture)?;
    let words = capture.then(event_words);
    let about = json!({
        "links": records.link_names,
        "applications": records.application_names,
        "senderEvents": words,
    });
    Ok(pack(about, records.into_tables()))
}

/// Packs the segments of one connection of a capture, by its number in the tables of [`read`].
///
/// # Errors
/// Something that is no capture.
pub fn segments_of(capture: &[u8], connection: u32) -> Result<Vec<u8>, ReadError> {
    let segments = Reader::new(Path::new("the file"), capture)?.segments_of(connection)?;
    Ok(pack(json!({}), [Row::columns(&segments)]))
}

/// Reads a pcap or pcapng file and packs the tables of its connections and responses.
///
/// # Errors
/// Something that is no capture.
pub fn read(capture: &[u8]) -> Result<Vec<u8>, ReadError> {
    let mut reader = Reader::new(Path::new("the file"), capture)?;
    let batch = reader.read(usize::MAX)?.unwrap_or_default();
    let (packets, segments) = reader.counts();
    let problems: Vec<_> = reader.problems().iter().map(|found| (found.trouble.to_string(), found.count)).collect();
    let about = json!({ "packets": packets, "segments": segments, "problems": problems });
    Ok(pack(about, batch.into_tables()))
}

/// Typed arrays begin at multiples of their element's size, which is 8 bytes at most.
const ALIGNMENT: usize = 8;

/// The length of a JSON text (u32, little endian), the text, and the columns, each from a multiple of 8 bytes on.
///
/// The JSON is `about` with one key more: `tables`, and in these each column's type in NumPy's spelling, where it starts
/// behind the text, and its bytes.
fn pack(mut about: Value, tables: impl IntoIterator<Item = NamedColumns>) -> Vec<u8> {
    let mut values = Vec::new();
    for (name, columns) in tables {
        for (column, content) in columns {
            about["tables"][name][column] = json!([content.dtype, values.len(), content.bytes.len()]);
            values.extend(content.bytes);
            pad(&mut values);
        }
    }
    let text = about.to_string();
    let mut packed = Vec::with_capacity(2 * ALIGNMENT + text.len() + values.len());
    packed.extend((text.len() as u32).to_le_bytes());
    packed.extend(text.bytes());
    pad(&mut packed);
    packed.append(&mut values);
    packed
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
}
