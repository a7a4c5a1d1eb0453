//! Opens the data that a spec describes.

use std::path::Path;
use std::sync::Arc;

use super::digits::{self, TrainOrTest};
use super::folder::Folder;
use super::{DataSet, Examples, Labelled, Normal, Source, UnnormalisedSet, idx, table};
use crate::error::{Error, Result};
use crate::network::Shape;
use crate::random::mix;
use crate::spec::data::{Data, DataSource, place};
use crate::units::human::count;

/// Examples that are drawn where the spec does not say how many: as many as MNIST has.
const DRAWN: [usize; 2] = [60_000, 10_000];

/// Opens, or draws, the data of a training. `seed` is the seed of the drawing.
///
/// # Errors
/// The errors of the readers; [`crate::error::Kind::Spec`] if mean and deviation do not match the data's channels.
pub fn open(data: &Data, seed: u64) -> Result<DataSet> {
    let folder = place(data.path.as_ref());
    let parts = match data.source {
        DataSource::Digits => drawn(data, seed),
        DataSource::Mnist if !idx::is_there(folder, "train")? => {
            let notice = format!("no MNIST files in {}: the digits are drawn", folder.display());
            UnnormalisedSet { notices: vec![notice], ..drawn(data, seed) }
        }
        DataSource::Mnist | DataSource::Idx => mnist(data, folder)?,
        DataSource::Images => folders(data, place(data.train.as_ref()), data.test.as_deref())?,
        DataSource::Parquet => table::open(data)?,
    };
    parts.join(data)
}

impl UnnormalisedSet {
    fn join(self, data: &Data) -> Result<DataSet> {
        let Self { what, shape, classes, normal, train, test, notices } = self;
        let channels = normal.mean.len();
        let stated = |stated: &Option<Vec<f64>>, own: Vec<f32>, key: &str| match stated {
            None => Ok(own),
            Some(values) if values.len() == channels => Ok(values.iter().map(|value| *value as f32).collect()),
            Some(values) => {
                Err(Error::spec(format!("`{key}` has {} values, and the images {channels} channels", values.len()))
                    .at("[data]"))
            }
        };
        let normal = Normal { mean: stated(&data.mean, normal.mean, "mean")?, sd: stated(&data.sd, normal.sd, "sd")? };
        let test_print = test.as_ref().map_or(0, |test| test.fingerprint());
        let fingerprint = mix(mix(train.fingerprint()) ^ test_print);
        let title = match &test {
            Some(test) => format!("{} {what}, tested on {}", count(train.count() as u64), count(test.count() as u64)),
            None => format!("{} {what}", count(train.count() as u64)),
        };
        let examples = |source| Arc::new(Examples::new(source, normal.clone(), shape));
        let (train, test) = (examples(train), test.map(examples));
        Ok(DataSet { title, shape, classes, normal, train, test, fingerprint, notices })
    }
}

fn drawn(data: &Data, seed: u64) -> UnnormalisedSet {
    let [train, test] = DRAWN;
    let train = digits::draw(seed, TrainOrTest::Train, data.examples.unwrap_or(train));
    let test = digits::draw(seed, TrainOrTest::Test, data.test_examples.unwrap_or(test));
    held("drawn digits", digits::SHAPE, digits::CLASSES, train, Some(test))
}

fn mnist(data: &Data, path: &Path) -> Result<UnnormalisedSet> {
    let read = |part, limit: Option<usize>| -> Result<idx::Images> {
        let mut images = idx::read(path, part)?;
        images.set.thin(limit.unwrap_or(usize::MAX));
        Ok(images)
    };
    let train = read("train", data.examples)?;
    let test = if idx::is_there(path, "t10k")? { Some(read("t10k", data.test_examples)?) } else { None };
    let is_missed = test.is_none() && data.test_examples != Some(0);
    let what = "no test images (t10k-images-idx3-ubyte, plain or with .gz)";
    let notice = is_missed.then(|| format!("{what} in {}: no accuracy is measured", path.display()));
    if let Some(test) = test.as_ref().filter(|test| (test.height, test.width) != (train.height, train.width)) {
        let what = format!(
            "images of {}x{}, where the training has {}x{}",
            test.width, test.height, train.width, train.height
        );
        return Err(Error::data(what).at(test.set.name.clone()));
    }
    let largest = train.set.labels.iter().chain(test.iter().flat_map(|test| &test.set.labels)).max();
    let classes = largest.map_or(1, |label| usize::from(*label) + 1).max(digits::CLASSES);
    let shape = Shape::Maps { channels: 1, height: train.height, width: train.width };
    let set = held("images from IDX files", shape, classes, train.set, test.map(|test| test.set));
    Ok(UnnormalisedSet { notices: notice.into_iter().collect(), ..set })
}

fn held(what: &'static str, shape: Shape, classes: usize, train: Labelled, test: Option<Labelled>) -> UnnormalisedSet {
    let normal = Normal::of(&train, shape.channels());
    let test = test.filter(|test| test.count() > 0).map(|test| Box::new(test) as Box<dyn Source>);
    UnnormalisedSet { what, shape, classes, normal, train: Box::new(train), test, notices: Vec::new() }
}

fn folders(data: &Data, train: &Path, test: Option<&Path>) -> Result<UnnormalisedSet> {
    let mut training = Folder::open(train, None)?;
    let shape = training.shape();
    let mut tested = test.map(|test| Folder::open(test, Some(shape))).transpose()?;
    if let Some(other) = tested.as_ref().filter(|other| other.classes != training.classes) {
        let odd = other.classes.iter().find(|class| !training.classes.contains(class));
        let what = match odd {
            Some(odd) => format!("the class `{odd}` is not among those of {}", train.display()),
            None => format!("it lacks classes of {}", train.display()),
        };
        return Err(Error::data(what).at(test.unwrap_or(train).display().to_string()));
    }
    training.thin(data.examples.unwrap_or(usize::MAX));
    if let Some(tested) = &mut tested {
        tested.thin(data.test_examples.unwrap_or(usize::MAX));
    }
    Ok(UnnormalisedSet {
        what: "images from a folder",
        shape,
        classes: training.classes.len(),
        normal: Normal::symmetric(shape.channels()),
        train: Box::new(training),
        test: tested.map(|tested| Box::new(tested) as Box<dyn Source>),
        notices: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of two images of one pixel each.
    fn part(folder: &Path, name: &str) {
        std::fs::write(
            folder.join(format!("{name}-images-idx3-ubyte")),
            [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 5, 9],
        )
        .expect("written");
        std::fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), [0, 0, 8, 1, 0, 0, 0, 2, 7, 3])
            .expect("written");
    }

    #[test]
    fn a_set_without_test_images_says_that_no_accuracy_is_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_path_buf();
        let data = |source, test_examples| Data { source, path: Some(path.clone()), test_examples, ..Data::default() };
        part(&path, "train");
        for source in [DataSource::Mnist, DataSource::Idx] {
            let opened = open(&data(source, None), 1).expect("opened");
            assert!(opened.test.is_none() && opened.notices.len() == 1, "{:?}", opened.notices);
            let said = &opened.notices[0];
            assert!(said.contains("t10k-images-idx3-ubyte") && said.contains("no accuracy"), "{said}");
            // Who asks for none knows.
            assert_eq!(open(&data(source, Some(0)), 1).expect("opened").notices, Vec::<String>::new());
        }
        part(&path, "t10k");
        let opened = open(&data(DataSource::Idx, None), 1).expect("opened");
        assert!(opened.test.is_some() && opened.notices.is_empty(), "{:?}", opened.notices);
    }
}
