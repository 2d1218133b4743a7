//! Tables as one block of bytes that a browser reads without copying.

use firstflight_sim::Records;
use serde_json::json;

/// Typed arrays begin at multiples of their element's size, which is 8 bytes at most.
const ALIGNMENT: usize = 8;

/// The length of a JSON text (u32, little endian), the text, and the columns, each from a multiple of 8 bytes on.
///
/// The JSON has the names of `links` and `applications`, and by `tables` each column's type in NumPy's spelling, where
/// it starts behind the text, and its bytes.
pub fn pack(records: Records) -> Vec<u8> {
    let (links, applications) = (records.link_names.clone(), records.application_names.clone());
    let mut values = Vec::new();
    let mut tables = serde_json::Map::new();
    for (name, columns) in records.into_tables() {
        let mut described = serde_json::Map::new();
        for (column, content) in columns {
            let start = values.len();
            described.insert(column.into(), json!([content.dtype, start, content.bytes.len()]));
            values.extend(content.bytes);
            pad(&mut values);
        }
        tables.insert(name.into(), described.into());
    }
    let text = json!({ "links": links, "applications": applications, "tables": tables }).to_string();
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
