//! What the files of a run, and the metadata in them, are called.

/// The names of the files in a run directory; those of other kinds of study than the sweep are in their folders.
pub mod files {
    use crate::kinds::StudyKind;

    pub const SPEC: &str = "spec.toml";
    pub const ENVIRONMENT: &str = "environment.json";
    pub const STEPS: &str = StudyKind::Sweep.shelves()[0].table;
    pub const LAYERS: &str = StudyKind::Sweep.shelves()[1].table;
    pub const CELLS: &str = "cells.parquet";
    pub const JUMPS: &str = "jumps.json";
    pub const CROSSOVER: &str = "crossover.json";
    pub const CONTROL: &str = "aa.json";
    /// What a profiler saw beside the jumps of a step of one's own.
    pub const KERNELS: &str = "kernels.json";
    pub const MERGE: &str = "merge.json";
    pub const PARTS: &str = "parts";
    /// Where damaged parts are kept.
    pub const DAMAGED: &str = "damaged";
    pub const LOCK: &str = ".lock";
}

/// Keys of the metadata in our Parquet files.
pub(super) mod keys {
    pub const VERSION: &str = "batchstep.schema_version";
    pub const SPEC: &str = "batchstep.spec";
    pub const ENVIRONMENT: &str = "batchstep.environment";
    pub const COMPLETE: &str = "batchstep.complete";
    pub const DATABASE: &str = "batchstep.database_version";
    pub const COLUMNS: &str = "batchstep.columns";
}
