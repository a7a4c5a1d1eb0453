//! Studies beside the sweep: whole epochs, what feeds a training, fits of a surface.
//!
//! Each kind is a folder and an implementation of [`Study`]: its spec, its plan, its visit, its rows, its analysis, its report and its
//! figures. Whoever runs a study, stores it, draws it or makes a page of it knows only the trait and [`Told`]. `spec.rs` lists the kinds.

mod course;
pub mod fit;
pub mod pipeline;
mod plan;
mod series;
mod spec;
#[cfg(test)]
mod tests;
mod told;
pub mod training;
mod warning;

use std::fmt::Debug;
use std::path::Path;

pub use course::{Bench, Course, Observer, Outcome, Progress, Visit, VisitTo, carry_out, without_unfit};
pub use plan::{Cell, Plan};
pub use spec::{Runner, Spec};
pub use told::{Told, told};

use crate::engine::open::Engines;
use crate::error::{Error, Kind, Result};
use crate::kinds::StudyKind;
use crate::run::RowContext;
use crate::spec::Subject;
use crate::store::{RunDirectory, Status, Stored};
use series::Origin;

/// One kind of study.
pub trait Study: Clone {
    const KIND: StudyKind;
    /// The errors that are about one cell: it fails, and the study goes on with the others.
    const OF_A_CELL: &'static [Kind];
    /// What varies between cells beside the step.
    type Beside: Clone + Debug + PartialEq;
    /// A visit is there once these rows of it are stored.
    type Row: Visited;
    /// What else is stored of a visit; the same rows where there is nothing else.
    type Detail: Stored;
    /// What the plan needs, opened before anything else.
    type Data;
    /// What visits need, made once the run directory is open.
    type Supplies;
    /// A cell that is prepared.
    type Ready;

    fn subject(&self) -> &Subject;

    fn subject_mut(&mut self) -> &mut Subject;

    fn course(&self) -> Course;

    /// The seed and the time limit, which the command line may replace.
    fn limits(&mut self) -> (&mut u64, &mut f64);

    /// Adds the sections that only its spec has.
    fn write_own(&self, out: &mut String);

    /// The full resolved spec; parsing it again gives an equal study.
    fn to_toml(&self) -> String {
        let mut out = self.subject().write(Self::KIND);
        self.write_own(&mut out);
        out
    }

    /// How much is measured, in a sentence.
    fn size(&self) -> String;

    /// # Errors
    /// What cannot be read.
    fn data(&self) -> Result<Self::Data>;

    /// Names the data, so that `--resume` goes on only with the same.
    fn fingerprint(_: &Self::Data) -> Option<String> {
        None
    }

    /// Notices about the data.
    fn notices(_: &Self::Data) -> &[String] {
        &[]
    }

    /// The cells; refuses what cannot run before anything does.
    ///
    /// # Errors
    /// [`Kind::Spec`].
    fn plan(&self, data: &Self::Data, engines: &mut Engines) -> Result<Plan<Self::Beside>>;

    /// Makes them; `say` tells the user what takes a while.
    ///
    /// # Errors
    /// [`Kind::Io`].
    fn supplies(&self, directory: &RunDirectory, say: &dyn Fn(&str)) -> Result<Self::Supplies>;

    /// For messages.
    fn name_of(facts: &RowContext, cell: &Cell<Self::Beside>) -> String;

    /// Makes a cell ready for its first step.
    ///
    /// # Errors
    /// As [`Self::visit`].
    fn prepare(bench: &mut Bench<Self>, cell: &Cell<Self::Beside>) -> Result<Self::Ready>;

    /// One visit to a cell; what was measured before an error is kept in `visit`. False where it was interrupted and counts for nothing.
    ///
    /// # Errors
    /// What goes wrong; one of [`Self::OF_A_CELL`] ends only the cell.
    fn visit(bench: &mut Bench<Self>, at: &VisitTo<Self>, ready: Self::Ready, visit: &mut Visit<Self>) -> Result<bool>;

    /// The row of a cell that failed.
    fn failed(bench: &Bench<Self>, at: &VisitTo<Self>, error: &Error) -> Self::Row;

    /// Whether a failed cell ends the study.
    fn stops_at_an_error(&self) -> bool {
        false
    }

    /// What a visit found that the user should know at once.
    fn remarks(_: &[Self::Row]) -> Option<String> {
        None
    }

    /// The figure of a visit, for the progress.
    fn figure(rows: &[Self::Row]) -> Option<String>;

    /// What the stored rows say.
    ///
    /// # Errors
    /// As [`crate::store::rows_of`].
    fn told(path: &Path) -> Result<Told>;
}

/// A row that belongs to a visit.
pub trait Visited: Stored {
    /// Its cell, its block and its visit.
    fn place(&self) -> [i64; 3];

    fn status(&self) -> Status;

    fn origin(&self) -> Origin<'_>;
}

/// Implements [`Visited`] for rows with those columns; a kind without blocks has one.
macro_rules! visited {
    ($row:ident, $($block:ident)?) => {
        impl crate::study::Visited for $row {
            fn place(&self) -> [i64; 3] {
                [self.cell, 0 $(+ self.$block)?, self.visit]
            }

            fn status(&self) -> crate::store::Status {
                self.status
            }

            fn origin(&self) -> crate::study::series::Origin<'_> {
                let Self { engine, device, model, axes, .. } = self;
                crate::study::series::Origin { engine, device, model, axes: *axes }
            }
        }
    };
}
use visited;
