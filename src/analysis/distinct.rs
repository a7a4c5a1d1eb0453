//! The distinct texts of a column over all batches of a table.

use std::collections::HashMap;

use super::is_null;
use crate::error::{Error, Result};
use crate::settings::AXES;
use crate::store::Texts;

/// They are numbered in the order of their first appearance.
#[derive(Default)]
pub(super) struct DistinctTexts {
    pub texts: Vec<String>,
    places: HashMap<String, u32>,
    /// The bytes of all texts together.
    bytes: usize,
}

/// Names of groups are for people: more bytes of different ones are some other kind of text.
const MOST_NAMES: usize = 1 << 24;

impl DistinctTexts {
    /// Whether there is more than one value. A null in the column of an axis is no value: the engine does not have that axis.
    pub fn varies(&self, column: &str) -> bool {
        let is_axis = AXES.iter().any(|axis| axis.column == column);
        self.texts.iter().filter(|text| !is_axis || !is_null(text)).count() > 1
    }

    /// For each row of a batch of the column `name`, the place of its text among all texts so far.
    pub fn codes(&mut self, name: &str, batch: &Texts) -> Result<Vec<u32>> {
        let mut place = |text: &String| {
            *self.places.entry(text.clone()).or_insert_with(|| {
                self.texts.push(text.clone());
                self.bytes += text.len();
                self.texts.len() as u32 - 1
            })
        };
        let places: Vec<u32> = batch.distinct.iter().map(&mut place).collect();
        if self.bytes > MOST_NAMES {
            let what = format!("the column `{name}` holds more than {MOST_NAMES} bytes of different names");
            return Err(
                Error::data(what).hint("leave the column out of the table, or choose the groups with `--group`")
            );
        }
        Ok(batch.codes.iter().map(|&code| places[code as usize]).collect())
    }
}
