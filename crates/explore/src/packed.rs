//! Tables as one block of bytes that a browser reads without copying.

use firstflight_sim::table::NamedColumns;
use serde_json::{Value, json};

/// Typed arrays begin at multiples of their element's size, which is 8 bytes at most.
const ALIGNMENT: usize = 8;

/// The length of a JSON text (u32, little endian), the text, and the columns, each from a multiple of 8 bytes on.
///
/// The JSON is `about` with one key more: `tables`, and in these each column's type in NumPy's spelling, where it starts
/// behind the text, and its bytes.
pub fn pack(mut about: Value, tables: impl IntoIterator<Item = NamedColumns>) -> Vec<u8> {
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
