//! Whether the engines of a run compute the same: the loss of the first step after each was prepared, from the same weights and the same data.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Result;
use crate::os::look;
use crate::settings::{AXES, EngineName, Role, Value};
use crate::store::{StepRow, files, sealed};

/// How far the first losses of two engines are apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    pub first: String,
    pub second: String,
    /// How many networks and batch sizes both have computed.
    pub cells: usize,
    /// The largest relative difference, and where it is.
    pub most: f64,
    pub model: String,
    pub batch_size: i64,
}

/// What is computed, apart from how.
type TaskKey = (String, Vec<Option<Value>>, i64);

/// Every two engines that start from the same weights and data, in the run in `path`.
///
/// # Errors
/// [`Kind::Io`](crate::error::Kind::Io) and [`Kind::Data`](crate::error::Kind::Data) where the table is there and cannot be read.
pub fn of_run(path: &Path) -> Result<Vec<Agreement>> {
    if !look::is_file(&path.join(files::STEPS))? {
        return Ok(Vec::new());
    }
    Ok(agreements(&sealed(&path.join(files::STEPS))?))
}

fn agreements(rows: &[StepRow]) -> Vec<Agreement> {
    let mut engines: BTreeMap<&str, BTreeMap<TaskKey, f64>> = BTreeMap::new();
    let shares = |name: &str| {
        EngineName::from_name(name).is_some_and(|engine| !engine.is_own() && engine != EngineName::Synthetic)
    };
    for row in rows.iter().filter(|row| row.step == 0 && shares(&row.engine)) {
        let Some(loss) = row.loss else { continue };
        let of_task = (0..AXES.len()).filter(|&place| AXES[place].role == Role::Task);
        let task = (row.model.clone(), of_task.map(|place| row.axes.get(place)).collect(), row.batch_size);
        engines.entry(&row.engine).or_default().entry(task).or_insert(loss);
    }
    let all: Vec<_> = engines.iter().collect();
    let pairs = all.iter().enumerate().flat_map(|(at, first)| all[at + 1..].iter().map(move |second| (first, second)));
    pairs
        .filter_map(|((first, ones), (second, others))| {
            let apart = |(task, one): (&TaskKey, &f64)| {
                let other = others.get(task)?;
                Some(((one - other).abs() / one.abs().max(f64::MIN_POSITIVE), task.0.clone(), task.2))
            };
            let found: Vec<_> = ones.iter().filter_map(apart).collect();
            let (most, model, batch_size) = found.iter().max_by(|a, b| a.0.total_cmp(&b.0))?.clone();
            let [first, second] = [first, second].map(|name| (**name).to_owned());
            Some(Agreement { first, second, cells: found.len(), most, model, batch_size })
        })
        .collect()
}

impl Agreement {
    /// `The first losses of cudnn and torch, from the same weights and data, differ by at most 0.002 % at 70 batch sizes.`
    pub fn sentence(&self) -> String {
        let Self { first, second, cells, most, model, batch_size } = self;
        let start = format!("The first losses of {first} and {second}, from the same weights and data,");
        if *most < 1e-6 {
            return format!("{start} agree to six digits in all {cells} cells.");
        }
        format!(
            "{start} differ by at most {:.1e} of their value in {cells} cells (most at {model}, {batch_size}).",
            most
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(engine: &str, model: &str, batch_size: i64, step: i64, loss: f64) -> StepRow {
        StepRow {
            engine: engine.to_owned(),
            model: model.to_owned(),
            batch_size,
            step,
            loss: Some(loss),
            ..StepRow::default()
        }
    }

    #[test]
    fn the_first_losses_of_two_engines_are_compared_where_both_have_the_cell() {
        let rows = [
            row("torch", "a", 8, 0, 2.0),
            row("torch", "a", 8, 1, 7.0),
            row("torch", "a", 9, 0, 3.0),
            row("torch", "b", 8, 0, 1.0),
            row("cudnn", "a", 8, 0, 2.002),
            row("cudnn", "a", 9, 0, 3.0),
            row("synthetic", "a", 8, 0, 5.0),
        ];
        let [found] = &agreements(&rows)[..] else { panic!("one pair") };
        assert_eq!((found.first.as_str(), found.second.as_str(), found.cells), ("cudnn", "torch", 2));
        // By hand: 0.002 / 2.002.
        assert!((found.most - 0.000_999).abs() < 1e-6, "{found:?}");
        assert!(
            found.sentence().contains("at most 1.0e-3 of their value in 2 cells (most at a, 8)"),
            "{}",
            found.sentence()
        );
        assert!(agreements(&rows[..4]).is_empty());
    }

    #[test]
    fn equal_losses_are_said_to_agree() {
        let rows = [row("cpu", "a", 8, 0, 2.0), row("torch", "a", 8, 0, 2.000_000_2)];
        assert!(agreements(&rows)[0].sentence().ends_with("agree to six digits in all 1 cells."));
    }
}
