//! `kind = "fit"`: a small network is fitted to the surface `peaks`, in full batches, from its setup to the last epoch.
//!
//! ```
//! use batchstep::spec::Spec;
//! let text = "version = 1\nkind = \"fit\"\nname = \"a\"\n[sweep]\nbatch_size = [100, 40000]\n[engine]\nname = [\"cpu\", \"candle\"]";
//! let Spec::Fit(fit) = Spec::parse(text, "a.toml")? else { unreachable!() };
//! assert_eq!((fit.experiment.batch_sizes.len(), fit.epochs), (2, 2000));
//! # Ok::<(), batchstep::error::Error>(())
//! ```

use super::decode::{
    Input, Sweep, checked_name, read_engine, read_measure, read_model, read_sweep, read_train, time_limit,
};
use super::section::Section;
use super::{Experiment, MAX_CELLS, Model, encode};
use crate::error::{Error, Result};
use crate::settings::{AXES, EngineName, Examples, Grid, Loss, Optimizer, Precision, Value};
use crate::units::Seconds;

/// A study of fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Its batch sizes are the numbers of points: all of them are in each batch. Default: 40,000 points, `mlp`, the engine `cpu`, Adam with a
    /// learning rate of 0.08, mean squared error, fp32.
    pub experiment: Experiment,
    /// Parameter updates. Default: 2000.
    pub epochs: usize,
}

const DEFAULT_POINTS: usize = 40_000;
const DEFAULT_EPOCHS: usize = 2000;
const DEFAULT_RATE: f64 = 0.08;
const MAX_EPOCHS: usize = 1_000_000;

impl Fit {
    /// The full resolved spec; parsing it again gives an equal study.
    pub fn to_toml(&self) -> String {
        write(self)
    }
}

pub(super) fn read(mut spec: Section, origin: &str) -> Result<Fit> {
    let version = spec.get("version");
    let name = spec.get("name");
    let model = spec.section("model")?;
    let sweep = spec.section("sweep")?;
    let mut train = spec.section("train")?;
    let engine = spec.section("engine")?;
    let measure = spec.section("measure")?;
    let name = checked_name(version, name, spec.finish(), origin)?;
    let mut grid = Grid::default();
    for (key, value) in [
        ("precision", Precision::Fp32.name()),
        ("optimizer", Optimizer::Adam.name()),
        ("loss", Loss::MeanSquaredError.name()),
    ] {
        if let Some(axis) = AXES.iter().find(|axis| axis.key == key) {
            grid.set(axis, vec![Value::Name(value)]);
        }
    }
    let engine_given = engine.is_some();
    let mut engine = read_engine(engine, &mut grid)?;
    if engine.fixed_from.is_some() || engine.name.contains(&EngineName::Synthetic) {
        let what = "a fit has neither the engine `synthetic` nor `fixed_from`";
        return Err(Error::spec(what).at(origin).hint("use the engines `auto`, `cpu`, `candle`, `cudnn`, `torch`"));
    }
    if !engine_given {
        engine.name = vec![EngineName::Cpu];
    }
    let rate_given = train.as_mut().is_some_and(|section| section.get("learning_rate").is_some());
    let rate = read_train(train, &engine.name, &mut grid)?;
    let given = sweep.is_some();
    let Sweep { batch_sizes, executes, notices } = read_sweep(sweep)?;
    if executes.is_some() {
        return Err(Error::spec("`executes` belongs to sweeps: a fit has no A/A control").at(origin));
    }
    let mlp = Model { names: vec!["mlp".into()], layers: None, input: None, classes: None };
    let mut experiment = Experiment {
        name,
        model: model.map_or(Ok(mlp), |section| read_model(section, Input::Needed))?,
        batch_sizes: if given { batch_sizes } else { vec![DEFAULT_POINTS] },
        notices,
        executes: None,
        engine,
        grid,
        learning_rate: if rate_given { rate } else { DEFAULT_RATE },
        examples: Examples::Peaks,
        measure: read_measure(None, false)?,
        synthetic: None,
        own: None,
    };
    let mut epochs = DEFAULT_EPOCHS;
    if let Some(mut section) = measure {
        if let Some(field) = section.get("epochs") {
            epochs = field.count(1, MAX_EPOCHS)?;
        }
        if let Some(field) = section.get("time_limit") {
            experiment.measure.time_limit_s = time_limit(&field)?;
        }
        if let Some(field) = section.get("seed") {
            experiment.measure.seed = field.integer(0, i64::MAX as u64)?;
        }
        section.finish()?;
    }
    if experiment.cell_count() > MAX_CELLS {
        let what = format!("the axes make {} cells, more than {MAX_CELLS}", experiment.cell_count());
        return Err(Error::spec(what).at(origin).hint("shorten an axis, or make two specs of it"));
    }
    Ok(Fit { experiment, epochs })
}

