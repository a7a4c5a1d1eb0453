//! What is wrong with a step, as the user reads it.

use super::ComparedStep;
use crate::check::selftest::{self, Check};
use crate::engine::{Workload, part};
use crate::error::{Error, Kind, Result};
use crate::settings::EngineName;

pub struct Fault {
    /// For the user, where it ends the run.
    pub error: Error,
    /// As a clause, for the rows of a run that goes on.
    pub why: String,
}

pub const REMEDY: &str = "`batchstep selftest` finds the operator; PyTorch measures the same network with `name = \"torch\"` in [engine]; \
                      `--qualify never` measures all the same, with `qualified` = false in every row";

/// A step that is computed wrongly, or otherwise when it is repeated.
pub fn of_step(engine: EngineName, check: &Check) -> Fault {
    let words = ["the output is", "gradients are", "an update is", "the first loss is", "losses are"];
    let beyond = words.into_iter().zip(check.parts()).filter(|(_, (_, found, most))| found > most);
    let said: Vec<String> =
        beyond.map(|(what, (_, found, most))| format!("{what} off by {found:.1e} (allowed: {most:.0e})")).collect();
    let said = if check.passed() { "it gives other bits when it is repeated".to_owned() } else { said.join(", ") };
    let Check { name, way, batch_size, .. } = check;
    let what =
        format!("{engine} computes {name} ({way}) wrongly at batch size {batch_size}, and nothing was timed: {said}");
    let why = format!("{name} ({way}) at batch size {batch_size}: {said}");
    Fault { error: Error::device(what).hint(REMEDY), why }
}

/// A part that is computed wrongly, or not at all; an error that says nothing of it stays one.
pub fn of_part(subject: &ComparedStep, workload: &Workload, fault: part::Fault) -> Result<Fault> {
    let part::Fault { error, .. } = fault;
    let why = error.clause();
    let error = match error.kind() {
        Kind::Device if !error.is_no_kernels_fault() => {
            let (engine, network, way) = (subject.engine, &subject.network.name, selftest::way(workload));
            let what = format!("{engine} computes {network} ({way}) wrongly, and nothing was timed: {why}");
            Error::device(what).hint(error.remedy().unwrap_or(REMEDY))
        }
        Kind::Device | Kind::Engine => error,
        _ => return Err(error),
    };
    Ok(Fault { error, why })
}
