//! Settings that an engine did not support in a run: it refused them, so the run has no cells with them for this
//! engine, although its spec names them.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Result;
use crate::settings::{AXES, Axis, Domain, Value};
use crate::spec::Experiment;
use crate::store::Table;

/// Removes settings from the cells of each engine if none of its steps has them but some of its steps have another
/// value.
///
/// # Errors
/// [`crate::error::Kind::Data`] where the steps cannot be read.
pub(super) fn leave_out(experiment: &mut Experiment, path: &Path) -> Result<()> {
    let several = |axis: &&Axis| matches!(axis.domain, Domain::Names(_)) && experiment.grid.values(axis).len() > 1;
    let axes: Vec<&Axis> = AXES.iter().filter(several).collect();
    let wanted: Vec<&str> = std::iter::once("engine").chain(axes.iter().map(|axis| axis.column)).collect();
    let mut seen = BTreeSet::new();
    Table::scan(path, &wanted, &mut |batch| {
        if wanted.iter().all(|name| batch.has(name)) {
            let engines = batch.texts("engine")?;
            for axis in &axes {
                let values = batch.texts(axis.column)?;
                seen.extend(engines.iter().cloned().zip(values).map(|(engine, value)| (engine, axis.key, value)));
            }
        }
        Ok(())
    })?;
    for &engine in &experiment.engine.name {
        for axis in &axes {
            let has = |value: &Value| matches!(value, Value::Name(name) if seen.contains(&(engine.to_string(), axis.key, (*name).to_string())));
            let (there, lacking): (Vec<_>, Vec<_>) = experiment.grid.values(axis).iter().copied().partition(has);
            let lacking = lacking.into_iter().filter(|_| !there.is_empty());
            lacking.for_each(|value| experiment.grid.leave_out(engine, axis, value));
        }
    }
    Ok(())
}
