//! What other programs call two columns that batchstep knows: the number of the pass over all sizes, and the memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::error::Result;
use crate::store::Table;
use crate::table::Sheet;

/// The most memory of a visit so far.
pub(super) const PEAK: &str = "peak_memory_bytes";

/// A column of a table under a name of ours.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OtherName {
    pub theirs: String,
    pub ours: &'static str,
    /// What its values are multiplied by.
    pub factor: f64,
}

const BLOCK: &str = "block";
/// Names of columns that may number the passes over all sizes.
const PASSES: &[&str] =
    &["iter", "iteration", "rep", "repeat", "repetition", "round", "run", "pass", "trial", "replicate", "epoch"];
/// Rows of a table that is looked through for passes.
const MOST_ROWS: usize = 200_000;

/// The columns of `sheet` that are ours under another name.
pub(super) fn of(sheet: &Sheet, path: &Path, x: &str, used: &[String]) -> Result<Vec<OtherName>> {
    let free = |name: &&String| *name != x && !used.contains(name);
    let has = |ours: &str| sheet.names().iter().any(|name| name == ours);
    let mut found = Vec::new();
    if !has(PEAK)
        && let [(theirs, factor)] =
            &sheet.names().iter().filter(free).filter_map(|name| memory(name)).collect::<Vec<_>>()[..]
    {
        found.push(OtherName { theirs: theirs.clone(), ours: PEAK, factor: *factor });
    }
    if !has(BLOCK) {
        let named = |name: &&String| PASSES.contains(&name.trim().trim_end_matches(['s', '#']).to_lowercase().as_str());
        for theirs in sheet.names().iter().filter(free).filter(named) {
            if numbers_passes(sheet, path, x, theirs)? {
                found.push(OtherName { theirs: theirs.clone(), ours: BLOCK, factor: 1.0 });
                break;
            }
        }
    }
    Ok(found)
}

/// A column of memory and the bytes of its unit, by its name: `gpu_mem_mb`, `peak memory (GiB)`.
fn memory(name: &str) -> Option<(String, f64)> {
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let says = |all: &[&str]| words.iter().any(|word| all.contains(word));
    let is_size =
        says(&["mem", "memory", "vram", "rss"]) && !says(&["bandwidth", "util", "clock", "s", "sec", "free", "total"]);
    let (_, factor) = [
        ("bytes", 1.0),
        ("kb", 1e3),
        ("mb", 1e6),
        ("gb", 1e9),
        ("kib", 1024.0),
        ("mib", 1_048_576.0),
        ("gib", 1_073_741_824.0),
    ]
    .into_iter()
    .find(|(unit, _)| words.last() == Some(unit))?;
    is_size.then(|| (name.to_owned(), factor))
}

/// Whether each of its values comes with each size, equally often: then it numbers the passes over all sizes.
fn numbers_passes(sheet: &Sheet, path: &Path, x: &str, column: &str) -> Result<bool> {
    let mut times: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    let (mut rows, mut is_whole) = (0, true);
    Table::scan_sheet(sheet, path, &[x, column], &mut |batch| {
        rows += batch.rows();
        if rows > MOST_ROWS || !is_whole {
            return Ok(());
        }
        for (size, pass) in batch.numbers(x)?.into_iter().zip(batch.numbers(column)?) {
            if pass.is_finite() && pass >= 0.0 && pass.fract() == 0.0 {
                if size.is_finite() {
                    *times.entry((pass.to_bits(), size.to_bits())).or_default() += 1;
                }
            } else {
                is_whole = false;
            }
        }
        Ok(())
    })?;
    let passes: BTreeSet<u64> = times.keys().map(|(pass, _)| *pass).collect();
    let sizes: BTreeSet<u64> = times.keys().map(|(_, size)| *size).collect();
    let once = times.values().all(|count| Some(count) == times.values().next());
    Ok(is_whole
        && rows <= MOST_ROWS
        && once
        && passes.len() > 1
        && sizes.len() > 1
        && times.len() == passes.len() * sizes.len())
}

#[cfg(test)]
mod tests {
    use super::super::{Query, series};

    fn read(text: &str) -> super::super::Series {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).expect("written");
        series(&path, &Query::default()).expect("read").remove(0)
    }

    #[test]
    fn a_column_that_numbers_the_passes_is_the_block_and_memory_is_the_peak() {
        let rows = |of: &dyn Fn(usize, usize) -> usize| -> String {
            let rows = (0..4).flat_map(|pass| (1..=6).map(move |size| (pass, size)));
            let line = |(pass, size)| format!("{size},{},{},{}\n", of(pass, size), 10 + size, 100 * size);
            std::iter::once("bs,iter,ms_per_iter,gpu_mem_mb\n".to_owned()).chain(rows.map(line)).collect()
        };
        let passes = read(&rows(&|pass, _| pass));
        let blocks: Vec<_> = passes.measurements.iter().map(|one| one.observation.block).collect();
        assert_eq!((blocks[0], blocks[23]), (Some(0), Some(3)));
        // 600 MB, by hand.
        assert_eq!(passes.peaks.get(&6f64.to_bits()), Some(&600e6));
        assert!(
            passes.notes.iter().any(|note| note.contains("`iter` comes once with each size")),
            "{:?}",
            passes.notes
        );
        // A running number is none.
        let running = read(&rows(&|pass, size| 6 * pass + size));
        assert!(running.measurements.iter().all(|one| one.observation.block.is_none()));
    }
}
