//! Reading the files of a study, out of the page cache or from the storage device, and what a worker makes of them.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::data::{Image, Source};
use crate::error::{Error, Result};
use crate::network::Shape;
use crate::settings::named;
use crate::study::pipeline::spec::{Cache, Format};

use super::images::{CHANNELS, MadeSet};

/// Direct reads need memory, places and lengths that are multiples of the device's block; no device in use has larger ones.
const BLOCK: usize = 4096;

named! {
    /// How a file is read.
    Method {
        /// Through the page cache, which holds it.
        PageCache = "page_cache",
        /// Past the page cache (O_DIRECT).
        Direct = "direct",
        /// Through the page cache, which is asked to drop it right after (POSIX_FADV_DONTNEED), for file systems without O_DIRECT.
        Dropped = "dropped",
    }
}

impl Method {
    /// How files are read for `cache`: of cold ones `first` is read to see whether O_DIRECT works here.
    pub fn of(cache: Cache, first: &Path) -> Self {
        match cache {
            Cache::Warm => Self::PageCache,
            Cache::Cold if Self::Direct.read(first, &mut Buffer::default()).is_ok() => Self::Direct,
            Cache::Cold => Self::Dropped,
        }
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// What the system says.
    pub fn read<'b>(self, path: &Path, buffer: &'b mut Buffer) -> io::Result<&'b [u8]> {
        let mut options = OpenOptions::new();
        options.read(true);
        if self == Self::Direct {
            options.custom_flags(libc::O_DIRECT);
        }
        let mut file = options.open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let room = buffer.room(length);
        let mut done = 0;
        while done < length {
            match file.read(&mut room[done..]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self == Self::Dropped {
            drop_pages(&file);
        }
        Ok(&room[..done.min(length)])
    }
}

/// Asks the kernel to forget the pages of a file. It is free not to: [`resident_share`] says whether it did.
fn drop_pages(file: &File) {
    // SAFETY: the descriptor is open during the call.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// Brings the files into the state that `cache` means.
///
/// # Errors
/// [`crate::error::Kind::Io`], with the name of the file that cannot be read.
pub fn prepare(cache: Cache, files: &[PathBuf]) -> Result<()> {
    let mut buffer = Buffer::default();
    for path in files {
        let done = match cache {
            Cache::Warm => Method::PageCache.read(path, &mut buffer).map(drop),
            Cache::Cold => File::open(path).map(|file| drop_pages(&file)),
        };
        done.map_err(|e| Error::io("read the image", path, &e))?;
    }
    Ok(())
}

/// The share of the files' pages that are in the page cache, as mincore(2) says.
///
/// # Errors
/// [`crate::error::Kind::Io`], with the name of the file that cannot be looked at.
pub fn resident_share(files: &[PathBuf]) -> Result<f64> {
    let (mut resident, mut pages) = (0, 0);
    for path in files {
        let in_memory = in_memory(path).map_err(|e| Error::io("look at the image", path, &e))?;
        resident += in_memory.iter().filter(|&&page| page & 1 == 1).count();
        pages += in_memory.len();
    }
    Ok(resident as f64 / pages.max(1) as f64)
}

/// For each page of a file whether it is in the page cache, in the lowest bit.
fn in_memory(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut answer = vec![0u8; length.div_ceil(page_size())];
    if length == 0 {
        return Ok(answer);
    }
    // SAFETY: a new mapping of an open file, of its length, which nothing else refers to.
    let mapped =
        unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has this length, and the answer a byte for each of its pages.
    let asked = unsafe { libc::mincore(mapped, length, answer.as_mut_ptr().cast()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping of above, which is not used any more.
    unsafe { libc::munmap(mapped, length) };
    if asked == 0 { Ok(answer) } else { Err(error) }
}

fn page_size() -> usize {
    // SAFETY: asks for a constant.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Memory for the contents of a file, aligned for direct reads, used again for the next one.
#[derive(Debug, Default)]
pub struct Buffer {
    memory: Vec<u8>,
}

impl Buffer {
    /// Room for a file of `length` bytes, and for the rest of its last block.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let blocks = (length.div_ceil(BLOCK) + 1) * BLOCK;
        if self.memory.len() < blocks + BLOCK {
            self.memory.resize(blocks + BLOCK, 0);
        }
        let start = self.memory.as_ptr().align_offset(BLOCK);
        &mut self.memory[start..start + blocks]
    }
}

thread_local! {
    /// The buffer of each worker.
    static CONTENTS: RefCell<Buffer> = RefCell::default();
}

/// The files of a set as examples of a training.
#[derive(Clone, Debug)]
pub struct Files {
    pub format: Format,
    /// Pixels of a side.
    pub size: usize,
    pub paths: Vec<PathBuf>,
    pub method: Method,
    /// Classes that the images are given, in turn.
    pub classes: usize,
    /// How many times an epoch reads every file.
    pub passes: usize,
}

impl Files {
    /// The files of a set, read by the method that `cache` asks for.
    pub fn new(set: &MadeSet, cache: Cache, classes: usize) -> Self {
        let method = set.files.first().map_or(Method::PageCache, |first| Method::of(cache, first));
        Self { format: set.format, size: set.size, paths: set.files.clone(), method, classes, passes: 1 }
    }

    /// The shape of every image.
    pub fn shape(&self) -> Shape {
        Shape::Maps { channels: CHANNELS, height: self.size, width: self.size }
    }

    /// The same without files that cannot be opened: only the loader handles those, not the stages that are measured by themselves.
    pub fn that_open(self) -> Self {
        let opens =
            |path: &PathBuf| File::open(path).and_then(|file| file.metadata()).is_ok_and(|facts| facts.is_file());
        Self { paths: self.paths.into_iter().filter(opens).collect(), ..self }
    }

    fn path(&self, index: usize) -> &Path {
        &self.paths[index % self.paths.len()]
    }

    /// Stage 1: the contents of a file.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`].
    pub fn contents<'b>(&self, index: usize, buffer: &'b mut Buffer) -> Result<&'b [u8]> {
        let path = self.path(index);
        self.method.read(path, buffer).map_err(|e| Error::io("read the image", path, &e))
    }

    /// Stage 2: the pixels of a file's contents.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where they are not an image of this format.
    pub fn decode(&self, index: usize, contents: &[u8]) -> Result<Image> {
        let path = self.path(index);
        if self.format != Format::Raw {
            return Image::decode(contents, path.display());
        }
        let expected = self.shape().count();
        if contents.len() != expected {
            let what = format!("the image cannot be read: {} bytes, where {expected} are needed", contents.len());
            return Err(Error::data(what)
                .at(path.display().to_string())
                .hint("replace the image, or leave out what is damaged with `on_error = \"skip\"` in [loader]"));
        }
        Ok(Image { width: self.size, height: self.size, channels: CHANNELS, bytes: contents.to_vec() })
    }

    /// Stage 3, its first half: the planes of the network's input. The loader then normalises them into the batch.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] for an image of another size.
    pub fn planes(&self, index: usize, image: &Image, planes: &mut [u8]) -> Result<()> {
        image.write(self.shape(), planes, self.path(index).display())
    }
}

impl Source for Files {
    fn count(&self) -> usize {
        self.paths.len() * self.passes
    }

    fn read(&self, index: usize, bytes: &mut [u8]) -> Result<u32> {
        CONTENTS.with_borrow_mut(|buffer| {
            let contents = self.contents(index, buffer)?;
            let image = self.decode(index, contents)?;
            self.planes(index, &image, bytes)
        })?;
        Ok((index % self.classes.max(1)) as u32)
    }

    fn name(&self, index: usize) -> String {
        self.path(index).display().to_string()
    }

    fn fingerprint(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::images::Made;
    use super::*;
    use crate::study::pipeline::spec::Images;

    fn spec() -> Images {
        let formats = vec![Format::Raw, Format::Png];
        Images { folder: None, images: 4, sizes: vec![50], formats, caches: vec![Cache::Cold], damaged: 0 }
    }

    #[test]
    fn every_way_of_reading_gives_the_same_bytes() {
        let parent = crate::needs::on_disk();
        let made = Made::new(&parent.path().join("images"), &spec(), 1).expect("made");
        let mut buffer = Buffer::default();
        for set in [Format::Png, Format::Raw].map(|format| made.set(format, 50).expect("a set")) {
            for path in &set.files {
                let expected = std::fs::read(path).expect("readable");
                for method in [Method::PageCache, Method::of(Cache::Cold, path), Method::Dropped] {
                    assert_eq!(method.read(path, &mut buffer).expect("readable"), expected, "{method} {path:?}");
                }
            }
        }
        let gone = parent.path().join("gone");
        assert!(Method::PageCache.read(&gone, &mut buffer).is_err());
    }

    #[test]
    fn warm_files_are_in_the_page_cache() {
        let parent = crate::needs::on_disk();
        let made = Made::new(&parent.path().join("images"), &spec(), 1).expect("made");
        let files = &made.set(Format::Raw, 50).expect("a set").files;
        prepare(Cache::Warm, files).expect("read");
        assert_eq!(resident_share(files).expect("asked"), 1.0);
    }

    #[test]
    fn an_example_is_read_decoded_and_laid_out_in_planes() {
        let parent = tempfile::tempdir().expect("a folder");
        let made = Made::new(&parent.path().join("images"), &spec(), 9).expect("made");
        for format in [Format::Raw, Format::Png] {
            let files = Files::new(made.set(format, 50).expect("a set"), Cache::Warm, 3);
            let mut planes = vec![0; 3 * 50 * 50];
            assert_eq!(files.read(3, &mut planes).expect("read"), 0);
            let pixels = super::super::images::draw(9, 50, 3);
            // The second plane holds the greens.
            assert!(planes[2500..5000].iter().zip(pixels.iter().skip(1).step_by(3)).all(|(a, b)| a == b), "{format}");
        }
        let mut files = Files::new(made.set(Format::Raw, 50).expect("a set"), Cache::Warm, 3);
        std::fs::write(&files.paths[1], [0; 10]).expect("written");
        let error = files.read(1, &mut vec![0; 7500]).expect_err("it is short").to_string();
        assert!(error.contains("000001.raw: the image cannot be read: 10 bytes, where 7500 are needed"), "{error}");
        files.passes = 3;
        assert_eq!((files.count(), files.name(11) == files.name(3)), (12, true));
    }
}
