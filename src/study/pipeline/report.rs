//! A study of the input pipeline in the terminal: each stage by itself, all together against the prediction, and where more workers stop paying.

use serde_json::{Value, json};

use super::results::model::{Limit, Stage};
use super::results::sides::{Half, SideTimes, Sides};
use super::results::{FedCell, Knee, Results, Within};
use crate::report::{Answer, Column, Document, Ground, Table, Warning};
use crate::study::pipeline::PipelineRow;
use crate::study::warning::{failed, were};
use crate::units::human;
use crate::words::shortened;

/// The version of the document.
const VERSION: u32 = 1;
/// The share of the cells that the model is to predict to a tenth.
const WANTED: f64 = 0.9;
/// Images that a warning names.
const MOST_NAMED: usize = 4;

/// Everything that a study says. Empty without cells.
pub fn document(study: &Results) -> Document {
    let mut document = Document::default();
    if study.cells.is_empty() {
        return document;
    }
    document.heading("Storage");
    document.text(format!("  {}", study.storage));
    let mut part = |heading: &str, table: Option<Table>, lines: Vec<String>| {
        let mut part = Document::default();
        part.heading(heading);
        table.into_iter().for_each(|table| part.table(table));
        lines.iter().for_each(|line| part.text(format!("  {line}")));
        document.append(part);
    };
    part("Single stages (images/s with the cell's workers)", Some(stages(study)), Vec::new());
    part("All together (images/s)", Some(together(study)), accuracy(study));
    let knees = knees(study);
    if !knees.is_empty() {
        part("How many workers (measured here)", None, knees);
    }
    document
}

/// How well the model predicts, and how many workers are enough.
pub fn answer(study: &Results, sentence: String) -> Answer {
    let ground = |text| Ground { grade: "measured here".to_owned(), text };
    Answer { sentence, grounds: knees(study).into_iter().map(ground).collect() }
}

/// The columns that say which cell it is, with its texts there.
fn place(study: &Results) -> (Vec<Column>, impl Fn(&FedCell) -> Vec<String>) {
    let series = study.cells.iter().any(|cell| !cell.series.is_empty());
    let mut columns = Vec::from_iter(series.then(|| Column::left("series")));
    columns.extend([Column::left("format"), Column::right("size"), Column::left("cache")]);
    columns.extend(["batch", "workers"].map(Column::right));
    let texts = move |cell: &FedCell| {
        let mut texts = Vec::from_iter(series.then(|| cell.series.clone()));
        texts.extend([cell.format.clone(), cell.size.to_string(), cell.cache.clone()]);
        texts.extend([cell.batch_size.to_string(), cell.workers.to_string()]);
        texts
    };
    (columns, texts)
}

fn stages(study: &Results) -> Table {
    let names = study.stages();
    let (mut columns, place) = place(study);
    columns.extend(names.iter().map(|name| Column::right(name)));
    columns.extend([Column::right("cores"), Column::right("shared"), Column::left("read by"), Column::right("stored")]);
    let mut table = Table::new(columns);
    for cell in &study.cells {
        let mut row = place(cell);
        row.extend(names.iter().map(|name| {
            let stage = cell.demands.stages.iter().find(|stage| stage.name == *name);
            stage.map_or_else(|| "unknown".to_owned(), |stage| large(stage.ceiling))
        }));
        row.push(format!("{:.2}", cell.demands.cores));
        row.push(human::percent(1.0 - cell.demands.training_share));
        row.push(cell.read_method.trim_start_matches("page_").to_owned());
        row.push(cell.from_storage.map_or_else(|| "unknown".to_owned(), human::percent));
        table.row(row);
    }
    table
}

fn together(study: &Results) -> Table {
    let (mut columns, place) = place(study);
    columns.extend(["measured", "waiting", "predicted", "ratio", "bound", "ratio"].map(Column::right));
    columns.extend([Column::left("predicted limit"), Column::left("measured limit")]);
    let mut table = Table::new(columns);
    for cell in &study.cells {
        let unknown = || "unknown".to_owned();
        let mut row = place(cell);
        row.extend([rate(cell.rate), human::percent(cell.waiting)]);
        for (said, ratio) in [(&cell.prediction, cell.ratio), (&cell.bounds, cell.ratio_of_bounds)] {
            row.push(said.as_ref().map_or_else(unknown, |said| rate(said.rate)));
            row.push(ratio.map_or_else(unknown, |ratio| format!("{ratio:.2}")));
        }
        row.push(cell.prediction.as_ref().map_or_else(unknown, |prediction| limit(&prediction.limit)));
        row.push(cell.held.to_string());
        table.row(row);
    }
    table
}

