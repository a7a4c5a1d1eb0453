//! `batchstep compare`: runs, cell by cell, against the first, also measured in turns; or the engines of one run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use batchstep::analysis::compare::{self, Comparison, Decision, Design, Rules, Several, When, rounds};
use batchstep::analysis::contrast::side_by_side::side_by_side;
use batchstep::analysis::{self, Series, run_names};
use batchstep::error::{Error, Result};
use batchstep::foreign;
use batchstep::report::{self, Style};
use batchstep::spec::Experiment;
use batchstep::units::Share;
use batchstep::units::human;

use super::{Exit, notice, print, query, refused, turns, warn_of_table};
use crate::cli::{CompareArgs, Form};

pub fn compare(args: &CompareArgs) -> Result<Exit> {
    let margin = Share::parse(&args.margin).filter(|Share(margin)| *margin > 0.0 && *margin < 1.0);
    let Some(Share(margin)) = margin else {
        return Err(refused(&args.margin, "margin", "--margin", "1%"));
    };
    let design = if args.turns.in_turns { Design::InTurns } else { Design::Separate };
    let rules = Rules { margin, design, ..Rules::default() };
    let mut paths: Vec<PathBuf> = std::iter::once(&args.first).chain(&args.others).cloned().collect();
    if !args.against.is_empty() {
        return against(args, &paths, &rules);
    }
    let names = run_names(&paths);
    if design == Design::InTurns && paths.iter().all(|path| turns::is_spec(path)) {
        foresee(args, &paths)?;
        paths = turns::measure(&paths, &args.turns)?;
    }
    let query = query(&args.columns);
    let read = |path: &PathBuf| match design {
        Design::InTurns => rounds::series(path, &query),
        Design::Separate => analysis::series(path, &query),
    };
    let mut runs: Vec<Vec<Series>> = paths.iter().map(read).collect::<Result<_>>()?;
    if let [one] = &runs[..]
        && let Some(columns) = analysis::columns_apart(one)
    {
        let [first, second] = columns;
        runs = vec![first, second];
    }
    runs.iter().take(paths.len()).for_each(|series| warn_of_table(series.first()));
    for (path, run) in paths.iter().zip(&runs) {
        refuse_early(path, run)?;
    }
    say_steps(compare::step_names(&runs));
    if args.format == Form::Json && runs.len() != 2 {
        return Err(Error::spec("JSON output needs exactly two runs, or two columns of a table")
            .at("--format")
            .hint("compare them in pairs, or several runs of two versions with `--against`"));
    }
    match &runs[..] {
        [one] => engines(args, one, &rules),
        [first, second] => {
            if let (Design::InTurns, [a, b]) = (design, &names[..]) {
                say_left_out(first, second, [a, b]);
            }
            two(args, &compare::runs(first, second, &rules)?, unit(first))
        }
        _ => several(args, &compare::several(&runs, &rules)?, &names, unit(&runs[0])),
    }
}

/// Several runs a side.
fn against(args: &CompareArgs, first: &[PathBuf], rules: &Rules) -> Result<Exit> {
    let mut seen = BTreeSet::new();
    let is_known = |path: &&PathBuf| !seen.insert(path.canonicalize().unwrap_or_else(|_| PathBuf::clone(path)));
    if let Some(twice) = first.iter().chain(&args.against).find(is_known) {
        return Err(Error::spec("this run is named twice, and counts once")
            .at(twice.display().to_string())
            .hint("measure it again: another run of the same code is what shows how far runs differ"));
    }
    let query = query(&args.columns);
    let read = |path: &PathBuf| -> Result<Vec<Series>> {
        let series = analysis::series(path, &query)?;
        warn_of_table(series.first());
        refuse_early(path, &series)?;
        Ok(series)
    };
    let side = |paths: &[PathBuf]| paths.iter().map(read).collect::<Result<Vec<_>>>();
    let (first, second) = (side(first)?, side(&args.against)?);
    say_steps(compare::step_names([&first, &second].map(|side| side.iter().flatten())));
    two(args, &compare::sides(&first, &second, rules)?, unit(&first[0]))
}

/// Refuses specs that nothing could be compared of, before they are measured.
fn foresee(args: &CompareArgs, specs: &[PathBuf]) -> Result<()> {
    // Other columns make other cells.
    if args.columns.x.is_some() || args.columns.group.is_some() {
        return Ok(());
    }
    let experiments = specs.iter().map(|spec| Ok((spec.as_path(), Experiment::read(spec)?)));
    compare::foreseen(&experiments.collect::<Result<Vec<(&Path, Experiment)>>>()?)
}

/// Says which steps of the user's own are compared, if they have different names.
fn say_steps(names: Option<Vec<&str>>) {
    let Some([first, others @ ..]) = names.as_deref() else { return };
    let quoted = |name: &&str| format!("`{}`", foreign::name(name));
    let mut others: Vec<String> = others.iter().filter(|name| *name != first).map(quoted).collect();
    others.dedup();
    notice(format!("the step {} is compared with {}", quoted(first), human::listed(&others)));
}

/// Nothing is reported of a run that is too early, so that no gate passes because of one.
fn refuse_early(path: &Path, run: &[Series]) -> Result<()> {
    let goals = run.iter().filter_map(|series| series.goal.as_ref());
    let Some((early, goal)) = goals.filter_map(|goal| Some((goal.early()?, goal))).next() else { return Ok(()) };
    let message = format!("{early}: nothing is compared yet");
    Err(Error::data(message).at(path.display().to_string()).hint(goal.go_on.clone()))
}

