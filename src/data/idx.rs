//! MNIST's files: the IDX format of Yann LeCun's site, plain or compressed with gzip.
//!
//! A file is a magic number (two zero bytes, the element type, the number of dimensions), the dimensions as big-endian 32-bit
//! numbers, and the elements. Everything that a file claims is checked against its length.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::Labelled;
use crate::error::{Error, Result};
use crate::os::look;

/// No image set is larger; a damaged header can claim any size.
const LARGEST: u64 = 1 << 34;
const UNSIGNED_BYTES: u8 = 8;

/// Images of one size with their classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    pub set: Labelled,
    pub height: usize,
    pub width: usize,
}

/// The names that the files of one part have: from LeCun's site, and from an archive in wide use.
fn names(part: &str, what: &str, dimensions: usize) -> [String; 4] {
    let dashed = format!("{part}-{what}-idx{dimensions}-ubyte");
    let dotted = format!("{part}-{what}.idx{dimensions}-ubyte");
    [dashed.clone(), format!("{dashed}.gz"), dotted.clone(), format!("{dotted}.gz")]
}

fn find(folder: &Path, names: &[String]) -> Result<Option<PathBuf>> {
    for path in names.iter().map(|name| folder.join(name)) {
        if look::is_file(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Whether a folder has the images of a part: `train`, `t10k`.
///
/// # Errors
/// [`crate::error::Kind::Io`].
pub fn is_there(folder: &Path, part: &str) -> Result<bool> {
    Ok(find(folder, &names(part, "images", 3))?.is_some())
}

/// Reads the images and labels of a part: `train`, `t10k`.
///
/// # Errors
/// [`crate::error::Kind::Io`] where a file is missing; [`crate::error::Kind::Data`] where it is damaged, of another kind, or the
/// two do not belong together.
pub fn read(folder: &Path, part: &str) -> Result<Images> {
    let path = |what, dimensions| {
        let names = names(part, what, dimensions);
        find(folder, &names)?.ok_or_else(|| {
            Error::data(format!("there is no `{}`, plain or with .gz", names[0]))
                .at(folder.display().to_string())
                .hint("put MNIST's four files there, or use `source = \"digits\"`, which draws digits")
        })
    };
    let (images_path, labels_path) = (path("images", 3)?, path("labels", 1)?);
    let ([count, height, width], pixels) = elements::<3>(&images_path)?;
    let ([labels_count], labels) = elements::<1>(&labels_path)?;
    if count != labels_count {
        return Err(Error::data(format!("{labels_count} labels for {count} images"))
            .at(labels_path.display().to_string())
            .hint("the two files are of different sets"));
    }
    if count == 0 || height == 0 || width == 0 {
        return Err(Error::data("a set without images").at(images_path.display().to_string()));
    }
    let name = images_path.display().to_string();
    Ok(Images { set: Labelled { name, pixels, labels }, height, width })
}

/// The dimensions and the elements of a file of unsigned bytes.
fn elements<const N: usize>(path: &Path) -> Result<([usize; N], Vec<u8>)> {
    let bytes = content(path)?;
    let refuse = |what: String| Error::data(what).at(path.display().to_string()).hint("get the file again");
    let head = bytes.get(..4 + 4 * N).ok_or_else(|| refuse(format!("the file ends after {} bytes", bytes.len())))?;
    if head[..4] != [0, 0, UNSIGNED_BYTES, N as u8] {
        let magic = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        return Err(refuse(format!("the magic number is {magic:#010x}, not {:#010x}", 0x800 + N)));
    }
    let dims: [usize; N] = std::array::from_fn(|at| {
        let at = 4 + 4 * at;
        u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
    });
    let claimed = dims.iter().fold(1u64, |product, &dim| product.saturating_mul(dim as u64));
    let there = (bytes.len() - head.len()) as u64;
    if claimed != there {
        return Err(refuse(format!("the header claims {dims:?}, {claimed} bytes, and {there} follow")));
    }
    Ok((dims, bytes[head.len()..].to_vec()))
}

/// The bytes of a file, decompressed where it begins as gzip does.
fn content(path: &Path) -> Result<Vec<u8>> {
    let failed = |e: io::Error| Error::io("read the file", path, &e);
    let mut reader = BufReader::new(File::open(path).map_err(|e| Error::io("open the file", path, &e))?);
    let is_compressed = reader.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
    let all: Box<dyn Read> = if is_compressed { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) };
    let mut bytes = Vec::new();
    match all.take(LARGEST).read_to_end(&mut bytes) {
        Err(error) if is_compressed => Err(Error::data(format!("not a whole gzip file: {error}"))
            .at(path.display().to_string())
            .hint("get the file again")),
        read => read.map_err(failed).map(|_| bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Two images of 2 x 3 pixels, as the format's description lays them out.
    const IMAGES: [u8; 28] = [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    const LABELS: [u8; 10] = [0, 0, 8, 1, 0, 0, 0, 2, 7, 3];

    fn folder(images: &[u8], labels: &[u8]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("train-images-idx3-ubyte"), images).expect("written");
        std::fs::write(folder.path().join("train-labels-idx1-ubyte"), labels).expect("written");
        folder
    }

    fn refusal(images: &[u8], labels: &[u8]) -> String {
        read(folder(images, labels).path(), "train").expect_err("refused").to_string()
    }

    #[test]
    fn plain_and_compressed_files_read_the_same() {
        let plain = read(folder(&IMAGES, &LABELS).path(), "train").expect("read");
        assert_eq!((plain.height, plain.width), (2, 3));
        assert_eq!((plain.set.pixels.as_slice(), plain.set.labels.as_slice()), (&IMAGES[16..], &[7, 3][..]));
        let folder = tempfile::tempdir().expect("a folder");
        for (name, bytes) in [("t10k-images.idx3-ubyte.gz", &IMAGES[..]), ("t10k-labels.idx1-ubyte.gz", &LABELS[..])] {
            let file = File::create(folder.path().join(name)).expect("created");
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            packed.write_all(bytes).expect("written");
            packed.finish().expect("finished");
        }
        let packed = read(folder.path(), "t10k").expect("read");
        assert_eq!((packed.set.pixels, packed.set.labels), (plain.set.pixels, plain.set.labels));
    }

    #[test]
    fn a_damaged_file_is_refused_by_name() {
        let short = refusal(&IMAGES[..27], &LABELS);
        assert!(
            short.contains("train-images-idx3-ubyte: the header claims [2, 2, 3], 12 bytes, and 11 follow"),
            "{short}"
        );
        assert!(refusal(&IMAGES[..10], &LABELS).contains("ends after 10 bytes"));
        assert!(refusal(&LABELS, &LABELS).contains("ends after 10 bytes"));
        let mut floats = IMAGES;
        floats[2] = 13;
        assert!(refusal(&floats, &LABELS).contains("0x00000d03, not 0x00000803"), "the type of float32");
        let three = [0, 0, 8, 1, 0, 0, 0, 3, 7, 3, 1];
        assert!(refusal(&IMAGES, &three).contains("3 labels for 2 images"));
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(folder.path(), "train").expect_err("refused").to_string().contains("train-images-idx3-ubyte"));
        let cut = folder.path().join("train-images-idx3-ubyte.gz");
        std::fs::write(&cut, [0x1f, 0x8b, 8, 0]).expect("written");
        std::fs::write(folder.path().join("train-labels-idx1-ubyte"), LABELS).expect("written");
        assert!(read(folder.path(), "train").expect_err("refused").to_string().contains("not a whole gzip file"));
    }
}
