//! `batchstep compare`: two runs, cell by cell; or the engines of one run.

use batchstep::analysis::compare::{self, Cell, Overall, Rules, Verdict};
use batchstep::analysis::side_by_side::side_by_side;
use batchstep::analysis::{self, Query, Series};
use batchstep::error::{Error, Result};
use batchstep::report::{self, Align, Style, Table, human};
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
    let scales = (unit(&first), unit(&second));
    if scales.0 != scales.1 {
        return Err(Error::data(format!("the times are in `{}` and in `{}`", scales.0, scales.1))
            .hint("compare runs whose time columns have the same unit"));
    }
    let found = compare::compare(&first, &second, &rules);
    if found.cells.is_empty() {
        return Err(Error::data("the runs have no cell in common")
            .hint("a cell is a model with its settings, and a batch size"));
    }
    let style = Style::of_terminal();
    print(&table(&found.cells, scales.0).render(&style));
    let count = |verdict: Verdict| found.cells.iter().filter(|cell| cell.verdict == verdict).count();
    let all = [Verdict::Same, Verdict::Faster, Verdict::Slower, Verdict::Ambiguous];
    let counts: Vec<String> = all.iter().map(|&verdict| format!("{} {}", count(verdict), verdict.name())).collect();
    print(&format!("\n{}; of equal runs, at most 5 % have a cell named FASTER or SLOWER\n", counts.join(", ")));
    for one in &found.overall {
        print(&whole(one));
    }
    if found.unmatched > 0 {
        eprintln!("batchstep: {} only in one of the runs", human::counted(found.unmatched as u64, "cell"));
    }
    Ok(if args.fail_on.is_some() && count(Verdict::Slower) > 0 { Exit::Warned } else { Exit::Done })
}

/// A series as a whole, in a line.
fn whole(one: &Overall) -> String {
    let name = if one.group.is_empty() { "all cells" } else { &one.group };
    let (cells, p) = (human::counted(one.cells as u64, "cell"), human::p_equals(one.p_value));
    let verdict = one.verdict.name();
    format!(
        "{name} as a whole, {cells}: {:.3} times the first, 95 % interval {:.3} to {:.3} ({p}): {verdict}\n",
        one.ratio, one.low, one.high
    )
}

/// The engines of one run.
fn engines(args: &CompareArgs, series: &[Series], rules: &Rules) -> Result<Exit> {
    let pairs = side_by_side(series, rules);
    if pairs.is_empty() {
        return Err(Error::data("this run has one engine, and no other run is named")
            .at(args.first.display().to_string())
            .hint("give two runs, or a run of a spec with several engines in `[engine] name`"));
    }
    print(&report::side_by_side(&pairs, &Style::of_terminal()));
    let mut cells = pairs.iter().flat_map(|pair| &pair.tasks).flat_map(|task| &task.cells);
    let beaten = cells.any(|cell| cell.verdict == Verdict::Faster);
    Ok(if args.fail_on.is_some() && beaten { Exit::Warned } else { Exit::Done })
}

fn unit(series: &[Series]) -> &str {
    series.first().map_or("", |series| series.unit.as_str())
}

fn table(cells: &[Cell], unit: &str) -> Table {
    let columns = ["series", "batch size", "first", "second", "ratio", "95 % interval", "p", "verdict"];
    let mut table = Table::new(&columns.map(|name| (name, if name == "series" { Align::Left } else { Align::Right })));
    for cell in cells {
        table.row(vec![
            cell.group.clone(),
            human::batch_size(cell.x),
            human::quantity(cell.first, unit),
            human::quantity(cell.second, unit),
            format!("{:.4}", cell.ratio),
            format!("{:.4} to {:.4}", cell.low, cell.high),
            human::p_value(cell.p_value),
            cell.verdict.name().to_string(),
        ]);
    }
    table
}
