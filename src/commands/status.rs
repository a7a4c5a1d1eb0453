//! `batchstep status`: how far runs have come.

use batchstep::error::Result;
use batchstep::fleet::status::{RunState, Status};
use batchstep::report::{self, Column, Table};
use batchstep::units::human;

use super::{Exit, notice, print};
use crate::cli::{Form, StatusArgs};

pub fn status(args: &StatusArgs) -> Result<Exit> {
    let (mut runs, mut unread) = (Vec::new(), Vec::new());
    for path in &args.runs {
        match Status::of(path) {
            Ok(run) => runs.push(run),
            Err(error) => unread.push(error),
        }
    }
    if runs.is_empty() {
        unread.iter().for_each(notice);
        return Ok(Exit::Failed);
    }
    match args.format {
        Form::Json => {
            let document = serde_json::json!({"version": 1, "runs": runs});
            print(&format!("{document:#}\n"));
        }
        Form::Table => print(&(table(&runs) + &totals(&runs))),
    }
    unread.iter().for_each(notice);
    Ok(if unread.is_empty() { Exit::Done } else { Exit::Warned })
}

fn table(runs: &[Status]) -> String {
    let mut table = Table::new([
        Column::left("run"),
        Column::left("state"),
        Column::right("visits"),
        Column::right("of at most"),
        Column::right("last visit"),
    ]);
    for run in runs {
        let last = run.last_s.map_or_else(String::new, |s| format!("{} ago", human::duration(s)));
        let most = if run.most_visits == 0 { String::new() } else { human::count(run.most_visits as u64) };
        let visits = human::count(run.visits.unsigned_abs());
        table.row([run.path.display().to_string(), run.state.name().to_owned(), visits, most, last]);
    }
    table.render(&report::Style::of_terminal())
}

/// The states that ask for something, and what they mean.
const ASKING: [(RunState, &str); 4] = [
    (RunState::Silent, "nothing was stored for two minutes; its process has ended, or a visit takes long"),
    (
        RunState::Stopped,
        "stopped before its end, for example by a signal; `batchstep run` with `--resume` continues it",
    ),
    (RunState::Merged, "of runs that have not all finished: continue these with `--resume`, and merge again"),
    (RunState::Waiting, "no run has begun in this folder"),
];

fn totals(runs: &[Status]) -> String {
    let count = |state: RunState| runs.iter().filter(|run| run.state == state).count();
    let states = [RunState::Finished, RunState::Running].into_iter().chain(ASKING.map(|(state, _)| state));
    let there = states.filter(|state| count(*state) > 0);
    let states: Vec<String> = there.map(|state| format!("{} {}", count(state), state.name())).collect();
    let visits: i64 = runs.iter().map(|run| run.visits).sum();
    let (runs, visits) = (human::counted(runs.len() as u64, "run"), human::counted(visits as u64, "visit"));
    let asking = ASKING.iter().filter(|(state, _)| count(*state) > 0);
    let meanings: String = asking.map(|(state, meaning)| format!("{}: {meaning}\n", state.name())).collect();
    format!("{runs}: {}; {visits}\n{meanings}", states.join(", "))
}
