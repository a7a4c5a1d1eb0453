//! The specs of `experiments/` in the program itself, so that `batchstep run quickstart` works where nothing but the program is installed.

use crate::error::nearest;

/// A spec of the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Included {
    /// The name of its file, without `.toml`.
    pub name: &'static str,
    /// Its folder in `experiments/`, with a `/` at its end; empty for those that lie in `experiments/` itself.
    pub folder: &'static str,
    pub text: &'static str,
}

/// What a spec answers, what it runs on, and how long that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub question: &'static str,
    pub machine: &'static str,
    pub time: &'static str,
}

macro_rules! included {
    ($($folder:literal: $($name:literal)+;)+) => {
        &[$($(Included {
            name: $name,
            folder: $folder,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/", $folder, $name, ".toml")),
        }),+),+]
    };
}

/// Every spec of `experiments/` that needs no file beside it, folder by folder, in the order of the tables of `experiments/README.md`.
pub const INCLUDED: &[Included] = included!(
    "": "quickstart" "vgg16" "vgg19" "mobilenet" "resnet50" "study" "why_sixteen" "mnist_cpu" "crossover" "pipeline";
    "cpu/": "vgg16_small" "why_sixteen_cpu" "why_sixteen_winograd_cpu" "mnist_1_to_600" "scaling_cpu" "processes" "mnist_folder";
    "gpu/": "vgg16_fixed" "vgg16_streams" "pcie";
    "versus/": "versus_torch" "versus_torch_nhwc" "versus_torch_compiled" "versus_torch_cpu" "versus_torch_cpu_224" "versus_torch_best" "versus_torch_best_32" "versus_torch_best_mnist" "versus_torch_bf16" "versus_torch_mnist" "versus_torch_mlp" "versus_torch_training" "versus_candle";
    "predict/": "generated_cpu" "generated_dense_cpu" "predict_four_cpu";
    "method/": "aa" "synthetic" "clock_step" "clock_step_along" "peaks";
);

/// The tables of `experiments/README.md`, from which the row of a spec and the title of a folder are read.
const TABLES: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/README.md"));

/// The included specs folder by folder: those of `experiments/` itself first, the others with the title of their folder.
pub fn folders() -> impl Iterator<Item = (Option<&'static str>, &'static [Included])> {
    INCLUDED.chunk_by(|a, b| a.folder == b.folder).map(|specs| {
        let title =
            TABLES.lines().find_map(|line| line.strip_prefix("## ")?.strip_prefix(specs[0].folder)?.strip_prefix(": "));
        (title, specs)
    })
}

impl Included {
    /// `versus_candle`, `versus_candle.toml` or `versus/versus_candle.toml`, with or without `experiments/` before it.
    pub fn named(name: &str) -> Option<Self> {
        let name = stem(name);
        INCLUDED.iter().find(|spec| name.strip_prefix(spec.folder).unwrap_or(name) == spec.name).copied()
    }

    /// The name that is meant by one that no spec has, where one is near enough.
    pub fn nearest(name: &str) -> Option<&'static str> {
        let names: Vec<&str> = INCLUDED.iter().map(|spec| spec.name).collect();
        nearest(stem(name), &names)
    }

    pub fn row(&self) -> Option<Row> {
        let start = format!("| [{0}.toml]({1}{0}.toml) | ", self.name, self.folder);
        let row = TABLES.lines().find_map(|line| line.strip_prefix(&start))?;
        let mut cells = row.trim_end_matches(" |").split(" | ");
        Some(Row { question: cells.next()?, machine: cells.next()?, time: cells.next()? })
    }
}

fn stem(name: &str) -> &str {
    let name = name.strip_prefix("experiments/").unwrap_or(name);
    name.strip_suffix(".toml").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::study::Spec;

    #[test]
    fn every_spec_of_the_repository_is_included_is_valid_and_has_a_row_in_the_tables() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
        let mut files = BTreeSet::new();
        for folder in ["", "cpu/", "gpu/", "versus/", "predict/", "method/"] {
            for entry in root.join(folder).read_dir().unwrap() {
                let file = entry.unwrap().file_name().into_string().unwrap();
                // A spec of somebody's own step needs the file beside it.
                let alone = || !std::fs::read_to_string(root.join(folder).join(&file)).unwrap().contains("\nstep = ");
                if file.ends_with(".toml") && file != "prices.toml" && alone() {
                    files.insert(format!("{folder}{file}"));
                }
            }
        }
        let included: BTreeSet<String> =
            INCLUDED.iter().map(|spec| format!("{}{}.toml", spec.folder, spec.name)).collect();
        assert_eq!(included, files);
        for spec in INCLUDED {
            assert_eq!(Spec::parse(spec.text, spec.name).unwrap().run_name(), spec.name);
            let row = spec.row().unwrap_or_else(|| panic!("no row for {}", spec.name));
            assert!([row.question, row.machine, row.time].iter().all(|cell| !cell.is_empty()), "{}", spec.name);
        }
    }

    #[test]
    fn the_folders_come_in_the_order_of_their_tables_and_with_their_titles() {
        let titles: Vec<_> = folders().map(|(title, specs)| (specs[0].folder, title.is_some())).collect();
        let folders = ["cpu/", "gpu/", "versus/", "predict/", "method/"].map(|folder| (folder, true));
        assert_eq!(titles, [&[("", false)], &folders[..]].concat());
        let places: Vec<_> = INCLUDED.iter().map(|spec| TABLES.find(&format!("| [{}.toml]", spec.name))).collect();
        assert!(places.is_sorted(), "{places:?}");
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
        let candle = Included::named("versus_candle");
        assert!(candle.is_some());
        assert_eq!(candle, Included::named("experiments/versus/versus_candle.toml"));
        assert_eq!(Included::nearest("other/thing"), None);
        assert_eq!(Included::named("other/quickstart.toml"), None);
    }
}
