//! Several engines in one run: how much longer one takes than another, cell by cell.
//!
//! The cells of all engines are visited in the same randomised blocks, so heat, clocks and neighbours affect all engines
//! alike. A pair is one variant of the first engine (its launch, its algorithms) and one variant of another engine; the ratio
//! of a cell and its interval are those of [`crate::analysis::compare`].

use super::columns::FOLLOW_THE_ENGINE;
use crate::analysis::Series;
use crate::analysis::compare::{self, ComparedCell, Rules};
use crate::settings::{AXES, Axis, EngineName, Role};

/// One way of the first engine against one of another, or against the fastest of its ways, over all that both executed.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// `cudnn, graph`.
    pub first: String,
    /// `torch, graph, max-autotune`.
    pub second: String,
    pub against: Against,
    pub unit: String,
    pub tasks: Vec<Task>,
}

/// What the second engine of a pair does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The same as the first on every axis that all engines have.
    Alike,
    Other,
    /// In each cell the way that took it the least time; the cells name it. A minimum of several measured times is a little too small,
    /// to the disadvantage of the first engine.
    Fastest,
}

/// The cells of one network with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// `vgg16`, `vgg16, bf16`.
    pub name: String,
    /// By batch size; each ratio is the second engine's time over the first's: above 1 the first is faster.
    pub cells: Vec<ComparedCell>,
}

impl Task {
    /// The geometric mean of the ratios; `None` without cells.
    pub fn geometric_mean(&self) -> Option<f64> {
        let sum: f64 = self.cells.iter().map(|cell| cell.ratio.ln()).sum();
        (!self.cells.is_empty()).then(|| (sum / self.cells.len() as f64).exp())
    }

    /// The smallest and the largest ratio; `None` without cells.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let ratios = || self.cells.iter().map(|cell| cell.ratio);
        ratios().reduce(f64::min).zip(ratios().reduce(f64::max))
    }
}

/// A series with its group taken apart.
struct Entry<'a> {
    engine: &'a str,
    method: Vec<(&'static Axis, &'a str)>,
    task: Vec<(String, String)>,
    series: &'a Series,
}

impl<'a> Entry<'a> {
    fn new(series: &'a Series) -> Option<Self> {
        let engine = series.value("engine")?;
        let method_axis = |name: &str| AXES.iter().find(|axis| axis.column == name && axis.role == Role::Method);
        let method = series.group.iter().filter_map(|(name, value)| Some((method_axis(name)?, value.as_str())));
        let is_task =
            |name: &str| name != "engine" && method_axis(name).is_none() && !FOLLOW_THE_ENGINE.contains(&name);
        let task = series.group.iter().filter(|(name, _)| is_task(name)).cloned().collect();
        Some(Self { engine, method: method.collect(), task, series })
    }

    /// `cudnn, graph, 2 streams`.
    fn label(&self) -> String {
        let annotations = self.method.iter().filter_map(|(axis, value)| axis.annotation(value));
        std::iter::once(self.engine.to_owned()).chain(annotations).collect::<Vec<_>>().join(", ")
    }

    /// Whether both do the same on every axis that all engines have.
    fn same_method(&self, other: &Self) -> bool {
        let shared = |entry: &Self| -> Vec<(&str, String)> {
            let shared = entry.method.iter().filter(|(axis, _)| axis.engines.is_empty());
            shared.map(|(axis, value)| (axis.key, value.to_string())).collect()
        };
        shared(self) == shared(other)
    }

    fn compare(&self, other: &Self, rules: &Rules) -> Vec<ComparedCell> {
        let bare = |entry: &Self| [Series { group: entry.task.clone(), ..entry.series.clone() }];
        compare::compare(&bare(self), &bare(other), rules).cells
    }

    /// Each cell against the fastest of several ways, which becomes its group.
    fn compare_with_fastest(&self, ways: &[&Self], rules: &Rules) -> Vec<ComparedCell> {
        let mut fastest: Vec<ComparedCell> = Vec::new();
        for way in ways {
            for cell in self.compare(way, rules) {
                let cell = ComparedCell { group: way.label(), ..cell };
                match fastest.iter_mut().find(|found| found.x.to_bits() == cell.x.to_bits()) {
                    Some(found) if cell.ratio < found.ratio => *found = cell,
                    Some(_) => {}
                    None => fastest.push(cell),
                }
            }
        }
        fastest
    }
}

