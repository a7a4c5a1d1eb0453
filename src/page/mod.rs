//! One self-contained HTML page about one run or several: the answer, interactive charts, the tables, and how to repeat it.
//!
//! The page loads nothing: the file contains the charting library (uPlot, in `assets/`, complete), script, style and data. A content
//! security policy allows these, by their hashes, and nothing else, so that text from a spec or a data file is never executed.
//! The charts use the data of the PNG charts, and the tables are those of the terminal.

mod data;
mod html;
mod sections;

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::analysis::Analysed;
use crate::chart::chart_data::Drawing;
use crate::chart::{self, StepTime, StudyChart, Timeline, palette};
use crate::error::Result;
use crate::foreign;
use crate::os::atomic;
use crate::report::{Answer, Document, Warning};
use html::Html;

/// uPlot 1.6.32, MIT; the checksums are in `assets/README.md`.
const UPLOT: &str = include_str!("assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("assets/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("assets/uPlot.LICENSE");
const SCRIPT: &str = include_str!("assets/page.js");
const STYLE: &str = include_str!("assets/page.css");

pub const NAME: &str = "report.html";

pub struct RunPage<'a> {
    /// The run directory or the file.
    pub source: &'a Path,
    /// What was measured where, in a few words; `None`: it is called by its source.
    pub title: Option<&'a str>,
    /// The same in lines below the title.
    pub facts: Vec<String>,
    /// The heading of its tables.
    pub kind: &'static str,
    pub charts: Charts<'a>,
    /// For each series.
    pub answers: Vec<Answer>,
    /// The advice on sizes for each series that allows it.
    pub advice: Vec<Document>,
    pub warnings: Vec<Warning>,
    /// The jump tables, or the table of a training.
    pub tables: Vec<Document>,
    /// Layers and mechanisms.
    pub why: Vec<Reason>,
    /// Engines, numbers of threads and the device's peaks beside the run.
    pub beside: Vec<Document>,
    /// Charts that are shown without interaction.
    pub pictures: Vec<Picture<'a>>,
    /// The JSON documents of the run, to be found in the page's data under `documents`.
    pub documents: Value,
    pub files: Files,
}

pub struct Picture<'a> {
    drawing: &'a Drawing,
    svg: String,
}

impl<'a> Picture<'a> {
    /// # Errors
    /// As [`chart::svg`].
    pub fn new(drawing: &'a Drawing) -> Result<Self> {
        Ok(Self { drawing, svg: chart::svg(&drawing.chart)? })
    }

    /// Only what the policy of the page allows.
    fn source(&self) -> String {
        format!("data:image/svg+xml;base64,{}", BASE64_STANDARD.encode(&self.svg))
    }
}

/// What explains the jumps of a series.
pub struct Reason {
    /// The series, and what its jumps are explained by.
    pub name: String,
    pub document: Document,
}

pub enum Charts<'a> {
    Sweep {
        found: &'a [Analysed],
        step_time: &'a StepTime,
        honesty: Option<&'a Timeline>,
    },
    Training(&'a StudyChart),
    /// No chart that the script draws.
    Pictures,
}

/// The texts that belong to a run; `None` where it has none, as a file of another program.
#[derive(Clone, Debug, Default)]
pub struct Files {
    pub spec: Option<String>,
    pub environment: Option<String>,
}

impl Files {
    pub fn of(path: &Path) -> Self {
        let read = |name: &str| std::fs::read_to_string(path.join(name)).ok();
        Self { spec: read(crate::store::files::SPEC), environment: read(crate::store::files::ENVIRONMENT) }
    }
}

impl RunPage<'_> {
    fn name(&self) -> String {
        let stem = self.source.file_stem().map(|stem| stem.to_string_lossy());
        foreign::name(&stem.unwrap_or_else(|| self.source.to_string_lossy()))
    }
}

/// Writes the page of `runs` to `path`.
///
/// # Errors
/// As [`atomic::write_text`].
pub fn write(runs: &[RunPage], path: &Path) -> Result<()> {
    atomic::write_text(path, &page(runs))
}

pub fn page(runs: &[RunPage]) -> String {
    let style = [UPLOT_STYLE, &colors(), STYLE].concat();
    let policy = format!(
        "default-src 'none'; script-src '{}' '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(UPLOT),
        hash(SCRIPT),
        hash(&style)
    );
    let mut html = Html::default();
    html.literal("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.open("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]);
    html.literal("\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.literal("<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n");
    html.element("title", &[], &format!("{} \u{b7} batchstep", sections::title(runs)));
    html.embedded("style", &[], &style);
    html.literal("</head>\n<body>\n");
    sections::body(&mut html, runs);
    html.embedded("script", &[("type", "application/json"), ("id", "data")], &html::json(&data::of(runs)));
    html.embedded("script", &[], UPLOT);
    html.embedded("script", &[], SCRIPT);
    html.literal("</body>\n</html>\n");
    html.into_string()
}

/// The colours of the PNG charts as variables of the style sheet.
fn colors() -> String {
    let theme = |series: &[palette::Color], jump: palette::Color, period: palette::Color| {
        let numbered = series.iter().enumerate().map(|(at, color)| (format!("series-{at}"), color));
        let named = [("jump".to_owned(), &jump), ("period".to_owned(), &period)];
        let variable = |(name, color): (String, &palette::Color)| format!("--{name}:{};", color.hexadecimal());
        numbered.chain(named).map(variable).collect::<String>()
    };
    let light = theme(&palette::SERIES, palette::VERMILLION, palette::GREEN);
    let dark = theme(&palette::SERIES_ON_DARK, palette::ORANGE, palette::SERIES_ON_DARK[2]);
    format!(":root{{{light}}}@media (prefers-color-scheme:dark){{:root:not(.printing){{{dark}}}}}\n")
}

/// As a content security policy names what it allows.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests;
