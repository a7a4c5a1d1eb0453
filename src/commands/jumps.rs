//! `batchstep jumps`: the jumps in a run, or in any file with batch sizes and times.

use std::path::Path;

use batchstep::analysis::causes::{self, Explanation};
use batchstep::analysis::control::{self, Control};
use batchstep::analysis::{self, Query, Series};
use batchstep::detect::baseline::{self, Baseline};
use batchstep::detect::{Findings, Settings};
use batchstep::error::Result;
use batchstep::report::{self, human};
use batchstep::store::{RunDirectory, files};

use super::{Exit, print, query};
use crate::cli::{Form, JumpsArgs, Method};

pub fn jumps(args: &JumpsArgs) -> Result<Exit> {
    let query = query(&args.columns);
    let mut found = Vec::new();
    let (mut controls, mut explained) = (Vec::new(), Vec::new());
    for path in &args.paths {
        let of_path = analyse_by(args.method, path, &query)?;
        explained.extend(explain(path, &of_path));
        found.extend(of_path);
        controls.extend(control::near(path));
    }
    match args.format {
        Form::Json => print(&format!("{:#}\n", report::json::jumps(&found, &controls, &explained))),
        Form::Table => print(&(tables(&found, &controls) + &reasons(&found, &explained))),
    }
    Ok(Exit::Done)
}

/// The layers that explain the jumps of a run; nothing where `path` is no run directory.
pub fn explain(path: &Path, found: &[(Series, Findings)]) -> Vec<Vec<Explanation>> {
    // Files of other programs have no layers.
    if !path.join(files::LAYERS).is_file() {
        return vec![Vec::new(); found.len()];
    }
    let layers = RunDirectory::layers_of(path).unwrap_or_else(|error| {
        eprintln!("batchstep: the jumps are not explained: {error}");
        Vec::new()
    });
    causes::explain(found, &layers)
}

/// The explanations as text; empty without any.
pub fn reasons(found: &[(Series, Findings)], explained: &[Vec<Explanation>]) -> String {
    let style = report::Style::of_terminal();
    let shown = found.iter().zip(explained).filter(|(_, explained)| !explained.is_empty());
    shown.map(|((series, _), explained)| format!("\n{}", report::causes(&series.label(), explained, &style))).collect()
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

/// The baseline of that name; `None` for our own method.
fn baseline_of(method: Method) -> Option<Baseline> {
    match method {
        Method::Ours => None,
        Method::Differences => Some(Baseline::Differences),
        Method::Pelt => Some(Baseline::Pelt),
        Method::EDivisive => Some(Baseline::EDivisive),
    }
}

/// The jump tables as text.
pub fn tables(found: &[(Series, Findings)], controls: &[Control]) -> String {
    let style = report::Style::of_terminal();
    let table = |(series, findings): &(Series, Findings)| {
        let (label, hardware) = (series.label(), series.hardware());
        let smallest = findings.detectable;
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