fn rate(value: f64) -> String {
    human::count(value.round().max(0.0) as u64)
}

/// A rate of which more than three digits are not of use.
fn large(value: f64) -> String {
    match value {
        _ if value >= 999.5e3 => format!("{} M", human::digits(value / 1e6)),
        _ if value >= 99.95e3 => format!("{} k", human::digits(value / 1e3)),
        _ => rate(value),
    }
}

/// What the prediction names, in words.
pub fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Serial { longest } => format!("nothing overlaps; longest: {longest}"),
        Limit::Workers { longest } => format!("workers; longest: {longest}"),
        Limit::Stage { name } if name == "read" => "storage".to_owned(),
        Limit::Stage { name } => format!("{name}, however many workers"),
        Limit::Step => "step".to_owned(),
        Limit::Cores => "cores".to_owned(),
    }
}

/// How good the predictions are, as sentences.
fn accuracy(study: &Results) -> Vec<String> {
    let Within { model, bounds, slowest_stage, of, overlapping: [good, overlapping] } = study.within();
    let agree =
        study.cells.iter().filter(|cell| cell.prediction.as_ref().is_some_and(|p| cell.held.agrees(&p.limit))).count();
    vec![
        format!(
            "Measured within 10 % of the prediction in {model} of {}, of those with workers in {good} of {overlapping} (by the bounds of the stages \
             alone: {bounds}; by the slowest stage's ceiling: {slowest_stage}); the predicted limit is the measured one in {agree}.",
            human::counted(of as u64, "cell")
        ),
        "Predicted (formula, from measured times): loader and training at once, each on data of its own, say how much each slows the other; the \
         side that then takes longer is busy all the time, and slowed for the share of the time in which the other one works; of several workers so \
         many work at a time as chance has it. Without workers 1 / (D + S), with D seconds of the loader and S of copy and step, taken in turn."
            .to_owned(),
        "Bound (formula): the smallest of W / D with W workers and D seconds of a worker's stages for an image, 1 / S with S seconds of copy and \
         step, the cores that other processes leave over the processor time of an image, and each stage's ceiling. The time that other processes \
         kept these threads from a core is taken out (column `shared`: of the training thread); `stored`: bytes from the storage device over \
         bytes of files, while reading alone."
            .to_owned(),
    ]
}

/// For each curve over workers, how many are enough.
fn knees(study: &Results) -> Vec<String> {
    study.knees().iter().map(knee).collect()
}

fn knee(knee: &Knee) -> String {
    let best = knee.cells[knee.at];
    let workers =
        |number: usize| if number == 0 { "no workers".to_owned() } else { human::counted(number as u64, "worker") };
    let predicted = knee.predicted.map(|at| knee.cells[at].workers).filter(|predicted| *predicted != best.workers);
    let predicted = predicted.map_or_else(String::new, |number| format!(" (predicted: {})", workers(number)));
    let reached = human::percent(best.rate / knee.cells.iter().map(|cell| cell.rate).fold(0.0, f64::max));
    format!(
        "{}: {}{predicted}, {} images/s, {reached} of the best",
        best.place(),
        workers(best.workers),
        rate(best.rate)
    )
}

