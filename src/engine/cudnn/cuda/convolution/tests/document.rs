//! docs/gpu-plans.md, which has a part for each version of cuDNN.

use std::path::{Path, PathBuf};

use super::gpus::Described;
use crate::device::cuda::libraries::{self, Library};

/// If this variable is set, the part for the loaded version is written instead of compared.
const WRITE: &str = "BATCHSTEP_WRITE_PLANS";

/// The part for the loaded version of cuDNN.
pub struct DocumentPart {
    path: PathBuf,
    version: String,
    heading: String,
}

impl DocumentPart {
    pub fn new() -> Self {
        let version = libraries::load().get(Library::Cudnn).and_then(|found| found.version.clone());
        let version = version.expect("cuDNN is loaded");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gpu-plans.md");
        let heading = format!("## cuDNN {version}\n");
        Self { path, version, heading }
    }

    /// The page's text, and where this part lies in it.
    fn text(&self) -> (String, Option<(usize, usize)>) {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let place = text.find(&self.heading).map(|at| {
            let start = at + self.heading.len();
            (start, text[start..].find("\n## ").map_or(text.len(), |len| start + len))
        });
        (text, place)
    }

    /// Whether the variable asks for the part to be written.
    pub fn is_asked() -> bool {
        std::env::var_os(WRITE).is_some()
    }

    pub fn write(&self, new: &str) {
        let (mut text, place) = self.text();
        match place {
            Some((start, end)) => text.replace_range(start..end, new),
            None => text = format!("{text}\n{}{new}", self.heading),
        }
        std::fs::write(&self.path, text).unwrap();
    }

    /// Compares the lines about some GPUs, up to the text `end`.
    pub fn must_have(&self, tables: &str, gpus: &[&Described], end: &str) {
        let about = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| gpus.iter().any(|gpu| line.contains(gpu.name)));
            lines.map(str::to_owned).collect()
        };
        let (text, place) = self.text();
        match place.map(|(start, end)| &text[start..end]) {
            Some(part) => {
                let written = about(part.split(end).next().unwrap_or_default());
                assert_eq!(about(tables), written, "docs/gpu-plans.md has other rows; write it with {WRITE}=1");
            }
            None => {
                crate::needs::missing(
                    "cudnn-plans",
                    format!("docs/gpu-plans.md has no part for cuDNN {}", self.version),
                );
            }
        }
    }
}
