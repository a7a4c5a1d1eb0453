//! `batchstep advise`: which size to use, and which to avoid.

use batchstep::analysis::advice::{self, Formula, Options};
use batchstep::analysis::analyse;
use batchstep::error::Result;
use batchstep::report;
use batchstep::units::Share;

use super::jumps::{read_as, warn};
use super::{Exit, print, print_aside, query, refused, seconds_of};
use crate::cli::{AdviseArgs, Form};

pub fn advise(args: &AdviseArgs) -> Result<Exit> {
    let options = options(args)?;
    let found = analyse(&args.path, &query(&args.columns), None)?;
    let advices = advice::of_run(&args.path, &found, &options);
    let warnings = report::warnings(&found, report::kept_warnings(&args.path)?);
    print_aside(&read_as(found.first().map(|found| &found.series)));
    match args.format {
        Form::Json => {
            print(&format!("{:#}\n", report::size_advice_json(&args.path, &found, &advices, &warnings)));
        }
        Form::Table => {
            let style = report::Style::of_terminal();
            let said = report::size_advices(&found, &advices, found.len(), true);
            print(&said.iter().map(|document| document.render(&style)).collect::<String>());
        }
    }
    let exit = if advices.iter().any(Result::is_ok) { Exit::Done } else { Exit::Warned };
    Ok(exit.worse(warn(warnings.iter())))
}

fn options(args: &AdviseArgs) -> Result<Options> {
    let within = match Share::parse(&args.within) {
        Some(Share(within)) if (0.0..1.0).contains(&within) => within,
        _ => return Err(refused(&args.within, "share from 0% to below 100%", "--within", "5%")),
    };
    let latency = args.latency.as_deref().map(|text| seconds_of(text, "time", "--latency", "50ms"));
    let work = args
        .work
        .as_deref()
        .map(|text| Formula::parse(text).ok_or_else(|| refused(text, "formula in one column", "--work", "'2 * N^3'")));
    Ok(Options { within, latency_s: latency.transpose()?, work: work.transpose()? })
}
