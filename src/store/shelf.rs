//! Each kind of row with its table, and with the parts that the table is sealed from.

use std::collections::BTreeSet;
use std::path::Path;

use super::names::files;
use super::parquet;
use super::record::{Field, Record};
use super::schema::{BatchRow, EpochRow, FitRow, LayerRow, PipelineRow, StepRow, SurfaceRow};
use crate::error::Result;
use crate::os::look;

/// Where rows of one kind lie in a run directory.
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

impl Number {
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Visit => "visit",
            Self::Cell => "cell",
        }
    }
}

/// A row that is stored in parts and sealed into a table.
pub trait Stored: Record {
    const SHELF: Shelf;

    /// The value of the column that [`Shelf::number`] names.
    fn number(&self) -> i64;
}

/// The main shelves come first.
macro_rules! shelves {
    ($($row:ident: $table:ident, $parts:literal, $number:ident, $field:ident;)+) => {
        $(impl Stored for $row {
            const SHELF: Shelf = Shelf { table: files::$table, parts: $parts, number: Number::$number };

            fn number(&self) -> i64 {
                self.$field
            }
        })+

        impl Shelf {
            pub(super) const ALL: &'static [Shelf] = &[$($row::SHELF),+];
        }
    };
}

shelves! {
    StepRow: STEPS, "visit-", Visit, visit;
    EpochRow: EPOCHS, "epochs-", Visit, visit;
    PipelineRow: PIPELINE, "pipeline-", Visit, visit;
    FitRow: FIT, "fit-", Visit, visit;
    LayerRow: LAYERS, "layers-", Cell, cell;
    BatchRow: BATCHES, "batches-", Visit, visit;
    SurfaceRow: SURFACE, "surface-", Visit, visit;
}

impl Shelf {
    /// Those whose rows say that a visit is there: one for each kind of study.
    pub(super) fn main() -> &'static [Shelf] {
        &Self::ALL[..4]
    }

    /// Whether this is one of them.
    pub fn is_main(&self) -> bool {
        Self::main().contains(self)
    }

    /// The numbers in the sealed table; empty if there is no table.
    ///
    /// # Errors
    /// [`Kind::Data`] where it is damaged; [`Kind::Io`].
    pub(super) fn sealed_numbers(&self, folder: &Path) -> Result<BTreeSet<i64>> {
        let table = folder.join(self.table);
        let mut numbers = BTreeSet::new();
        if look::is_file(&table)? {
            let column = self.number.column();
            parquet::read(&table, Some(&[column.to_owned()]), |frame| {
                numbers.extend(i64::values(frame, column).map_err(|e| e.at(table.display().to_string()))?);
                Ok(())
            })?;
        }
        Ok(numbers)
    }
}
