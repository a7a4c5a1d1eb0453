//! Engines of one run side by side, as tables.

use super::comparison::size_and_ratio;
use super::{Answer, Column, Document, Ground, Table};
use crate::analysis::contrast::side_by_side::{Against, Pair};
use crate::analysis::contrast::{Contrast, geometric_mean};
use crate::analysis::distinct;
use crate::units::human;

/// The cells against the fastest variant of the other engine, if it has several; else the cells of the pairs that differ only in the engine, or of
/// all pairs if there are no such pairs. Then the geometric means of every pair. Empty for no pairs.
pub fn side_by_side(pairs: &[Pair]) -> Document {
    let mut document = Document::default();
    if !pairs.is_empty() {
        shown(pairs).for_each(|pair| document.append(cells(pair)));
        document.append(Document::of_table("Side by side: geometric means", means(pairs)));
    }
    document
}

/// The pairs of which more than the means are shown.
fn shown(pairs: &[Pair]) -> impl Iterator<Item = &Pair> {
    let wanted =
        [Against::Fastest, Against::Alike].into_iter().find(|way| pairs.iter().any(|pair| pair.against == *way));
    pairs.iter().filter(move |pair| wanted.is_none_or(|wanted| pair.against == wanted))
}

/// A sentence on each of these pairs (none if all differ in more than the engine), then on each network.
///
/// `origin` is the grade of the measurement.
pub fn side_by_side_answers(pairs: &[Pair], origin: &str) -> Vec<Answer> {
    let answer = |pair: &Pair| {
        let mean = geometric_mean(pair.tasks.iter().flat_map(|task| &task.cells))?;
        let Contrast { baseline: first, value: second, .. } = &pair.tasks[0];
        let sentence =
            format!("A step of {second} takes {mean:.2} times as long as one of {first}, as the geometric mean.");
        let ground = |task: &Contrast| {
            let (mean, [low, high]) = (task.mean()?, extremes(task)?);
            let cells = human::counted(task.cells.len() as u64, "batch size");
            Some(Ground {
                grade: origin.to_owned(),
                text: format!("{}: {mean:.2} ({low:.2} to {high:.2} over {cells})", task.name),
            })
        };
        Some(Answer { sentence, grounds: pair.tasks.iter().filter_map(ground).collect() })
    };
    shown(pairs).filter(|pair| pair.against != Against::Other).filter_map(answer).collect()
}

/// The smallest and the largest ratio; `None` without cells.
fn extremes(task: &Contrast) -> Option<[f64; 2]> {
    let ratios = || task.cells.iter().map(|cell| cell.ratio);
    Some([ratios().reduce(f64::min)?, ratios().reduce(f64::max)?])
}

fn cells(pair: &Pair) -> Document {
    let Contrast { baseline: first, value: second, .. } = &pair.tasks[0];
    let names_ways = pair.against == Against::Fastest;
    let numbers = ["batch size", first, second, "ratio", "95 % interval"].map(Column::right);
    let which = names_ways.then(|| Column::left("which is"));
    let mut table = Table::new(std::iter::once(Column::left("series")).chain(numbers).chain(which));
    for (task, cell) in pair.tasks.iter().flat_map(|task| task.cells.iter().map(move |cell| (task, cell))) {
        let row = std::iter::once(task.name.clone()).chain(size_and_ratio(cell, &task.unit));
        table.row(row.chain(names_ways.then(|| cell.group.clone())));
    }
    Document::of_table(format!("Side by side: {second} against {first}"), table)
        .with_text(format!("ratio: the time of {second} over that of {first}; above 1, {first} is the faster one"))
}

fn means(pairs: &[Pair]) -> Table {
    let mut table = Table::of(&["series", "ours", "against"], &["cells", "ratio", "smallest", "largest"]);
    let tasks = || pairs.iter().flat_map(|pair| &pair.tasks);
    for name in distinct(tasks().map(|task| &task.name)) {
        tasks().filter(|task| task.name == *name).for_each(|task| table.row(mean(task)));
    }
    table
}

