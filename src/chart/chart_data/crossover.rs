//! The chart of crossovers, from stored series.

use std::path::Path;

use super::{Drawing, device, made_by, medians, title};
use crate::analysis::crossover::{Crossing, Crossover, Crossovers, TRAINING_STEPS};
use crate::analysis::{Analysed, distinct};
use crate::chart::palette::RUNS;
use crate::chart::{Chart, CrossingPanel, Crossings, Line, LinePoint};
use crate::units::human;
use crate::words;

/// Step times on logarithmic axes with the crossovers; `None` where no pair crosses.
pub fn crossover(source: &Path, found: &[Analysed], crossovers: &Crossovers) -> Option<Drawing> {
    let chart = crossovers.any().then(|| crossings(source, found, crossovers))?;
    let (summary, title) = (chart.summary.clone(), "From which size on one is faster");
    Some(Drawing { name: "crossover", title, summary, chart: Chart::Crossings(chart) })
}

fn crossings(source: &Path, found: &[Analysed], crossovers: &Crossovers) -> Crossings {
    let names = Names::new(found);
    let (panels, left_out) = panels(found, crossovers, &names);
    let sentence = |pair: &Crossover| words::crossover_sentence(pair, |label| names.of(label));
    let sentences: Vec<String> = crossovers.steps.iter().filter_map(sentence).collect();
    let blocks: std::collections::BTreeSet<Option<u32>> =
        found.iter().flat_map(|found| &found.series.measurements).map(|m| m.observation.block).collect();
    let device = device(found);
    Crossings {
        title: title::of("Step time", source, found),
        summary: match sentences.len() {
            0 => "The step times do not cross.".to_owned(),
            count => sentences[..count.min(3)].join(". ") + if count > 3 { ". ..." } else { "." },
        },
        x: found.first().map_or_else(|| "Batch size".to_owned(), |found| found.series.size.title.clone()),
        panels,
        caption: vec![
            format!(
                "{device} \u{b7} {} \u{b7} step times, without setup{}",
                human::counted(blocks.len() as u64, "block"),
                match left_out {
                    0 => String::new(),
                    count => format!(" \u{b7} {count} series without a crossover, or without room here, are left out"),
                }
            ),
            trainings(crossovers, &names),
            made_by(source, found),
        ],
    }
}

/// The most panels of a chart: nobody reads more.
const MOST_PANELS: usize = 8;

/// A panel for each model and each data path in which series cross, and how many series are left out: those of other panels, and where there are more than
/// can be distinguished, those that cross no other one.
fn panels(found: &[Analysed], crossovers: &Crossovers, names: &Names) -> (Vec<CrossingPanel>, usize) {
    let value = |found: &Analysed, column: &str| found.series.value(column).map(str::to_owned);
    let differs = |column: &&str| found.iter().any(|other| value(other, column) != value(&found[0], column));
    let columns: Vec<&str> = ["model", "data"].into_iter().filter(differs).collect();
    let key = |found: &Analysed| columns.iter().map(|column| value(found, column)).collect::<Vec<Option<String>>>();
    let crosses = |label: &str| {
        let mut pairs = crossovers.steps.iter().chain(&crossovers.trainings).filter(|pair| pair.at.is_some());
        pairs.any(|pair| pair.first == label || pair.second == label)
    };
    let mut panels = Vec::new();
    for own_key in distinct(found.iter().map(key)) {
        let mut own: Vec<&Analysed> = found.iter().filter(|found| key(found) == own_key).collect();
        if own.len() > RUNS.len() {
            own.retain(|found| crosses(&found.series.label()));
        }
        let said =
            columns.iter().zip(&own_key).filter_map(|(column, value)| Some(format!("{column} = {}", value.as_ref()?)));
        let title = said.collect::<Vec<_>>().join(", ");
        let names = Names { shared: own_key.iter().flatten().cloned().collect(), ..names.clone() };
        panels.extend(own.chunks(RUNS.len()).map(|own| panel(&title, own, &crossovers.steps, &names)));
    }
    if panels.iter().any(|panel| !panel.marks.is_empty()) {
        panels.retain(|panel| !panel.marks.is_empty());
    }
    panels.truncate(MOST_PANELS);
    let shown: usize = panels.iter().map(|panel| panel.lines.len()).sum();
    (panels, found.len() - shown)
}

