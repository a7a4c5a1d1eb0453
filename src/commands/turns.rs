//! Measures sides in turns: in every round a run of each, in a process of its own.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use batchstep::analysis::compare::rounds;
use batchstep::error::{Error, Kind, Result};
use batchstep::fleet::status::{RunState, Status};
use batchstep::os::child::{self, Group};
use batchstep::spec::Experiment;
use batchstep::units::Seconds;
use batchstep::units::human;

use super::run::stop_on_interrupt;
use super::{Exit, notice, seconds_of};
use crate::cli::TurnArgs;

/// The longest time after which a signal to this process is passed on to the turn under way.
const LISTENS: Duration = Duration::from_millis(200);

/// What is measured in turns.
struct Side<'a> {
    spec: &'a Path,
    program: PathBuf,
    folder: PathBuf,
}

/// Whether a side is to be measured: it is a spec, not a table or a folder of measurements.
pub fn is_spec(side: &Path) -> bool {
    !side.is_dir() && side.extension().is_none_or(|extension| extension == "toml")
}

/// Measures `specs` in turns; gives the folder of each.
///
/// # Errors
/// [`Kind::Spec`] for an option or a spec that is refused, [`Kind::Conflict`] if the folder already contains turns, and
/// [`Kind::Engine`] with the message of a turn that fails, or if a signal ended the measurement.
pub fn measure(specs: &[PathBuf], args: &TurnArgs) -> Result<Vec<PathBuf>> {
    let rounds = args.rounds;
    if !(2..=1000).contains(&rounds) {
        return Err(Error::spec(format!("{rounds} rounds are not from 2 to 1000")).at("--rounds"));
    }
    let sides = sides(specs, args)?;
    let turn_s = limit_s(specs, args)? / (f64::from(rounds) * sides.len() as f64);
    let interrupted = Arc::new(AtomicBool::new(false));
    // 1 would say that something is slower.
    stop_on_interrupt(&interrupted, Exit::Failed);
    for (round, order) in (1..).zip(rounds::order(rounds, sides.len(), args.seed)) {
        for (place, side) in order.into_iter().map(|side| &sides[side]).enumerate() {
            notice(format!("round {round} of {rounds}: {}", side.folder.display()));
            let seed = args.seed + u64::from(round) * sides.len() as u64 + place as u64;
            let (time, seed) = (Seconds(turn_s).to_string(), seed.to_string());
            side.measure(round, &["--time", &time, "--seed", &seed], args, &interrupted)?;
            if interrupted.load(Ordering::Relaxed) {
                side.put_aside(round)?;
                let what = format!("stopped by a signal after {} of {rounds} rounds", complete_rounds(&sides));
                return Err(Error::engine(what).at(args.out.display().to_string()).hint(remedy(&sides)));
            }
        }
    }
    Ok(sides.into_iter().map(|side| side.folder).collect())
}

/// `a`, `b`, ... in the folder for results.
fn sides<'a>(specs: &'a [PathBuf], args: &TurnArgs) -> Result<Vec<Side<'a>>> {
    let own = || std::env::current_exe().map_err(|e| Error::io("find this program", Path::new("batchstep"), &e));
    let programs = match &args.program[..] {
        [] => vec![own()?; specs.len()],
        [one] => vec![one.clone(); specs.len()],
        several if several.len() == specs.len() => several.to_vec(),
        several => {
            let (programs, sides) = (several.len(), human::counted(specs.len() as u64, "side"));
            return Err(Error::spec(format!("{programs} programs are named for {sides}"))
                .at("--program")
                .hint("name one for each side, in their order, or one for all"));
        }
    };
    let side = |((spec, program), letter): ((&'a PathBuf, PathBuf), char)| {
        let folder = args.out.join(letter.to_string());
        Side { spec, program, folder }
    };
    let sides: Vec<Side> = specs.iter().zip(programs).zip('a'..='z').map(side).collect();
    for Side { folder, .. } in &sides {
        match folder.try_exists() {
            Ok(false) => {}
            Ok(true) => {
                return Err(Error::new(Kind::Conflict, "turns were measured into this folder before")
                    .at(folder.display().to_string())
                    .hint(remedy(&sides)));
            }
            Err(e) => return Err(Error::io("look for the folder", folder, &e)),
        }
    }
    Ok(sides)
}

/// What to do where there are turns already.
fn remedy(sides: &[Side]) -> String {
    let anew = "measure into another folder with `--out DIR`";
    if complete_rounds(sides) < 2 {
        return anew.to_owned();
    }
    let folders: Vec<String> = sides.iter().map(|side| side.folder.display().to_string()).collect();
    format!("{anew}; `batchstep compare --in-turns {}` compares the rounds that are complete", folders.join(" "))
}

/// The rounds in which each side has a complete turn.
fn complete_rounds(sides: &[Side]) -> usize {
    let is_complete = |round: &u32| sides.iter().all(|side| is_complete(&rounds::turn(&side.folder, *round)));
    (1..).take_while(is_complete).count()
}

fn is_complete(turn: &Path) -> bool {
    Status::of(turn).is_ok_and(|status| status.state == RunState::Finished)
}

/// Seconds for all turns together: what the user says, or the longest limit of the specs.
fn limit_s(specs: &[PathBuf], args: &TurnArgs) -> Result<f64> {
    let mut longest = 0.0_f64;
    for spec in specs {
        longest = longest.max(Experiment::read(spec)?.measure.time_limit_s);
    }
    args.time.as_deref().map_or(Ok(longest), |text| seconds_of(text, "time limit", "--time", "--time 25min"))
}

impl Side<'_> {
    /// Measures a turn. It is asked to end, and waited for, once this process is `interrupted`.
    fn measure(&self, round: u32, options: &[&str], args: &TurnArgs, interrupted: &AtomicBool) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("run").arg("--out").arg(rounds::turn(&self.folder, round)).args(options).args(&args.run_args);
        command.arg("--").arg(self.spec).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        child::signal_at_our_end(&mut command, libc::SIGTERM);
        let mut group = Group::start(&mut command).map_err(|e| Error::io("start the program", &self.program, &e))?;
        let stderr = group.leader().stderr.take();
        // A thread reads it, so that the pipe does not fill up.
        let reading = thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.map(|mut pipe| pipe.read_to_end(&mut said));
            said
        });
        let mut is_asked = false;
        let status = loop {
            if let Some(status) = group.wait(LISTENS) {
                break status;
            }
            if interrupted.load(Ordering::Relaxed) && !is_asked {
                group.ask_to_end();
                is_asked = true;
            }
        };
        // 1: done with warnings, as of jumps that the time of one turn leaves open.
        if interrupted.load(Ordering::Relaxed) || matches!(status.code(), Some(0 | 1)) {
            return Ok(());
        }
        let said = reading.join().unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let what = format!("`{} run` failed ({status}):\n{}", self.program.display(), said.trim_end());
        Err(Error::engine(what).at(self.folder.display().to_string()))
    }

    /// Gives a turn that is not complete another name, as it would be compared like the others.
    fn put_aside(&self, round: u32) -> Result<()> {
        let turn = rounds::turn(&self.folder, round);
        if !turn.is_dir() || is_complete(&turn) {
            return Ok(());
        }
        let aside = self.folder.join(format!("{round}-unfinished"));
        std::fs::rename(&turn, &aside).map_err(|e| Error::io("rename the folder", &turn, &e))
    }
}
