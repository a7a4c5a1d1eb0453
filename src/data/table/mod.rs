//! Parquet files whose rows are examples: an encoded image and its class, as the hubs of data sets store them.
//!
//! The encoded bytes are in memory, which is checked before they are read; they are decoded when an example is asked for, by the
//! loader's workers, exactly as the files of a folder. A row group cannot serve single examples in a shuffled order: each would cost
//! the unpacking of all its neighbours, hundreds of images in the layout of the hubs.

mod columns;
mod splits;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::image::Image;
use super::{Normal, Source, UnnormalisedSet, fingerprint, fingerprint_of_all, spread};
use crate::device::free_memory;
use crate::error::{Error, Kind, Result};
use crate::network::Shape;
use crate::spec::data::Data;
use crate::store::{EncodedImage, ImageTable, Label};
use columns::Columns;
use splits::Files;

/// Encoded images in memory.
#[derive(Debug)]
struct Encoded {
    files: Vec<PathBuf>,
    rows: Vec<ImageRow>,
    shape: Shape,
}

#[derive(Debug)]
struct ImageRow {
    /// The file's place in [`Encoded::files`], and the row's in it.
    file: u32,
    number: usize,
    bytes: Option<Box<[u8]>>,
    path: Option<Box<str>>,
    label: u32,
}

/// Reads the images of all files, encoded as they are: so many of each part, all where that is not said.
///
/// # Errors
/// [`Kind::Data`] if a file is damaged or lacks a column, or if a label is not a class: with the file, the row, and the path that
/// the image had. [`Kind::OutOfMemory`] if the images do not fit into memory. [`Kind::Io`].
pub(super) fn open(data: &Data) -> Result<UnnormalisedSet> {
    let Files { train, test } = splits::find(data)?;
    let notice = notice(data, &test);
    let mut train = SplitRows::read(train, data, "examples", data.examples)?;
    let mut test = match data.test_examples {
        Some(0) => None,
        _ if test.is_empty() => None,
        limit => {
            // The columns of both parts are the same.
            let Columns { image, label, .. } = train.columns.clone();
            let data = Data { image: Some(image), label: Some(label), ..data.clone() };
            Some(SplitRows::read(test, &data, "test_examples", limit)?)
        }
    };
    let classes = classes(&mut train, test.as_mut())?;
    let decoded = train.rows.iter().map(|row| row.decode(&train.files));
    let shape = Image::first_shape(decoded)?;
    let encoded =
        |SplitRows { files, rows, .. }: SplitRows| -> Box<dyn Source> { Box::new(Encoded { files, rows, shape }) };
    Ok(UnnormalisedSet {
        what: "images from Parquet files",
        shape,
        classes,
        normal: Normal::symmetric(shape.channels()),
        train: encoded(train),
        test: test.map(encoded),
        notices: notice.into_iter().collect(),
    })
}

fn notice(data: &Data, test: &[PathBuf]) -> Option<String> {
    let folder = data.path.as_ref()?;
    let within = |file: &PathBuf| file.strip_prefix(folder).unwrap_or(file).display().to_string();
    match test.first() {
        None => Some(format!("no part for tests or validation in {}: no accuracy is measured", folder.display())),
        Some(first) if within(first).contains("test") => None,
        Some(first) => Some(format!("there is no part for tests: accuracy is measured on {}", within(first))),
    }
}

/// One part, whose labels may not be the numbers of classes yet.
struct SplitRows {
    files: Vec<PathBuf>,
    columns: Columns,
    rows: Vec<ImageRow>,
    /// Over all rows, kept or not.
    labels: SplitLabels,
}

/// The labels that a part has.
#[derive(Default)]
struct SplitLabels {
    largest: u32,
    /// If the classes are texts: the number of each in the order of first appearance, which its rows have as label.
    texts: HashMap<String, u32>,
}

impl SplitRows {
    /// `key`: how the spec says how many rows are kept.
    fn read(files: Vec<PathBuf>, data: &Data, key: &str, limit: Option<usize>) -> Result<Self> {
        let Some(first) = files.first() else { return Err(Error::data("there are no Parquet files")) };
        let columns = Columns::choose(&ImageTable::open(first)?, data)?;
        let (mut all, mut bytes) = (0, 0u64);
        for file in &files {
            let table = ImageTable::open(file)?;
            columns.check(&table)?;
            all += table.rows();
            bytes = bytes.saturating_add(table.unpacked_bytes(&columns.image));
        }
        if all == 0 {
            return Err(Error::data("there are no rows").at(first.display().to_string()));
        }
        let count = limit.unwrap_or(all).min(all);
        check_room(bytes, all, count, key, free_memory::bytes())?;
        let (mut kept, mut place) = (spread(all, count).peekable(), 0);
        let mut part =
            Self { files: Vec::new(), columns, rows: Vec::with_capacity(count), labels: SplitLabels::default() };
        for (number, file) in (0..).zip(files) {
            let table = ImageTable::open(&file)?;
            let (image, label) = (part.columns.image.clone(), part.columns.label.clone());
            table.scan(&image, &label, &mut |row| {
                let is_kept = kept.next_if_eq(&place).is_some();
                place += 1;
                part.add(row, number, &file, is_kept)
            })?;
            part.files.push(file);
        }
        Ok(part)
    }

    fn add(&mut self, row: EncodedImage, file: u32, name: &Path, is_kept: bool) -> Result<()> {
        let label = self.labels.number(row.label).map_err(|error| {
            let EncodedImage { row, path, .. } = row;
            error.at(RowLocation { file: name, row, path }.to_string())
        })?;
        if is_kept {
            self.rows.push(ImageRow {
                file,
                number: row.row,
                bytes: row.bytes.map(Box::from),
                path: row.path.map(Box::from),
                label,
            });
        }
        Ok(())
    }
}

