//! The commands: each reads its arguments, calls the library, and prints.

mod advise;
mod collect;
mod compare;
mod doctor;
mod evidence;
mod explain;
mod findings;
mod generate;
mod inside;
mod intervene;
mod jumps;
mod merge;
mod output;
mod own;
mod plot;
mod predict;
mod progress;
mod qualify;
mod report;
mod run;
mod selftest;
mod specs;
mod status;
mod study;
mod submit;
mod turns;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use batchstep::analysis::{Query, Series, TimeOrRate};
use batchstep::error::{Error, Result};
use batchstep::report::{Style, Warning, table_warnings};
use batchstep::spec::ShardBy;
use batchstep::table;
use batchstep::units::Seconds;

use crate::cli::{Cli, ColumnArgs, Command};
pub use output::notice;
use output::{print, print_aside};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    /// Done, with warnings that touch the result.
    Warned,
    Failed,
}

impl Exit {
    /// The worse exit of two commands.
    fn worse(self, other: Self) -> Self {
        if other as u8 > self as u8 { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Carries out the command.
///
/// # Errors
/// That of the command; [`batchstep::error::Kind::Io`] where its result is on stdout alone and could not be written.
pub fn dispatch(cli: Cli) -> Result<Exit> {
    // What a run prints is in its files as well.
    let keeps = matches!(&cli.command, Command::Run(args) if !args.dry_run && args.own.try_size.is_none());
    let exit = carry_out(cli.command)?;
    if keeps { Ok(exit) } else { output::written().map(|()| exit) }
}

fn carry_out(command: Command) -> Result<Exit> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Jumps(args) => jumps::jumps(&args),
        Command::Advise(args) => advise::advise(&args),
        Command::Merge(args) => merge::merge(&args),
        Command::Status(args) => status::status(&args),
        Command::Submit(args) => submit::submit(&args),
        Command::Predict(args) => predict::predict(&args),
        Command::Collect(args) => collect::collect(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Report(args) => report::report(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Selftest(args) => selftest::selftest(&args),
        Command::Specs(args) => specs::specs(&args),
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::man(&args),
    }
}

fn query(columns: &ColumnArgs) -> Query {
    let kind = columns.y_kind.as_ref().map(|kind| if kind == "rate" { TimeOrRate::Rate } else { TimeOrRate::Time });
    Query { x: columns.x.clone(), y: columns.y.clone(), kind, group: columns.group.clone() }
}

fn shards_by(asked: Option<&str>) -> ShardBy {
    asked.and_then(ShardBy::from_name).unwrap_or(ShardBy::Blocks)
}

/// The refusal of the value of an option, with an example of one.
fn refused(text: &str, what: &str, option: &str, example: &str) -> Error {
    Error::spec(format!("`{text}` is not a {what}")).at(option).hint(format!("for example {example}"))
}

/// The seconds of an option that gives a time.
fn seconds_of(text: &str, what: &str, option: &str, example: &str) -> Result<f64> {
    let time = Seconds::parse(text).filter(|Seconds(time)| *time > 0.0);
    time.map(|Seconds(time)| time).ok_or_else(|| refused(text, what, option, example))
}

/// The folder for files about a table: its own, or the current one for what comes through a pipe.
fn folder_beside(path: &Path) -> PathBuf {
    let is_piped = table::is_stdin(path) || path.exists() && !path.is_file();
    path.parent().filter(|_| !is_piped).map_or_else(PathBuf::new, Path::to_path_buf)
}

/// What files about a table are called after; with `-` as its name they would look like options.
fn stem_of(path: &Path) -> String {
    if table::is_stdin(path) {
        return "stdin".to_owned();
    }
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Warns about the parts of a table that are not used; `series` is one of its series.
fn warn_of_table(series: Option<&Series>) {
    print_aside(&jumps::read_as(series));
    print_warnings(&series.into_iter().flat_map(table_warnings).collect::<Vec<_>>());
}

/// Where a run, its charts and its page lie.
fn print_places(run: &Path, charts: &[PathBuf], page: &Path) {
    let charts: String = charts.iter().map(|chart| format!("Chart    {}\n", chart.display())).collect();
    print(&format!("\nRun      {}\n{charts}Report   {}\n", run.display(), page.display()));
}

fn print_warnings<'a>(warnings: impl IntoIterator<Item = &'a Warning>) {
    let style = Style::of_stderr();
    warnings.into_iter().for_each(|warning| print_aside(&format!("{}\n", warning.text(&style))));
}
