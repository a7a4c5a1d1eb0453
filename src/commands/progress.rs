//! The displays during a measurement: a bar, for a sweep with the time left and the jump candidates so far, for a study with its last figure.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use batchstep::detect::{self, Observation};
use batchstep::foreign;
use batchstep::run::{History, Knowledge, Observer, Progress};
use batchstep::settings::{AXES, Axis};
use batchstep::spec::Experiment;
use batchstep::spec::plan::{Cell, Plan};
use batchstep::study;
use batchstep::units::human;
use indicatif::{ProgressBar, ProgressStyle};

use super::{notice, print_aside};

/// Hidden without a terminal.
fn bar(name: &str, terminal: bool) -> ProgressBar {
    let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
    // The message is cut at the end of the line, so that the bar never takes two.
    let style = ProgressStyle::with_template("{prefix} {bar:10} {wide_msg}").map(|style| style.progress_chars("━╸─"));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(name.to_owned());
    bar
}

/// The progress of a study whose number of visits is known: a bar, or twenty lines without a terminal.
pub struct StudyDisplay {
    bar: ProgressBar,
    terminal: bool,
    reported: usize,
}

impl StudyDisplay {
    pub fn new(name: &str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { bar: bar(name, terminal), terminal, reported: 0 }
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
        if !self.terminal && due {
            self.reported = visits;
            print_aside(&format!("{visits} of {of} visits, about {left} left | {last}\n"));
        }
    }

    fn warn(&mut self, message: &str) {
        if self.terminal {
            self.bar.println(foreign::message(&format!("batchstep: {message}")));
        } else {
            notice(message);
        }
    }
}

pub struct Display {
    bar: ProgressBar,
    /// Without a terminal: a line for each of the first blocks, then twenty for a run.
    terminal: bool,
    cells: usize,
    /// Complete blocks before candidates are shown; none are shown of a shard, which is a part of one answer.
    least_blocks: Option<usize>,
    /// The series of each cell and its batch size.
    names: Vec<SeriesPoint>,
    candidates: String,
    /// What is decided so far.
    settled: String,
    /// The start of the run, and the time that the search for candidates has taken.
    began: Instant,
    looking: Looking,
    last: Option<Progress>,
    /// When the last line was printed.
    reported_s: f64,
}

impl Display {
    pub fn new(experiment: &Experiment, plan: &Plan) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = bar(&experiment.name, terminal);
        let varied: Vec<&Axis> = AXES.iter().filter(|axis| experiment.grid.values(axis).len() > 1).collect();
        let several = experiment.engine.name.len() > 1;
        let names = plan
            .cells
            .iter()
            .map(|cell| SeriesPoint { series: name(cell, several, &varied), x: cell.batch_size as f64 })
            .collect();
        Self {
            bar,
            terminal,
            cells: plan.cells.len(),
            least_blocks: experiment.measure.shard.is_none().then(|| experiment.measure.complete_blocks()),
            names,
            candidates: String::new(),
            settled: String::new(),
            began: Instant::now(),
            looking: Looking::default(),
            last: None,
            reported_s: 0.0,
        }
    }

    fn say(&self, line: &str) {
        if self.terminal {
            self.bar.println(foreign::message(line));
        } else {
            print_aside(&format!("{line}\n"));
        }
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
        let known = format!("{}{}", self.candidates, self.settled);
        let message =
            format!("{elapsed} of at most {all} · {visits}{known} · {} {}: {time}", cell.model, cell.batch_size);
        self.bar.set_message(message);
        self.last = Some(progress);
    }

    fn block_ended(&mut self, block: usize, history: &History, knowledge: Knowledge) {
        self.settled = settled(knowledge);
        // Jumps are not shown before the run has the blocks that its spec requires.
        if self.least_blocks.is_some_and(|least| block + 1 >= least) && self.looking.is_due(self.began.elapsed()) {
            let watch = Instant::now();
            self.candidates = candidates(&self.names, history);
            self.looking = self.looking.took(watch.elapsed());
        }
        if self.terminal {
            return;
        }
        // Later blocks are short: the first blocks and twenty lines more are enough for a run.
        let Some(progress) = self.last.filter(|last| block < 4 || is_due(last, self.reported_s)) else { return };
        self.reported_s = progress.elapsed_s;
        let (elapsed, left) = (human::duration(progress.elapsed_s), human::duration(progress.left_s));
        let cells = human::counted(self.cells as u64, "cell");
        let known = format!("{}{}", self.candidates, self.settled);
        let visits = human::count(progress.visits as u64);
        self.say(&format!("{visits} visits to {cells}: {elapsed} so far, at most {left} left{known}"));
    }

    fn warn(&mut self, message: &str) {
        self.say(&format!("batchstep: {message}"));
    }
}

