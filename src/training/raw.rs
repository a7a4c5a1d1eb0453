//! The examples as plain files, for engines that read them by themselves.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::TrainingCell;
use crate::data::{DataSet, Examples};
use crate::engine::train::{Feed, RawExamples};
use crate::error::{Error, Result};
use crate::spec::training::Loading;

/// Written when the first engine asks for them.
#[derive(Debug)]
pub(super) struct RawFiles {
    folder: PathBuf,
    written: OnceCell<Parts>,
}

#[derive(Clone, Debug)]
struct Parts {
    train: RawExamples,
    test: Option<RawExamples>,
}

impl RawFiles {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, written: OnceCell::new() }
    }

    /// What such an engine is to read in a cell.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] where the files cannot be written; [`crate::error::Kind::Spec`] where the examples are not in memory.
    pub fn feed(&self, data: &DataSet, loading: &Loading, cell: &TrainingCell) -> Result<Feed> {
        let parts = match self.written.get() {
            Some(parts) => parts.clone(),
            None => {
                let train = self.write("train", &data.train)?;
                let test = data.test.as_ref().map(|test| self.write("test", test)).transpose()?;
                self.written.get_or_init(|| Parts { train, test }).clone()
            }
        };
        Ok(Feed {
            train: parts.train,
            test: parts.test,
            shape: data.shape,
            mean: data.normal.mean.clone(),
            sd: data.normal.sd.clone(),
            workers: cell.workers,
            prefetch: cell.prefetch.unwrap_or(1),
            shuffle: loading.shuffle,
            drop_last: loading.drop_last,
        })
    }

    fn write(&self, part: &str, examples: &Examples) -> Result<RawExamples> {
        let Some(held) = examples.in_memory() else {
            return Err(Error::spec("such an engine reads examples that are in memory alone"));
        };
        let file = |what: &str, bytes: &[u8]| -> Result<PathBuf> {
            let path = self.folder.join(format!("{part}.{what}"));
            std::fs::write(&path, bytes).map_err(|e| Error::io("write the examples", &path, &e))?;
            Ok(path)
        };
        let (pixels, labels) = (file("pixels", &held.pixels)?, file("labels", &held.labels)?);
        Ok(RawExamples { pixels, labels, count: examples.count() })
    }
}
