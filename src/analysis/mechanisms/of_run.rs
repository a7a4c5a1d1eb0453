//! The mechanisms behind the jumps of a stored run: its layers, its plan and its machine are read from its folder.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Answers, KnownSeries, MachineMemory, Setup, explain};
use crate::analysis::causes::Explanation;
use crate::analysis::cell_medians::cell_medians;
use crate::analysis::environment::Environment;
use crate::analysis::{Analysed, Series};
use crate::error::Result;
use crate::os::look;
use crate::settings::EngineName;
use crate::spec::Experiment;
use crate::spec::plan::Plan;
use crate::store::{LayerRow, files, sealed};

/// The mechanisms that predict a step at the jumps of each series of a run.
///
/// # Errors
/// If the run has no layers or no spec.
pub fn of_run(path: &Path, found: &[Analysed], explanations: &[Vec<Explanation>]) -> Result<Vec<Answers>> {
    let layers: Vec<LayerRow> = sealed(&path.join(files::LAYERS))?;
    let plan = &Plan::new(&Experiment::read(&path.join(files::SPEC))?)?;
    // A damaged one says nothing of the machine, and the layers can be judged without.
    let environment = look::text(&path.join(files::ENVIRONMENT))?.and_then(|text| serde_json::from_str(&text).ok());
    let environment: Environment = environment.unwrap_or_default();
    let machine = |engine: &EngineName| (*engine, MachineMemory::of(&environment, *engine));
    let machines: BTreeMap<EngineName, MachineMemory> = EngineName::ALL.iter().map(machine).collect();
    let case = |(found, causes)| {
        let Analysed { series, findings }: &Analysed = found;
        KnownSeries { series, findings, setup: setup(series, plan, &machines), causes }
    };
    let cases: Vec<KnownSeries> = found.iter().zip(explanations.iter().map(Vec::as_slice)).map(case).collect();
    Ok(explain(&cases, &layers, &copies(path)?))
}

/// Median seconds of the copy of the batch, by cell number. Empty where the steps in `path` do not record it.
fn copies(path: &Path) -> Result<BTreeMap<i64, f64>> {
    cell_medians(path, ["h2d_time_s"], |[copy]| copy)
}

/// What a series executed, by its first cell in the plan; the engine as it is stored, which `auto` became.
fn setup<'a>(series: &Series, plan: &'a Plan, machines: &'a BTreeMap<EngineName, MachineMemory>) -> Option<Setup<'a>> {
    let first = usize::try_from(*series.cells.first()?).ok()?;
    let cell = plan.cells.get(first)?;
    let engine = series.engine().unwrap_or(cell.engine);
    let machine = machines.get(&engine)?;
    Some(Setup { engine, network: &cell.workload.network, settings: &cell.workload.settings, machine })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_copy_is_the_median_of_the_cells_steps() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("steps.csv");
        let steps = "cell,warmup,h2d_time_s\n0,true,9\n0,false,1\n0,false,2\n0,false,6\n1,false,\n";
        std::fs::write(&path, steps).expect("writable");
        assert_eq!(copies(&path).expect("read"), BTreeMap::from([(0, 2.0)]));
    }
}
