//! The pages of the kinds of run whose charts are pictures: studies of the input pipeline and of fits.

use std::path::{Path, PathBuf};

use batchstep::analysis::feeding::FeedingStudy;
use batchstep::analysis::fits::FitStudy;
use batchstep::error::Result;
use batchstep::figures::{self, Drawing};
use batchstep::page::{Charts, Files, Picture, Run};
use batchstep::report::{self, Answer, Document, Ground, Style, Warning};
use serde_json::{Value, json};

/// Such a run with the contents of its page.
pub struct Pictured {
    path: PathBuf,
    kind: &'static str,
    facts: String,
    answers: Vec<Answer>,
    warnings: Vec<Warning>,
    table: Document,
    drawing: Drawing,
    document: Value,
}

impl Pictured {
    /// # Errors
    /// As [`FeedingStudy::read`].
    pub fn pipeline(path: &Path) -> Result<Self> {
        let study = FeedingStudy::read(path)?;
        Ok(Self::of_pipeline(path, &study, report::feeding_warnings(&study)))
    }

    /// # Errors
    /// As [`FitStudy::read`].
    pub fn fit(path: &Path) -> Result<Self> {
        let study = FitStudy::read(path)?;
        Ok(Self::of_fit(path, &study, report::fit_warnings(&study)))
    }

    pub fn of_pipeline(path: &Path, study: &FeedingStudy, warnings: Vec<Warning>) -> Self {
        let drawing = figures::feeding(path, study);
        let ground = |text| Ground { grade: "measured here".to_owned(), text };
        let answer = Answer {
            sentence: drawing.summary.clone(),
            grounds: report::knees(study).into_iter().map(ground).collect(),
        };
        Self {
            path: path.to_path_buf(),
            kind: "Stages and workers",
            facts: study.storage.clone(),
            answers: vec![answer],
            warnings,
            table: Document::of_lines(report::feeding(study, &Style::PLAIN)),
            drawing,
            document: parsed(&report::feeding_json(study)),
        }
    }

    pub fn of_fit(path: &Path, study: &FitStudy, warnings: Vec<Warning>) -> Self {
        Self {
            path: path.to_path_buf(),
            kind: "Fits",
            facts: study.device.clone(),
            answers: report::fit_answer(study).into_iter().collect(),
            warnings,
            table: report::fits(study),
            drawing: figures::fits(path, study),
            document: parsed(&report::fits_json(study)),
        }
    }

    /// The run as its page shows it.
    ///
    /// # Errors
    /// As [`Picture::new`].
    pub fn page(&self) -> Result<Run<'_>> {
        Ok(Run {
            source: &self.path,
            charts: Charts::Pictures { kind: self.kind, facts: self.facts.clone() },
            answers: self.answers.clone(),
            advice: Vec::new(),
            warnings: self.warnings.clone(),
            tables: vec![self.table.clone()],
            why: Vec::new(),
            beside: Vec::new(),
            pictures: pictures([&self.drawing])?,
            documents: json!({"source": self.path.display().to_string(), "study": self.document}),
            files: Files::of(&self.path),
        })
    }
}

/// Drawings as a page shows them.
///
/// # Errors
/// As [`Picture::new`].
pub fn pictures<'a>(drawings: impl IntoIterator<Item = &'a Drawing>) -> Result<Vec<Picture>> {
    let picture = |drawing: &Drawing| Picture::new(drawing.title, drawing.summary.clone(), &drawing.chart);
    drawings.into_iter().map(picture).collect()
}

/// Our own documents are JSON.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
