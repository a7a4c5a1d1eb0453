//! The findings in one run or file, with the advice, the layers and the warnings that go with them.

use std::path::{Path, PathBuf};

use batchstep::analysis::Analysed;
use batchstep::analysis::advice::{self, Advice, Options, Silence};
use batchstep::analysis::causes::{self, Explanation};
use batchstep::analysis::control::{self, Control};
use batchstep::error::Result;
use batchstep::report::{self, Warning};

use super::notice;

/// What the series of one run or file show.
pub struct PathFindings {
    pub path: PathBuf,
    pub found: Vec<Analysed>,
    pub controls: Vec<Control>,
    /// For each series the layers behind its jumps.
    pub explained: Vec<Vec<Explanation>>,
    /// For each series which sizes to use.
    pub advices: Vec<std::result::Result<Advice, Silence>>,
    pub warnings: Vec<Warning>,
}

impl PathFindings {
    /// Of the series `found` in `path`, for a run that `ended` with these warnings.
    pub fn of(path: &Path, found: Vec<Analysed>, controls: Vec<Control>, ended: Vec<Warning>) -> Self {
        let warnings = report::warnings(&found, ended);
        let explained = explain(path, &found);
        let advices = advice::of_run(path, &found, &Options::default());
        Self { path: path.to_path_buf(), found, controls, explained, advices, warnings }
    }

    /// The same with the A/A controls and the warnings that lie beside it.
    ///
    /// # Errors
    /// As [`report::kept_warnings`].
    pub fn stored(path: &Path, found: Vec<Analysed>) -> Result<Self> {
        Ok(Self::of(path, found, control::near(path), report::kept_warnings(path)?))
    }

    /// What `jumps.json` says.
    pub fn said(&self) -> report::json::RunResults<'_> {
        let Self { path, found, controls, explained, advices, warnings } = self;
        report::json::RunResults { path, found, controls, explained, advices, warnings }
    }
}

/// The layers that explain the jumps of a run; nothing where `path` is no run directory.
pub fn explain(path: &Path, found: &[Analysed]) -> Vec<Vec<Explanation>> {
    causes::of_run(path, found).unwrap_or_else(|error| {
        notice(format!("the jumps are not explained: {error}"));
        vec![Vec::new(); found.len()]
    })
}
