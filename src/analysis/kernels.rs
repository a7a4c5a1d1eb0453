//! What changes inside a step of one's own at a jump: which kernels or operators take longer on its far side, and which are new there.
//!
//! One step on each side is profiled after the sweep, the shortest time of three counts for each kernel. A profiled step takes longer than one that counts, so
//! that these times say where a jump is, and not how large it is.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::engine::KernelTime;
use crate::error::{Error, Result};
use crate::look;
use crate::store::files;

/// Both sides of a jump of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sides {
    /// What the series is called.
    pub series: String,
    /// The last size before the jump, and the next one.
    pub after: usize,
    pub next: usize,
    pub before: Vec<KernelTime>,
    pub behind: Vec<KernelTime>,
}

/// The file of a run.
#[derive(Debug, Deserialize, Serialize)]
pub struct Profiles {
    pub version: u32,
    pub jumps: Vec<Sides>,
}

/// Of the file.
pub const VERSION: u32 = 1;

/// What became of one kernel behind a jump.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its name before and behind; `None`: it is not there on that side.
    pub before: Option<String>,
    pub behind: Option<String>,
    /// How much longer it takes behind, in seconds.
    pub more_s: f64,
}

/// A change that is a smaller part of all is not worth a name.
const LEAST_SHARE: f64 = 0.1;

impl Sides {
    /// What takes longer or less behind the jump, the most first, each at least a tenth of the whole difference.
    pub fn changes(&self) -> Vec<Change> {
        let (mut before, mut behind) = (by_key(&self.before, self.after), by_key(&self.behind, self.next));
        let mut changes = Vec::new();
        for (key, (name, seconds)) in std::mem::take(&mut before) {
            match behind.remove(&key) {
                Some((_, later)) => {
                    changes.push(Change { before: Some(name.clone()), behind: Some(name), more_s: later - seconds });
                }
                None => {
                    before.insert(key, (name, seconds));
                }
            }
        }
        changes.extend(replaced(before, behind));
        let total = self.more_s().abs();
        changes.retain(|change| change.more_s.abs() >= LEAST_SHARE * total && change.more_s != 0.0);
        changes.sort_by(|a, b| b.more_s.abs().total_cmp(&a.more_s.abs()));
        changes
    }

    /// How much longer all of them together take behind the jump, in seconds.
    pub fn more_s(&self) -> f64 {
        let all = |kernels: &[KernelTime]| kernels.iter().map(|kernel| kernel.seconds).sum::<f64>();
        all(&self.behind) - all(&self.before)
    }
}

/// A name and the seconds, by what is the same on both sides: the name, and shapes in which the size stands as `N`.
type Kernels = BTreeMap<String, (String, f64)>;

fn by_key(kernels: &[KernelTime], size: usize) -> Kernels {
    let mut all = Kernels::new();
    for kernel in kernels {
        let shapes = kernel.shapes.as_deref().map(|shapes| with_n(shapes, size)).unwrap_or_default();
        let name = match kernel.name.strip_prefix("aten::") {
            Some(operator) if !shapes.is_empty() => format!("{operator} {shapes}"),
            _ => kernel.name.clone(),
        };
        let entry = all.entry(format!("{} {shapes}", kernel.name)).or_insert((name, 0.0));
        entry.1 += kernel.seconds;
    }
    all
}

/// `[[15,32],[64,32]]` of size 15: `[[N,32],[64,32]]`.
fn with_n(shapes: &str, size: usize) -> String {
    let mut out = String::new();
    for part in shapes.split_inclusive([',', '[', ']']) {
        let digits = part.trim_end_matches([',', '[', ']']);
        let number = digits.trim_start_matches('[');
        let is_size = number.parse() == Ok(size);
        out += &if is_size { part.replacen(number, "N", 1) } else { part.to_owned() };
    }
    out
}

/// Those of one side that the other does not have, paired by their times: the longest that went with the longest that came.
fn replaced(gone: Kernels, come: Kernels) -> Vec<Change> {
    let sorted = |kernels: Kernels| {
        let mut all: Vec<(String, f64)> = kernels.into_values().collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    };
    let (gone, come) = (sorted(gone), sorted(come));
    let pair = |place: usize| {
        let (before, behind) = (gone.get(place), come.get(place));
        let seconds = |side: Option<&(String, f64)>| side.map_or(0.0, |(_, seconds)| *seconds);
        let name = |side: Option<&(String, f64)>| side.map(|(name, _)| name.clone());
        Change { before: name(before), behind: name(behind), more_s: seconds(behind) - seconds(before) }
    };
    (0..gone.len().max(come.len())).map(pair).collect()
}

/// The sides of the jumps of the run in `path`; none where nothing was profiled.
///
/// # Errors
/// [`crate::error::Kind::Io`] and [`crate::error::Kind::Data`] where the file is there and cannot be read.
pub fn of_run(path: &Path) -> Result<Vec<Sides>> {
    let file = path.join(files::KERNELS);
    let Some(text) = look::text(&file)? else { return Ok(Vec::new()) };
    let at = || file.display().to_string();
    let profiles: Profiles = serde_json::from_str(&text).map_err(|error| Error::data(error.to_string()).at(at()))?;
    if profiles.version > VERSION {
        return Err(Error::data(format!(
            "version {} of this file is newer than this batchstep's {VERSION}",
            profiles.version
        ))
        .at(at()));
    }
    Ok(profiles.jumps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(name: &str, shapes: &str, seconds: f64) -> KernelTime {
        KernelTime { name: name.into(), grid: None, block: None, shapes: Some(shapes.into()), count: 1, seconds }
    }

    fn kernel(name: &str, seconds: f64) -> KernelTime {
        KernelTime {
            name: name.into(),
            grid: Some([80, 1, 1]),
            block: Some([256, 1, 1]),
            shapes: None,
            count: 1,
            seconds,
        }
    }

    #[test]
    fn operators_are_the_same_on_both_sides_where_only_the_size_differs() {
        assert_eq!(with_n("[[15,32,16,16],[15],[115]]", 15), "[[N,32,16,16],[N],[115]]");
        let sides = Sides {
            series: "cnn".into(),
            after: 15,
            next: 16,
            before: vec![
                operator("aten::mm", "[[15,192],[192,512]]", 1e-3),
                operator("aten::relu", "[[15,512]]", 1e-4),
            ],
            behind: vec![
                operator("aten::mm", "[[16,192],[192,512]]", 3e-3),
                operator("aten::relu", "[[16,512]]", 1.1e-4),
            ],
        };
        let changes = sides.changes();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(changes[0].behind.as_deref(), Some("mm [[N,192],[192,512]]"));
        assert!((changes[0].more_s - 2e-3).abs() < 1e-12 && (sides.more_s() - 2.01e-3).abs() < 1e-12);
    }

    #[test]
    fn a_kernel_that_came_stands_beside_the_one_that_went() {
        let sides = Sides {
            series: "vgg".into(),
            after: 32,
            next: 33,
            before: vec![kernel("implicit_gemm_128x128", 4e-3), kernel("relu", 1e-3)],
            behind: vec![kernel("implicit_gemm_256x64", 8.2e-3), kernel("relu", 1.02e-3)],
        };
        let named = |name: &str| Some(name.to_owned());
        let changes = sides.changes();
        assert_eq!((changes.len(), changes[0].before.clone()), (1, named("implicit_gemm_128x128")));
        assert_eq!(changes[0].behind, named("implicit_gemm_256x64"));
        assert!((changes[0].more_s - 4.2e-3).abs() < 1e-12);
    }
}
