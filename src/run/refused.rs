//! Algorithms that a library refuses after they were checked. The algorithm that replaces a refused one has not been checked.

use super::RowContext;
use crate::engine::open::Engines;
use crate::error::Result;
use crate::spec::plan::Cell;

impl RowContext {
    /// Called whenever the engine of `cell` has prepared something. If a library has refused an algorithm since the last call, the rows of this cell,
    /// and of those `cells` that have the same layers, no longer count as checked. Returns a message about that for the user.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where the engine is not open.
    pub fn mark_unqualified<'a>(
        &mut self,
        engines: &mut Engines,
        cell: &Cell,
        cells: impl IntoIterator<Item = &'a Cell>,
    ) -> Result<Option<String>> {
        let refusals = engines.get(cell.engine)?.refusals().into_iter();
        let new: Vec<String> = refusals.filter(|one| self.refused.insert(one.clone())).collect();
        let Some(first) = new.first() else { return Ok(None) };
        let same = |other: &&Cell| {
            (other.engine, &other.model, other.workload.batch_size)
                == (cell.engine, &cell.model, cell.workload.batch_size)
        };
        let had_passed = self.withdraw(cells.into_iter().filter(same));
        let name = self.name_of(cell);
        Ok(had_passed.then(|| {
            format!("{name}: {first}; what takes its place was not checked, and its rows say `qualified` = false")
        }))
    }
}
