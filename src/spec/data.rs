//! `[data]` of a training: where the examples come from.

use std::path::PathBuf;

use super::encode;
use super::section::{Field, Section};
use crate::error::Result;

/// Where the examples come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub source: DataSource,
    /// The number of training examples that are used. Default: all; 60,000 drawn digits.
    pub examples: Option<usize>,
    /// The number of test examples that are used. Default: all; 10,000 drawn digits.
    pub test_examples: Option<usize>,
    /// For each channel, where a byte of 255 is 1. Default: measured on the training examples; for folders and Parquet 0.5.
    pub mean: Option<Vec<f64>>,
    pub sd: Option<Vec<f64>>,
}

/// The kinds of data sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataSource {
    /// MNIST's files in a folder; drawn digits if there are none. The default, with `data/mnist`.
    Mnist { path: PathBuf },
    /// Digits that batchstep draws.
    Digits,
    /// MNIST's files in a folder; an error if there are none.
    Idx { path: PathBuf },
    /// Folders of images, a folder for each class.
    Images { train: PathBuf, test: Option<PathBuf> },
    /// Parquet files with a column of encoded images, as the hubs of data sets store them.
    Parquet(Tables),
}

/// Parquet files whose rows are examples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    pub splits: Splits,
    /// The column of encoded images. Default: the one that is there.
    pub image: Option<String>,
    /// The column of classes. Default: the one that the file declares, or `label`.
    pub label: Option<String>,
}

/// Which files hold which part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Splits {
    /// A folder in which the names of files or folders begin with that of their part: `train-00000-of-00002.parquet`.
    Folder(PathBuf),
    /// For each part a file, a folder of files, or a pattern with one `*` in the name of the file.
    Stated { train: PathBuf, test: Option<PathBuf> },
}

impl Default for Data {
    fn default() -> Self {
        let source = DataSource::Mnist { path: "data/mnist".into() };
        Self { source, examples: None, test_examples: None, mean: None, sd: None }
    }
}

const SOURCES: &[&str] = &["mnist", "digits", "idx", "images", "parquet"];

pub(crate) fn read(section: Option<Section>) -> Result<Data> {
    let Some(mut section) = section else { return Ok(Data::default()) };
    let source = section.get("source").map(|f| f.choice(SOURCES, |name| SOURCES.iter().find(|s| **s == name).copied()));
    let places = SourceKeys::read(&mut section)?;
    let mut data = Data {
        examples: section.get("examples").map(|field| field.count(1, 1 << 32)).transpose()?,
        test_examples: section.get("test_examples").map(|field| field.count(0, 1 << 32)).transpose()?,
        mean: section.get("mean").map(|field| numbers(&field, -1e6)).transpose()?,
        sd: section.get("sd").map(|field| numbers(&field, 1e-6)).transpose()?,
        ..Data::default()
    };
    let source = source.transpose()?.unwrap_or("mnist");
    let source = places.source(source, &section);
    // A misspelt key is refused before the needed one that it leaves missing.
    section.finish()?;
    data.source = source?;
    Ok(data)
}

/// The keys that say where the examples are; the source determines which of them have a meaning.
struct SourceKeys {
    path: Option<PathBuf>,
    train: Option<PathBuf>,
    test: Option<PathBuf>,
    image: Option<String>,
    label: Option<String>,
}

impl SourceKeys {
    fn read(section: &mut Section) -> Result<Self> {
        let mut text = |key: &'static str| section.get(key).map(|field| field.text()).transpose();
        let (path, train, test) = (text("path")?, text("train")?, text("test")?);
        let (image, label) = (text("image")?, text("label")?);
        Ok(Self {
            path: path.map(PathBuf::from),
            train: train.map(PathBuf::from),
            test: test.map(PathBuf::from),
            image,
            label,
        })
    }

    fn source(self, source: &str, section: &Section) -> Result<DataSource> {
        let lacking = |what: &str| Err(section.error(format!("`source = \"{source}\"` {what}")));
        let Self { path, train, test, image, label } = self;
        if source != "parquet" && (image.is_some() || label.is_some()) {
            return lacking("has no columns: `image` and `label` belong to `source = \"parquet\"`");
        }
        match (source, path, train, test) {
            ("mnist", path, None, None) => Ok(DataSource::Mnist { path: path.unwrap_or_else(|| "data/mnist".into()) }),
            ("idx", Some(path), None, None) => Ok(DataSource::Idx { path }),
            ("idx", None, ..) => lacking("needs `path`, the folder of the four files"),
            ("images", None, Some(train), test) => Ok(DataSource::Images { train, test }),
            ("images", _, None, _) => lacking("needs `train`, a folder with a folder for each class"),
            ("digits", None, None, None) => Ok(DataSource::Digits),
            ("parquet", Some(folder), None, None) => {
                Ok(DataSource::Parquet(Tables { splits: Splits::Folder(folder), image, label }))
            }
            ("parquet", None, Some(train), test) => {
                Ok(DataSource::Parquet(Tables { splits: Splits::Stated { train, test }, image, label }))
            }
            ("parquet", None, None, _) => {
                lacking("needs `path`, a folder with files such as train-00000-of-00001.parquet, or `train`")
            }
            ("images", ..) => lacking("has `train` and `test`, and no `path`"),
            ("digits", ..) => lacking("has no path: the digits are drawn"),
            ("parquet", ..) => lacking("has `path`, or `train` and `test`, and not both"),
            _ => lacking("has `path`, and neither `train` nor `test`"),
        }
    }
}

fn numbers(field: &Field, low: f64) -> Result<Vec<f64>> {
    field.elements()?.iter().map(|field| field.number(low, 1e6)).collect()
}

pub(crate) fn write(out: &mut String, data: &Data) {
    encode::section(out, "data");
    let mut line = |key: &str, value: String| encode::line(out, key, value);
    let text = |value: &str| format!("{value:?}");
    let path = |path: &PathBuf| text(&path.display().to_string());
    let source = match &data.source {
        DataSource::Digits => "digits",
        DataSource::Mnist { .. } => "mnist",
        DataSource::Idx { .. } => "idx",
        DataSource::Images { .. } => "images",
        DataSource::Parquet(_) => "parquet",
    };
    line("source", text(source));
    match &data.source {
        DataSource::Digits => {}
        DataSource::Mnist { path: folder }
        | DataSource::Idx { path: folder }
        | DataSource::Parquet(Tables { splits: Splits::Folder(folder), .. }) => line("path", path(folder)),
        DataSource::Images { train, test }
        | DataSource::Parquet(Tables { splits: Splits::Stated { train, test }, .. }) => {
            line("train", path(train));
            test.iter().for_each(|test| line("test", path(test)));
        }
    }
    if let DataSource::Parquet(Tables { image, label, .. }) = &data.source {
        image.iter().for_each(|image| line("image", text(image)));
        label.iter().for_each(|label| line("label", text(label)));
    }
    for (key, count) in [("examples", data.examples), ("test_examples", data.test_examples)] {
        count.iter().for_each(|count| line(key, count.to_string()));
    }
    for (key, values) in [("mean", &data.mean), ("sd", &data.sd)] {
        values.iter().for_each(|values| line(key, format!("{values:?}")));
    }
}
