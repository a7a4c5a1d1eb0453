//! The examples as plain files, for engines that read them by themselves.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::super::Cell;
use super::Loader;
use crate::data::{DataSet, Examples};
use crate::engine::train::{Feed, RawExamples};
use crate::error::{Error, Result};
use crate::study::training::spec::Loading;

/// Written when the first engine asks for them.
#[derive(Debug)]
pub struct RawFiles {
    folder: PathBuf,
    /// For training, and for tests where there are any.
    written: OnceCell<(RawExamples, Option<RawExamples>)>,
}

impl RawFiles {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, written: OnceCell::new() }
    }

    /// What such an engine is to read in a cell.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] where the files cannot be written; [`crate::error::Kind::Spec`] where the examples are not in memory.
    pub fn feed(&self, data: &DataSet, loading: &Loading, cell: &Cell<Loader>) -> Result<Feed> {
        let (train, test) = match self.written.get() {
            Some(parts) => parts.clone(),
            None => {
                let train = self.write("train", &data.train)?;
                let test = data.test.as_ref().map(|test| self.write("test", test)).transpose()?;
                self.written.get_or_init(|| (train, test)).clone()
            }
        };
        Ok(Feed {
            train,
            test,
            shape: data.shape,
            mean: data.normal.mean.clone(),
            sd: data.normal.sd.clone(),
            workers: cell.beside.workers,
            prefetch: cell.beside.prefetch.unwrap_or(1),
            shuffle: loading.shuffle,
            drop_last: loading.drop_last,
        })
    }

    /// Both files of a part, or none: what a full disk cut short would be in the way of the run that goes on.
    fn write(&self, part: &str, examples: &Examples) -> Result<RawExamples> {
        let Some(held) = examples.in_memory() else {
            return Err(Error::spec("such an engine reads only examples in memory"));
        };
        let [pixels, labels] = ["pixels", "labels"].map(|what| self.folder.join(format!("{part}.{what}")));
        for (path, bytes) in [(&pixels, &held.pixels), (&labels, &held.labels)] {
            std::fs::write(path, bytes).map_err(|error| {
                // Nothing more can be done where even this fails; the error that counts is the first one.
                [&pixels, &labels].map(std::fs::remove_file).into_iter().for_each(drop);
                Error::io("write the examples", path, &error)
            })?;
        }
        Ok(RawExamples { pixels, labels, count: examples.count() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Labelled, Normal};
    use crate::network::Shape;

    /// `/dev/full` takes the place of the disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_leaves_no_part_of_the_examples() {
        let held = Labelled { name: "t".into(), pixels: vec![1; 8], labels: vec![0; 2] };
        let examples = Examples::new(Box::new(held), Normal::symmetric(1), Shape::Flat(4));
        for full in ["pixels", "labels"] {
            let folder = tempfile::tempdir().expect("a folder");
            std::os::unix::fs::symlink("/dev/full", folder.path().join(format!("train.{full}"))).expect("linked");
            let files = RawFiles::new(folder.path().to_path_buf());
            let error = files.write("train", &examples).expect_err("refused").to_string();
            assert!(error.contains(&format!("train.{full}")) && error.contains("free some space"), "{error}");
            assert_eq!(folder.path().read_dir().expect("listed").count(), 0, "{full}");
            // With room again the same run writes both.
            let written = files.write("train", &examples).expect("written");
            assert_eq!(std::fs::read(written.pixels).expect("there"), [1; 8]);
        }
    }
}
