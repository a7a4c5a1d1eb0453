//! The specs of `experiments/` in the program itself, so that `batchstep run quickstart` works where nothing but the program is installed.

use crate::error::nearest;

/// A spec of the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Included {
    /// The name of its file, without `.toml`.
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! included {
    ($($name:literal)+) => {
        &[$(Included {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/", $name, ".toml")),
        }),+]
    };
}

/// Every spec of `experiments/` that needs no file beside it, by name.
pub const INCLUDED: &[Included] = included!(
    "aa" "clock_step" "clock_step_along" "crossover" "generated_cpu" "generated_dense_cpu" "mnist_1_to_600" "mnist_cpu" "mnist_folder" "mobilenet" "pcie" "peaks"
    "pipeline" "predict_four_cpu" "processes" "quickstart" "resnet50" "scaling_cpu" "study" "synthetic" "versus_candle" "versus_torch" "versus_torch_bf16" "versus_torch_best" "versus_torch_best_32" "versus_torch_best_mnist"
    "versus_torch_compiled" "versus_torch_cpu" "versus_torch_cpu_224" "versus_torch_mlp" "versus_torch_mnist" "versus_torch_nhwc"
    "versus_torch_training" "vgg16" "vgg16_fixed" "vgg16_small" "vgg16_streams" "vgg19" "why_sixteen" "why_sixteen_cpu"
    "why_sixteen_winograd_cpu"
);

/// The table of `experiments/README.md`, from which the question and the machine of a spec are read.
const TABLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/README.md"));

/// Every included spec in the order of the table of `experiments/README.md`, with its question and the machine that it runs on.
pub fn in_order() -> Vec<(Included, &'static str, &'static str)> {
    let mut all: Vec<_> = INCLUDED
        .iter()
        .map(|spec| {
            let (question, machine) = spec.question().unwrap_or_default();
            (TABLE.find(&spec.row()), (*spec, question, machine))
        })
        .collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, entry)| entry).collect()
}

impl Included {
    fn row(&self) -> String {
        format!("| [{0}.toml]({0}.toml) | ", self.name)
    }

    /// `quickstart` or `quickstart.toml`, with or without `experiments/` before it.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix("experiments/").unwrap_or(name);
        let name = name.strip_suffix(".toml").unwrap_or(name);
        INCLUDED.iter().find(|spec| spec.name == name).copied()
    }

    /// The name that is meant by one that no spec has, where one is near enough.
    pub fn nearest(name: &str) -> Option<&'static str> {
        let name = name.strip_prefix("experiments/").unwrap_or(name);
        let names: Vec<&str> = INCLUDED.iter().map(|spec| spec.name).collect();
        nearest(name.strip_suffix(".toml").unwrap_or(name), &names)
    }

    /// What it answers, and what it runs on.
    pub fn question(&self) -> Option<(&'static str, &'static str)> {
        let start = self.row();
        let row = TABLE.lines().find_map(|line| line.strip_prefix(&start))?;
        row.trim_end_matches(" |").split_once(" | ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::spec::Spec;

    #[test]
    fn every_spec_of_the_repository_is_included_is_valid_and_has_a_row_in_the_table() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
        let names = folder.read_dir().unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let specs = names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned));
        // A spec of somebody's own step needs the file beside it.
        let needs_a_file =
            |name: &str| std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap().contains("\nstep = ");
        let files: BTreeSet<String> = specs.filter(|name| name != "prices" && !needs_a_file(name)).collect();
        let included: BTreeSet<String> = INCLUDED.iter().map(|spec| spec.name.to_owned()).collect();
        assert_eq!(included, files);
        for spec in INCLUDED {
            assert_eq!(Spec::parse(spec.text, spec.name).unwrap().name(), spec.name);
            let (question, machine) = spec.question().unwrap_or_else(|| panic!("no row for {}", spec.name));
            assert!(!question.is_empty() && !machine.is_empty(), "{}", spec.name);
        }
    }

    #[test]
    fn a_spec_goes_by_its_name_and_by_its_files() {
        let quickstart = Included::named("quickstart");
        assert!(quickstart.is_some());
        assert_eq!(quickstart, Included::named("quickstart.toml"));
        assert_eq!(quickstart, Included::named("experiments/quickstart.toml"));
        assert_eq!(Included::named("prices"), None);
        for name in ["quickstrt", "quickstrt.toml", "experiments/quickstrt.toml"] {
            assert_eq!(Included::nearest(name), Some("quickstart"));
        }
        assert_eq!(Included::nearest("other/thing"), None);
        assert_eq!(Included::named("other/quickstart.toml"), None);
    }
}
