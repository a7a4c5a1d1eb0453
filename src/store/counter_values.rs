//! The columns of the processor's and the kernel's counters.

use polars::prelude::{Column, DataFrame};

use super::record::{ColumnFacts, Field};
use crate::error::Result;

/// A counter's column: its name, its unit, its meaning.
type Facts = (&'static str, &'static str, &'static str);

const COUNTERS: [Facts; 9] = [
    ("cycles", "", "Cycles of the process and its threads in user space; null if the machine has no such counter."),
    ("instructions", "", "Instructions, likewise."),
    ("cache_references", "", "References to the last cache, likewise."),
    ("cache_misses", "", "References to the last cache that missed, likewise."),
    ("branch_misses", "", "Branches that were predicted wrongly, likewise."),
    ("page_faults", "", "Page faults of the process and its threads."),
    ("context_switches", "", "Context switches, likewise."),
    ("migrations", "", "Moves of a thread to another core; null if the kernel does not count them."),
    ("task_clock_s", "s", "Processor time of all threads together."),
];

/// What was counted, in the order of the columns; `None` where it was not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterValues(pub [Option<f64>; COUNTERS.len()]);

impl CounterValues {
    /// The names of the columns, in order.
    pub fn names() -> [&'static str; COUNTERS.len()] {
        COUNTERS.map(|(name, ..)| name)
    }

    /// With the page faults that were counted elsewhere, where none were.
    pub fn or_page_faults(mut self, page_faults: f64) -> Self {
        let column = COUNTERS.iter().zip(&mut self.0).find(|((name, ..), _)| *name == "page_faults");
        if let Some((_, value)) = column {
            value.get_or_insert(page_faults);
        }
        self
    }

    /// The value of the counter of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        COUNTERS.iter().zip(self.0).find(|((own, ..), _)| *own == name).and_then(|(_, value)| value)
    }
}

impl Field for CounterValues {
    fn facts(_group: ColumnFacts) -> Vec<ColumnFacts> {
        COUNTERS.iter().map(|&(name, unit, meaning)| ColumnFacts { name, unit, meaning }).collect()
    }

    fn columns(_group: &str, rows: Vec<Self>) -> Vec<Column> {
        let column = |(place, (name, ..)): (usize, &Facts)| {
            Column::new((*name).into(), rows.iter().map(|row| row.0[place]).collect::<Vec<Option<f64>>>())
        };
        COUNTERS.iter().enumerate().map(column).collect()
    }

    fn values(frame: &DataFrame, _group: &str) -> Result<Vec<Self>> {
        let mut rows = vec![Self::default(); frame.height()];
        for (place, (name, ..)) in COUNTERS.iter().enumerate() {
            let values = Option::<f64>::values(frame, name)?;
            rows.iter_mut().zip(values).for_each(|(row, value)| row.0[place] = value);
        }
        Ok(rows)
    }
}