/// A crossover is in the panel of the first of its pair.
fn panel(title: &str, own: &[&Analysed], pairs: &[Crossover], names: &Names) -> CrossingPanel {
    let is_own = |pair: &&Crossover| own.iter().any(|found| found.series.label() == pair.first);
    let mark = |pair: &Crossover| {
        let place = pair.at?;
        Some((place, names.sentence(pair, "over", &place)))
    };
    CrossingPanel {
        title: title.to_owned(),
        lines: own.iter().map(|found| line(found, names)).collect(),
        marks: pairs.iter().filter(is_own).filter_map(mark).collect(),
    }
}

fn line(found: &Analysed, names: &Names) -> Line {
    let factor = found.series.seconds_per_unit().unwrap_or(1.0);
    let point = |(x, y): (u64, f64)| LinePoint { x: f64::from_bits(x), y: y * factor, sd: 0.0 };
    let points = medians(&found.series).into_iter().map(point).collect();
    Line { name: names.of(&found.series.label()), points, marked: None }
}

/// What the setup changes, for a caption.
fn trainings(crossovers: &Crossovers, names: &Names) -> String {
    let steps = human::count(TRAINING_STEPS as u64);
    let pair = |pair: &Crossover| Some(names.sentence(pair, "before", &pair.at?));
    let found: Vec<String> = crossovers.trainings.iter().filter_map(pair).take(3).collect();
    match (crossovers.trainings.is_empty(), found.is_empty()) {
        (true, _) => "no setup times in these data".to_owned(),
        (false, true) => format!("with setup and {steps} steps nothing crosses"),
        (false, false) => format!("with setup and {steps} steps: {}", found.join(", ")),
    }
}

/// The names of series without their common beginning, which distinguishes nothing within one chart.
#[derive(Clone, Debug, Default)]
struct Names {
    /// Parts that all names begin with.
    common: usize,
    /// Parts that the title of the panel says.
    shared: Vec<String>,
}

impl Names {
    fn new(found: &[Analysed]) -> Self {
        let labels: Vec<String> = found.iter().map(|found| found.series.label()).collect();
        let parts: Vec<Vec<&str>> = labels.iter().map(|label| label.split(", ").collect()).collect();
        let shortest = parts.iter().map(Vec::len).min().unwrap_or(0);
        let same = |at: &usize| parts.iter().all(|other| other[*at] == parts[0][*at]);
        Self { common: (0..shortest.saturating_sub(1)).take_while(same).count(), shared: Vec::new() }
    }

    fn of(&self, label: &str) -> String {
        let said = |part: &&str| !self.shared.iter().any(|shared| shared == part);
        label.split(", ").skip(self.common).filter(said).collect::<Vec<_>>().join(", ")
    }

    /// Which of a pair is faster at the largest sizes, and from about which size on.
    fn sentence(&self, pair: &Crossover, relation: &str, place: &Crossing) -> String {
        let faster = pair.faster_at_largest();
        let other = if faster == pair.first { &pair.second } else { &pair.first };
        format!("{} {relation} {} from {}", self.of(faster), self.of(other), about(words::first_size(place)))
    }
}