fn write(fit: &Fit) -> String {
    use encode::{axes, batch_size, line, list, optional, quoted, section};
    let Fit { experiment, epochs } = fit;
    let mut out = format!("version = 1\nkind = \"fit\"\nname = {:?}\n", experiment.name);
    encode::network(&mut out, &experiment.model);
    section(&mut out, "sweep");
    batch_size(&mut out, &experiment.batch_sizes);
    section(&mut out, "train");
    axes(&mut out, &experiment.grid, "train");
    line(&mut out, "learning_rate", format!("{:?}", experiment.learning_rate));
    section(&mut out, "engine");
    line(&mut out, "name", list(experiment.engine.name.iter().map(quoted)));
    optional(&mut out, &experiment.engine.optional);
    axes(&mut out, &experiment.grid, "engine");
    section(&mut out, "measure");
    line(&mut out, "epochs", epochs);
    line(&mut out, "time_limit", quoted(Seconds(experiment.measure.time_limit_s)));
    line(&mut out, "seed", experiment.measure.seed);
    out
}

#[cfg(test)]
mod tests {
    use super::super::Spec;
    use super::*;

    fn parse(body: &str) -> Result<Fit> {
        match Spec::parse(&format!("version = 1\nkind = \"fit\"\nname = \"t\"\n{body}"), "t.toml")? {
            Spec::Fit(fit) => Ok(*fit),
            _ => Err(Error::spec("another kind")),
        }
    }

    #[test]
    fn the_resolved_spec_reads_back_the_same() {
        for body in [
            "",
            "[sweep]\nbatch_size = [100, 400]\n[train]\nlearning_rate = 0.01\noptimizer = [\"adam\", \"rmsprop\"]",
            "[engine]\nname = [\"cpu\", \"torch\"]\noptional = \"torch\"\nthreads = [1, 2]\n[measure]\nepochs = 10\nseed = 3\ntime_limit = \"90s\"",
        ] {
            let fit = parse(body).expect("valid");
            let text = fit.to_toml();
            assert_eq!(Spec::parse(&text, "again.toml").expect(&text), Spec::Fit(Box::new(fit)), "{text}");
        }
        let fit = parse("").expect("valid");
        assert_eq!(
            (fit.experiment.learning_rate, fit.epochs, &fit.experiment.batch_sizes[..]),
            (0.08, 2000, &[40_000][..])
        );
    }

    #[test]
    fn what_has_no_meaning_in_a_fit_is_refused_with_its_place() {
        let refusal = |body: &str| parse(body).expect_err("refused").to_string();
        assert!(refusal("[measure]\nsmallest_jump = \"1%\"").contains("measure.smallest_jump: unknown key"));
        assert!(refusal("[sweep]\nexecutes = 3").contains("no A/A control"));
        assert!(refusal("[train]\nexamples = \"uniform\"").contains("unknown key"));
        assert!(refusal("[measure]\nepochs = 0").contains("from 1 to"));
    }
}