fn mean(task: &Contrast) -> [String; 7] {
    let ratio = |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{value:.3}"));
    [
        task.name.clone(),
        task.baseline.clone(),
        task.value.clone(),
        human::count(task.cells.len() as u64),
        ratio(task.mean()),
        ratio(extremes(task).map(|[low, _]| low)),
        ratio(extremes(task).map(|[_, high]| high)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::compare::ComparedCell;
    use crate::report::{Style, assert_lines};

    fn cell(x: f64, ratio: f64, high: f64) -> ComparedCell {
        ComparedCell::planted(x, 0.010 * x, [ratio, ratio - 0.1, high])
    }

    fn pair(second: &str, against: Against, cells: Vec<ComparedCell>) -> Pair {
        let [name, unit, baseline] = ["vgg16", "s", "cudnn, graph"].map(String::from);
        Pair { against, tasks: vec![Contrast { name, unit, baseline, value: second.into(), cells, overall: None }] }
    }

    #[test]
    fn where_the_other_engine_has_several_ways_the_fastest_is_listed_and_named() {
        let alike = pair("torch, graph", Against::Alike, vec![cell(1.0, 2.0, 2.1)]);
        let way = ComparedCell { group: "torch, graph, compile default".into(), ..cell(1.0, 1.5, 1.6) };
        let fastest = pair("torch at its fastest", Against::Fastest, vec![way]);
        let text = side_by_side(&[alike.clone(), fastest.clone()]).render(&Style::PLAIN);
        let wanted = [
            "Side by side: torch at its fastest against cudnn, graph",
            "vgg16 1 10.0 ms 15.0 ms 1.500 1.400 to 1.600 torch, graph, compile default",
            "vgg16 cudnn, graph torch, graph 1 2.000 2.000 2.000",
        ];
        assert_lines(&text, &wanted);
        let answers = side_by_side_answers(&[alike, fastest], "measured here");
        let sentence =
            "A step of torch at its fastest takes 1.50 times as long as one of cudnn, graph, as the geometric mean.";
        assert_eq!((answers.len(), answers[0].sentence.as_str()), (1, sentence));
    }

    #[test]
    fn cells_of_like_ways_are_listed_and_the_means_of_all() {
        let alike = pair("torch, graph", Against::Alike, vec![cell(1.0, 2.0, 2.1), cell(2.0, 0.5, f64::INFINITY)]);
        let other = pair("torch, eager", Against::Other, vec![cell(1.0, 4.0, 4.1)]);
        let text = side_by_side(&[alike, other]).render(&Style::PLAIN);
        // By hand: the geometric mean of 2 and 1/2 is 1.
        let wanted = [
            "Side by side: torch, graph against cudnn, graph",
            "vgg16 1 10.0 ms 20.0 ms 2.000 1.900 to 2.100",
            "vgg16 2 20.0 ms 10.0 ms 0.500 unknown",
            "vgg16 cudnn, graph torch, graph 2 1.000 0.500 2.000",
            "vgg16 cudnn, graph torch, eager 1 4.000 4.000 4.000",
        ];
        assert_lines(&text, &wanted);
        assert_eq!(text.matches(" against cudnn, graph").count(), 1);
        assert!(side_by_side(&[]).is_empty());
        // By hand: the geometric mean of 2 and 8 is 4.
        let answers = side_by_side_answers(
            &[pair("torch", Against::Alike, vec![cell(1.0, 2.0, 2.1), cell(2.0, 8.0, 8.1)])],
            "measured here",
        );
        let sentence = "A step of torch takes 4.00 times as long as one of cudnn, graph, as the geometric mean.";
        assert_eq!((answers.len(), answers[0].sentence.as_str()), (1, sentence));
        assert_eq!(answers[0].grounds[0].text, "vgg16: 4.00 (2.00 to 8.00 over 2 batch sizes)");
    }
}