/// The study as a document, version 1. Rates are in images a second, times in seconds; `ratio` is measured over predicted, `rate` over
/// `predicted`.
pub fn json(study: &Results) -> Value {
    let within = study.within();
    let cell = |cell: &FedCell| {
        let stage = |stage: &Stage| json!({"name": stage.name, "seconds": stage.seconds, "cpu_s": stage.cpu_s, "ceiling": stage.ceiling});
        json!({
            "series": cell.series, "format": cell.format, "size": cell.size, "cache": cell.cache, "batch_size": cell.batch_size,
            "workers": cell.workers, "rate": cell.rate, "rates": cell.rates, "waiting": cell.waiting,
            "predicted": cell.prediction.as_ref().map(|prediction| prediction.rate),
            "predicted_limit": cell.prediction.as_ref().map(|prediction| limit(&prediction.limit)),
            "bound": cell.bounds.as_ref().map(|bounds| bounds.rate), "ratio_of_bound": cell.ratio_of_bounds,
            "sides": cell.sides.map(sides),
            "measured_limit": cell.held.name(), "ratio": cell.ratio, "cores": cell.demands.cores,
            "read_method": cell.read_method, "from_storage": cell.from_storage, "file_bytes": cell.file_bytes,
            "stages": cell.demands.stages.iter().map(stage).collect::<Vec<Value>>(),
        })
    };
    let knee = |knee: &Knee| json!({"place": knee.cells[knee.at].place(), "workers": knee.cells[knee.at].workers});
    json!({
        "version": VERSION, "device": study.device, "storage": study.storage, "blocks": study.blocks,
        "cells": study.cells.iter().map(cell).collect::<Vec<Value>>(),
        "within_ten_percent": {"model": within.model, "bounds": within.bounds, "slowest_stage": within.slowest_stage, "of": within.of,
            "overlapping": {"model": within.overlapping[0], "of": within.overlapping[1]}},
        "knees": study.knees().iter().map(knee).collect::<Vec<Value>>(),
        "failed": study.failed, "skipped": study.skipped,
    })
}

/// Seconds for an image, for each side by itself and beside the other.
fn sides(sides: Sides) -> Value {
    let side = |side: SideTimes| json!({"alone_s": side.alone_s, "beside_s": side.beside_s});
    let half = |half: Half| json!({"workers": half.workers, "loader_s": half.loader_s, "training_s": half.training_s});
    json!({"loader": side(sides.loader), "training": side(sides.training), "half": sides.half.map(half), "cpu_s": sides.cpu_s})
}

/// What a user should know about a study.
pub fn warnings(study: &Results) -> Vec<Warning> {
    let all = [failed::<PipelineRow>(&study.failed), skipped(&study.skipped), not_cold(study), unpredicted(study)];
    all.into_iter().flatten().collect()
}

/// That images could not be read: the first of them with the reasons.
fn skipped(why: &[String]) -> Option<Warning> {
    let (images, were) = (human::counted(why.len() as u64, "image"), were(why.len()));
    let named = shortened(why.iter().cloned(), MOST_NAMED).join("; ");
    let message = format!("{images} could not be read and {were} left out: {named}");
    let remedy = "all of them are in `pipeline.json`; replace the files, or make them an error with `on_error = \"fail\"` in [loader]";
    (!why.is_empty()).then(|| Warning::OfStudy { message, remedy: remedy.to_owned() })
}

/// That files were to come from the storage device and came from memory.
fn not_cold(study: &Results) -> Option<Warning> {
    let warm = study.not_cold();
    let (cells, first) = (human::counted(warm.len() as u64, "cell"), warm.first()?.place());
    let message = format!("the files of {cells} were not cold: they came from memory; the first: {first}");
    let remedy = "name a `folder` in [data] on a disk: memory file systems hold every file in memory, and some others ignore both O_DIRECT and \
                  POSIX_FADV_DONTNEED";
    Some(Warning::OfStudy { message, remedy: remedy.to_owned() })
}

