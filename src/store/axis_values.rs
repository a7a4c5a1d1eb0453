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
}

impl AxisValues {
    /// The value of the axis at that place of [`AXES`].
    pub fn get(&self, place: usize) -> Option<Value> {
        self.0.get(place).copied().flatten()
    }
}

impl Field for AxisValues {
    fn facts(_group: ColumnFacts) -> Vec<ColumnFacts> {
        AXES.iter().map(|axis| ColumnFacts { name: axis.column, unit: axis.unit, meaning: axis.meaning }).collect()
    }

    fn columns(_group: &str, values: impl Iterator<Item = Self>) -> Vec<Column> {
        let rows: Vec<Self> = values.collect();
        let column = |(place, axis): (usize, &Axis)| {
            let values = rows.iter().map(|row| row.0[place]);
            match axis.domain {
                Domain::Names(_) => Column::new(axis.column.into(), values.map(as_name).collect::<Vec<_>>()),
                Domain::Text => Column::new(axis.column.into(), values.map(as_text).collect::<Vec<_>>()),
                Domain::Count { .. } | Domain::Bytes => {
                    Column::new(axis.column.into(), values.map(as_integer).collect::<Vec<_>>())
                }
            }
        };
        AXES.iter().enumerate().map(column).collect()
    }

    fn fill(frame: &DataFrame, _group: &str, mut put: impl FnMut(usize, Self)) -> Result<()> {
        let mut rows = vec![Self::default(); frame.height()];
        for (place, axis) in AXES.iter().enumerate() {
            match axis.domain {
                Domain::Names(names) => {
                    let mut unknown = None;
                    Option::<String>::fill(frame, axis.column, |row, text| {
                        let Some(text) = text else { return };
                        let known = names.iter().find(|name| **name == text);
                        rows[row].0[place] = known.map(|name| Value::Name(name));
                        unknown = unknown.take().or(known.is_none().then_some(text));
                    })?;
                    if let Some(text) = unknown {
                        return Err(unknown_name(axis.column, &text, names));
                    }
                }
                Domain::Text => Option::<String>::fill(frame, axis.column, |row, text| {
                    rows[row].0[place] = text.map(|text| Value::Text(Text::new(&text)));
                })?,
                Domain::Count { .. } => {
                    let value = |number: i64| usize::try_from(number).ok().map(Value::Count);
                    Option::<i64>::fill(frame, axis.column, |row, number| rows[row].0[place] = number.and_then(value))?;
                }
                Domain::Bytes => {
                    let value = |number: i64| u64::try_from(number).ok().map(Value::Bytes);
                    Option::<i64>::fill(frame, axis.column, |row, number| rows[row].0[place] = number.and_then(value))?;
                }
            }
        }
        rows.into_iter().enumerate().for_each(|(row, values)| put(row, values));
        Ok(())
    }
}

fn as_name(value: Option<Value>) -> Option<&'static str> {
    if let Some(Value::Name(name)) = value { Some(name) } else { None }
}

fn as_text(value: Option<Value>) -> Option<&'static str> {
    if let Some(Value::Text(text)) = value { Some(text.as_str()) } else { None }
}

fn as_integer(value: Option<Value>) -> Option<i64> {
    match value {
        Some(Value::Count(count)) => i64::try_from(count).ok(),
        Some(Value::Bytes(bytes)) => i64::try_from(bytes).ok(),
        _ => None,
    }
}