/// Whether it is time for another line: after a twentieth of the time that the run may take.
fn is_due(progress: &Progress, reported_s: f64) -> bool {
    progress.elapsed_s - reported_s >= (progress.elapsed_s + progress.left_s) / 20.0
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

/// The time that the searches for candidates took: all of them, and the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Looking {
    total: Duration,
    last: Duration,
}

impl Looking {
    /// Whether another search may start: if it takes as long as the last one, the total stays below a second plus 2 % of the
    /// run. A search takes longer with every block, and with many cells longer than the blocks themselves.
    fn is_due(self, elapsed: Duration) -> bool {
        self.total + self.last <= FREE + elapsed / 50
    }

    fn took(self, last: Duration) -> Self {
        Self { total: self.total + last, last }
    }
}

/// The time that searches may take in any case, so that a short run has candidates after every block.
const FREE: Duration = Duration::from_secs(1);

/// The series that a cell belongs to: its network, and what varies beside the batch size.
fn name(cell: &Cell, several_engines: bool, varied: &[&Axis]) -> String {
    let engine = several_engines.then(|| cell.engine.to_string());
    let values = varied.iter().map(|axis| axis.value_label((axis.get)(&cell.workload.settings)));
    std::iter::once(cell.model.clone()).chain(engine).chain(values).collect::<Vec<_>>().join(" ")
}

/// Where a cell belongs in the series.
struct SeriesPoint {
    series: String,
    x: f64,
}

/// The jumps in the data so far, in short: ` · jumps so far: 16, 32`.
fn candidates(names: &[SeriesPoint], history: &History) -> String {
    let mut series: BTreeMap<&str, Vec<Observation>> = BTreeMap::new();
    for (SeriesPoint { series: name, x }, cell) in names.iter().zip(history.cells()) {
        for (block, times) in cell.visits() {
            let seen = |&y: &f64| Observation { block: Some(block as u32), ..Observation::new(*x, y) };
            series.entry(name).or_default().extend(times.iter().map(seen));
        }
    }
    let quick = detect::Settings { resamples: 0, ..detect::Settings::default() };
    let several = series.len() > 1;
    let mut text = String::new();
    for (name, observations) in series {
        let jumps = detect::detect(&observations, &quick).jumps;
        if !jumps.is_empty() {
            let after: Vec<String> = jumps.iter().map(|jump| human::batch_size(jump.after)).collect();
            let of = if several { format!("{name}, ") } else { String::new() };
            text.push_str(&format!(" · {of}jumps so far: {}", after.join(", ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_for_candidates_takes_a_second_or_a_fiftieth_of_a_run() {
        let seconds = Duration::from_secs_f64;
        // Blocks of 10 s each, whose looks take 0.3 s more each time: 0.3, 0.6, ...
        let (mut looking, mut looks) = (Looking::default(), 0);
        let mut elapsed = seconds(0.0);
        for block in 1..=100 {
            elapsed += seconds(10.0);
            if looking.is_due(elapsed) {
                let took = seconds(0.3 * f64::from(block));
                looking = looking.took(took);
                elapsed += took;
                looks += 1;
            }
        }
        assert!(looks >= 3, "{looks}");
        // The last look may be longer than the one it was judged by.
        assert!(looking.total - looking.last <= seconds(1.0) + elapsed / 50, "{looking:?}");
        // A short run sees all of them.
        let quick = (0..30).try_fold(Looking::default(), |looking, _| {
            looking.is_due(seconds(0.0)).then(|| looking.took(seconds(0.03)))
        });
        assert!(quick.is_some());
    }
}
