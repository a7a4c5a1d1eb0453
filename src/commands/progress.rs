//! What one sees while a run is under way: a bar with the time left and the live jump candidates.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use batchstep::detect::{self, Observation};
use batchstep::plan::{Cell, Plan};
use batchstep::report::human;
use batchstep::run::{Observer, Progress};
use batchstep::spec::Experiment;
use batchstep::store::StepRow;
use indicatif::{ProgressBar, ProgressStyle};

pub struct Display {
    bar: ProgressBar,
    /// Without a terminal a line for each block is enough.
    terminal: bool,
    cells: usize,
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
        Self { bar, terminal, cells: plan.cells.len(), candidates: String::new(), last: None }
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

    fn block_ended(&mut self, block: usize, rows: &[StepRow]) {
        // The blocks are what tells a jump from a moment's disturbance; of one alone nothing can be said.
        if block > 0 {
            self.candidates = candidates(rows);
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

/// The jumps in the data so far, shortly: ` | jumps after 16, 32 (vgg16)`.
fn candidates(rows: &[StepRow]) -> String {
    let mut series: BTreeMap<(&str, &str, &str), Vec<Observation>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.warmup && row.status == "ok") {
        let Some(y) = row.step_time_s else { continue };
        let key = (row.model.as_str(), row.engine.as_str(), row.precision.as_str());
        series.entry(key).or_default().push(Observation {
            x: row.batch_size as f64,
            y,
            order: Some(row.order as f64),
            block: Some(row.block as u32),
            clock_hz: row.sm_clock_hz,
        });
    }
    let quick = detect::Settings { resamples: 0, ..detect::Settings::default() };
    let mut text = String::new();
    for ((model, ..), observations) in series {
        let jumps = detect::detect(&observations, &quick).jumps;
        if !jumps.is_empty() {
            let after: Vec<String> = jumps.iter().map(|jump| human::batch_size(jump.after)).collect();
            text.push_str(&format!(" | {model}: jumps after {} so far", after.join(", ")));
        }
    }
    text
}
