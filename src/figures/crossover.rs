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
    let line = |found: &Analysed| {
        let factor = found.series.seconds_per_unit().unwrap_or(1.0);
        let point = |(x, y): (u64, f64)| LinePoint { x: f64::from_bits(x), y: y * factor, sd: 0.0 };
        Line {
            name: found.series.label(),
            points: medians(&found.series).into_iter().map(point).collect(),
            marked: None,
        }
    };
    let size = |value: f64| human::count(value.round().max(0.0) as u64);
    let crossing = || crossovers.steps.iter().filter_map(|pair| Some((pair, pair.at?)));
    let mark = |(pair, place): (&Crossover, Place)| CrossingMark {
        size: place.size,
        low: place.low,
        high: place.high,
        label: format!("{} from {}", pair.faster_at_largest(), size(place.size)),
    };
    let sentence = |(pair, place): (&Crossover, Place)| {
        let faster = pair.faster_at_largest();
        let other = if faster == pair.first { &pair.second } else { &pair.first };
        format!("{faster} is faster than {other} from {} on", size(place.size))
    };
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
            trainings(crossovers),
            format!("Made by: batchstep plot {}", source.display()),
        ],
    }
}

/// What the setup changes, for a caption.
fn trainings(crossovers: &Crossovers) -> String {
    let steps = human::count(TRAINING_STEPS as u64);
    let size = |value: f64| human::count(value.round().max(0.0) as u64);
    let pair = |pair: &Crossover| {
        let place = pair.at?;
        let faster = pair.faster_at_largest();
        let other = if faster == pair.first { &pair.second } else { &pair.first };
        Some(format!("{faster} before {other} from {}", size(place.size)))
    };
    let found: Vec<String> = crossovers.trainings.iter().filter_map(pair).take(3).collect();
    match (crossovers.trainings.is_empty(), found.is_empty()) {
        (true, _) => "no setup times in these data".to_owned(),
        (false, true) => format!("with setup and {steps} steps nothing crosses"),
        (false, false) => format!("with setup and {steps} steps: {}", found.join(", ")),
    }
}
