//! `batchstep compare`: two runs, cell by cell.

use batchstep::analysis::{self, Query, Series};
use batchstep::compare::{self, Cell, Rules, Verdict};
use batchstep::error::{Error, Result};
use batchstep::report::{Align, Style, Table, human};
use batchstep::units::Share;

use super::{Exit, print};
use crate::cli::CompareArgs;

pub fn compare(args: &CompareArgs) -> Result<Exit> {
    let margin = Share::parse(&args.margin).filter(|Share(margin)| *margin > 0.0 && *margin < 1.0);
    let Some(Share(margin)) = margin else {
        return Err(Error::spec(format!("`{}` is no margin", args.margin)).at("--margin").hint("for example 1%"));
    };
    let query = Query::default();
    let (first, second) = (analysis::series(&args.first, &query)?, analysis::series(&args.second, &query)?);
    let scales = (unit(&first), unit(&second));
    if scales.0 != scales.1 {
        return Err(Error::data(format!("the times are in `{}` and in `{}`", scales.0, scales.1))
            .hint("compare runs whose time columns have the same unit"));
    }
    let found = compare::compare(&first, &second, &Rules { margin, ..Rules::default() });
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
    if found.unmatched > 0 {
        eprintln!("batchstep: {} only in one of the runs", human::counted(found.unmatched as u64, "cell"));
    }
    Ok(if args.fail_on.is_some() && count(Verdict::Slower) > 0 { Exit::Warned } else { Exit::Done })
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
