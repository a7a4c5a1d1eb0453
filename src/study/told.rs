//! What the stored rows of a study say, ready for a terminal, a page and a chart.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Study;
use super::spec::READERS;
use crate::chart::Chart;
use crate::chart::chart_data::Drawing;
use crate::error::Result;
use crate::page::{Charts, Files, Picture, RunPage};
use crate::report::{Answer, Document, Warning};
use crate::store::holds;

/// Everything that is said about a study.
pub struct Told {
    /// The run directory.
    pub path: PathBuf,
    /// The heading of its chart on a page.
    pub kind: &'static str,
    /// What was measured on which device, in a line.
    pub facts: String,
    pub answers: Vec<Answer>,
    pub warnings: Vec<Warning>,
    pub document: Document,
    pub drawing: Drawing,
    /// Whether the script of its page draws the chart, in place of a picture.
    pub is_interactive: bool,
    /// The study as JSON, and the file of the run directory that keeps it, if any.
    pub json: Value,
    pub file: Option<&'static str>,
}

impl Told {
    /// What a study of that kind in `path` says; `None` where there is none.
    pub(super) fn of<S: Study>(path: &Path) -> Result<Option<Self>> {
        if holds::<S::Row>(path)? { S::told(path).map(Some) } else { Ok(None) }
    }

    /// The JSON document as text.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.json)
    }

    /// The study as its page shows it.
    ///
    /// # Errors
    /// As [`Picture::new`].
    pub fn page(&self) -> Result<RunPage<'_>> {
        let (charts, title, facts, pictures) = match &self.drawing.chart {
            Chart::Study(chart) if self.is_interactive => {
                (Charts::Training(chart), Some(chart.title.as_str()), chart.caption[..1].to_vec(), Vec::new())
            }
            _ => (Charts::Pictures, None, vec![self.facts.clone()], vec![Picture::new(&self.drawing)?]),
        };
        Ok(RunPage {
            source: &self.path,
            title,
            facts,
            kind: self.kind,
            charts,
            answers: self.answers.clone(),
            advice: Vec::new(),
            warnings: self.warnings.clone(),
            tables: vec![self.document.clone()],
            why: Vec::new(),
            beside: Vec::new(),
            pictures,
            documents: json!({"source": self.path.display().to_string(), "study": self.json}),
            files: Files::of(&self.path),
        })
    }
}

/// What the study in `path` says; `None` where there is no study but a sweep or a table.
///
/// # Errors
/// As [`Study::told`].
pub fn told(path: &Path) -> Result<Option<Told>> {
    for read in READERS {
        if let Some(told) = read(path)? {
            return Ok(Some(told));
        }
    }
    Ok(None)
}
