//! `[data]` of a training: where the examples come from.

use std::path::{Path, PathBuf};

use super::keys::{KeyForm, Table, count, keys, name, path, text};
use super::section::{Field, Section};
use crate::error::Result;
use crate::settings::named;

named! {
    /// The kinds of data sets.
    DataSource {
        /// MNIST's files in the folder `path`; drawn digits if there are none.
        Mnist = "mnist",
        /// Digits that batchstep draws.
        Digits = "digits",
        /// MNIST's files in the folder `path`; an error if there are none.
        Idx = "idx",
        /// Folders of images, a folder for each class.
        Images = "images",
        /// Parquet files with a column of encoded images, as the hubs of data sets store them.
        Parquet = "parquet",
    }
}

keys! {
    /// Where the examples come from. The source determines which places have a meaning.
    Data in "data" {
        /// Default: mnist.
        source: DataSource = DataSource::Mnist, "source", name(DataSource::NAMES, DataSource::from_name);
        /// A folder. Of Parquet files, the names of files or folders in it begin with that of their part: `train-00000-of-00002.parquet`.
        /// Default: `data/mnist`, of mnist.
        path: Option<PathBuf> = None, "path", path().optional();
        /// A folder of images; of Parquet a file, a folder of files, or a pattern with one `*` in the name of the file.
        train: Option<PathBuf> = None, "train", path().optional();
        test: Option<PathBuf> = None, "test", path().optional();
        /// The column of encoded images. Default: the one that is there.
        image: Option<String> = None, "image", text().optional();
        /// The column of classes. Default: the one that the file declares, or `label`.
        label: Option<String> = None, "label", text().optional();
        /// The number of training examples that are used. Default: all; 60,000 drawn digits.
        examples: Option<usize> = None, "examples", count(1, 1 << 32).optional();
        /// The number of test examples that are used. Default: all; 10,000 drawn digits.
        test_examples: Option<usize> = None, "test_examples", count(0, 1 << 32).optional();
        /// For each channel, where a byte of 255 is 1. Default: measured on the training examples; for folders and Parquet 0.5.
        mean: Option<Vec<f64>> = None, "mean", numbers(-1e6).optional();
        sd: Option<Vec<f64>> = None, "sd", numbers(1e-6).optional();
    }
}

fn numbers(low: f64) -> KeyForm<Vec<f64>> {
    let read = move |field: &Field| field.elements()?.iter().map(|field| field.number(low, 1e6)).collect();
    KeyForm::new(read, |numbers| Some(format!("{numbers:?}")))
}

/// A place that its source has: [`read`] refuses data without it.
pub fn place(stated: Option<&PathBuf>) -> &Path {
    stated.map_or(Path::new(""), PathBuf::as_path)
}

pub(crate) fn read(section: Option<Section>) -> Result<Data> {
    let mut data = Data::default();
    if let Some(mut section) = section {
        Data::keys().read(&mut section, &mut data)?;
        let refused = data.refusal().map(|what| section.error(format!("`source = \"{}\"` {what}", data.source)));
        // A misspelt key is refused before the needed one that it leaves missing.
        section.finish()?;
        refused.map_or(Ok(()), Err)?;
    }
    if data.source == DataSource::Mnist {
        data.path.get_or_insert_with(|| "data/mnist".into());
    }
    Ok(data)
}

impl Data {
    /// What its source lacks, or has no use for.
    fn refusal(&self) -> Option<&'static str> {
        use DataSource::{Digits, Idx, Images, Mnist, Parquet};
        if self.source != Parquet && (self.image.is_some() || self.label.is_some()) {
            return Some("has no columns: `image` and `label` belong to `source = \"parquet\"`");
        }
        match (self.source, self.path.is_some(), self.train.is_some(), self.test.is_some()) {
            (Mnist, _, false, false) | (Idx | Parquet, true, false, false) | (Digits, false, false, false) => None,
            (Images | Parquet, false, true, _) => None,
            (Idx, false, ..) => Some("needs `path`, the folder of the four files"),
            (Images, _, false, _) => Some("needs `train`, a folder with a folder for each class"),
            (Parquet, false, false, _) => {
                Some("needs `path`, a folder with files such as train-00000-of-00001.parquet, or `train`")
            }
            (Images, ..) => Some("has `train` and `test`, and no `path`"),
            (Digits, ..) => Some("has no path: the digits are drawn"),
            (Parquet, ..) => Some("has `path`, or `train` and `test`, and not both"),
            (Mnist | Idx, ..) => Some("has `path`, and neither `train` nor `test`"),
        }
    }
}
