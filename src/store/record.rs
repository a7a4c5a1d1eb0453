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
    fn columns() -> Vec<ColumnFacts>;

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

/// A Rust type that a field of a row can have: one column, or the columns of a group of values.
pub(super) trait Field: Sized {
    fn facts(column: ColumnFacts) -> Vec<ColumnFacts> {
        vec![column]
    }

    fn columns(name: &str, values: impl Iterator<Item = Self>) -> Vec<Column>;

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
macro_rules! field {
    ($type:ty, $data:expr, $access:ident, $own:expr) => {
        impl Field for Option<$type> {
            fn columns(name: &str, values: impl Iterator<Item = Self>) -> Vec<Column> {
                vec![Column::new(name.into(), values.collect::<Vec<_>>())]
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
        impl Field for $type {
            fn columns(name: &str, values: impl Iterator<Item = Self>) -> Vec<Column> {
                vec![Column::new(name.into(), values.collect::<Vec<_>>())]
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

field!(i64, DataType::Int64, i64, |v| v);
field!(f64, DataType::Float64, f64, |v| v);
field!(bool, DataType::Boolean, bool, |v| v);
field!(String, DataType::String, str, |v: &str| v.to_string());

/// Enums of stable names, as texts.
macro_rules! named_field {
    ($($name:ty),+) => {$(
        impl crate::store::record::Field for $name {
            fn columns(name: &str, values: impl Iterator<Item = Self>) -> Vec<polars::prelude::Column> {
                vec![polars::prelude::Column::new(name.into(), values.map(<$name>::name).collect::<Vec<_>>())]
            }

            fn fill(frame: &polars::prelude::DataFrame, name: &str, mut put: impl FnMut(usize, Self)) -> crate::error::Result<()> {
                let mut unknown = None;
                <String as crate::store::record::Field>::fill(frame, name, |row, text| match <$name>::from_name(&text) {
                    Some(value) => put(row, value),
                    None => unknown = Some(text),
                })?;
                unknown.map_or(Ok(()), |text| Err(crate::store::record::unknown_name(name, &text, <$name>::NAMES)))
            }
        }
    )+};
}
pub(super) use named_field;

pub(super) fn unknown_name(column: &str, text: &str, names: &[&str]) -> Error {
    Error::data(format!("the column `{column}` holds `{text}`, which is none of: {}", names.join(", ")))
}

/// States a table: one line a column.
macro_rules! table {
    ($(#[$doc:meta])* $row:ident { $($name:ident: $type:ty, $unit:literal, $meaning:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $row { $(#[doc = $meaning] pub $name: $type),+ }

        impl $crate::store::record::Record for $row {
            fn columns() -> Vec<$crate::store::record::ColumnFacts> {
                use $crate::store::record::{ColumnFacts, Field};
                [$(<$type as Field>::facts(ColumnFacts { name: stringify!($name), unit: $unit, meaning: $meaning })),+]
                    .concat()
            }

            fn frame(rows: &[Self]) -> polars::prelude::PolarsResult<polars::prelude::DataFrame> {
                use $crate::store::record::Field;
                let columns = [$(
                    <$type as Field>::columns(stringify!($name), rows.iter().map(|row| row.$name.clone()))
                ),+];
                polars::prelude::DataFrame::new(rows.len(), columns.into_iter().flatten().collect())
            }

            fn rows(frame: &polars::prelude::DataFrame) -> $crate::error::Result<Vec<Self>> {
                use $crate::store::record::Field;
                let mut rows = vec![Self::default(); frame.height()];
                $(<$type as Field>::fill(frame, stringify!($name), |i, value| rows[i].$name = value)?;)+
                Ok(rows)
            }
        }
    };
}
pub(super) use table;
