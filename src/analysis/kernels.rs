//! What changes inside a step of one's own at a jump: which kernels or operators take longer on its far side, and which are new there.
//!
//! One step on each side is profiled after the sweep, the shortest time of three counts for each kernel. A profiled step takes longer than one that counts, so
//! that these times say where a jump is, and not how large it is.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::analysis::mechanisms::formulas::Family;
use crate::engine::KernelTime;
use crate::error::{Error, Result};
use crate::os::look;
use crate::store::files;

/// Both sides of a jump of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sides {
    pub series: String,
    /// The last size before the jump, and the next one.
    pub after: usize,
    pub next: usize,
    pub before: Vec<KernelTime>,
    pub behind: Vec<KernelTime>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Profiles {
    pub version: u32,
    pub jumps: Vec<Sides>,
}

pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Before and behind; `None`: it is not there on that side.
    pub before: Option<KernelCalls>,
    pub behind: Option<KernelCalls>,
}

/// All calls of one name on one side of a jump, whatever their grids.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCalls {
    /// With the shapes of its operands where it is an operator, in which the size stands as `N`.
    pub name: String,
    /// Launches on a GPU, and the blocks of all together.
    pub launches: Option<u64>,
    pub blocks: Option<u64>,
    /// What it belongs to, where its name says so.
    pub kind: Option<&'static str>,
    pub seconds: f64,
}

/// The products of an FFT convolution, of complex numbers, as cuDNN and cuBLAS name them.
const FOURIER: [&str; 4] = ["cf32cf32", "cgemm", "pointwise_mult_and_sum_complex", "fft2d"];

/// What a GPU's kernel belongs to.
fn kind(name: &str, grid: [u32; 3]) -> Option<&'static str> {
    match FOURIER.iter().any(|word| name.to_ascii_lowercase().contains(word)) {
        true => Some("an FFT convolution: a product for each of its frequencies"),
        false => Family::of(name, grid).map(Family::steps),
    }
}

/// A change that is a smaller part of all is not worth a name.
const LEAST_SHARE: f64 = 0.1;

impl Change {
    /// How much longer it takes behind, in seconds.
    pub fn more_s(&self) -> f64 {
        let seconds = |side: &Option<KernelCalls>| side.as_ref().map_or(0.0, |kernel| kernel.seconds);
        seconds(&self.behind) - seconds(&self.before)
    }
}

impl Sides {
    /// What takes longer or less behind the jump, the most first, each at least a tenth of the whole difference.
    pub fn changes(&self) -> Vec<Change> {
        let (before, mut behind) = (by_key(&self.before, self.after), by_key(&self.behind, self.next));
        let (both, gone): (Kernels, Kernels) = before.into_iter().partition(|(key, _)| behind.contains_key(key));
        let both = both.into_iter().map(|(key, kernel)| Change { before: Some(kernel), behind: behind.remove(&key) });
        let mut changes: Vec<Change> = both.collect();
        changes.extend(replaced(gone, behind));
        let total = self.more_s().abs();
        changes.retain(|change| change.more_s().abs() >= LEAST_SHARE * total && change.more_s() != 0.0);
        changes.sort_by(|a, b| b.more_s().abs().total_cmp(&a.more_s().abs()));
        changes
    }

    /// How much longer all of them together take behind the jump, in seconds.
    pub fn more_s(&self) -> f64 {
        let all = |kernels: &[KernelTime]| kernels.iter().map(|kernel| kernel.seconds).sum::<f64>();
        all(&self.behind) - all(&self.before)
    }
}

/// Kernels by what is the same on both sides: the name, and the shapes with `N` in place of the size.
type Kernels = BTreeMap<String, KernelCalls>;

