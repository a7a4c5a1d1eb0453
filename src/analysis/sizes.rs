//! Which column is the x, where its name does not decide.

use std::path::Path;

use super::Query;
use super::columns::named;
use crate::error::{Error, Result};
use crate::store::Table;
use crate::table::ambiguous;
use crate::table::names::{batch_size, is_size};

/// What may be the x: one column, or several of which the values decide.
pub(super) enum SizeColumns {
    One(String),
    Several(Vec<String>),
}

impl SizeColumns {
    /// What the query names, else what is called like a batch size, else like another size.
    pub fn choose(present: &[String], query: &Query) -> Result<Self> {
        if let Some(name) = &query.x {
            return named(present, name, "--x").map(Self::One);
        }
        let batch = batch_size(present);
        if let Some(name) = batch {
            return Ok(Self::One(name.clone()));
        }
        let sizes: Vec<String> = present.iter().filter(|name| is_size(name)).cloned().collect();
        match &sizes[..] {
            [] => Err(Error::data(format!(
                "no column looks like the batch size, or another size; the columns are: {}",
                present.join(", ")
            ))
            .hint("name it with `--x COLUMN`")),
            [one] => Ok(Self::One(one.clone())),
            _ => Ok(Self::Several(sizes)),
        }
    }

    /// Chooses, among several columns, the one that varies. If several vary but are equal in every row, like the sides of square matrices,
    /// it is the first of them.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] with the names where several could be meant; as [`Table::scan`].
    pub fn decide(self, path: &Path) -> Result<String> {
        let names = match self {
            Self::One(name) => return Ok(name),
            Self::Several(names) => names,
        };
        let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut seen: Vec<ColumnSummary> = names.iter().map(|_| ColumnSummary::new(names.len())).collect();
        Table::scan(path, &wanted, &mut |batch| {
            let columns: Vec<Vec<f64>> = names.iter().map(|name| batch.numbers(name)).collect::<Result<_>>()?;
            seen.iter_mut().zip(&columns).for_each(|(seen, values)| seen.take(values, &columns));
            Ok(())
        })?;
        let moving: Vec<usize> = (0..names.len()).filter(|&i| seen[i].varies).collect();
        match &moving[..] {
            [] => Ok(names[0].clone()),
            [one, others @ ..] if others.iter().all(|&other| seen[*one].equals[other]) => Ok(names[*one].clone()),
            several => {
                let several: Vec<String> = several.iter().map(|&i| names[i].clone()).collect();
                Err(ambiguous("size", &several, "--x").at(path.display().to_string()))
            }
        }
    }
}

/// The values of one column so far.
struct ColumnSummary {
    first: Option<f64>,
    varies: bool,
    /// For each column, whether it has the same value in every row.
    equals: Vec<bool>,
}

impl ColumnSummary {
    fn new(columns: usize) -> Self {
        Self { first: None, varies: false, equals: vec![true; columns] }
    }

    fn take(&mut self, values: &[f64], columns: &[Vec<f64>]) {
        let Some(&value) = values.first() else { return };
        let first = *self.first.get_or_insert(value);
        self.varies |= values.iter().any(|value| *value != first);
        for (equals, others) in self.equals.iter_mut().zip(columns) {
            *equals &= values == others;
        }
    }
}
