//! The shelves of a run directory, and the rows that lie on them.

use std::collections::BTreeSet;
use std::path::Path;

use super::parquet;
use super::record::{Field, Record};
use super::schema::{LayerRow, StepRow};
use crate::error::Result;
use crate::kinds::{Number, Shelf, StudyKind};
use crate::os::look;

/// A row that is stored in parts and sealed into a table.
pub trait Stored: Record {
    const SHELF: Shelf;

    /// The value of the column that [`Shelf::number`] names.
    fn number(&self) -> i64;
}

/// Puts rows on that shelf of their kind of study.
macro_rules! on_shelf {
    ($($row:ident: $kind:ident, $place:literal, $number:ident;)+) => {
        $(impl $crate::store::Stored for $row {
            const SHELF: $crate::kinds::Shelf = $crate::kinds::StudyKind::$kind.shelves()[$place];

            fn number(&self) -> i64 {
                self.$number
            }
        })+
    };
}
pub(crate) use on_shelf;

on_shelf! {
    StepRow: Sweep, 0, visit;
    LayerRow: Sweep, 1, cell;
}

impl Shelf {
    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        StudyKind::ALL.iter().flat_map(|kind| kind.shelves())
    }

    /// Those whose rows say that a visit is there: one for each kind of study.
    pub(super) fn main() -> impl Iterator<Item = &'static Self> {
        StudyKind::ALL.iter().map(|kind| kind.visits())
    }

    /// Whether this is one of them.
    pub(super) fn is_main(&self) -> bool {
        Self::main().any(|main| main == self)
    }

    /// The numbers in the sealed table; empty if there is no table.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where it is damaged; [`crate::error::Kind::Io`].
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

impl Number {
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Visit => "visit",
            Self::Cell => "cell",
        }
    }
}

/// The kind of study whose sealed rows lie in a folder.
///
/// # Errors
/// [`crate::error::Kind::Io`].
pub fn sealed_kind(folder: &Path) -> Result<Option<StudyKind>> {
    for &kind in StudyKind::ALL {
        if look::is_file(&folder.join(kind.visits().table))? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}
