//! Data sets of labelled images: MNIST from its files, digits that are drawn here, folders of images, Parquet files with a
//! column of images.
//!
//! A [`DataSet`] writes one example at a time, decoded and normalised, into the caller's memory; this module knows no batches,
//! threads or engines. Bytes of 0 to 255 become `(byte / 255 - mean) / sd`, for each channel.

pub mod digits;
mod folder;
pub mod idx;
mod image;
pub mod loader;
mod normal;
mod open;
mod table;

use std::sync::Arc;

use crate::error::Result;
use crate::network::Shape;
use crate::random::mix;
pub use image::Image;
pub use normal::Normal;
pub use open::open;

/// Where examples come from.
pub trait Source: std::fmt::Debug + Send + Sync {
    /// The number of examples.
    fn count(&self) -> usize;

    /// Writes the bytes of example `index`, C x H x W, and gives its class.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] or [`crate::error::Kind::Io`], with the name of the file.
    fn read(&self, index: usize, bytes: &mut [u8]) -> Result<u32>;

    /// What a message calls example `index`: the file, or its place in it.
    fn name(&self, index: usize) -> String;

    /// All bytes and labels, where they are in memory.
    fn in_memory(&self) -> Option<&Labelled> {
        None
    }

    /// A number that changes with the contents, as far as these can be checked without reading everything.
    fn fingerprint(&self) -> u64;
}

/// Images in memory: N x C x H x W bytes and N classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labelled {
    /// For messages.
    pub name: String,
    pub pixels: Vec<u8>,
    pub labels: Vec<u8>,
}

impl Labelled {
    /// The bytes of one image.
    fn each(&self) -> usize {
        self.pixels.len() / self.labels.len().max(1)
    }

    /// Keeps `count` examples.
    fn thin(&mut self, count: usize) {
        if count >= self.count() {
            return;
        }
        let each = self.each();
        let places: Vec<usize> = spread(self.labels.len(), count).collect();
        self.pixels = places.iter().flat_map(|at| &self.pixels[at * each..][..each]).copied().collect();
        self.labels = places.iter().map(|&at| self.labels[at]).collect();
    }
}

impl Source for Labelled {
    fn count(&self) -> usize {
        self.labels.len()
    }

    fn read(&self, index: usize, bytes: &mut [u8]) -> Result<u32> {
        let each = self.each();
        bytes.copy_from_slice(&self.pixels[index * each..][..each]);
        Ok(u32::from(self.labels[index]))
    }

    fn name(&self, index: usize) -> String {
        format!("{}, example {index}", self.name)
    }

    fn in_memory(&self) -> Option<&Labelled> {
        Some(self)
    }

    fn fingerprint(&self) -> u64 {
        fingerprint(self.pixels.chunks(8).chain(self.labels.chunks(8)))
    }
}

/// The places of `count` of `all` examples at even distances, so that all classes stay where a file has one after the other; all where there are
/// not so many.
fn spread(all: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(all);
    (0..count).map(move |place| (place as u128 * all as u128 / count as u128) as usize)
}

/// A hash of pieces of up to eight bytes, the same on every machine.
pub(crate) fn fingerprint<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> u64 {
    pieces.fold(0, |hash, piece| {
        let mut word = [0; 8];
        word[..piece.len()].copy_from_slice(piece);
        mix(hash ^ u64::from_le_bytes(word)).wrapping_add(piece.len() as u64)
    })
}

/// A hash of the hashes of all examples.
fn fingerprint_of_all(examples: impl Iterator<Item = u64>) -> u64 {
    examples.fold(0, |hash, own| fingerprint([&u64::to_le_bytes(hash ^ own)[..]].into_iter()))
}

/// The examples of one part of a data set.
#[derive(Debug)]
pub struct Examples {
    source: Box<dyn Source>,
    normal: Normal,
    shape: Shape,
}

impl Examples {
    /// `shape` is the shape of every image.
    pub fn new(source: Box<dyn Source>, normal: Normal, shape: Shape) -> Self {
        Self { source, normal, shape }
    }

    pub fn count(&self) -> usize {
        self.source.count()
    }

    /// The numbers of one example.
    pub fn each(&self) -> usize {
        self.shape.count()
    }

    /// What a message calls example `index`.
    pub fn name(&self, index: usize) -> String {
        self.source.name(index)
    }

    /// Reads example `index` into `to`, C x H x W, normalised; gives its class. `bytes` is memory for the work, which may be
    /// empty at first.
    ///
    /// # Errors
    /// As [`Source::read`].
    pub fn read(&self, index: usize, bytes: &mut Vec<u8>, to: &mut [f32]) -> Result<u32> {
        if let Some(held) = self.source.in_memory() {
            let each = self.each();
            self.normal.apply(&held.pixels[index * each..][..each], to);
            return Ok(u32::from(held.labels[index]));
        }
        bytes.resize(self.each(), 0);
        let label = self.source.read(index, bytes)?;
        self.normal.apply(bytes, to);
        Ok(label)
    }

    /// All bytes and labels, where they are in memory.
    pub fn in_memory(&self) -> Option<&Labelled> {
        self.source.in_memory()
    }
}

/// The two parts of a set before they are normalised.
#[derive(Debug)]
struct UnnormalisedSet {
    what: &'static str,
    shape: Shape,
    classes: usize,
    /// Measured on the training part, where that is in memory.
    normal: Normal,
    train: Box<dyn Source>,
    test: Option<Box<dyn Source>>,
    /// See [`DataSet::notices`].
    notices: Vec<String>,
}

/// A data set: examples to train on, and others to test with.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// For charts and reports: `60,000 drawn digits`.
    pub title: String,
    pub shape: Shape,
    pub classes: usize,
    pub normal: Normal,
    pub train: Arc<Examples>,
    pub test: Option<Arc<Examples>>,
    /// Changes with the contents.
    pub fingerprint: u64,
    /// What the user should know, such as that there were no MNIST files.
    pub notices: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_examples_are_of_all_classes() {
        // Two pixels each; sorted by class.
        let labels: Vec<u8> = (0..12).map(|at| at / 4).collect();
        let pixels = (0..24).collect();
        let mut set = Labelled { name: "sorted".into(), pixels, labels };
        set.thin(3);
        assert_eq!((&set.labels[..], &set.pixels[..]), (&[0, 1, 2][..], &[0, 1, 8, 9, 16, 17][..]));
        set.thin(100);
        assert_eq!(set.labels.len(), 3);
    }
}
