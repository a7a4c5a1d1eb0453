//! The displays during a measurement: a bar, for a sweep with the time left and the jumps that are decided so far, for a study with its last figure.

use std::collections::BTreeMap;

use batchstep::foreign;
use batchstep::run::{Boundary, Decision, Knowledge, Observer, Progress};
use batchstep::settings::{AXES, Axis};
use batchstep::spec::Experiment;
use batchstep::spec::plan::{Cell, Plan};
use batchstep::study;
use batchstep::units::human;
use indicatif::{ProgressBar, ProgressStyle};

use super::print_aside;

/// Hidden without a terminal, and on one that moves no cursor (`TERM=dumb`, or none).
fn bar(name: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    // The message is cut at the end of the line, so that the bar never takes two.
    let style = ProgressStyle::with_template("{prefix} {bar:10} {wide_msg}").map(|style| style.progress_chars("━╸─"));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(name.to_owned());
    bar
}

/// Prints a line above the bar; a hidden bar prints nothing.
fn say(bar: &ProgressBar, line: &str) {
    if bar.is_hidden() {
        print_aside(&format!("{line}\n"));
    } else {
        bar.println(foreign::message(line));
    }
}

/// The progress of a study whose number of visits is known: a bar, or twenty lines where it is hidden.
pub struct StudyDisplay {
    bar: ProgressBar,
    reported: usize,
}

impl StudyDisplay {
    pub fn new(name: &str) -> Self {
        Self { bar: bar(name), reported: 0 }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl study::Observer for StudyDisplay {
    fn visited(&mut self, last: &str, progress: study::Progress) {
        let study::Progress { visits, of, left_s } = progress;
        let left = human::duration(left_s);
        self.bar.set_length(of as u64);
        self.bar.set_position(visits as u64);
        self.bar.set_message(format!("{visits} of {of} visits · about {left} left · {last}"));
        let due = visits >= self.reported + (of / 20).max(1);
        if self.bar.is_hidden() && due {
            self.reported = visits;
            print_aside(&format!("{visits} of {of} visits, about {left} left | {last}\n"));
        }
    }

    fn warn(&mut self, message: &str) {
        say(&self.bar, &foreign::message(&format!("batchstep: {message}")));
    }
}

/// The progress of a sweep: a bar, or where it is hidden a line for each of the first blocks, then twenty for a run.
pub struct Display {
    bar: ProgressBar,
    cells: usize,
    /// The series of each cell and its batch size; empty for a shard, which is a part of one answer.
    names: Vec<(String, usize)>,
    /// What is decided so far.
    known: String,
    last: Option<Progress>,
    /// When the last line was printed.
    reported_s: f64,
}

impl Display {
    pub fn new(experiment: &Experiment, plan: &Plan) -> Self {
        let bar = bar(&experiment.name);
        let varied: Vec<&Axis> = AXES.iter().filter(|axis| experiment.grid.values(axis).len() > 1).collect();
        let several = experiment.engine.name.len() > 1;
        let point = |cell: &Cell| (name(cell, several, &varied), cell.batch_size);
        let whole = experiment.measure.shard.is_none();
        let names = plan.cells.iter().filter(|_| whole).map(point).collect();
        Self { bar, cells: plan.cells.len(), names, known: String::new(), last: None, reported_s: 0.0 }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Display {
    fn visited(&mut self, cell: &Cell, median_s: Option<f64>, progress: Progress) {
        let all_s = progress.elapsed_s + progress.left_s;
        // In tenths of a second.
        self.bar.set_length((10.0 * all_s) as u64);
        self.bar.set_position((10.0 * progress.elapsed_s) as u64);
        let time = median_s.map_or_else(|| "no time".to_string(), human::seconds);
        let (elapsed, all) = (human::duration(progress.elapsed_s), human::duration(all_s));
        let visits = human::counted(progress.visits as u64, "visit");
        let message =
            format!("{elapsed} of at most {all} · {visits}{} · {} {}: {time}", self.known, cell.model, cell.batch_size);
        self.bar.set_message(message);
        self.last = Some(progress);
    }

    fn block_ended(&mut self, block: usize, knowledge: Knowledge, boundaries: &[Boundary]) {
        self.known = format!("{}{}", jumps(&self.names, boundaries), settled(knowledge));
        if !self.bar.is_hidden() {
            return;
        }
        // Later blocks are short: the first blocks and twenty lines more are enough for a run.
        let is_due = |last: &Progress| last.elapsed_s - self.reported_s >= (last.elapsed_s + last.left_s) / 20.0;
        let Some(progress) = self.last.filter(|last| block < 4 || is_due(last)) else { return };
        self.reported_s = progress.elapsed_s;
        let (elapsed, left) = (human::duration(progress.elapsed_s), human::duration(progress.left_s));
        let cells = human::counted(self.cells as u64, "cell");
        let visits = human::count(progress.visits as u64);
        say(&self.bar, &format!("{visits} visits to {cells}: {elapsed} so far, at most {left} left{}", self.known));
    }

    fn warn(&mut self, message: &str) {
        say(&self.bar, &format!("batchstep: {message}"));
    }
}

/// What is decided so far, in short: ` · jumps of 9 % or more are shown or ruled out`.
fn settled(knowledge: Knowledge) -> String {
    let Knowledge { open, rough, settled, .. } = knowledge;
    match settled {
        Some(_) if open + rough == 0 => " · every boundary that can be tested is decided".to_string(),
        Some(jump) => format!(" · jumps of {} or more are shown or ruled out", human::limit(jump)),
        None => String::new(),
    }
}

/// The series that a cell belongs to: its network, and what varies beside the batch size.
fn name(cell: &Cell, several_engines: bool, varied: &[&Axis]) -> String {
    let engine = several_engines.then(|| cell.engine.to_string());
    let values = varied.iter().map(|axis| axis.value_label((axis.get)(&cell.workload.settings)));
    std::iter::once(cell.model.clone()).chain(engine).chain(values).collect::<Vec<_>>().join(" ")
}

/// The jumps that are decided so far, in short: ` · jumps so far: 16, 32`.
fn jumps(names: &[(String, usize)], boundaries: &[Boundary]) -> String {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let shown = boundaries.iter().filter(|boundary| boundary.decision == Decision::Jump);
    for (series, batch_size) in shown.filter_map(|boundary| names.get(boundary.below)) {
        found.entry(series).or_default().push(batch_size.to_string());
    }
    let several = names.iter().any(|(series, _)| *series != names[0].0);
    let text = |(series, after): (&str, Vec<String>)| {
        let of = if several { format!("{series}, ") } else { String::new() };
        format!(" · {of}jumps so far: {}", after.join(", "))
    };
    found.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jumps_so_far_are_those_that_are_decided() {
        let point = |series: &str, batch_size| (series.to_owned(), batch_size);
        let decided = [(0, Decision::NoJump), (1, Decision::Jump), (2, Decision::Open), (3, Decision::Jump)];
        let boundaries = decided.map(|(below, decision)| Boundary { below, decision });
        let one = [15, 16, 17, 18].map(|batch_size| point("vgg16", batch_size));
        assert_eq!(jumps(&one, &boundaries), " · jumps so far: 16, 18");
        let two = [point("vgg16", 15), point("vgg16", 16), point("mlp", 15), point("mlp", 16)];
        assert_eq!(jumps(&two, &boundaries), " · mlp, jumps so far: 16 · vgg16, jumps so far: 16");
        assert_eq!(jumps(&one, &boundaries[..1]) + &jumps(&[], &boundaries), "");
    }
}
