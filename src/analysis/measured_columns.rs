//! The measurements in a batch of rows.

use std::collections::BTreeMap;

use super::Measurement;
use super::columns::{Columns, DELAY, FLAGS, NUMBERS, WAITS_IN};
use crate::detect::Observation;
use crate::error::Result;
use crate::store::{Status, Table};

/// The columns of a batch that make its measurements.
pub(super) struct MeasuredColumns {
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    numbers: BTreeMap<&'static str, Vec<f64>>,
    flags: BTreeMap<&'static str, Vec<bool>>,
    /// Whether waits are a part of the values.
    waits: bool,
}

impl MeasuredColumns {
    pub fn read(batch: &Table, columns: &Columns) -> Result<Self> {
        let mut numbers = BTreeMap::new();
        for &name in NUMBERS {
            if batch.has(name) {
                numbers.insert(name, batch.numbers(name)?);
            } else if let Some((theirs, factor)) = columns.theirs(name) {
                numbers.insert(name, batch.numbers(theirs)?.into_iter().map(|value| factor * value).collect());
            }
        }
        let mut flags = BTreeMap::new();
        for &name in FLAGS {
            let holds =
                |text: &str| if name == "status" { text == Status::Ok.name() } else { ["1", "true"].contains(&text) };
            if batch.has(name) {
                let texts = batch.distinct(name)?;
                let said: Vec<bool> = texts.distinct.iter().map(|text| holds(&text.to_lowercase())).collect();
                flags.insert(name, texts.codes.iter().map(|&code| said[code as usize]).collect());
            }
        }
        let (x, y, waits) = (batch.numbers(&columns.x)?, batch.numbers(&columns.y)?, columns.y == WAITS_IN);
        Ok(Self { x, y, numbers, flags, waits })
    }

    pub fn number(&self, name: &str, row: usize) -> Option<f64> {
        self.numbers.get(name).map(|values| values[row]).filter(|value| value.is_finite())
    }

    fn flag(&self, name: &str, row: usize) -> Option<bool> {
        self.flags.get(name).map(|values| values[row])
    }

    pub fn cell(&self, row: usize) -> Option<i64> {
        self.number("cell", row).map(|cell| cell as i64)
    }

    pub fn block(&self, row: usize) -> Option<u32> {
        self.number("block", row).map(|block| block as u32)
    }

    /// What the row measured: its cell, or its x.
    pub fn place(&self, row: usize) -> u64 {
        self.cell(row).map_or(self.x[row].to_bits(), |cell| cell as u64)
    }

    pub fn is_ok(&self, row: usize) -> bool {
        self.flag("status", row) != Some(false)
    }

    /// The mean clock of the cores during the step, where the processor's cycles were counted: the best reading there is.
    fn counted_clock(&self, row: usize) -> Option<f64> {
        let (cycles, seconds) = (self.number("cycles", row)?, self.number("task_clock_s", row)?);
        (cycles > 0.0 && seconds > 0.0).then(|| cycles / seconds)
    }

    /// `None` where the row holds no usable step.
    pub fn measurement(&self, row: usize) -> Option<Measurement> {
        let (x, y) = (self.x[row], self.y[row]);
        if !self.is_ok(row) || !x.is_finite() || !y.is_finite() {
            return None;
        }
        let (clock, block, order) = (self.number("sm_clock_hz", row), self.block(row), self.number("order", row));
        let observation = Observation { order, block, clock_hz: clock, ..Observation::new(x, y) };
        Some(Measurement {
            observation,
            warmup: self.flag("warmup", row) == Some(true),
            outlier: self.flag("outlier", row) == Some(true),
            disturbed: self.flag("disturbed", row) == Some(true),
            delay: self.number(DELAY, row).filter(|_| self.waits),
            clock_hz: clock.or(self.counted_clock(row)).or(self.number("cpu_clock_hz", row)),
            temperature_c: self.number("temperature_c", row),
        })
    }
}
