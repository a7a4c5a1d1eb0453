//! The variables of the environment that would show a cause of a jump in somebody's own step: where the data show its sign, and where a framework has
//! a library that is known for such jumps.
//!
//! What is known, each *measured here* (`examples/own/README.md` names the runs): glibc gives memory back to the system at each step from some size on; Keras on
//! TensorFlow jumps where oneDNN chooses another kernel; JAX climbs by the rows of XLA's YNN kernels.

use std::collections::BTreeMap;
use std::path::Path;

use super::cell_medians::cell_medians;
use super::environment::Environment;
use super::{Analysed, Series};
use crate::error::Result;
use crate::os::look;
use crate::settings::{EngineName, members};
use crate::stats::quantile::median;

/// What to set to see whether a jump goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// The last size before the jump; `None` for any jump.
    pub after: Option<f64>,
    /// What was observed, or is known about the library.
    pub sign: String,
    /// Whether the data of this run show the sign.
    pub is_seen: bool,
    /// `NAME=VALUE,VALUE`, as `--env` takes it; an empty value: not set.
    pub env: &'static str,
}

/// Page faults of a step that a few small allocations no longer explain: 1 MiB of pages.
const FAULTS: f64 = 256.0;
/// How many times as many there are behind the jump.
const RISE: f64 = 4.0;
/// Sizes on each side of a jump that are looked at.
const BESIDE: usize = 3;

const GLIBC: &str = "GLIBC_TUNABLES=,glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=4294967296";

/// A framework on a device, what it computes with there, and its switch.
const LIBRARIES: [(&str, &str, &str, &str); 4] = [
    (
        "tensorflow",
        "cpu",
        "TensorFlow computes with oneDNN, which chooses its kernels by the size",
        "TF_ENABLE_ONEDNN_OPTS=1,0",
    ),
    (
        "jax",
        "cpu",
        "JAX computes products with XLA's YNN kernels, whole tiles at a time",
        "XLA_FLAGS=,--xla_cpu_experimental_ynn_fusion_type=",
    ),
    (
        "torch",
        "cpu",
        "PyTorch computes convolutions with oneDNN, whose kernels follow the vector instructions",
        "ONEDNN_MAX_CPU_ISA=,AVX2",
    ),
    ("torch", "cuda", "cuBLAS and cuDNN choose other kernels in TF32 than in float32", "NVIDIA_TF32_OVERRIDE=,0"),
];

/// For each series of the run in `path` what would show the causes of its jumps; nothing for steps that are not somebody's own, and for series without a jump.
///
/// # Errors
/// [`crate::error::Kind::Io`] and [`crate::error::Kind::Data`] where a file is there and cannot be read.
pub fn of_run(path: &Path, found: &[Analysed]) -> Result<Vec<Vec<Switch>>> {
    let is_own =
        |found: &Analysed| found.series.engine() == Some(EngineName::Python) && !found.findings.jumps.is_empty();
    if !found.iter().any(is_own) || !look::is_folder(path)? {
        return Ok(vec![Vec::new(); found.len()]);
    }
    let (faults, version) = (faults(path)?, version(path)?);
    let of = |found: &Analysed| if is_own(found) { switches(found, &faults, &version) } else { Vec::new() };
    Ok(found.iter().map(of).collect())
}

/// By cell and size.
type Faults = BTreeMap<i64, (f64, f64)>;

fn switches(found: &Analysed, faults: &Faults, version: &str) -> Vec<Switch> {
    let Analysed { series, findings } = found;
    let by_size: BTreeMap<u64, f64> = series
        .cells
        .iter()
        .filter_map(|cell| faults.get(cell))
        .map(|(size, faults)| (size.to_bits(), *faults))
        .collect();
    let rises = findings.jumps.iter().filter(|jump| jump.size > 0.0);
    let mut all: Vec<Switch> = rises.filter_map(|jump| given_back(&by_size, jump.after)).collect();
    let device = series.facts.get("device").map_or("", String::as_str);
    let library = LIBRARIES.iter().find(|(name, place, ..)| version.contains(name) && device.starts_with(place));
    if let (Some((_, _, sign, env)), true) = (library, all.is_empty()) {
        all.push(Switch { after: None, sign: (*sign).to_owned(), is_seen: false, env });
    }
    all.retain(|switch| !is_varied(series, switch.env));
    all
}