/// No data set has more; a column of identities does.
const MOST_CLASSES: u32 = 1 << 20;

impl SplitLabels {
    /// The number of a label among those of its part.
    fn number(&mut self, label: Label) -> Result<u32> {
        match label {
            Label::Integer(-1) => {
                Err(Error::data("the label is -1, which the hubs write where the class is kept secret")
                    .hint("leave this part out, or name another: `train` and `test` in [data]"))
            }
            Label::Integer(number) => match u32::try_from(number).ok().filter(|number| *number < MOST_CLASSES) {
                Some(number) => {
                    self.largest = self.largest.max(number);
                    Ok(number)
                }
                None => Err(Error::data(format!("the label {number} is not a class: classes are counted from 0"))
                    .hint("name the column of classes: label = \"COLUMN\" in [data]")),
            },
            Label::Text(text) => {
                let next = self.texts.len() as u32;
                if let Some(number) = self.texts.get(text) {
                    return Ok(*number);
                }
                if next == MOST_CLASSES {
                    let what = format!("more than {MOST_CLASSES} different labels: these are no classes");
                    return Err(Error::data(what).hint("name the column of classes: label = \"COLUMN\" in [data]"));
                }
                self.texts.insert(text.to_owned(), next);
                Ok(next)
            }
            Label::Missing => Err(Error::data("the row has no label")),
        }
    }
}

/// The number of classes; afterwards the labels of both parts are numbers of classes. Texts are classes in the order of their names,
/// as the names of a folder's folders are.
fn classes(train: &mut SplitRows, test: Option<&mut SplitRows>) -> Result<usize> {
    if !train.columns.texts {
        let largest = train.labels.largest.max(test.map_or(0, |test| test.labels.largest)) as usize;
        return match &train.columns.classes {
            Some(names) if names.len() <= largest => {
                let what = format!("there is the label {largest}, and the file declares {} classes", names.len());
                Err(Error::data(what).at(train.files[0].display().to_string()))
            }
            Some(names) => Ok(names.len()),
            None => Ok(largest + 1),
        };
    }
    let mut names: Vec<String> = train.labels.texts.keys().cloned().collect();
    names.sort();
    for part in std::iter::once(train).chain(test) {
        let mut numbers = vec![0; part.labels.texts.len()];
        for (text, &own) in &part.labels.texts {
            let class = names.binary_search(text).map_err(|_| {
                Error::data(format!("the class `{text}` is not among those of the training part"))
                    .at(part.files[0].display().to_string())
            })?;
            numbers[own as usize] = class as u32;
        }
        part.rows.iter_mut().for_each(|row| row.label = numbers[row.label as usize]);
    }
    Ok(names.len())
}

/// Refuses `wanted` images, if their share of the `bytes` of all `rows` is more than nine tenths of the free memory; the rest is the training's.
/// Where the system does not say what is free, nothing is refused.
fn check_room(bytes: u64, rows: usize, wanted: usize, key: &str, free: Option<u64>) -> Result<()> {
    let needed = bytes as f64 * (wanted as f64 / rows.max(1) as f64);
    let Some(free) = free.filter(|free| needed > 0.9 * *free as f64) else { return Ok(()) };
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    let fitting = (0.9 * free as f64 / bytes as f64 * rows as f64) as usize;
    let (needed, free) = (gib(needed), gib(free as f64));
    let what =
        format!("the encoded images of {wanted} rows take about {needed:.2} GiB, and {free:.2} GiB of memory are free");
    Err(Error::new(Kind::OutOfMemory, what).at("[data]").hint(format!(
        "take fewer, evenly over all of them: `{key} = {fitting}`; or write the images into a folder for each class, of which \
         `source = \"images\"` reads each when it is needed"
    )))
}

/// What a message calls a row: the file, the row counted from 0, and the path that the image had.
struct RowLocation<'a> {
    file: &'a Path,
    row: usize,
    path: Option<&'a str>,
}

impl fmt::Display for RowLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}", self.file.display(), self.row)?;
        self.path.map_or(Ok(()), |path| write!(f, " ({path})"))
    }
}

impl ImageRow {
    fn place<'a>(&'a self, files: &'a [PathBuf]) -> RowLocation<'a> {
        RowLocation { file: &files[self.file as usize], row: self.number, path: self.path.as_deref() }
    }

    fn decode(&self, files: &[PathBuf]) -> Result<Image> {
        let place = self.place(files);
        match &self.bytes {
            Some(bytes) => Image::decode(bytes, place),
            None => Err(Error::data("the row contains no bytes of an image")
                .at(place.to_string())
                .hint("if a table contains only paths, read the folder: `source = \"images\"` in [data]")),
        }
    }
}

impl Source for Encoded {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn read(&self, index: usize, bytes: &mut [u8]) -> Result<u32> {
        let row = &self.rows[index];
        row.decode(&self.files)?.write(self.shape, bytes, row.place(&self.files))?;
        Ok(row.label)
    }

    fn name(&self, index: usize) -> String {
        self.rows[index].place(&self.files).to_string()
    }

    /// The fingerprint of the labels, the lengths, and some bytes of each image: all bytes of a large set would take longer than the run's first visit.
    fn fingerprint(&self) -> u64 {
        fingerprint_of_all(self.rows.iter().map(|row| {
            let bytes = row.bytes.as_deref().unwrap_or_default();
            let middle = bytes.len() / 2;
            let some = &bytes[middle..bytes.len().min(middle + 8)];
            fingerprint([&row.label.to_le_bytes()[..], &bytes.len().to_le_bytes(), some].into_iter())
        }))
    }
}
