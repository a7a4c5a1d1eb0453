//! The chart of crossovers, from stored series.

use std::path::{Path, PathBuf};

use super::{Destination, medians, shared};
use crate::analysis::Analysed;
use crate::analysis::crossover::{Crossover, Crossovers, Place, TRAINING_STEPS};
use crate::chart::{self, Chart, CrossingMark, Crossings, Line, LinePoint};
use crate::error::Result;
use crate::report::human;

/// Draws step times on logarithmic axes with the crossovers; nothing where no pair crosses. Returns the files written.
///
/// # Errors
/// As [`chart::write()`].
pub fn draw_crossover(
    source: &Path,
    found: &[Analysed],
    crossovers: &Crossovers,
    destination: &Destination,
) -> Result<Vec<PathBuf>> {
    if !crossovers.any() {
        return Ok(Vec::new());
    }
    let path = destination.path("crossover");
    chart::write(&Chart::Crossings(crossings(source, found, crossovers)), &path)?;
    Ok(vec![path])
}

fn crossings(source: &Path, found: &[Analysed], crossovers: &Crossovers) -> Crossings {
    let names = Names::new(found);
    let line = |found: &Analysed| {
        let factor = found.series.seconds_per_unit().unwrap_or(1.0);
        let point = |(x, y): (u64, f64)| LinePoint { x: f64::from_bits(x), y: y * factor, sd: 0.0 };
        Line {
            name: names.of(&found.series.label()),
            points: medians(&found.series).into_iter().map(point).collect(),
            marked: None,
        }
    };
    let crossing = || crossovers.steps.iter().filter_map(|pair| Some((pair, pair.at?)));
    let mark = |(pair, place): (&Crossover, Place)| CrossingMark {
        size: place.size,
        low: place.low,
        high: place.high,
        label: names.sentence(pair, "over", place.size),
    };
    let sentence =
        |(pair, place): (&Crossover, Place)| format!("{} on", names.sentence(pair, "is faster than", place.size));
    let blocks: std::collections::BTreeSet<Option<u32>> =
        found.iter().flat_map(|found| &found.series.measurements).map(|m| m.observation.block).collect();
    let device = shared(found, "device_name").unwrap_or_else(|| "several devices".to_owned());
    Crossings {
        title: source.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        summary: match crossing().count() {
            0 => "The step times do not cross.".to_owned(),
            count => {
                crossing().map(sentence).take(3).collect::<Vec<_>>().join("; ") + if count > 3 { "; ..." } else { "." }
            }
        },
        x: found.first().map_or_else(|| "Batch size".to_owned(), |found| found.series.size.title.clone()),
        lines: found.iter().map(line).collect(),
        marks: crossing().map(mark).collect(),
        caption: vec![
            format!(
                "{device} \u{b7} {} \u{b7} step times, without setup",
                human::counted(blocks.len() as u64, "block")
            ),
            trainings(crossovers, &names),
            format!("Made by: batchstep plot {}", source.display()),
        ],
    }
}

/// What the setup changes, for a caption.
fn trainings(crossovers: &Crossovers, names: &Names) -> String {
    let steps = human::count(TRAINING_STEPS as u64);
    let pair = |pair: &Crossover| Some(names.sentence(pair, "before", pair.at?.size));
    let found: Vec<String> = crossovers.trainings.iter().filter_map(pair).take(3).collect();
    match (crossovers.trainings.is_empty(), found.is_empty()) {
        (true, _) => "no setup times in these data".to_owned(),
        (false, true) => format!("with setup and {steps} steps nothing crosses"),
        (false, false) => format!("with setup and {steps} steps: {}", found.join(", ")),
    }
}

/// The names of series without what all of them begin with, which says nothing in a chart of them alone.
struct Names {
    /// Parts that all names begin with.
    common: usize,
}

impl Names {
    fn new(found: &[Analysed]) -> Self {
        let labels: Vec<String> = found.iter().map(|found| found.series.label()).collect();
        let parts: Vec<Vec<&str>> = labels.iter().map(|label| label.split(", ").collect()).collect();
        let shortest = parts.iter().map(Vec::len).min().unwrap_or(0);
        let same = |at: &usize| parts.iter().all(|other| other[*at] == parts[0][*at]);
        Self { common: (0..shortest.saturating_sub(1)).take_while(same).count() }
    }

    fn of(&self, label: &str) -> String {
        label.split(", ").skip(self.common).collect::<Vec<_>>().join(", ")
    }

    /// Which of a pair is the faster one at the largest sizes, from about which size on.
    fn sentence(&self, pair: &Crossover, relation: &str, size: f64) -> String {
        let faster = pair.faster_at_largest();
        let other = if faster == pair.first { &pair.second } else { &pair.first };
        format!("{} {relation} {} from {}", self.of(faster), self.of(other), about(size))
    }
}

/// Two digits: an interval of a crossover is hardly ever narrower.
fn about(size: f64) -> String {
    let step = 10f64.powf(size.max(1.0).log10().floor() - 1.0).max(1.0);
    human::count(((size / step).round() * step) as u64)
}