/// Two digits, rounded up: an interval of a crossover is hardly ever narrower.
fn about(size: f64) -> String {
    let step = 10f64.powf(size.max(1.0).log10().floor() - 1.0).max(1.0);
    human::count(((size / step).ceil() * step) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::crossover::tests::{crossovers, series};
    use crate::chart::tests::assert_says;
    use crate::detect::Findings;

    /// A series that takes `fixed` seconds for a step and `each` for an example, called by the engine at the end of its group.
    fn with(group: &[(&str, &str)], fixed: f64, each: f64) -> Analysed {
        let mut series = series(group[group.len() - 1].1, fixed, each, 7);
        series.group = group.iter().map(|&(column, value)| (column.to_owned(), value.to_owned())).collect();
        Analysed { series, findings: Findings::default() }
    }

    fn chart_of(found: &[Analysed]) -> Crossings {
        let all: Vec<_> = found.iter().map(|found| found.series.clone()).collect();
        crossings(Path::new("results/c"), found, &Crossovers { steps: crossovers(&all), ..Crossovers::default() })
    }

    #[test]
    fn each_way_of_the_data_has_a_panel_with_its_own_crossover() {
        let with = |engine: &str, data: &str, fixed: f64, each: f64| {
            with(&[("model", "mlp"), ("data", data), ("engine", engine)], fixed, each)
        };
        // Equal at 8,000 in place, and at 4 ms / 1.5 us = 2,667 where each example of the first is copied for another 1 us.
        let found = [
            with("cpu", "resident", 1e-3, 1e-6),
            with("cpu", "pageable", 1e-3, 2e-6),
            with("cuda", "resident", 5e-3, 5e-7),
            with("cuda", "pageable", 5e-3, 5e-7),
        ];
        let chart = chart_of(&found);
        let titles: Vec<_> = chart.panels.iter().map(|panel| (panel.title.as_str(), panel.marks.len())).collect();
        assert_eq!(titles, [("data = resident", 1), ("data = pageable", 1)]);
        for (panel, expected) in chart.panels.iter().zip([8000.0, 4e-3 / 1.5e-6]) {
            let names: Vec<_> = panel.lines.iter().map(|line| line.name.as_str()).collect();
            assert_eq!(names, ["cpu", "cuda"]);
            let (place, label) = &panel.marks[0];
            assert!((place.size / expected - 1.0).abs() < 0.1, "{place:?}, by hand {expected}");
            assert!(label.starts_with("cuda over cpu from"), "{label}");
        }
        let said =
            ["cpu", "data = resident", "data = pageable", "cuda over cpu from", "Batch size", "step times, without"];
        assert_says(&Chart::Crossings(chart).scene(), &said);
        // With only one kind of series there is one panel, with an empty title.
        let alone = crossings(Path::new("results/c"), &[found[0].clone(), found[2].clone()], &Crossovers::default());
        assert_eq!((alone.panels.len(), alone.panels[0].title.as_str()), (1, ""));
    }

    /// Ten series of each of two networks: one pair of the first network crosses, none of the second.
    #[test]
    fn of_more_series_than_colours_those_are_drawn_that_cross_another() {
        // Each slower than the one before at all sizes, except that the second engine has less than half of its fixed time and twice the time for an example.
        let of = |model: &'static str, last: f64| {
            (0..10).map(move |n| {
                let factor = 3f64.powi(n);
                let (fixed, each) = if n == 1 { (1e-3 * last, 2e-6) } else { (1e-3 * factor, 1e-6 * factor) };
                with(&[("model", model), ("engine", &format!("engine{n}"))], fixed, each)
            })
        };
        let found: Vec<Analysed> = of("mlp", 0.4).chain(of("vgg16", 2.0)).collect();
        let chart = chart_of(&found);
        assert_eq!(chart.panels.len(), 1, "{:?}", chart.panels);
        let names: Vec<_> = chart.panels[0].lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!((chart.panels[0].title.as_str(), names), ("model = mlp", vec!["engine0", "engine1"]));
        assert_eq!(chart.panels[0].marks.len(), 1);
        let said = "18 series without a crossover, or without room here, are left out";
        assert!(chart.caption[0].ends_with(said), "{:?}", chart.caption);
        // Ten networks whose two series cross: eight panels.
        let pair = |n: usize| {
            [0, 1].map(|i| of(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][n], 0.4).nth(i).expect("a series"))
        };
        let found: Vec<Analysed> = (0..10).flat_map(pair).collect();
        let chart = chart_of(&found);
        assert_eq!((chart.panels.len(), chart.caption[0].contains("4 series without")), (8, true));
    }

    #[test]
    fn about_is_never_below_the_crossover() {
        assert_eq!([8.0, 9.0, 8123.0, 8000.0].map(about), ["8", "9", "8,200", "8,000"]);
    }
}
