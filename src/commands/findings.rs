//! The findings in one run or file, with the advice, the layers and the warnings that go with them.

use std::path::Path;

use batchstep::analysis::Analysed;
use batchstep::analysis::advice::{self, Options};
use batchstep::analysis::causes::{self, Explanation};
use batchstep::analysis::control::{self, Control};
use batchstep::error::Result;
use batchstep::report::json::RunResults;
use batchstep::report::{self, Warning};

use super::notice;

/// Of the series `found` in `path`, for a run that `ended` with these warnings.
pub fn of(path: &Path, found: Vec<Analysed>, controls: Vec<Control>, ended: Vec<Warning>) -> RunResults {
    let warnings = report::warnings(&found, ended);
    let explained = explain(path, &found);
    let advices = advice::of_run(path, &found, &Options::default());
    RunResults { path: path.to_path_buf(), found, controls, explained, advices, warnings }
}

/// The same with the A/A controls and the warnings that lie beside it.
pub fn stored(path: &Path, found: Vec<Analysed>) -> Result<RunResults> {
    Ok(of(path, found, control::near(path), report::kept_warnings(path)?))
}

/// The layers that explain the jumps of a run; nothing where `path` is no run directory.
pub fn explain(path: &Path, found: &[Analysed]) -> Vec<Vec<Explanation>> {
    causes::of_run(path, found).unwrap_or_else(|error| {
        notice(format!("the jumps are not explained: {error}"));
        vec![Vec::new(); found.len()]
    })
}
