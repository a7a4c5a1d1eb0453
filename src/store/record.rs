//! Tables of records: a macro that states each column once (name, type, unit, meaning) and gives the struct, the
//! documentation and both directions of the conversion from it.

use polars::prelude::{Column, DataFrame, DataType, PolarsResult};

use crate::error::{Error, Result};

/// What a column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnFacts {
    pub name: &'static str,
    /// SI unit, or empty.
    pub unit: &'static str,
    pub meaning: &'static str,
}

/// A row of one of our tables.
pub trait Record: Clone {
    /// Every column, in order.
    const COLUMNS: &'static [ColumnFacts];

    /// Many rows as columns.
    ///
    /// # Errors
    /// What polars refuses; with columns of equal length it refuses nothing.
    fn frame(rows: &[Self]) -> PolarsResult<DataFrame>;

    /// Columns as many rows.
    ///
    /// # Errors
    /// A missing column, unless its values may be null; or one of another type.
    fn rows(frame: &DataFrame) -> Result<Vec<Self>>;
}

/// A Rust type that a column can hold.
pub(super) trait Value: Sized {
    fn column(name: &str, values: impl Iterator<Item = Self>) -> Column;
    fn fill(frame: &DataFrame, name: &str, put: impl FnMut(usize, Self)) -> Result<()>;
}

fn cast(frame: &DataFrame, name: &str, to: &DataType) -> Result<Column> {
    let column = frame.column(name).map_err(|_| Error::data(format!("the column `{name}` is missing")))?;
    if column.dtype() == to {
        return Ok(column.clone());
    }
    column.cast(to).map_err(|e| Error::data(format!("the column `{name}` is not of type {to}: {e}")))
}

fn unexpected_null(name: &str, row: usize) -> Error {
    Error::data(format!("the column `{name}` holds no value in row {row}, where one is needed"))
}

/// Conversions of one type, optional and not, through a typed polars array.
macro_rules! value {
    ($type:ty, $data:expr, $access:ident, $own:expr) => {
        impl Value for Option<$type> {
            fn column(name: &str, values: impl Iterator<Item = Self>) -> Column {
                Column::new(name.into(), values.collect::<Vec<_>>())
            }
            /// A column that came with a later version of the table is null in an earlier one.
            fn fill(frame: &DataFrame, name: &str, mut put: impl FnMut(usize, Self)) -> Result<()> {
                if frame.column(name).is_err() {
                    return Ok(());
                }
                let column = cast(frame, name, &$data)?;
                let values = column.$access().map_err(|e| Error::data(e.to_string()))?;
                for (row, value) in values.iter().enumerate() {
                    put(row, value.map($own));
                }
                Ok(())
            }
        }
        impl Value for $type {
            fn column(name: &str, values: impl Iterator<Item = Self>) -> Column {
                Column::new(name.into(), values.collect::<Vec<_>>())
            }
            fn fill(frame: &DataFrame, name: &str, mut put: impl FnMut(usize, Self)) -> Result<()> {
                let column = cast(frame, name, &$data)?;
                let values = column.$access().map_err(|e| Error::data(e.to_string()))?;
                for (row, value) in values.iter().enumerate() {
                    put(row, value.map($own).ok_or_else(|| unexpected_null(name, row))?);
                }
                Ok(())
            }
        }
    };
}

value!(i64, DataType::Int64, i64, |v| v);
value!(f64, DataType::Float64, f64, |v| v);
value!(bool, DataType::Boolean, bool, |v| v);
value!(String, DataType::String, str, |v: &str| v.to_string());

/// States a table: one line a column.
macro_rules! table {
    ($(#[$doc:meta])* $row:ident { $($name:ident: $type:ty, $unit:literal, $meaning:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $row { $(#[doc = $meaning] pub $name: $type),+ }

        impl $crate::store::record::Record for $row {
            const COLUMNS: &'static [$crate::store::record::ColumnFacts] = &[$($crate::store::record::ColumnFacts {
                name: stringify!($name), unit: $unit, meaning: $meaning,
            }),+];

            fn frame(rows: &[Self]) -> polars::prelude::PolarsResult<polars::prelude::DataFrame> {
                use $crate::store::record::Value;
                polars::prelude::DataFrame::new(rows.len(), vec![$(
                    <$type as Value>::column(stringify!($name), rows.iter().map(|row| row.$name.clone()))
                ),+])
            }

            fn rows(frame: &polars::prelude::DataFrame) -> $crate::error::Result<Vec<Self>> {
                use $crate::store::record::Value;
                let mut rows = vec![Self::default(); frame.height()];
                $(<$type as Value>::fill(frame, stringify!($name), |i, value| rows[i].$name = value)?;)+
                Ok(rows)
            }
        }
    };
}
pub(super) use table;
