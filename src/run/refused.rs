//! Algorithms that a library refuses after they were checked. Another takes the place of one that is refused when it runs, and that one nobody has checked.

use super::Bench;
use crate::error::Result;
use crate::plan::Cell;

impl Bench<'_> {
    /// What the library has refused so far.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where the engine is not open.
    pub(super) fn refusals(&mut self, cell: &Cell) -> Result<Vec<String>> {
        Ok(self.engines.get(cell.engine)?.refusals())
    }

    /// Where it has refused something else since then: the rows of this cell, and of those with the same layers, no longer say that they are checked.
    ///
    /// # Errors
    /// As [`Bench::refusals`].
    pub(super) fn heed_refusals(&mut self, cell: &Cell, known: &[String]) -> Result<()> {
        let refusals = self.refusals(cell)?;
        let Some(new) = refusals.iter().find(|one| !known.contains(one)) else { return Ok(()) };
        let same = |other: &&Cell| {
            (other.engine, &other.model, other.workload.batch_size)
                == (cell.engine, &cell.model, cell.workload.batch_size)
        };
        if self.facts.withdraw(self.plan.cells.iter().filter(same)) {
            let name = self.facts.name_of(cell);
            let consequence = "what takes its place was not checked, and its rows say `qualified` = false";
            self.observer.warn(&format!("{name}: {new}; {consequence}"));
        }
        Ok(())
    }
}
