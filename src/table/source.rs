//! The bytes of a table as UTF-8 text, from a file or a pipe, packed by gzip or not, in UTF-8 or UTF-16.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Result};

/// Standard input, as a path.
const STDIN: &str = "-";
/// What came through a pipe is kept: a table is read more than once, and a pipe only once.
static PIPED: Mutex<Vec<(PathBuf, Arc<[u8]>)>> = Mutex::new(Vec::new());
/// Bytes of a pipe that are kept at most.
const MOST_PIPED: u64 = 1 << 29;

/// Whether a path means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// The text of `path` from its beginning, unpacked and without a byte-order mark.
///
/// # Errors
/// [`crate::error::Kind::Io`].
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let failed = |e: io::Error| Error::io("read the file", path, &e);
    let mut text: Box<dyn BufRead> = match piped(path)? {
        Some(bytes) => Box::new(Cursor::new(bytes)),
        None => {
            let file = File::open(path).map_err(|e| Error::io("open the file", path, &e))?;
            Box::new(BufReader::with_capacity(1 << 16, file))
        }
    };
    if text.fill_buf().map_err(failed)?.starts_with(b"\x1f\x8b") {
        text = Box::new(BufReader::new(MultiGzDecoder::new(text)));
    }
    let start = text.fill_buf().map_err(failed)?;
    let (mark, little) = match start {
        [0xff, 0xfe, ..] => (2, Some(true)),
        [0xfe, 0xff, ..] => (2, Some(false)),
        [0xef, 0xbb, 0xbf, ..] => (3, None),
        // UTF-16 without a mark: letters of ASCII, each beside a zero.
        [a, 0, b, 0, ..] if *a != 0 && *b != 0 => (0, Some(true)),
        [0, a, 0, b, ..] if *a != 0 && *b != 0 => (0, Some(false)),
        _ => (0, None),
    };
    text.consume(mark);
    Ok(match little {
        Some(little) => Box::new(BufReader::new(Utf16 { text, little, ready: Cursor::default(), high: None })),
        None => text,
    })
}

/// What comes through the pipe `path`, read the first time that it is asked for; `None` if `path` is a file.
///
/// # Errors
/// [`crate::error::Kind::Io`]; [`crate::error::Kind::Data`] where it is too much.
pub fn piped(path: &Path) -> Result<Option<Arc<[u8]>>> {
    let failed = |e: io::Error| Error::io("open the file", path, &e);
    if !is_stdin(path) && std::fs::metadata(path).map_err(failed)?.is_file() {
        return Ok(None);
    }
    let mut kept = PIPED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((_, bytes)) = kept.iter().find(|(known, _)| known == path) {
        return Ok(Some(bytes.clone()));
    }
    let mut bytes = Vec::new();
    let read = match is_stdin(path) {
        true => io::stdin().lock().take(MOST_PIPED + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(MOST_PIPED + 1).read_to_end(&mut bytes)),
    };
    read.map_err(failed)?;
    if bytes.len() as u64 > MOST_PIPED {
        let what = format!("more than {} MiB came through the pipe", MOST_PIPED >> 20);
        return Err(Error::data(what).at(path.display().to_string()).hint("write it to a file, and give the file"));
    }
    let bytes: Arc<[u8]> = bytes.into();
    kept.push((path.to_path_buf(), bytes.clone()));
    Ok(Some(bytes))
}

/// UTF-16 as UTF-8. What is no letter becomes the replacement character.
struct Utf16 {
    text: Box<dyn BufRead>,
    /// Whether the low byte comes first.
    little: bool,
    ready: Cursor<Vec<u8>>,
    /// The first half of a letter.
    high: Option<u16>,
}

impl Utf16 {
    /// Decodes some thousand units.
    fn refill(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.text.by_ref().take(1 << 14).read_to_end(&mut bytes)?;
        let unit = |pair: &[u8]| {
            let pair = [pair[0], pair[1]];
            if self.little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
        };
        let mut units: Vec<u16> = self.high.take().into_iter().chain(bytes.chunks_exact(2).map(unit)).collect();
        if !bytes.is_empty() && units.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
            self.high = units.pop();
        }
        let text: String =
            char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        self.ready = Cursor::new(text.into_bytes());
        Ok(())
    }
}

impl Read for Utf16 {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.ready.position() as usize == self.ready.get_ref().len() {
            self.refill()?;
        }
        self.ready.read(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn text(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, bytes).expect("written");
        let mut text = String::new();
        open(&path).expect("open").read_to_string(&mut text).expect("read");
        text
    }

    #[test]
    fn encodings_are_recognised_by_the_first_bytes() {
        let said = "n,t µs\n1,2.5\n😀";
        let units: Vec<u16> = said.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in [
            said.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", said.as_bytes()].concat(),
            [&b"\xff\xfe"[..], &little].concat(),
            [&b"\xfe\xff"[..], &big].concat(),
            little.clone(),
            big,
        ] {
            assert_eq!(text(&bytes), said);
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&bytes).expect("packed");
            assert_eq!(text(&packed.finish().expect("packed")), said);
        }
        // Longer than one stretch, with a letter of two units on its border.
        let long = format!("{}😀{}", "a".repeat(8191), "b".repeat(9000));
        let bytes: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text(&[&b"\xff\xfe"[..], &bytes].concat()), long);
    }
}
