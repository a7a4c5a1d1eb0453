//! The images of a study: drawn from a seed, encoded, written into a folder that is removed with its owner.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::error::{Error, Kind, Result};
use crate::random::{Purpose, Rng, Stream};
use crate::study::pipeline::spec::{Format, Images};

/// Red, green, blue.
pub const CHANNELS: usize = 3;
const JPEG_QUALITY: u8 = 90;
/// Waves of each channel.
const WAVES: usize = 4;

/// A folder of files that were made for a study. It is removed when this is dropped, however the study ended.
#[derive(Debug)]
pub struct Made {
    root: PathBuf,
    sets: Vec<MadeSet>,
}

/// The files of one format and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeSet {
    pub format: Format,
    pub size: usize,
    pub files: Vec<PathBuf>,
}

impl Made {
    /// Draws, encodes and writes the images of `spec` into the new folder `root`, and waits until they are on the device.
    ///
    /// # Errors
    /// [`Kind::Io`] if the folder already exists or there is no room; then nothing is left behind.
    pub fn new(root: &Path, spec: &Images, seed: u64) -> Result<Self> {
        let parent = root.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(|e| Error::io("make the folder", parent, &e))?;
        check_room(parent, spec)?;
        std::fs::create_dir(root).map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => Error::new(Kind::Io, "the folder for the images exists already")
                .at(root.display().to_string())
                .hint("remove it, if no other run is using it"),
            _ => Error::io("make the folder for the images", root, &e),
        })?;
        // From here on, whatever fails, the folder is removed.
        let mut made = Self { root: root.to_path_buf(), sets: Vec::new() };
        for &size in &spec.sizes {
            made.sets.extend(write_sets(root, size, spec, seed)?);
        }
        settle(root)?;
        Ok(made)
    }

    /// The files of a format and size; `None` if the spec does not have them.
    pub fn set(&self, format: Format, size: usize) -> Option<&MadeSet> {
        self.sets.iter().find(|set| (set.format, set.size) == (format, size))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // A file that cannot be removed now could not be removed a second time either.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// The sets of one size: each image is drawn once, and written in every format.
fn write_sets(root: &Path, size: usize, spec: &Images, seed: u64) -> Result<Vec<MadeSet>> {
    let folder = |format: Format| root.join(format!("{format}-{size}"));
    for &format in &spec.formats {
        std::fs::create_dir(folder(format)).map_err(|e| no_room(&folder(format), &e))?;
    }
    let write = |index: usize| -> Result<Vec<PathBuf>> {
        let pixels = draw(seed, size, index);
        let one = |&format: &Format| {
            let mut contents = encode(format, size, &pixels)?;
            if is_damaged(index, spec) {
                contents.truncate(contents.len() / 2);
            }
            let path = folder(format).join(format!("{index:06}.{format}"));
            std::fs::write(&path, &contents).map_err(|e| no_room(&path, &e))?;
            Ok(path)
        };
        spec.formats.iter().map(one).collect()
    };
    let made = (0..spec.images).into_par_iter().map(write).collect::<Result<Vec<Vec<PathBuf>>>>()?;
    let set = |(place, &format): (usize, &Format)| MadeSet {
        format,
        size,
        files: made.iter().map(|image| image[place].clone()).collect(),
    };
    Ok(spec.formats.iter().enumerate().map(set).collect())
}

/// Damaged files are spread over the set.
fn is_damaged(index: usize, spec: &Images) -> bool {
    let (images, damaged) = (spec.images, spec.damaged);
    (index + 1) * damaged / images > index * damaged / images
}

fn no_room(path: &Path, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let failed =
        Error::new(Kind::Io, format!("cannot write an image of the study: {error}")).at(path.display().to_string());
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => failed.hint(
            "the written images were removed again; free some space, choose another `folder` in [data], or ask for fewer `images`",
        ),
        _ => failed.hint("the written images were removed again; choose another `folder` in [data]"),
    }
}

