//! Tables of results: columns by name, filled row by row.

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Flags and small codes.
    U8(Vec<u8>),
    /// Indices of applications and links.
    U16(Vec<u16>),
    /// Counts and indices.
    U32(Vec<u32>),
    /// Bytes and large counts.
    U64(Vec<u64>),
    /// Bins of histograms.
    I32(Vec<i32>),
    /// Nanoseconds.
    I64(Vec<i64>),
    /// Seconds and other measures.
    F64(Vec<f64>),
}

impl Column {
    /// The element type in NumPy's spelling.
    pub fn dtype(&self) -> &'static str {
        match self {
            Column::U8(_) => "u1",
            Column::U16(_) => "<u2",
            Column::U32(_) => "<u4",
            Column::U64(_) => "<u8",
            Column::I32(_) => "<i4",
            Column::I64(_) => "<i8",
            Column::F64(_) => "<f8",
        }
    }

    /// The values, little endian, one after the other.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        match self {
            Column::U8(values) => values.clone(),
            Column::U16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::U32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::U64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::I32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::I64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::F64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }
}

/// Declares a row and the table of such rows.
#[macro_export]
macro_rules! table {
    ($(#[$doc:meta])* $row:ident / $table:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty as $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $row { $($(#[$field_doc])* pub $field: $type,)* }

        #[doc = concat!("Columns of [`", stringify!($row), "`]s.")]
        #[derive(Clone, Debug, Default)]
        pub struct $table { $($(#[$field_doc])* pub $field: Vec<$type>,)* }

        impl $table {
            /// Adds a row.
            pub fn push(&mut self, row: $row) {
                $(self.$field.push(row.$field);)*
            }

            /// The row with this index.
            pub fn row(&self, index: usize) -> $row {
                $row { $($field: self.$field[index],)* }
            }

            /// Adds the rows of another table.
            pub fn append(&mut self, mut other: $table) {
                $(self.$field.append(&mut other.$field);)*
            }

            /// The columns with their names.
            pub fn into_columns(self) -> Vec<(&'static str, $crate::table::Column)> {
                vec![$((stringify!($field), $crate::table::Column::$variant(self.$field)),)*]
            }
        }
    };
}

pub(crate) use table;
