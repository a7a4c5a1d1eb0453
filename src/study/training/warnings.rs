//! What a user should know about the epochs of a training.

use super::TrainingRow;
use super::results::{CellEpochs, Results};
use crate::report::Warning;
use crate::study::warning::{failed, not_finite, were};
use crate::units::human;

/// Everything that puts the result in doubt.
pub fn warnings(study: &Results) -> Vec<Warning> {
    let all = [
        outlying(study),
        failed::<TrainingRow>(&study.failed),
        skipped(study.skipped as usize, "example", |examples, were| {
            format!("{examples} could not be read and {were} left out")
        }),
        skipped(study.test_skipped as usize, "test example", |examples, _| {
            format!("{examples} could not be read: the accuracy is that of the others")
        }),
        not_finite(study.nan_epochs),
    ];
    all.into_iter().flatten().collect()
}

/// That cells have epochs far from their others; one of them by name.
fn outlying(study: &Results) -> Option<Warning> {
    let odd: Vec<&CellEpochs> = study.cells.iter().filter(|cell| cell.outliers.contains(&true)).collect();
    let first = odd.first()?.name();
    let in_first_block = odd.iter().all(|cell| {
        let flags = cell.rows.iter().zip(&cell.outliers);
        flags.filter(|(_, outlier)| **outlier).all(|(row, _)| row.block == 0)
    });
    let (place, remedy) = if in_first_block {
        let remedy = "raise `warmup_steps` in [measure], or repeat the run once the data are in memory";
        (", only in the first block", remedy)
    } else {
        ("", "repeat the run while nothing else uses the machine, or raise `repetitions`")
    };
    let epochs = if odd.len() == 1 { "an epoch is" } else { "epochs are" };
    let cells = human::counted(odd.len() as u64, "cell");
    let message = format!("in {cells}, {epochs} far from the others of the same cell{place}: {first}");
    Some(Warning::OfStudy { message, remedy: remedy.to_owned() })
}

/// That examples, each counted once, could not be read.
fn skipped(examples: usize, noun: &str, message: fn(String, &str) -> String) -> Option<Warning> {
    let message = message(human::counted(examples as u64, noun), were(examples));
    let remedy = "the first of them is named in the column `error` of epochs.parquet".to_owned();
    (examples > 0).then_some(Warning::OfStudy { message, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Style;
    use crate::study::training::results::tests::row;

    #[test]
    fn an_outlying_epoch_is_a_warning_with_its_remedy() {
        let mut rows: Vec<_> = (0..6).map(|block| row(64, 0, block, 10.0 + 0.01 * block as f64)).collect();
        assert_eq!(warnings(&Results::of(&rows)), []);
        rows[0].epoch_time_s = Some(30.0);
        let warnings = warnings(&Results::of(&rows));
        assert_eq!(warnings.len(), 1);
        let text = warnings[0].text(&Style::PLAIN);
        assert!(text.contains("only in the first block") && text.contains("warmup_steps"), "{text}");
    }

    #[test]
    fn examples_that_were_left_out_are_counted() {
        let said = |skipped| {
            let warnings = warnings(&Results::of(&[TrainingRow { skipped, ..row(64, 0, 0, 10.0) }]));
            assert!(warnings[0].remedy().starts_with("the first of them is named"), "{}", warnings[0].remedy());
            warnings[0].to_string()
        };
        assert_eq!(said(3), "3 examples could not be read and were left out");
        assert_eq!(said(1), "1 example could not be read and was left out");
    }
}
