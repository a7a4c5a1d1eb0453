//! `batchstep compare`: two runs, cell by cell; or the engines of one run.

use batchstep::analysis::compare::{self, Decision, Rules};
use batchstep::analysis::side_by_side::side_by_side;
use batchstep::analysis::{self, Query, Series};
use batchstep::error::{Error, Result};
use batchstep::report::{self, Style, human};
use batchstep::units::Share;

use super::{Exit, print};
use crate::cli::CompareArgs;

pub fn compare(args: &CompareArgs) -> Result<Exit> {
    let margin = Share::parse(&args.margin).filter(|Share(margin)| *margin > 0.0 && *margin < 1.0);
    let Some(Share(margin)) = margin else {
        return Err(Error::spec(format!("`{}` is no margin", args.margin)).at("--margin").hint("for example 1%"));
    };
    let (query, rules) = (Query::default(), Rules { margin, ..Rules::default() });
    let first = analysis::series(&args.first, &query)?;
    let Some(second) = &args.second else { return engines(args, &first, &rules) };
    let second = analysis::series(second, &query)?;
    let found = compare::runs(&first, &second, &rules)?;
    print(&report::comparison(&found, unit(&first), &Style::of_terminal()));
    if found.unmatched > 0 {
        eprintln!("batchstep: {} only in one of the runs", human::counted(found.unmatched as u64, "cell"));
    }
    Ok(if args.fail_on.is_some() && found.count(Decision::Slower) > 0 { Exit::Warned } else { Exit::Done })
}

/// The engines of one run.
fn engines(args: &CompareArgs, series: &[Series], rules: &Rules) -> Result<Exit> {
    let pairs = side_by_side(series, rules);
    if pairs.is_empty() {
        return Err(Error::data("this run has one engine, and no other run is named")
            .at(args.first.display().to_string())
            .hint("give two runs, or a run of a spec with several engines in `[engine] name`"));
    }
    print(&report::side_by_side(&pairs).render(&Style::of_terminal()));
    let mut cells = pairs.iter().flat_map(|pair| &pair.tasks).flat_map(|task| &task.cells);
    let beaten = cells.any(|cell| cell.decision == Decision::Faster);
    Ok(if args.fail_on.is_some() && beaten { Exit::Warned } else { Exit::Done })
}

fn unit(series: &[Series]) -> &str {
    series.first().map_or("", |series| series.unit.as_str())
}
