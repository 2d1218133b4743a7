//! Tables: rows whose columns are declared once, and the columns made of them.

/// A type of columns.
pub trait Value: Copy {
    /// The type in NumPy's spelling.
    const DTYPE: &'static str;

    /// The values, little endian, one after the other.
    fn le_bytes(values: impl ExactSizeIterator<Item = Self>) -> Vec<u8>;
}

macro_rules! values {
    ($($type:ty: $dtype:literal,)*) => {
        $(impl Value for $type {
            const DTYPE: &'static str = $dtype;

            fn le_bytes(values: impl ExactSizeIterator<Item = Self>) -> Vec<u8> {
                let mut bytes = vec![0; values.len() * size_of::<$type>()];
                let places = bytes.chunks_exact_mut(size_of::<$type>());
                places.zip(values).for_each(|(place, value)| place.copy_from_slice(&value.to_le_bytes()));
                bytes
            }
        })*
    };
}

values! { u8: "u1", u16: "<u2", u32: "<u4", u64: "<u8", i32: "<i4", i64: "<i8", f64: "<f8", }

/// A column that is filled.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The type of the values in NumPy's spelling.
    pub dtype: &'static str,
    /// The values, little endian, one after the other.
    pub bytes: Vec<u8>,
}

impl Column {
    /// The column of these values.
    pub fn of<T: Value>(values: impl ExactSizeIterator<Item = T>) -> Self {
        Self { dtype: T::DTYPE, bytes: T::le_bytes(values) }
    }
}

/// A table's name and its columns.
pub type NamedColumns = (&'static str, Vec<(&'static str, Column)>);

/// What is declared of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    /// The type of its values in NumPy's spelling.
    pub dtype: &'static str,
    /// Their unit; empty for none.
    pub unit: &'static str,
    /// The values are indices, for which readers see names.
    pub is_name: bool,
    /// What they mean, with a space before each line.
    pub meaning: &'static str,
    /// The value that stands for null, if one does.
    pub null: Option<f64>,
}

/// A row of a table, declared by [`table!`](crate::table). A table is kept as a `Vec` of rows, so adding a row is one
/// copy; [`Row::columns`] makes its columns.
pub trait Row: Copy {
    /// Name of the table.
    const TABLE: &'static str;

    /// Its columns.
    const COLUMNS: &'static [Declared];

    /// The columns of these rows, with their names.
    fn columns(rows: &[Self]) -> NamedColumns;
}

/// Declares a row, the name of its table, and its columns.
///
/// A column is its meaning (the comment), name, type, unit in brackets (or `[names]`: indices for which readers see
/// names), and the value that stands for null. Columns that are counters of one owner can stand together as
/// `.. field: Group { ... }`, which is a separate type by [`counters!`](crate::counters).
#[macro_export]
macro_rules! table {
    ($(#[$doc:meta])* $row:ident = $name:literal {
        $($(#[doc = $meaning:literal])+ $field:ident: $type:ty $([$unit:tt])? $(= $null:expr)?,)*
        $(
            .. $group:ident: $Group:ident {
                $($(#[doc = $count_meaning:literal])+ $count:ident: $count_type:ty $([$count_unit:tt])?,)*
            }
            $($(#[doc = $more_meaning:literal])+ $more:ident: $more_type:ty $([$more_unit:tt])? $(= $more_null:expr)?,)*
        )?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $row {
            $($(#[doc = $meaning])+ pub $field: $type,)*
            $(
                /// What was counted.
                pub $group: $Group,
                $($(#[doc = $more_meaning])+ pub $more: $more_type,)*
            )?
        }

        $($crate::counters! {
            #[doc = concat!("Counters of a [`", stringify!($row), "`].")]
            $Group { $($(#[doc = $count_meaning])+ $count: $count_type,)* }
        })?

        impl $crate::table::Row for $row {
            const TABLE: &'static str = $name;

            const COLUMNS: &'static [$crate::table::Declared] = &[
                $($crate::declared!($field: $type [$($unit)?] [$($null)?] $($meaning)+),)*
                $(
                    $($crate::declared!($count: $count_type [$($count_unit)?] [] $($count_meaning)+),)*
                    $($crate::declared!($more: $more_type [$($more_unit)?] [$($more_null)?] $($more_meaning)+),)*
                )?
            ];

            fn columns(rows: &[Self]) -> $crate::table::NamedColumns {
                use $crate::table::Column;
                let columns = vec![
                    $((stringify!($field), Column::of(rows.iter().map(|row| row.$field))),)*
                    $(
                        $((stringify!($count), Column::of(rows.iter().map(|row| row.$group.$count))),)*
                        $((stringify!($more), Column::of(rows.iter().map(|row| row.$more))),)*
                    )?
                ];
                (Self::TABLE, columns)
            }
        }
    };
}

/// What is declared of a column: a part of [`table!`](crate::table).
#[doc(hidden)]
#[macro_export]
macro_rules! declared {
    (@unit) => { ("", false) };
    (@unit names) => { ("", true) };
    (@unit $unit:literal) => { ($unit, false) };
    (@null) => { None };
    (@null $null:expr) => { Some($null as f64) };
    ($name:ident: $type:ty [$($unit:tt)?] [$($null:expr)?] $($meaning:literal)+) => {{
        const UNIT: (&str, bool) = $crate::declared!(@unit $($unit)?);
        $crate::table::Declared {
            name: stringify!($name),
            dtype: <$type as $crate::table::Value>::DTYPE,
            unit: UNIT.0,
            is_name: UNIT.1,
            meaning: concat!($($meaning),+),
            null: $crate::declared!(@null $($null)?),
        }
    }};
}

/// Declares counters, which can be added, subtracted and named.
#[macro_export]
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])+ $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])+ pub $field: $type,)* }

        impl $name {
            /// The counters with their names.
            pub fn named(&self) -> impl IntoIterator<Item = (&'static str, u64)> {
                [$((stringify!($field), u64::from(self.$field)),)*]
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;

            fn sub(self, other: Self) -> Self {
                Self { $($field: self.$field - other.$field,)* }
            }
        }
    };
}
