//! What one sees while a run is under way: a bar with the time left and the live jump candidates.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use batchstep::detect::{self, Observation};
use batchstep::plan::{Cell, Plan};
use batchstep::report::human;
use batchstep::run::{History, Observer, Progress};
use batchstep::spec::Experiment;
use indicatif::{ProgressBar, ProgressStyle};

pub struct Display {
    bar: ProgressBar,
    /// Without a terminal a line for each block is enough.
    terminal: bool,
    cells: usize,
    /// The series of each cell and its batch size.
    names: Vec<(String, f64)>,
    candidates: String,
    last: Option<Progress>,
}

impl Display {
    pub fn new(experiment: &Experiment, plan: &Plan) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} visits, {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(experiment.name.clone());
        let axes = experiment.engine.name.len() + experiment.train.precision.len();
        let names = plan.cells.iter().map(|cell| name(cell, axes > 2)).collect();
        Self { bar, terminal, cells: plan.cells.len(), names, candidates: String::new(), last: None }
    }

    fn say(&self, line: &str) {
        if self.terminal {
            self.bar.println(line);
        } else {
            eprintln!("{line}");
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Display {
    fn visited(&mut self, cell: &Cell, median_s: Option<f64>, progress: Progress) {
        self.bar.set_length((progress.visits + progress.visits_left) as u64);
        self.bar.set_position(progress.visits as u64);
        let time = median_s.map_or_else(|| "no time".to_string(), human::seconds);
        let left = human::duration(progress.left_s);
        let message = format!("at most {left} left | {} {}: {time}{}", cell.model, cell.batch_size, self.candidates);
        self.bar.set_message(message);
        self.last = Some(progress);
    }

    fn block_ended(&mut self, block: usize, history: &History) {
        // The blocks are what tells a jump from a moment's disturbance; of one alone nothing can be said.
        if block > 0 {
            self.candidates = candidates(&self.names, history);
        }
        if self.terminal {
            return;
        }
        let Some(progress) = self.last else { return };
        let (elapsed, left) = (human::duration(progress.elapsed_s), human::duration(progress.left_s));
        let cells = human::counted(self.cells as u64, "cell");
        self.say(&format!(
            "block {} over {cells}: {elapsed} so far, at most {left} left{}",
            block + 1,
            self.candidates
        ));
    }

    fn warn(&mut self, message: &str) {
        self.say(&format!("batchstep: {message}"));
    }
}

/// A short name for the series that a cell belongs to, and its place there.
fn name(cell: &Cell, several: bool) -> (String, f64) {
    let precision = cell.workload.settings.precision;
    let name = if several { format!("{} {} {precision}", cell.model, cell.engine) } else { cell.model.clone() };
    (name, cell.batch_size as f64)
}

/// The jumps in the data so far, shortly: ` | vgg16: jumps after 16, 32 so far`.
fn candidates(names: &[(String, f64)], history: &History) -> String {
    let mut series: BTreeMap<&str, Vec<Observation>> = BTreeMap::new();
    for ((name, x), cell) in names.iter().zip(history.cells()) {
        for (block, times) in cell.visits() {
            let seen = |&y: &f64| Observation { block: Some(block as u32), ..Observation::new(*x, y) };
            series.entry(name).or_default().extend(times.iter().map(seen));
        }
    }
    let quick = detect::Settings { resamples: 0, ..detect::Settings::default() };
    let mut text = String::new();
    for (name, observations) in series {
        let jumps = detect::detect(&observations, &quick).jumps;
        if !jumps.is_empty() {
            let after: Vec<String> = jumps.iter().map(|jump| human::batch_size(jump.after)).collect();
            text.push_str(&format!(" | {name}: jumps after {} so far", after.join(", ")));
        }
    }
    text
}
