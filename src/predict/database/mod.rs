//! A database of measured steps: many runs gathered into one Parquet data set, in folders that polars and DuckDB can
//! read directly.
//!
//! ```text
//! DIR/database.json                                      the version
//! DIR/runs/device=D/runs.parquet                         a row for each run: its spec, its environment
//! DIR/cells/device=D/network=N/cells.parquet             a row for each cell of each run: level, interval, jumps
//! DIR/layers/device=D/network=N/layers.parquet           a row for each layer and direction of each distinct cell
//! DIR/kernels/device=D/kernels.parquet                   GPU kernels that others measured, with source and licence
//! DIR/steps/device=D/steps.parquet                       training steps on GPUs that others measured, likewise
//! ```
//!
//! A run is in the database once its row is in `runs`; the other tables are written before. Collecting it again changes
//! nothing, and collecting a run that has continued since then replaces its rows. Every file is replaced entirely or
//! not at all.
//!
//! The database refuses: a run that has not ended, an A/A run (whose cells do not do what their names say), a training,
//! a run of a newer schema, and others' numbers without source and licence.

mod beside;
mod collect;
mod findings;
mod gather;
mod identity;
mod kernels;
mod lacking;
mod layout;
mod read;
mod steps;
#[cfg(test)]
mod tests;

pub use collect::{Outcome, collect};
pub use identity::{describe, network_id};
pub use read::Database;