fn two(args: &CompareArgs, found: &Comparison, unit: &str) -> Result<Exit> {
    if args.format == Form::Json {
        print(&format!("{:#}\n", report::comparison_json(found, unit)));
        return judged(args, std::slice::from_ref(found));
    }
    print(&report::comparison(found, unit, args.all, &Style::of_terminal()));
    say_unmatched(found, if found.spread.is_empty() { "in only one of the runs" } else { "not in all of the runs" });
    judged(args, std::slice::from_ref(found))
}

fn say_unmatched(found: &Comparison, place: &str) {
    if found.unmatched > 0 {
        let are = if found.unmatched == 1 { "is" } else { "are" };
        notice(format!("{} {are} {place}", human::counted(found.unmatched as u64, "cell")));
    }
}

/// The exit of a comparison: a warning if it should fail on a slower cell and there is one.
///
/// # Errors
/// [`batchstep::error::Kind::Data`] where it should fail on a slower cell and does not know: a size is missing, or none can be judged.
fn judged(args: &CompareArgs, found: &[Comparison]) -> Result<Exit> {
    if args.fail_on.is_none() {
        return Ok(Exit::Done);
    }
    let slower: Vec<&Comparison> = found.iter().filter(|one| one.is_slower()).collect();
    if slower.is_empty() {
        return found.iter().try_for_each(is_known).map(|()| Exit::Done);
    }
    let one_a_side = slower.iter().any(|one| one.is_of_single_runs());
    if slower.iter().any(|one| one.when == When::Apart) {
        let remedy = if one_a_side {
            "in turns: `batchstep compare --in-turns A.toml B.toml`, or three runs a side with `--against`"
        } else {
            "the sides by turns: A, B, B, A, A, B"
        };
        notice(format!(
            "slower may be the code or the machine, which these runs did not share; before it fails a build, measure {remedy}"
        ));
    }
    if slower.iter().any(|one| one.when == When::Unknown) {
        let remedy = if one_a_side {
            "Where they were measured in turns, and a column `block` numbers the rounds, add `--in-turns`; or give three runs a side with `--against`"
        } else {
            "The runs of both sides should alternate in time"
        };
        notice(format!("slower may be the code or the machine: whether these shared it is not known. {remedy}"));
    }
    if slower.iter().any(|one| one.when == When::AtTheSameTime) {
        notice(
            "slower may be the code, or where a process lay in memory, which differs from run to run: three runs a side with `--against` tell them apart",
        );
    }
    Ok(Exit::Warned)
}

/// Sizes that a message names.
const NAMED: usize = 8;

/// Whether each cell of the first was compared, and some could be judged.
fn is_known(found: &Comparison) -> Result<()> {
    let names: Vec<String> =
        found.missing.iter().take(NAMED).map(|(group, x)| format!("{group} {}", human::batch_size(*x))).collect();
    let more = found.missing.len().saturating_sub(NAMED);
    if !names.is_empty() {
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let named = names.iter().map(|name| name.trim()).collect::<Vec<_>>().join(", ");
        let who = if found.spread.is_empty() { "only the first has" } else { "not all runs of the second have" };
        return Err(Error::data(format!("{who} {named}{more}, so nobody knows whether the second is slower there"))
            .hint("measure it again, or leave these sizes out of both; without `--fail-on` the others are compared"));
    }
    if found.cells.iter().all(|cell| !cell.high.is_finite()) {
        return Err(
            Error::data("one round, or one block, is too little to judge any size").hint("measure at least four")
        );
    }
    Ok(())
}

/// The rounds that only one side has.
fn say_left_out(first: &[Series], second: &[Series], names: [&str; 2]) {
    let rounds = |series: &[Series]| -> BTreeSet<u32> {
        series.iter().flat_map(|series| &series.measurements).filter_map(|one| one.observation.block).collect()
    };
    let [a, b] = [rounds(first), rounds(second)];
    for (own, other, name) in [(&a, &b, names[0]), (&b, &a, names[1])] {
        let left: Vec<String> = own.difference(other).map(u32::to_string).collect();
        if !left.is_empty() {
            notice(format!("rounds that only {name} has are left out: {}", left.join(", ")));
        }
    }
}

fn several(args: &CompareArgs, found: &Several, names: &[String], unit: &str) -> Result<Exit> {
    print(&report::comparison_of_several(found, names, unit, args.all, &Style::of_terminal()));
    for (one, name) in found.against_first.iter().zip(&names[1..]) {
        say_unmatched(one, &format!("in only one of {} and {name}", names[0]));
    }
    judged(args, &found.against_first)
}

/// The engines of one run.
fn engines(args: &CompareArgs, series: &[Series], rules: &Rules) -> Result<Exit> {
    let pairs = side_by_side(&Vec::from_iter(series), rules);
    if pairs.is_empty() {
        return Err(Error::data("this run has one engine, and no other run is named")
            .at(args.first.display().to_string())
            .hint("give two runs, or a run of a spec with several engines in `[engine] name`"));
    }
    print(&report::side_by_side(&pairs).render(&Style::of_terminal()));
    let mut cells = pairs.iter().flat_map(|pair| &pair.tasks).flat_map(|task| &task.cells);
    let beaten = cells.any(|cell| cell.decision == Decision::Faster);
    Ok(if args.fail_on.is_some() && beaten { Exit::Warned } else { Exit::Done })
}

fn unit(series: &[Series]) -> &str {
    series.first().map_or("", |series| series.unit.as_str())
}
