//! What the files of a run, and the metadata in them, are called.

/// The names of the files in a run directory.
pub mod files {
    pub const SPEC: &str = "spec.toml";
    pub const ENVIRONMENT: &str = "environment.json";
    pub const STEPS: &str = "steps.parquet";
    pub const LAYERS: &str = "layers.parquet";
    pub const CELLS: &str = "cells.parquet";
    pub const EPOCHS: &str = "epochs.parquet";
    pub const BATCHES: &str = "batches.parquet";
    pub const PIPELINE: &str = "pipeline.parquet";
    pub const FIT: &str = "fit.parquet";
    pub const SURFACE: &str = "surface.parquet";
    pub const FITS: &str = "fit.json";
    pub const FEEDING: &str = "pipeline.json";
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
