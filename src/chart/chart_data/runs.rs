//! The chart of several runs together, from their series.

use std::path::{Path, PathBuf};

use super::{provenance, step_time};
use crate::analysis::{Analysed, again, distinct, run_names};
use crate::chart::palette::RUNS;
use crate::chart::{ChartSeries, RunCurve, Runs, RunsPanel, StepTime};
use crate::error::{Error, Result};

/// Columns that name the device of a series, not its task; the last one is the name in other programs' tables.
const DEVICE: &[&str] = &["device", "device_name", "gpu"];

pub struct AnalysedRun {
    pub path: PathBuf,
    pub found: Vec<Analysed>,
}

/// Several runs in one picture, and those that are not in it.
pub struct Together {
    pub chart: Runs,
    /// Runs whose sizes or values are of another kind than the first run's.
    pub left_out: Vec<PathBuf>,
}

/// What has a colour of its own: a run on a device.
#[derive(Clone, Debug, PartialEq)]
struct Identity {
    source: usize,
    device: Option<String>,
    device_name: Option<String>,
}

/// The chart of these runs.
///
/// # Errors
/// [`crate::error::Kind::Data`] where fewer than two have sizes and values of a kind, or where more runs and devices are to be drawn than
/// colours can be distinguished.
pub fn together(sources: &[AnalysedRun]) -> Result<Together> {
    let charts: Vec<StepTime> = sources.iter().map(|source| step_time(&source.path, &source.found)).collect();
    let alike = |chart: &StepTime| charts.first().is_some_and(|first| chart.x == first.x && chart.y == first.y);
    let (drawn, left): (Vec<usize>, Vec<usize>) = (0..sources.len()).partition(|&at| alike(&charts[at]));
    if drawn.len() < 2 {
        return Err(Error::data(
            "no two of these have sizes and values of the same kind, so there is no combined picture",
        ));
    }
    // What was measured, whatever the device.
    let mut entries: Vec<(Identity, String, &ChartSeries)> = Vec::new();
    for &source in &drawn {
        for (series, found) in charts[source].series.iter().zip(&sources[source].found) {
            let fact = |name: &str| found.series.facts.get(name).cloned();
            let gpu = found.series.value("gpu").map(str::to_owned);
            let device_name = fact("device_name").or_else(|| gpu.clone());
            entries.push((Identity { source, device: fact("device").or(gpu), device_name }, task(found), series));
        }
    }
    let identities = distinct(entries.iter().map(|(identity, ..)| identity));
    if identities.len() > RUNS.len() {
        let message = format!("{} runs and devices in one picture could not be distinguished", identities.len());
        return Err(Error::data(message).hint(format!("draw at most {} at a time", RUNS.len())));
    }
    let names = names(&identities, sources);
    // One for each task, in the order in which they appear.
    let panel = |task: &String| {
        let own = entries.iter().filter(|(_, other, _)| other == task);
        let curves: Vec<RunCurve> = own
            .filter_map(|(identity, _, series)| {
                let run = identities.iter().position(|other| *other == identity)?;
                Some(RunCurve { run, series: ChartSeries { name: names[run].clone(), ..(*series).clone() } })
            })
            .collect();
        RunsPanel { name: if task.is_empty() { curves[0].series.name.clone() } else { task.clone() }, curves }
    };
    let panels: Vec<RunsPanel> = distinct(entries.iter().map(|entry| &entry.1)).into_iter().map(panel).collect();
    let first = &charts[drawn[0]];
    let chart = Runs {
        title: title(&panels, &identities),
        x: first.x.clone(),
        y: first.y.clone(),
        item: item(drawn.iter().map(|&at| &charts[at])),
        caption: caption(&drawn, sources),
        names,
        panels,
    };
    Ok(Together { chart, left_out: left.into_iter().map(|at| sources[at].path.clone()).collect() })
}

fn task(found: &Analysed) -> String {
    found.series.values_of(|column| !DEVICE.contains(&column))
}

/// By the device where every run and device has another one; else by the run, and where a run has several devices by both.
fn names(identities: &[&Identity], sources: &[AnalysedRun]) -> Vec<String> {
    let devices: Vec<&String> = identities.iter().filter_map(|identity| identity.device_name.as_ref()).collect();
    if distinct(devices.iter()).len() == identities.len() {
        return devices.into_iter().cloned().collect();
    }
    let runs = run_names(&sources.iter().map(|source| source.path.clone()).collect::<Vec<_>>());
    let name = |identity: &&Identity| {
        let alone = identities.iter().filter(|other| other.source == identity.source).count() == 1;
        let run = &runs[identity.source];
        match identity.device.as_ref().filter(|_| !alone) {
            Some(device) => format!("{run}, {device}"),
            None => run.clone(),
        }
    };
    identities.iter().map(name).collect()
}