/// Every way of the first engine against every way of the others. Empty where the series are of one engine. PyTorch is never
/// the first, wherever the run names it.
pub fn side_by_side(series: &[Series], rules: &Rules) -> Vec<Pair> {
    let entries: Vec<Entry> = series.iter().filter_map(Entry::new).collect();
    let Some(first) = entries.iter().map(|entry| entry.engine).find(|engine| *engine != EngineName::Torch.name())
    else {
        return Vec::new();
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for a in entries.iter().filter(|entry| entry.engine == first) {
        let others: Vec<&Entry> =
            entries.iter().filter(|entry| entry.engine != first && entry.task == a.task).collect();
        let name = Series { group: a.task.clone(), ..a.series.clone() }.label();
        let mut add = |second: String, against: Against, cells: Vec<ComparedCell>| {
            let (task, first) = (Task { name: name.clone(), cells }, a.label());
            match pairs.iter_mut().find(|pair| pair.first == first && pair.second == second) {
                Some(pair) => pair.tasks.push(task),
                None => pairs.push(Pair { first, second, against, unit: a.series.unit.clone(), tasks: vec![task] }),
            }
        };
        let mut engines: Vec<&str> = Vec::new();
        for b in &others {
            let against = if a.same_method(b) { Against::Alike } else { Against::Other };
            add(b.label(), against, a.compare(b, rules));
            if !engines.contains(&b.engine) {
                engines.push(b.engine);
            }
        }
        for engine in engines {
            let ways: Vec<&Entry> = others.iter().copied().filter(|entry| entry.engine == engine).collect();
            if ways.len() > 1 {
                add(format!("{engine} at its fastest"), Against::Fastest, a.compare_with_fastest(&ways, rules));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four blocks at batch sizes 1 and 2, of `seconds` times the batch size, with a little spread.
    fn series(group: &[(&str, &str)], seconds: f64) -> Series {
        Series::in_blocks(group, 4, &[1.0, 2.0], |block, x| seconds * x * (1.0 + 0.001 * f64::from(block)))
    }

    fn run(ways: &[(&str, &str, &str, f64)]) -> Vec<Series> {
        let models = ["vgg16", "mlp"];
        let of = |model| {
            ways.iter().map(move |&(engine, launch, compile, seconds)| {
                let device = if engine == "torch" { "GPU 1" } else { "GPU" };
                let ways = [("engine", engine), ("device_name", device), ("launch", launch), ("compile", compile)];
                series(&[&[("model", model)], &ways[..]].concat(), seconds)
            })
        };
        models.into_iter().flat_map(of).collect()
    }

    #[test]
    fn each_way_is_set_against_each_and_the_ratios_are_the_second_over_the_first() {
        let ways = [("torch", "eager", "none", 3.0), ("cudnn", "eager", "none", 2.0), ("cudnn", "graph", "none", 1.0)];
        let pairs = side_by_side(&run(&ways), &Rules::default());
        let names: Vec<_> =
            pairs.iter().map(|pair| (pair.first.as_str(), pair.second.as_str(), pair.against)).collect();
        assert_eq!(
            names,
            [("cudnn, eager", "torch, eager", Against::Alike), ("cudnn, graph", "torch, eager", Against::Other)]
        );
        let tasks: Vec<_> = pairs[0].tasks.iter().map(|task| (task.name.as_str(), task.cells.len())).collect();
        assert_eq!(tasks, [("vgg16", 2), ("mlp", 2)]);
        let task = &pairs[1].tasks[0];
        assert!((task.geometric_mean().unwrap() - 3.0).abs() < 1e-9, "{task:?}");
        let (low, high) = task.extremes().unwrap();
        assert!((low - 3.0).abs() < 1e-9 && (high - 3.0).abs() < 1e-9);
        assert!(task.cells.iter().all(|cell| cell.low < 3.0 && 3.0 < cell.high));
    }

    #[test]
    fn compiling_leaves_a_pair_alike_and_is_named_where_it_was_done() {
        let ways = [("cpu", "eager", "none", 1.0), ("torch", "eager", "none", 2.0), ("torch", "eager", "default", 1.5)];
        let pairs = side_by_side(&run(&ways), &Rules::default());
        let names: Vec<_> = pairs.iter().map(|pair| (pair.second.as_str(), pair.against)).collect();
        let expected = [
            ("torch, eager", Against::Alike),
            ("torch, eager, compile default", Against::Alike),
            ("torch at its fastest", Against::Fastest),
        ];
        assert_eq!(names, expected);
        // By hand: 1.5 s to compile is less than 2 s without.
        let fastest = &pairs[2].tasks[0];
        assert!(fastest.cells.iter().all(|cell| cell.group == "torch, eager, compile default"));
        assert!((fastest.geometric_mean().unwrap() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_second_stream_is_named_and_leaves_a_pair_alike() {
        let of =
            |engine, streams, seconds| series(&[("model", "mlp"), ("engine", engine), ("streams", streams)], seconds);
        let run = [of("cudnn", "1", 2.0), of("cudnn", "2", 1.0), of("torch", "NaN", 3.0)];
        let pairs = side_by_side(&run, &Rules::default());
        let names: Vec<_> = pairs.iter().map(|pair| (pair.first.as_str(), pair.against)).collect();
        assert_eq!(names, [("cudnn", Against::Alike), ("cudnn, 2 streams", Against::Alike)]);
    }

    #[test]
    fn one_engine_has_nothing_beside_it() {
        assert_eq!(side_by_side(&run(&[("cudnn", "eager", "none", 1.0)]), &Rules::default()), []);
        assert_eq!(side_by_side(&[series(&[("model", "mlp")], 1.0)], &Rules::default()), []);
        assert_eq!(side_by_side(&run(&[("torch", "eager", "none", 1.0)]), &Rules::default()), []);
    }
}