fn by_key(kernels: &[KernelTime], size: usize) -> Kernels {
    let mut all = Kernels::new();
    for kernel in kernels {
        let shapes = kernel.shapes.as_deref().map(|shapes| with_n(shapes, size)).unwrap_or_default();
        let entry = all.entry(format!("{} {shapes}", kernel.name)).or_insert_with(|| {
            let name = match kernel.name.strip_prefix("aten::") {
                Some(operator) if !shapes.is_empty() => format!("{operator} {shapes}"),
                Some(operator) => operator.to_owned(),
                None => short(&kernel.name),
            };
            let kind = kernel.grid.and_then(|grid| kind(&kernel.name, grid));
            KernelCalls { name, launches: kernel.grid.map(|_| 0), blocks: kernel.grid.map(|_| 0), kind, seconds: 0.0 }
        });
        entry.seconds += kernel.seconds;
        entry.launches = entry.launches.map(|launches| launches + kernel.count);
        let blocks = kernel.grid.map(|grid| grid.iter().map(|&size| u64::from(size)).product::<u64>() * kernel.count);
        entry.blocks = entry.blocks.zip(blocks).map(|(all, own)| all + own);
    }
    all
}

/// A kernel's name without what its compiler adds: `void at::native::reduce_kernel<512, 1, ...>(...)` is `reduce_kernel`, and of `cutlass::Kernel<NAME>` the name.
fn short(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let end = name.find(['<', '(']).filter(|&end| end > 0).unwrap_or(name.len());
    let own = |part: &str| part.rsplit("::").next().unwrap_or(part).trim().to_owned();
    match own(&name[..end]) {
        wrapper if wrapper.starts_with("Kernel") && name[end..].starts_with('<') => {
            let inside = &name[end + 1..];
            own(&inside[..inside.find([',', '<', '>', '(']).unwrap_or(inside.len())])
        }
        name => name,
    }
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

/// Pairs the kernels that occur on only one side of the jump, by their times: the longest that disappeared with the longest that appeared.
fn replaced(gone: Kernels, come: Kernels) -> Vec<Change> {
    let count = gone.len().max(come.len());
    let sorted = |kernels: Kernels| {
        let mut all: Vec<KernelCalls> = kernels.into_values().collect();
        all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        all.into_iter().map(Some).chain(std::iter::repeat(None)).take(count)
    };
    sorted(gone).zip(sorted(come)).map(|(before, behind)| Change { before, behind }).collect()
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
        assert_eq!(changes[0].behind.as_ref().map(|kernel| kernel.name.as_str()), Some("mm [[N,192],[192,512]]"));
        assert!((changes[0].more_s() - 2e-3).abs() < 1e-12 && (sides.more_s() - 2.01e-3).abs() < 1e-12);
    }

    #[test]
    fn a_new_kernel_is_listed_beside_the_one_that_it_replaces() {
        let sides = Sides {
            series: "vgg".into(),
            after: 32,
            next: 33,
            before: vec![kernel("implicit_gemm_128x128", 4e-3), kernel("relu", 1e-3)],
            behind: vec![kernel("implicit_gemm_256x64", 8.2e-3), kernel("relu", 1.02e-3)],
        };
        let changes = sides.changes();
        let [Change { before: Some(before), behind: Some(behind) }] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!((&before.name[..], &behind.name[..]), ("implicit_gemm_128x128", "implicit_gemm_256x64"));
        assert_eq!((behind.blocks, behind.kind), (Some(80), Some(Family::ImplicitProduct.steps())));
        assert!((changes[0].more_s() - 4.2e-3).abs() < 1e-12);
    }

    #[test]
    fn names_lose_what_a_compiler_adds() {
        // From PyTorch's trace of a V100 in tests/fixtures/traces.
        let reduce =
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, int, 4> >(at::native::ReduceOp<float>)";
        assert_eq!(short(reduce), "reduce_kernel");
        assert_eq!(short("volta_sgemm_128x32_nt"), "volta_sgemm_128x32_nt");
        let cutlass =
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm::Params)";
        assert_eq!(short(cutlass), "cutlass_80_simt_sgemm_256x128_8x4_nn_align1");
        assert_eq!(short("(anonymous)"), "(anonymous)");
    }
}
