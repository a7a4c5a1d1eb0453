//! The run directory and its tables; the only place that knows polars.
//!
//! While a run is under way each visit is one part file, written whole or not at all. A finished run is sealed: its parts
//! become `steps.parquet`, whose own metadata carries the spec, the environment and the schema version, so that one file
//! mailed to a colleague is complete.

mod axis_values;
mod begun;
mod claim;
mod collected;
mod counter_values;
pub mod dataset;
mod digest;
mod directory;
mod footer;
mod images;
mod lock;
mod merged;
mod names;
mod pages;
mod panic_guard;
mod parquet;
mod peaks;
pub(crate) mod record;
pub mod schema;
mod sheet;
mod shelf;
mod stored;
mod table;
#[cfg(test)]
mod tests;
mod upgrade;
mod written;

pub use axis_values::AxisValues;
pub use begun::{Beginning, Extent};
pub use collected::{CollectedCell, CollectedKernel, CollectedLayer, CollectedRun, CollectedStep, DATABASE_VERSION};
pub use counter_values::CounterValues;
pub use digest::digest;
pub use directory::{Begin, EndOfRun, Opened, RunDirectory, Sealed, sealed};
pub use images::{Content, EncodedImage, ImageTable, Label, TableColumn};
pub use merged::MergedDirectory;
pub use names::files;
pub use panic_guard::is_expected;
pub use parquet::Metadata;
pub use peaks::MeasuredPeaks;
pub use record::{ColumnFacts, Record};
pub use schema::{CellRow, CountedTimes, LayerRow, SCHEMA_VERSION, Status, StepRow, StopReason};
pub(crate) use shelf::on_shelf;
pub use shelf::{Stored, sealed_kind};
pub use stored::{count_visits, holds, rows_of, visits_of};
pub use table::{Table, Texts, Values};
