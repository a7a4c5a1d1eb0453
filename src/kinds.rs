//! The kinds of study, in one list: the names that a spec gives them and the tables of their runs follow from it.

use crate::settings::named;

/// Where rows of one sort lie in a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shelf {
    /// The file that a sealed run holds them in.
    pub table: &'static str,
    /// How the names of their parts begin.
    pub parts: &'static str,
    /// The column whose value numbers the parts.
    pub number: Number,
}

/// What parts are numbered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// By visit: the part of the process that the visit belongs to counts.
    Visit,
    /// By cell: all processes write the same rows.
    Cell,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal: $is:literal, [$($table:literal $parts:literal $number:ident),+];)+) => {
        named! {
            /// The kinds of studies.
            StudyKind { $($(#[$doc])* $kind = $name),+ }
        }

        impl StudyKind {
            /// Where its rows lie: first those whose presence says that a visit is there, then what else is stored of a visit.
            pub const fn shelves(self) -> &'static [Shelf] {
                match self {
                    $(Self::$kind => &[$(Shelf { table: $table, parts: $parts, number: Number::$number }),+]),+
                }
            }

            /// What a run of this kind is called where another kind is needed.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$kind => $is),+
                }
            }
        }
    };
}

kinds! {
    /// The time of single steps against the batch size; the default.
    Sweep = "sweep": "a sweep", ["steps.parquet" "visit-" Visit, "layers.parquet" "layers-" Cell];
    /// Whole epochs with a loader.
    Training = "training": "a training, whose times are those of epochs",
        ["epochs.parquet" "epochs-" Visit, "batches.parquet" "batches-" Visit];
    /// What feeds a training, stage by stage and together.
    Pipeline = "pipeline": "a study of the input pipeline, which has no step times",
        ["pipeline.parquet" "pipeline-" Visit];
    /// A small network fitted to a surface, from setup to the last epoch.
    Fit = "fit": "a study of fits, whose steps are in fit.parquet",
        ["fit.parquet" "fit-" Visit, "surface.parquet" "surface-" Visit];
}

impl StudyKind {
    /// The shelf of the rows whose presence says that a visit is there.
    pub const fn visits(self) -> &'static Shelf {
        &self.shelves()[0]
    }
}
