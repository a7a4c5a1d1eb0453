//! Specs of any kind.

use std::path::Path;

use super::fit::Fit;
use super::pipeline::Pipeline;
use super::training::Training;
use crate::error::Result;
use crate::kinds::StudyKind;
use crate::spec::{Experiment, parse_as, text_of};

/// A spec of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    Sweep(Box<Experiment>),
    Training(Box<Training>),
    Pipeline(Box<Pipeline>),
    Fit(Box<Fit>),
}

impl Spec {
    /// Reads and checks the spec in `path`; if there is no such file, the program's own spec of that name.
    ///
    /// # Errors
    /// As [`text_of`]; [`crate::error::Kind::Spec`] with file, line, key, what was expected and the nearest valid key where its contents
    /// are refused.
    pub fn read(path: &Path) -> Result<Self> {
        let (text, origin) = text_of(path)?;
        Self::parse(&text, &origin)
    }

    /// Reads and checks a spec's text; `origin` names it in messages.
    ///
    /// # Errors
    /// As [`Spec::read`].
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        parse_as(text, origin, |kind, section| {
            Ok(match kind {
                StudyKind::Sweep => Self::Sweep(Experiment::of(section, origin)?.into()),
                StudyKind::Training => Self::Training(Training::of(section, origin)?.into()),
                StudyKind::Pipeline => Self::Pipeline(Pipeline::of(section, origin)?.into()),
                StudyKind::Fit => Self::Fit(Fit::of(section, origin)?.into()),
            })
        })
    }

    pub fn kind(&self) -> StudyKind {
        match self {
            Self::Sweep(_) => StudyKind::Sweep,
            Self::Training(_) => StudyKind::Training,
            Self::Pipeline(_) => StudyKind::Pipeline,
            Self::Fit(_) => StudyKind::Fit,
        }
    }

    /// Names the run directory.
    pub fn name(&self) -> &str {
        match self {
            Self::Sweep(experiment) => &experiment.name,
            Self::Training(training) => &training.subject.name,
            Self::Pipeline(pipeline) => &pipeline.subject.name,
            Self::Fit(fit) => &fit.subject.name,
        }
    }
}
