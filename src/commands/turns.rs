//! Measures sides in turns: in every round a run of each, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use batchstep::analysis::compare::rounds;
use batchstep::error::{Error, Kind, Result};
use batchstep::spec::Experiment;
use batchstep::units::Seconds;
use batchstep::units::human;

use super::notice;
use crate::cli::TurnArgs;

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
/// [`Kind::Engine`] with the message of a turn that fails.
pub fn measure(specs: &[PathBuf], args: &TurnArgs) -> Result<Vec<PathBuf>> {
    let rounds = args.rounds;
    if !(2..=1000).contains(&rounds) {
        return Err(Error::spec(format!("{rounds} rounds are not from 2 to 1000")).at("--rounds"));
    }
    let sides = sides(specs, args)?;
    let turn_s = limit_s(specs, args)? / (f64::from(rounds) * sides.len() as f64);
    for (round, order) in (1..).zip(rounds::order(rounds, sides.len(), args.seed)) {
        for (place, side) in order.into_iter().map(|side| &sides[side]).enumerate() {
            notice(format!("round {round} of {rounds}: {}", side.folder.display()));
            let seed = args.seed + u64::from(round) * sides.len() as u64 + place as u64;
            side.measure(round, &["--time", &Seconds(turn_s).to_string(), "--seed", &seed.to_string()], args)?;
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
        match folder.try_exists() {
            Ok(false) => Ok(Side { spec, program, folder }),
            Ok(true) => Err(Error::new(Kind::Conflict, "turns were measured into this folder before")
                .at(folder.display().to_string())
                .hint("choose another with `--out DIR`; `batchstep compare --in-turns` reads such folders as well")),
            Err(e) => Err(Error::io("look for the folder", &folder, &e)),
        }
    };
    specs.iter().zip(programs).zip('a'..='z').map(side).collect()
}

/// Seconds for all turns together: what the user says, or the longest limit of the specs.
fn limit_s(specs: &[PathBuf], args: &TurnArgs) -> Result<f64> {
    let limits = specs.iter().map(|spec| Ok(Experiment::read(spec)?.measure.time_limit_s));
    let longest = limits.collect::<Result<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
    match args.time.as_deref().map(|text| (text, Seconds::parse(text))) {
        None => Ok(longest),
        Some((_, Some(Seconds(limit)))) if limit > 0.0 => Ok(limit),
        Some((text, _)) => {
            Err(Error::spec(format!("`{text}` is not a time limit")).at("--time").hint("for example --time 25min"))
        }
    }
}

impl Side<'_> {
    fn measure(&self, round: u32, options: &[&str], args: &TurnArgs) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("run").arg("--out").arg(rounds::turn(&self.folder, round)).args(options).args(&args.run_args);
        command.arg("--").arg(self.spec).stdin(Stdio::null()).stdout(Stdio::null());
        let output = command.output().map_err(|e| Error::io("start the program", &self.program, &e))?;
        // 1: done with warnings, as of jumps that the time of one turn leaves open.
        if matches!(output.status.code(), Some(0 | 1)) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let what = format!("`{} run` failed ({}):\n{}", self.program.display(), output.status, said.trim_end());
        Err(Error::engine(what).at(self.folder.display().to_string()))
    }
}