/// That the rate of many cells is farther than a tenth from the predicted one.
fn unpredicted(study: &Results) -> Option<Warning> {
    let Within { model: good, of, .. } = study.within();
    let off = of - good;
    let (cells, are) = (human::counted(off as u64, "cell"), if off == 1 { "is" } else { "are" });
    let of_all = human::count(of as u64);
    let message = format!("{cells} of {of_all} {are} more than 10 % off the rate that the stages predict");
    let remedy = "repeat the run while nothing else uses the machine, or measure longer: `stage_time`, `together_time` and `repetitions` in \
                  [measure]";
    (of > 0 && (good as f64) < WANTED * of as f64).then(|| Warning::OfStudy { message, remedy: remedy.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Style;
    use crate::study::pipeline::results::tests::visit_rows;

    fn study() -> Results {
        Results::of(&[visit_rows(0, 5.2e-3), visit_rows(1, 4.1e-3), visit_rows(2, 2.5e-3)].concat())
    }

    #[test]
    fn the_tables_have_the_measured_and_the_predicted_rates_and_their_limits() {
        let text = document(&study()).render(&Style { width: 200, ..Style::PLAIN });
        let tidy: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        // By hand: 1 / 5.2 ms = 192.3, predicted 200; 400 of 500 with two workers.
        for line in [
            "vda (a virtual disk)",
            "png 64 cold 32 0 192 30 % 200 0.96 200 0.96 nothing overlaps; longest: decode nothing overlaps",
            "png 64 cold 32 2 400 30 % 500 0.80 500 0.80 workers; longest: decode feeding",
            "png of 64x64, cold, batch size 32: 2 workers, 400 images/s, 100 % of the best",
        ] {
            assert!(tidy.iter().any(|found| found == line), "{text}\nlacks: {line}");
        }
        assert!(text.contains("in 2 of 3 cells"), "{text}");
        assert!(document(&Results::of(&[])).is_empty());
        let json = json(&study());
        assert_eq!((&json["within_ten_percent"]["model"], &json["cells"][2]["workers"]), (&json!(2), &json!(2)));
        assert!((json["cells"][2]["predicted"].as_f64().expect("a number") - 500.0).abs() < 1e-9);
    }

    #[test]
    fn measured_predicted_and_ratio_agree_though_each_block_has_its_own_prediction() {
        // Of the blocks 250, 200 and 160 images/s are measured, and 250, 125 and 125 predicted: the medians are 200 and a ratio of 1.28.
        let visit = |number: i64, slower: f64, together_s: f64| {
            visit_rows(1, together_s).into_iter().map(move |row| {
                let slower = if row.stage == "together" { 1.0 } else { slower };
                let times = [row.elapsed_s, row.cpu_time_s].map(|time| time.map(|seconds| slower * seconds));
                PipelineRow { visit: number, block: number, elapsed_s: times[0], cpu_time_s: times[1], ..row }
            })
        };
        let rows = visit(0, 1.0, 4e-3).chain(visit(1, 2.0, 5e-3)).chain(visit(2, 2.0, 6.25e-3));
        let study = Results::of(&rows.collect::<Vec<_>>());
        let text = document(&study).render(&Style { width: 200, ..Style::PLAIN });
        let tidy: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let line = "png 64 cold 32 1 200 30 % 156 1.28 156 1.28 workers; longest: decode feeding";
        assert!(tidy.iter().any(|found| found == line), "{text}\nlacks: {line}");
        let document = json(&study);
        let cell = &document["cells"][0];
        let number = |name: &str| cell[name].as_f64().expect("a number");
        assert!((number("rate") / number("predicted") - number("ratio")).abs() < 1e-12, "{cell}");
        assert!((number("rate") / number("bound") - number("ratio_of_bound")).abs() < 1e-12, "{cell}");
    }

    #[test]
    fn every_image_that_was_left_out_is_counted_once_and_named() {
        let mut rows = visit_rows(1, 4.0e-3);
        let together = rows.last_mut().expect("a row");
        (together.skipped, together.error) = (2, Some("a.png: it is cut off\nb.png: it is no image".into()));
        let again = rows.iter().cloned().map(|row| PipelineRow { visit: 9, block: 1, ..row });
        let study = Results::of(&rows.iter().cloned().chain(again).collect::<Vec<_>>());
        let text = warnings(&study)[0].text(&Style::PLAIN);
        assert!(
            text.contains("2 images could not be read and were left out: a.png: it is cut off; b.png: it is no image"),
            "{text}"
        );
        let one = skipped(&["a.png: it ends early".to_owned()]).expect("a warning");
        assert_eq!(one.to_string(), "1 image could not be read and was left out: a.png: it ends early");
        assert!(one.remedy().starts_with("all of them"), "{}", one.remedy());
        let document = json(&study);
        assert_eq!(document["skipped"], json!(["a.png: it is cut off", "b.png: it is no image"]));
    }

    #[test]
    fn what_is_not_predicted_is_a_warning_with_its_remedy() {
        let warnings = warnings(&study());
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].to_string(), "1 cell of 3 is more than 10 % off the rate that the stages predict");
        assert!(warnings[0].text(&Style::PLAIN).contains("help: "));
    }
}
