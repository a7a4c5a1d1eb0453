//! The columns of the axes, one for each entry of the table of axes.

use polars::prelude::{Column, DataFrame};

use super::record::{ColumnFacts, Field, unknown_name};
use crate::error::Result;
use crate::settings::{AXES, Axis, Domain, EngineName, Settings, Text, Value};

/// The values of every axis, in the order of [`AXES`]; `None` where the engine does not have the axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisValues([Option<Value>; AXES.len()]);

impl AxisValues {
    /// The values in `settings` of the axes that `engine` has.
    pub fn new(engine: EngineName, settings: &Settings) -> Self {
        let value =
            |axis: &Axis| axis.is_of(engine).then(|| (axis.get)(settings)).filter(|value| *value != Value::Unset);
        Self(std::array::from_fn(|place| value(&AXES[place])))
    }

    /// The value of the axis at that place of [`AXES`].
    pub fn get(&self, place: usize) -> Option<Value> {
        self.0.get(place).copied().flatten()
    }

    /// The value of the axis with that key in a spec.
    pub fn of_key(&self, key: &str) -> Option<Value> {
        AXES.iter().position(|axis| axis.key == key).and_then(|place| self.0[place])
    }
}

impl Field for AxisValues {
    fn facts(_group: ColumnFacts) -> Vec<ColumnFacts> {
        AXES.iter().map(|axis| ColumnFacts { name: axis.column, unit: axis.unit, meaning: axis.meaning }).collect()
    }

    fn columns(_group: &str, rows: Vec<Self>) -> Vec<Column> {
        let column = |(place, axis): (usize, &Axis)| {
            let values = rows.iter().map(|row| row.0[place]);
            match axis.domain {
                Domain::Names(_) | Domain::Text => {
                    Column::new(axis.column.into(), values.map(as_text).collect::<Vec<_>>())
                }
                Domain::Count { .. } | Domain::Bytes => {
                    Column::new(axis.column.into(), values.map(as_integer).collect::<Vec<_>>())
                }
            }
        };
        AXES.iter().enumerate().map(column).collect()
    }

    fn values(frame: &DataFrame, _group: &str) -> Result<Vec<Self>> {
        let mut rows = vec![Self::default(); frame.height()];
        for (place, axis) in AXES.iter().enumerate() {
            rows.iter_mut().zip(values(frame, axis)?).for_each(|(row, value)| row.0[place] = value);
        }
        Ok(rows)
    }
}

fn values(frame: &DataFrame, axis: &Axis) -> Result<Vec<Option<Value>>> {
    let texts = || Option::<String>::values(frame, axis.column);
    let integers = |of: &dyn Fn(i64) -> Option<Value>| {
        let numbers = Option::<i64>::values(frame, axis.column)?.into_iter();
        Ok(numbers.map(|number| number.and_then(of)).collect())
    };
    match axis.domain {
        Domain::Names(names) => {
            let of = |text: String| {
                let known = names.iter().find(|name| **name == text).map(|name| Value::Name(name));
                known.ok_or_else(|| unknown_name(axis.column, &text, names))
            };
            texts()?.into_iter().map(|text| text.map(of).transpose()).collect()
        }
        Domain::Text => Ok(texts()?.into_iter().map(|text| text.map(|text| Value::Text(Text::new(&text)))).collect()),
        Domain::Count { .. } => integers(&|number| usize::try_from(number).ok().map(Value::Count)),
        Domain::Bytes => integers(&|number| u64::try_from(number).ok().map(Value::Bytes)),
    }
}

fn as_text(value: Option<Value>) -> Option<&'static str> {
    match value {
        Some(Value::Name(name)) => Some(name),
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    }
}

fn as_integer(value: Option<Value>) -> Option<i64> {
    match value {
        Some(Value::Count(count)) => i64::try_from(count).ok(),
        Some(Value::Bytes(bytes)) => i64::try_from(bytes).ok(),
        _ => None,
    }
}