/// `vgg16 on 3 devices`, `3 runs`.
fn title(panels: &[RunsPanel], identities: &[&Identity]) -> String {
    let devices = distinct(identities.iter().filter_map(|identity| identity.device_name.as_ref()));
    let number = identities.len();
    let by_device = devices.len() == number;
    let subjects = format!("{number} {}", if by_device { "devices" } else { "runs" });
    match panels {
        [one] if one.curves.len() == number && !one.curves.iter().any(|curve| curve.series.name == one.name) => {
            format!("{} {} {subjects}", one.name, if by_device { "on" } else { "in" })
        }
        _ => format!("{subjects} side by side"),
    }
}

/// What the times are divided by: the one word for it, or the general one; nothing where one run has none.
fn item<'a>(charts: impl Iterator<Item = &'a StepTime>) -> Option<String> {
    let items: Option<Vec<&String>> = charts.map(|chart| chart.item.as_ref()).collect();
    let items = items?;
    let first = items.first()?;
    Some(if items.iter().all(|item| item == first) { (*first).clone() } else { "example".to_owned() })
}

fn caption(drawn: &[usize], sources: &[AnalysedRun]) -> Vec<String> {
    let line = |source: &AnalysedRun| {
        format!("{}: {}", source.path.display(), provenance(&source.path, &source.found).join(" \u{b7} "))
    };
    let paths: Vec<&Path> = drawn.iter().map(|&at| sources[at].path.as_path()).collect();
    // All were found with the same options.
    let found = drawn.first().map_or(&[][..], |&at| &sources[at].found);
    let made = format!("Made by: {}", again("plot", &paths, found));
    drawn.iter().map(|&at| line(&sources[at])).chain([made]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::on_device;
    use super::*;
    use crate::detect::{Findings, Point};

    fn found(group: &[(&str, &str)], device: &str) -> Analysed {
        let point = Point { x: 1.0, count: 3, center: 10.0, low: 9.0, high: 11.0, fit: 10.0, off: false };
        let series = on_device(group, device);
        Analysed { series, findings: Findings { points: vec![point], ..Findings::default() } }
    }

    fn source(path: &str, found: Vec<Analysed>) -> AnalysedRun {
        AnalysedRun { path: path.into(), found }
    }

    fn panels(chart: &Runs) -> Vec<(&str, Vec<usize>)> {
        chart.panels.iter().map(|p| (p.name.as_str(), p.curves.iter().map(|curve| curve.run).collect())).collect()
    }

    #[test]
    fn the_same_network_on_two_devices_is_one_panel_of_two_named_by_device() {
        let run = |path: &str, device: &str, models: &[&str]| {
            source(path, models.iter().map(|model| found(&[("model", model)], device)).collect())
        };
        let both = [run("t4/study", "T4", &["vgg16", "resnet50"]), run("h100/study", "H100", &["vgg16"])];
        let chart = together(&both).unwrap().chart;
        assert_eq!(chart.names, ["T4", "H100"]);
        assert_eq!(panels(&chart), [("vgg16", vec![0, 1]), ("resnet50", vec![0])]);
        assert_eq!(chart.title, "2 devices side by side");
        assert_eq!(chart.caption.last().unwrap(), "Made by: batchstep plot t4/study h100/study");
        let one = [run("t4/study", "T4", &["vgg16"]), run("h100/study", "H100", &["vgg16"])];
        assert_eq!(together(&one).unwrap().chart.title, "vgg16 on 2 devices");
    }

    #[test]
    fn runs_on_the_same_device_are_named_by_their_folders() {
        let run = |path: &str| source(path, vec![found(&[("model", "vgg16")], "T4")]);
        let chart = together(&[run("a/vgg16"), run("b/vgg16"), run("before")]).unwrap().chart;
        assert_eq!(chart.names, ["a/vgg16", "b/vgg16", "before"]);
        assert_eq!(chart.title, "vgg16 in 3 runs");
    }

    #[test]
    fn a_run_of_two_devices_has_a_curve_for_each_in_one_panel() {
        let two = ["T4", "H100"].map(|device| found(&[("model", "vgg16"), ("device_name", device)], device));
        let other = source("other", vec![found(&[("model", "vgg16")], "A100")]);
        let chart = together(&[source("merged", two.into()), other]).unwrap().chart;
        assert_eq!(chart.names, ["T4", "H100", "A100"]);
        assert_eq!(panels(&chart), [("vgg16", vec![0, 1, 2])]);
    }

    #[test]
    fn what_is_of_another_kind_is_left_out_and_too_many_are_refused() {
        let run = |path: &str| source(path, vec![found(&[("model", "vgg16")], "T4")]);
        let mut other = run("tokens");
        other.found[0].series.size = crate::analysis::Size::of("tokens");
        let drawn = together(&[run("a"), other, run("b")]).unwrap();
        assert_eq!((drawn.left_out, drawn.chart.names.len()), (vec![PathBuf::from("tokens")], 2));
        assert!(together(&[run("a")]).is_err());
        let many: Vec<AnalysedRun> = (0..8).map(|at| run(&format!("run{at}"))).collect();
        let error = together(&many).err().unwrap().to_string();
        assert!(error.contains("8 runs and devices") && error.contains("at most 7"), "{error}");
    }
}
