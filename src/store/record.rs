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
pub(crate) trait Field: Sized {
    fn facts(column: ColumnFacts) -> Vec<ColumnFacts> {
        vec![column]
    }

    fn columns(name: &str, values: Vec<Self>) -> Vec<Column>;

    /// One value for each row; none if the column is missing and may be.
    fn values(frame: &DataFrame, name: &str) -> Result<Vec<Self>>;
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
            fn columns(name: &str, values: Vec<Self>) -> Vec<Column> {
                vec![Column::new(name.into(), values)]
            }
            /// A column that came with a later version of the table is missing in an earlier one.
            fn values(frame: &DataFrame, name: &str) -> Result<Vec<Self>> {
                if frame.column(name).is_err() {
                    return Ok(Vec::new());
                }
                let column = cast(frame, name, &$data)?;
                let values = column.$access().map_err(|e| Error::data(e.to_string()))?;
                Ok(values.iter().map(|value| value.map($own)).collect())
            }
        }
        impl Field for $type {
            fn columns(name: &str, values: Vec<Self>) -> Vec<Column> {
                vec![Column::new(name.into(), values)]
            }
            fn values(frame: &DataFrame, name: &str) -> Result<Vec<Self>> {
                let column = cast(frame, name, &$data)?;
                let values = column.$access().map_err(|e| Error::data(e.to_string()))?;
                let value =
                    |(row, value): (usize, Option<_>)| value.map($own).ok_or_else(|| unexpected_null(name, row));
                values.iter().enumerate().map(value).collect()
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
            fn columns(name: &str, values: Vec<Self>) -> Vec<polars::prelude::Column> {
                let names: Vec<&str> = values.into_iter().map(<$name>::name).collect();
                vec![polars::prelude::Column::new(name.into(), names)]
            }

            fn values(frame: &polars::prelude::DataFrame, name: &str) -> crate::error::Result<Vec<Self>> {
                let texts = <String as crate::store::record::Field>::values(frame, name)?;
                let unknown = |text: &str| crate::store::record::unknown_name(name, text, <$name>::NAMES);
                texts.iter().map(|text| <$name>::from_name(text).ok_or_else(|| unknown(text))).collect()
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
                    <$type as Field>::columns(stringify!($name), rows.iter().map(|row| row.$name.clone()).collect())
                ),+];
                polars::prelude::DataFrame::new(rows.len(), columns.into_iter().flatten().collect())
            }

            fn rows(frame: &polars::prelude::DataFrame) -> $crate::error::Result<Vec<Self>> {
                use $crate::store::record::Field;
                let mut rows = vec![Self::default(); frame.height()];
                $(for (row, value) in rows.iter_mut().zip(<$type as Field>::values(frame, stringify!($name))?) {
                    row.$name = value;
                })+
                Ok(rows)
            }
        }
    };
}
pub(crate) use table;
