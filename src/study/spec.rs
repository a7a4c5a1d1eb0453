//! Specs of any kind, and the list of the kinds beside the sweep.

use std::path::Path;

use super::{Study, Told};
use crate::error::Result;
use crate::kinds::StudyKind;
use crate::spec::{Experiment, Section, parse_as, text_of};

/// Someone who runs specs.
pub trait Runner {
    type Output;

    fn sweep(self, experiment: &Experiment) -> Self::Output;

    fn study<S: Study>(self, study: &S) -> Self::Output;
}

macro_rules! studies {
    ($($folder:ident::$kind:ident),+) => {
        /// A spec of any kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Spec {
            Sweep(Box<Experiment>),
            $($kind(Box<super::$folder::$kind>)),+
        }

        impl Spec {
            fn of(kind: StudyKind, section: Section, origin: &str) -> Result<Self> {
                Ok(match kind {
                    StudyKind::Sweep => Self::Sweep(Experiment::of(section, origin)?.into()),
                    $(StudyKind::$kind => Self::$kind(super::$folder::$kind::of(section, origin)?.into())),+
                })
            }

            pub fn kind(&self) -> StudyKind {
                match self {
                    Self::Sweep(_) => StudyKind::Sweep,
                    $(Self::$kind(_) => StudyKind::$kind),+
                }
            }

            /// Names the run directory.
            pub fn run_name(&self) -> String {
                match self {
                    Self::Sweep(experiment) => experiment.run_name(),
                    $(Self::$kind(study) => study.subject().name.clone()),+
                }
            }

            /// The seed and the time limit, which the command line may replace.
            pub fn limits(&mut self) -> (&mut u64, &mut f64) {
                match self {
                    Self::Sweep(experiment) => (&mut experiment.measure.seed, &mut experiment.measure.time_limit_s),
                    $(Self::$kind(study) => study.limits()),+
                }
            }

            /// Gives what it is a spec of to `runner`.
            pub fn run_by<R: Runner>(&self, runner: R) -> R::Output {
                match self {
                    Self::Sweep(experiment) => runner.sweep(experiment),
                    $(Self::$kind(study) => runner.study(&**study)),+
                }
            }
        }

        /// For each kind, what a study of it in a folder says.
        pub(super) const READERS: &[fn(&Path) -> Result<Option<Told>>] = &[$(Told::of::<super::$folder::$kind>),+];
    };
}

studies!(training::Training, pipeline::Pipeline, fit::Fit);

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
        parse_as(text, origin, |kind, section| Self::of(kind, section, origin))
    }
}
