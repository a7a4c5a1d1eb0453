//! `batchstep jumps`: what is in the data, ours or anyone's.

use std::path::Path;

use batchstep::analysis::{self, Query, Series};
use batchstep::control::{self, Control};
use batchstep::detect::baseline::{self, Baseline};
use batchstep::detect::{Findings, Settings};
use batchstep::error::Result;
use batchstep::report::{self, human};

use super::{Exit, print, query};
use crate::cli::{Form, JumpsArgs, Method};

pub fn jumps(args: &JumpsArgs) -> Result<Exit> {
    let query = query(&args.columns);
    let mut found = Vec::new();
    let mut controls = Vec::new();
    for path in &args.paths {
        found.extend(analyse_by(args.method, path, &query)?);
        controls.extend(control::near(path));
    }
    match args.format {
        Form::Json => print(&format!("{:#}\n", report::json::jumps(&found, &controls))),
        Form::Table => print(&tables(&found, &controls)),
    }
    Ok(Exit::Done)
}

/// Every series in `path`, with what was found in it.
pub fn analyse(path: &Path, query: &Query) -> Result<Vec<(Series, Findings)>> {
    analyse_by(Method::Ours, path, query)
}

fn analyse_by(method: Method, path: &Path, query: &Query) -> Result<Vec<(Series, Findings)>> {
    let settings = Settings::default();
    let find = |series: &Series| match baseline_of(method) {
        None => series.find(&settings),
        Some(baseline) => baseline::detect(baseline, &series.observations(), &settings),
    };
    let series = analysis::series(path, query)?;
    Ok(series.into_iter().map(|series| (find(&series), series)).map(|(found, series)| (series, found)).collect())
}

/// The method of others that is meant, if it is one.
fn baseline_of(method: Method) -> Option<Baseline> {
    match method {
        Method::Ours => None,
        Method::Differences => Some(Baseline::Differences),
        Method::Pelt => Some(Baseline::Pelt),
        Method::EDivisive => Some(Baseline::EDivisive),
    }
}

/// The jump tables as a person reads them.
pub fn tables(found: &[(Series, Findings)], controls: &[Control]) -> String {
    let style = report::Style::of_terminal();
    let table = |(series, findings): &(Series, Findings)| {
        let (label, hardware) = (series.label(), series.hardware());
        let smallest = analysis::smallest_visible(findings);
        let aa_rate = control::rate(controls, series);
        let table = report::JumpTable { label: &label, findings, unit: &series.unit, smallest, hardware, aa_rate };
        let kept = human::limit(series.kept);
        let sample = if series.kept < 1.0 {
            format!("  Sample   {kept} of the visits; the file holds more than fit\n")
        } else {
            String::new()
        };
        table.render(&style) + &sample
    };
    found.iter().map(table).collect::<Vec<_>>().join("\n")
}
