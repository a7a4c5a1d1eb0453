//! The layers of all runs. For each cell they come from the first run that has them.

use std::collections::BTreeMap;

use super::source::{Numbers, SourceRun};
use crate::error::Result;
use crate::store::{self, LayerRow};

/// For each cell, the run that its rows come from, and the rows.
#[derive(Default)]
pub(super) struct Layers(BTreeMap<i64, Kept>);

struct Kept {
    from: usize,
    rows: Vec<LayerRow>,
}

impl Layers {
    pub fn take(&mut self, source: &SourceRun, numbers: &Numbers, notices: &mut Vec<String>) -> Result<()> {
        store::visits_of(&source.path, notices, &mut |rows: Vec<LayerRow>| {
            for row in rows {
                let cell = numbers.cell(row.cell)?;
                let kept = self.0.entry(cell).or_insert(Kept { from: source.place, rows: Vec::new() });
                if kept.from == source.place {
                    kept.rows.push(LayerRow { cell, ..row });
                }
            }
            Ok(())
        })
    }

    pub fn into_rows(self) -> impl Iterator<Item = LayerRow> {
        self.0.into_values().flat_map(|kept| kept.rows)
    }
}