/// Whether the run has set this variable, so that its series are the answer.
fn is_varied(series: &Series, env: &str) -> bool {
    let name = env.split('=').next().unwrap_or_default();
    let set = series.group.iter().map(|(_, value)| value.as_str()).chain(series.facts.get("env").map(String::as_str));
    set.flat_map(members).any(|(known, _)| known == name)
}

/// The sign that memory goes back to the system at each step, from the first size behind the jump on.
fn given_back(faults: &BTreeMap<u64, f64>, after: f64) -> Option<Switch> {
    // Sizes are positive, and their bits are in their order.
    let mut before: Vec<f64> = faults.range(..=after.to_bits()).rev().take(BESIDE).map(|(_, faults)| *faults).collect();
    let mut behind: Vec<f64> = faults.range(after.to_bits() + 1..).take(BESIDE).map(|(_, faults)| *faults).collect();
    if before.is_empty() || behind.is_empty() {
        return None;
    }
    let (before, behind) = (median(&mut before), median(&mut behind));
    let sign = format!(
        "page faults of a step rise from {before:.0} to {behind:.0} there: memory goes back to the system at each step"
    );
    (behind >= FAULTS && behind >= RISE * before).then_some(Switch {
        after: Some(after),
        sign,
        is_seen: true,
        env: GLIBC,
    })
}

/// The median of the counted steps of each cell. The steps are read once more for their sizes: two columns of numbers, in runs of
/// somebody's own steps.
fn faults(path: &Path) -> Result<Faults> {
    let faults = cell_medians(path, ["page_faults"], |[faults]| faults)?;
    let sizes = cell_medians(path, ["batch_size"], |[size]| size)?;
    Ok(faults.into_iter().filter_map(|(cell, faults)| Some((cell, (*sizes.get(&cell)?, faults)))).collect())
}

/// The versions that the steps reported: `torch 2.15.0, Python 3.11.7`.
fn version(path: &Path) -> Result<String> {
    let engines = Environment::of_run(path)?.unwrap_or_default().engines;
    let versions: Vec<String> = engines.into_iter().filter_map(|engine| engine.version).collect();
    Ok(versions.join(", ").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_faults_that_begin_behind_a_jump_are_its_sign() {
        let of = |faults: &dyn Fn(u64) -> f64| {
            let by_size = (1..=20).map(|size| ((size as f64).to_bits(), faults(size))).collect();
            given_back(&by_size, 8.0)
        };
        let seen = of(&|size| if size > 8 { 4448.0 } else { 2.0 }).expect("a sign");
        assert!(seen.sign.starts_with("page faults of a step rise from 2 to 4448 there"), "{}", seen.sign);
        assert!(seen.is_seen && seen.after == Some(8.0) && seen.env.starts_with("GLIBC_TUNABLES=,glibc"));
        assert_eq!(of(&|size| if size > 12 { 4448.0 } else { 2.0 }), None, "elsewhere");
        assert_eq!(of(&|size| if size > 8 { 200.0 } else { 0.0 }), None, "a few small allocations");
        assert_eq!(of(&|_| 5000.0), None, "at every size");
    }

    /// The stored runs of other people's steps have the variables as an axis, so that nothing is left to suggest.
    #[test]
    fn what_the_run_varies_is_not_suggested() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/runs");
        for name in ["2026-11-26-epyc-2-cores-keras", "2026-11-26-epyc-2-cores-torch-cnn"] {
            let path = root.join(name);
            let mut found = crate::analysis::analyse(&path, &crate::analysis::Query::default(), None).expect("a run");
            assert!(of_run(&path, &found).expect("read").iter().all(Vec::is_empty), "{name}");
            // The same series without the variation.
            for found in &mut found {
                found.series.group.clear();
                found.series.facts.remove("env");
            }
            let first = &of_run(&path, &found).expect("read")[0];
            let expected = if name.contains("keras") { "TF_ENABLE_ONEDNN_OPTS=1,0" } else { GLIBC };
            assert_eq!(
                first.first().map(|switch| (switch.env, switch.is_seen)),
                Some((expected, expected == GLIBC)),
                "{name}"
            );
        }
    }
}