/// Refuses what cannot fit, before anything is written. Encoded images are taken to be as large as raw ones.
fn check_room(folder: &Path, spec: &Images) -> Result<()> {
    let one: u64 = spec.sizes.iter().map(|&size| (size * size * CHANNELS) as u64).sum();
    let needed = one.saturating_mul((spec.images * spec.formats.len()) as u64);
    match free_bytes(folder) {
        Some(free) if free < needed => Err(Error::new(
            Kind::Io,
            format!("the images take up to {} MB, and {} MB are free", needed.div_ceil(1_000_000), free / 1_000_000),
        )
        .at(folder.display().to_string())
        .hint("free some space, choose another `folder` in [data], or ask for fewer `images`")),
        _ => Ok(()),
    }
}

/// What an ordinary user may still write there; `None` where the file system does not say.
fn free_bytes(folder: &Path) -> Option<u64> {
    let path = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: both outlive the call, and the path ends with a zero.
    let done = unsafe { libc::statvfs(path.as_ptr(), &raw mut answer) };
    (done == 0).then(|| answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// Waits until everything is on the device: pages that are not cannot be dropped from the cache.
fn settle(folder: &Path) -> Result<()> {
    let opened = File::open(folder).map_err(|e| Error::io("open the folder", folder, &e))?;
    // SAFETY: the descriptor is open during the call.
    match unsafe { libc::syncfs(opened.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(no_room(folder, &std::io::Error::last_os_error())),
    }
}

/// An image of `size` x `size` pixels: smooth waves in each channel under a grain, so that PNG and JPEG find about as much to
/// compress as in a photograph. It follows from the seed, the size and its number.
///
/// ```
/// use batchstep::study::pipeline::images::draw;
/// assert_eq!(draw(1, 8, 3).len(), 8 * 8 * 3);
/// assert_eq!(draw(1, 8, 3), draw(1, 8, 3));
/// ```
pub fn draw(seed: u64, size: usize, index: usize) -> Vec<u8> {
    let mut random = Rng::new(Stream::new(seed, Purpose::Images, [size as u64, index as u64]).key());
    let mut wave = || Wave {
        height: 30.0 * random.uniform(),
        across: 14.0 * (random.uniform() - 0.5),
        down: 14.0 * (random.uniform() - 0.5),
        phase: std::f64::consts::TAU * random.uniform(),
    };
    let waves: Vec<[Wave; WAVES]> = (0..CHANNELS).map(|_| std::array::from_fn(|_| wave())).collect();
    // The sine of a sum is a sum of products, so each column and each row needs its sines once.
    let table: Vec<WaveTable> = waves.iter().flatten().map(|wave| WaveTable::new(wave, size)).collect();
    let mut bytes = Vec::with_capacity(size * size * CHANNELS);
    for row in 0..size {
        for column in 0..size {
            // All channels share the grain, as in a photograph.
            let grain = 12.0 * (random.uniform() - 0.5);
            for waves in table.chunks_exact(WAVES) {
                let value: f64 = waves.iter().map(|wave| wave.at(row, column)).sum();
                bytes.push((128.0 + value + grain).round().clamp(0.0, 255.0) as u8);
            }
        }
    }
    bytes
}

#[derive(Clone, Copy)]
struct Wave {
    height: f64,
    across: f64,
    down: f64,
    phase: f64,
}

/// Sine and cosine of a wave's phase at each column, its height included, and at each row.
struct WaveTable {
    columns: Vec<(f64, f64)>,
    rows: Vec<(f64, f64)>,
}

impl WaveTable {
    fn new(wave: &Wave, size: usize) -> Self {
        let places = || (0..size).map(|place| place as f64 / size as f64);
        let columns = places().map(|x| (wave.across * x + wave.phase).sin_cos());
        let columns = columns.map(|(sin, cos)| (wave.height * sin, wave.height * cos)).collect();
        Self { columns, rows: places().map(|y| (wave.down * y).sin_cos()).collect() }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        let ((sin, cos), down) = (self.columns[column], self.rows[row]);
        sin * down.1 + cos * down.0
    }
}

/// The contents of a file.
fn encode(format: Format, size: usize, pixels: &[u8]) -> Result<Vec<u8>> {
    let refused =
        |what: String| Error::data(format!("an image of {size}x{size} cannot be encoded as {format}: {what}"));
    let mut contents = Vec::new();
    match format {
        Format::Raw => contents.extend_from_slice(pixels),
        Format::Png => {
            let mut encoder = png::Encoder::new(&mut contents, size as u32, size as u32);
            encoder.set_color(png::ColorType::Rgb);
            let mut writer = encoder.write_header().map_err(|e| refused(e.to_string()))?;
            writer.write_image_data(pixels).map_err(|e| refused(e.to_string()))?;
            writer.finish().map_err(|e| refused(e.to_string()))?;
        }
        Format::Jpeg => {
            let side = u16::try_from(size).map_err(|e| refused(e.to_string()))?;
            let encoder = jpeg_encoder::Encoder::new(&mut contents, JPEG_QUALITY);
            encoder.encode(pixels, side, side, jpeg_encoder::ColorType::Rgb).map_err(|e| refused(e.to_string()))?;
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Image;
    use crate::study::pipeline::spec::Cache;

    pub(crate) fn spec(images: usize, damaged: usize) -> Images {
        let formats = vec![Format::Raw, Format::Png, Format::Jpeg];
        Images { folder: None, images, sizes: vec![16], formats, caches: vec![Cache::Warm], damaged }
    }

    #[test]
    fn the_three_formats_hold_the_same_image_and_the_folder_goes_with_its_owner() {
        let parent = tempfile::tempdir().expect("a folder");
        let root = parent.path().join("images");
        let made = Made::new(&root, &spec(3, 0), 5).expect("made");
        let pixels = draw(5, 16, 2);
        for format in [Format::Raw, Format::Png, Format::Jpeg] {
            let set = made.set(format, 16).expect("a set");
            let contents = std::fs::read(&set.files[2]).expect("readable");
            let bytes = match format {
                Format::Raw => contents,
                _ => Image::decode(&contents, set.files[2].display()).expect("decoded").bytes,
            };
            let far = bytes.iter().zip(&pixels).map(|(a, b)| a.abs_diff(*b)).max();
            // JPEG is lossy: at quality 90 a quantisation step of its coarsest coefficients is about 20.
            assert!(
                bytes.len() == pixels.len() && far <= Some(if format == Format::Jpeg { 40 } else { 0 }),
                "{format}: {far:?}"
            );
        }
        let again = Made::new(&root, &spec(3, 0), 5).expect_err("it is in use").to_string();
        assert!(again.contains("exists already") && root.is_dir(), "{again}");
        drop(made);
        assert!(!root.exists() && parent.path().is_dir());
    }

    #[test]
    fn damaged_files_are_half_as_long_and_as_many_as_asked_for() {
        let parent = tempfile::tempdir().expect("a folder");
        let made = Made::new(&parent.path().join("images"), &spec(10, 3), 1).expect("made");
        let raw = made.set(Format::Raw, 16).expect("a set");
        let lengths: Vec<u64> = raw.files.iter().map(|file| file.metadata().expect("there").len()).collect();
        // 16 x 16 x 3 = 768 bytes.
        assert_eq!(lengths.iter().filter(|&&length| length == 384).count(), 3, "{lengths:?}");
        assert_eq!(lengths.iter().sum::<u64>(), 7 * 768 + 3 * 384);
    }

    #[test]
    fn what_cannot_fit_is_refused_before_anything_is_written() {
        let parent = tempfile::tempdir().expect("a folder");
        let root = parent.path().join("images");
        let huge = Images { images: 1 << 20, sizes: vec![4096], ..spec(1, 0) };
        let error = Made::new(&root, &huge, 1).expect_err("no disk holds 158 TB").to_string();
        assert!(
            error.contains("the images take up to 158329675 MB") && error.contains("`folder` in [data]"),
            "{error}"
        );
        assert!(!root.exists());
    }
}
