//! The memory around the ranges that some calls write. The calls must leave it unchanged.

use std::ops::Range;

use crate::engine::cudnn::memory_guard;
use crate::error::{Error, Result};

/// A range of bytes that calls write, and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub owner: String,
    /// Offsets in the arena.
    pub range: Range<usize>,
}

/// The bytes around some ranges, saved before calls wrote the ranges.
#[derive(Debug)]
pub struct Fences {
    written: Vec<Owned>,
    /// The bytes before and after each range, as far as the arena extends; parts of other ranges may lie there.
    around: Vec<[(usize, Vec<u8>); 2]>,
}

impl Fences {
    /// Reads the length of a guard around each range, in an arena of the given size in bytes; `read` gives bytes at an
    /// offset.
    pub fn new(
        written: Vec<Owned>,
        bytes: usize,
        mut read: impl FnMut(Range<usize>) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let mut content = |range: Range<usize>| -> Result<(usize, Vec<u8>)> { Ok((range.start, read(range)?)) };
        let mut around = Vec::with_capacity(written.len());
        for Owned { range, .. } in &written {
            let before = range.start.saturating_sub(memory_guard::BYTES as usize)..range.start;
            let behind = range.end..(range.end + memory_guard::BYTES as usize).min(bytes);
            around.push([content(before)?, content(behind)?]);
        }
        Ok(Self { written, around })
    }

    /// Fails if bytes changed that no call should write.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] with the range that lies nearest, and its owner; those of `read`.
    pub fn check(&self, mut read: impl FnMut(Range<usize>) -> Result<Vec<u8>>) -> Result<()> {
        let is_free = |at: &usize| !self.written.iter().any(|other| other.range.contains(at));
        let mut nearest: Option<(usize, String)> = None;
        for (Owned { owner, range }, around) in self.written.iter().zip(&self.around) {
            for (start, content) in around {
                let now = read(*start..start + content.len())?;
                if now == *content {
                    continue;
                }
                let changed = (0..content.len()).filter(|&at| content[at] != now[at]).map(|at| start + at);
                let changed: Vec<usize> = changed.filter(is_free).collect();
                let (Some(first), Some(last)) = (changed.first(), changed.last()) else { continue };
                let count = changed.len();
                let (apart, said) = match *first >= range.end {
                    true => (first - range.end, format!("{count} bytes behind {owner}, the first of them")),
                    false => (range.start - 1 - last, format!("{count} bytes before {owner}, the last of them")),
                };
                if nearest.as_ref().is_none_or(|(least, _)| apart < *least) {
                    nearest = Some((apart, format!("{said} {apart} bytes away")));
                }
            }
        }
        match nearest {
            Some((_, said)) => Err(Error::device(format!("a call wrote where it may not: {said}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(owner: &str, range: Range<usize>) -> Owned {
        Owned { owner: owner.to_owned(), range }
    }

    /// The message if these bytes are written, around two adjacent ranges and a separate one.
    fn said(written: impl IntoIterator<Item = usize>) -> Option<String> {
        let mut memory = vec![7_u8; 1 << 16];
        let all = vec![owned("a", 30_000..30_016), owned("b", 30_016..30_032), owned("c", 40_000..40_004)];
        let fences = Fences::new(all, memory.len(), |range| Ok(memory[range].to_vec())).unwrap();
        written.into_iter().for_each(|at| memory[at] = 0);
        fences.check(|range| Ok(memory[range].to_vec())).err().map(|error| error.to_string())
    }

    #[test]
    fn what_calls_are_to_write_is_no_fault() {
        assert_eq!(said((30_000..30_032).chain(40_000..40_004)), None);
    }

    #[test]
    fn a_stray_write_is_named_with_the_nearest_buffer() {
        let behind = "a call wrote where it may not: 4 bytes behind b, the first of them 0 bytes away";
        assert_eq!(said(30_032..30_036).as_deref(), Some(behind));
        let before = "a call wrote where it may not: 1 bytes before a, the last of them 2 bytes away";
        assert_eq!(said([29_997]).as_deref(), Some(before));
        assert!(said([40_100]).unwrap().contains("behind c, the first of them 96 bytes away"));
    }
}
