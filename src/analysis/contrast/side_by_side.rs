//! Several engines in one run: how much longer one takes than another, cell by cell.
//!
//! A pair is one variant of the first engine (its launch, its algorithms) and one variant of another engine.

use super::Contrast;
use crate::analysis::columns::FOLLOW_THE_ENGINE;
use crate::analysis::compare::{ComparedCell, Rules};
use crate::analysis::{Series, distinct};
use crate::settings::{AXES, Axis, EngineName, Role};

/// One way of the first engine against one of another, or against the fastest of its ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    pub against: Against,
    /// One for each network with its settings that both executed, at least one. The ways are called `cudnn, graph` or
    /// `torch, graph, max-autotune`; above 1 the first is faster.
    pub tasks: Vec<Contrast>,
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

/// The axis of `column`, if it says how an engine works.
fn method_axis(column: &str) -> Option<&'static Axis> {
    AXES.iter().find(|axis| axis.column == column && axis.role == Role::Method)
}

/// Whether `column` says what is computed, not how.
fn is_task(column: &str) -> bool {
    column != "engine" && method_axis(column).is_none() && !FOLLOW_THE_ENGINE.contains(&column)
}

/// `cudnn, graph, 2 streams`.
fn label(engine: &str, series: &Series) -> String {
    let annotations = series.group.iter().filter_map(|(name, value)| method_axis(name)?.annotation(value));
    std::iter::once(engine.to_owned()).chain(annotations).collect::<Vec<_>>().join(", ")
}

/// Whether both do the same on every axis that all engines have.
fn same_method(one: &Series, other: &Series) -> bool {
    one.is_like(other, |column| method_axis(column).is_some_and(|axis| axis.engines.is_empty()))
}

/// Each cell of the fastest of several ways of `engine`, which becomes its group.
fn fastest(engine: &str, ways: &[&Contrast]) -> Contrast {
    let mut cells: Vec<ComparedCell> = Vec::new();
    for (way, cell) in ways.iter().flat_map(|way| way.cells.iter().map(move |cell| (way, cell))) {
        let cell = ComparedCell { group: way.value.clone(), ..cell.clone() };
        match cells.iter_mut().find(|found| found.x.to_bits() == cell.x.to_bits()) {
            Some(found) if cell.ratio < found.ratio => *found = cell,
            Some(_) => {}
            None => cells.push(cell),
        }
    }
    Contrast { value: format!("{engine} at its fastest"), cells, overall: None, ..ways[0].clone() }
}

/// Every way of the first engine against every way of the others. Empty where the series are of one engine. PyTorch is never
/// the first, wherever the run names it.
pub fn side_by_side(series: &[&Series], rules: &Rules) -> Vec<Pair> {
    let entries: Vec<(&str, &Series)> = series.iter().filter_map(|one| Some((one.value("engine")?, *one))).collect();
    let Some((first, _)) = entries.iter().find(|(engine, _)| *engine != EngineName::Torch.name()) else {
        return Vec::new();
    };
    let mut pairs: Vec<Pair> = Vec::new();
    let mut add = |against: Against, task: Contrast| {
        let alike = |other: &Contrast| other.baseline == task.baseline && other.value == task.value;
        match pairs.iter_mut().find(|pair| alike(&pair.tasks[0])) {
            Some(pair) => pair.tasks.push(task),
            None => pairs.push(Pair { against, tasks: vec![task] }),
        }
    };
    for (_, a) in entries.iter().filter(|(engine, _)| engine == first) {
        let mut tasks: Vec<(&str, Contrast)> = Vec::new();
        for (engine, b) in entries.iter().filter(|(engine, b)| engine != first && b.is_like(a, is_task)) {
            let task = Contrast::of([(a, label(first, a)), (b, label(engine, b))], is_task, rules);
            add(if same_method(a, b) { Against::Alike } else { Against::Other }, task.clone());
            tasks.push((engine, task));
        }
        for engine in distinct(tasks.iter().map(|(engine, _)| *engine)) {
            let ways: Vec<&Contrast> = tasks.iter().filter(|(own, _)| *own == engine).map(|(_, task)| task).collect();
            if ways.len() > 1 {
                add(Against::Fastest, fastest(engine, &ways));
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
        let pairs = side_by_side(&Vec::from_iter(&run(&ways)), &Rules::default());
        let names: Vec<_> = pairs
            .iter()
            .map(|pair| (pair.tasks[0].baseline.as_str(), pair.tasks[0].value.as_str(), pair.against))
            .collect();
        assert_eq!(
            names,
            [("cudnn, eager", "torch, eager", Against::Alike), ("cudnn, graph", "torch, eager", Against::Other)]
        );
        let tasks: Vec<_> = pairs[0].tasks.iter().map(|task| (task.name.as_str(), task.cells.len())).collect();
        assert_eq!(tasks, [("vgg16", 2), ("mlp", 2)]);
        let task = &pairs[1].tasks[0];
        assert!((task.mean().unwrap() - 3.0).abs() < 1e-9, "{task:?}");
        assert!(task.cells.iter().all(|cell| (cell.ratio - 3.0).abs() < 1e-9 && cell.low < 3.0 && 3.0 < cell.high));
    }

    #[test]
    fn compiling_leaves_a_pair_alike_and_is_named_where_it_was_done() {
        let ways = [("cpu", "eager", "none", 1.0), ("torch", "eager", "none", 2.0), ("torch", "eager", "default", 1.5)];
        let pairs = side_by_side(&Vec::from_iter(&run(&ways)), &Rules::default());
        let names: Vec<_> = pairs.iter().map(|pair| (pair.tasks[0].value.as_str(), pair.against)).collect();
        let expected = [
            ("torch, eager", Against::Alike),
            ("torch, eager, compile default", Against::Alike),
            ("torch at its fastest", Against::Fastest),
        ];
        assert_eq!(names, expected);
        // By hand: 1.5 s to compile is less than 2 s without.
        let fastest = &pairs[2].tasks[0];
        assert!(fastest.cells.iter().all(|cell| cell.group == "torch, eager, compile default"));
        assert!((fastest.mean().unwrap() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_second_stream_is_named_and_leaves_a_pair_alike() {
        let of =
            |engine, streams, seconds| series(&[("model", "mlp"), ("engine", engine), ("streams", streams)], seconds);
        let run = [of("cudnn", "1", 2.0), of("cudnn", "2", 1.0), of("torch", "NaN", 3.0)];
        let pairs = side_by_side(&run.each_ref(), &Rules::default());
        let names: Vec<_> = pairs.iter().map(|pair| (pair.tasks[0].baseline.as_str(), pair.against)).collect();
        assert_eq!(names, [("cudnn", Against::Alike), ("cudnn, 2 streams", Against::Alike)]);
    }

    #[test]
    fn one_engine_has_nothing_beside_it() {
        assert_eq!(side_by_side(&Vec::from_iter(&run(&[("cudnn", "eager", "none", 1.0)])), &Rules::default()), []);
        assert_eq!(side_by_side(&[&series(&[("model", "mlp")], 1.0)], &Rules::default()), []);
        assert_eq!(side_by_side(&Vec::from_iter(&run(&[("torch", "eager", "none", 1.0)])), &Rules::default()), []);
    }
}
