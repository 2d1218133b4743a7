//! A figure of the paths in a table: a column of values, or a law where the table has no such column.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use crate::distribution::Distribution;

/// A value a row, or a law from which each user draws.
#[derive(Clone, Debug)]
pub enum Column {
    /// One a row.
    Values(Vec<f64>),
    /// Drawn for each user, whatever the row.
    Distribution(Distribution),
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Column, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Column;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an array of numbers or a law")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Column, A::Error> {
                let mut values = Vec::with_capacity(items.size_hint().unwrap_or(0));
                while let Some(value) = items.next_element()? {
                    values.push(value);
                }
                Ok(Column::Values(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Column, A::Error> {
                Distribution::deserialize(MapAccessDeserializer::new(map)).map(Column::Distribution)
            }
        }
        deserializer.deserialize_any(Either)
    }
}
