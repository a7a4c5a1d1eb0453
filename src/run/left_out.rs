//! Values of axes that nothing here executes.
//!
//! A spec may list settings that only some devices have: page-locked memory, a CUDA graph, a second stream, bf16. A value that none of the run's
//! engines has on this device is left out, with a line that says so and a warning at the end, and the other values of its axis run.
//! If an axis keeps no value, the run is refused: it would measure something else. If one engine has a value and another does not, the
//! other has no cells with it, so that each engine can be measured at its best in one run.
//!
//! If `auto` took the CPU because there is no GPU, a value that would be computed as another one, such as tf32 as fp32, is left out as well. Users
//! who want it ask for the CPU.

use crate::engine::open::Engines;
use crate::error::{Error, Result};
use crate::settings::{AXES, Axis, EngineName, Grid, Settings, Value};

/// What of a study does not run here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftOut {
    /// What no engine has, and why: a clause each.
    pub of_all: Vec<String>,
    /// The values that only some of the engines have, and why the others do not: a clause each.
    pub of_some: Vec<String>,
}

/// Leaves out of the axes the values that none of these engines has here.
///
/// # Errors
/// [`crate::error::Kind::Device`], with the setting and the remedy, where `auto` took the CPU for want of a GPU and nothing of an axis is left.
pub fn drop_unsupported(grid: &mut Grid, names: &[EngineName], engines: &mut Engines) -> Result<LeftOut> {
    let fallback = engines.fallback().map(str::to_owned);
    let mut left_out = LeftOut::default();
    for axis in &AXES {
        if !grid.is_named(axis) {
            continue;
        }
        let mut kept = Vec::new();
        let mut lacking = Vec::new();
        for &value in grid.values(axis) {
            match lack(names, engines, axis, value)? {
                Some(lack) => lacking.push((value, lack)),
                None => kept.push(value),
            }
        }
        match (lacking.first(), kept.is_empty(), &fallback) {
            (None, ..) => {}
            (Some((value, lack)), true, Some(why)) => return Err(refusal(axis, *value, lack).at(why)),
            // The engine itself refuses it, in its own words.
            (Some(_), true, None) => {}
            (Some(_), false, _) => {
                left_out.of_all.extend(lacking.iter().map(|(value, lack)| lack.clause(&written(axis, *value))));
                grid.set(axis, kept);
            }
        }
        for &name in names {
            left_out.of_some.extend(leave_out_of(name, grid, engines, axis)?);
        }
    }
    Ok(left_out)
}

/// Leaves out of one engine's cells the values of an axis that it refuses, where it has another of them. If it has none, it refuses the run in its own words.
fn leave_out_of(name: EngineName, grid: &mut Grid, engines: &mut Engines, axis: &Axis) -> Result<Vec<String>> {
    if !axis.is_of(name) || grid.values(axis).len() < 2 {
        return Ok(Vec::new());
    }
    let engine = engines.get(name)?;
    let refused = |&value: &Value| engine.in_force(&with(axis, value)).err().map(|error| (value, error));
    let lacking: Vec<(Value, Error)> = grid.values(axis).iter().filter_map(refused).collect();
    if lacking.len() == grid.values(axis).len() {
        return Ok(Vec::new());
    }
    let said = lacking.into_iter().map(|(value, error)| {
        grid.leave_out(name, axis, value);
        format!("no cells of `{name}` with `{}`: {}", written(axis, value), error.clause())
    });
    Ok(said.collect())
}

fn with(axis: &Axis, value: Value) -> Settings {
    let mut settings = Settings::default();
    (axis.set)(&mut settings, value);
    settings
}

/// Why an engine does not have a value.
#[derive(Debug)]
enum Lack {
    /// It refuses it.
    Refused(Error),
    /// It would take this one in its place.
    Replaced(Value),
}

impl Lack {
    /// The setting and the reason, which may name the setting itself.
    fn clause(&self, setting: &str) -> String {
        match self {
            Self::Refused(error) if error.clause().contains(setting) => error.clause(),
            Self::Refused(error) => format!("`{setting}`: {}", error.clause()),
            Self::Replaced(value) => format!("`{setting}`: without a GPU it is computed in {value}"),
        }
    }
}

/// Why no engine has a value of an axis; `None` if an engine has it, or no engine knows the axis.
fn lack(names: &[EngineName], engines: &mut Engines, axis: &Axis, value: Value) -> Result<Option<Lack>> {
    let asked = with(axis, value);
    let fell_back = engines.fallback().is_some();
    let mut found = None;
    for &name in names.iter().filter(|name| axis.is_of(**name)) {
        let lack = match engines.get(name)?.in_force(&asked).map(|in_force| (axis.get)(&in_force)) {
            Err(error) => Lack::Refused(error),
            Ok(other) if other != value && fell_back && name == EngineName::Auto => Lack::Replaced(other),
            Ok(_) => return Ok(None),
        };
        found.get_or_insert(lack);
    }
    Ok(found)
}

fn refusal(axis: &Axis, value: Value, lack: &Lack) -> Error {
    let what = format!("`{}` of [{}] is not for the CPU", written(axis, value), axis.table);
    let remedy = match lack {
        Lack::Replaced(value) => format!("to measure the CPU, which computes in {value}, run with `--device cpu`"),
        Lack::Refused(_) => {
            let default = written(axis, axis.default_value());
            format!("to measure the CPU, write `{default}` and run with `--device cpu`")
        }
    };
    Error::device(what).hint(remedy)
}

/// As a spec writes it.
fn written(axis: &Axis, value: Value) -> String {
    match value {
        Value::Name(name) => format!("{} = \"{name}\"", axis.key),
        other => format!("{} = {other}", axis.key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::open::DeviceChoice;
    use crate::spec::Experiment;

    fn spec(text: &str) -> Experiment {
        let spec = format!("version = 1\nname = \"a\"\n[model]\nname = \"mlp\"\n{text}");
        Experiment::parse(&spec, "a.toml").expect("valid")
    }

    /// On a machine without a GPU, whatever this one has.
    fn narrowed(text: &str) -> Result<(Experiment, LeftOut), String> {
        let mut experiment = spec(text);
        let mut engines = Engines::open(&experiment.engine.name, DeviceChoice::Cpu, None).expect("the CPU is there");
        engines.fall_back("there is no NVIDIA GPU here");
        let left_out = drop_unsupported(&mut experiment.grid, &experiment.engine.name, &mut engines);
        Ok((experiment, left_out.map_err(|error| error.to_string())?))
    }

    #[test]
    fn an_axis_of_which_nothing_is_left_is_refused_with_the_setting_and_the_remedy() {
        let lacking = [
            ("[train]\nprecision = \"tf32\"", "`precision = \"tf32\"` of [train]", "computes in fp32, run with"),
            ("[train]\nprecision = [\"tf32\", \"fp16\"]", "`precision = \"tf32\"` of [train]", "--device cpu"),
            ("[train]\nlayout = \"nhwc\"", "`layout = \"nhwc\"` of [train]", "write `layout = \"nchw\"`"),
            ("[train]\ndata = \"pinned\"", "`data = \"pinned\"` of [train]", "write `data = \"resident\"`"),
            ("[engine]\nlaunch = \"graph\"", "`launch = \"graph\"` of [engine]", "write `launch = \"eager\"`"),
            ("[engine]\nstreams = 2", "`streams = 2` of [engine]", "write `streams = 1`"),
        ];
        for (text, setting, remedy) in lacking {
            let error = narrowed(text).expect_err("refused");
            assert!(error.contains(setting) && error.contains(remedy) && error.contains("--device cpu"), "{error}");
        }
    }

    #[test]
    fn an_unnamed_default_and_values_that_the_cpu_has_are_accepted() {
        for text in ["", "[train]\nprecision = \"fp32\"\nlayout = \"nchw\"", "[engine]\nthreads = [1, 2]\nstreams = 1"]
        {
            assert_eq!(narrowed(text).expect("runs"), (spec(text), LeftOut::default()), "{text}");
        }
    }

    #[test]
    fn of_several_values_those_that_need_a_gpu_are_left_out_and_named() {
        let found = narrowed(
            "[train]\nprecision = [\"fp32\", \"tf32\"]\ndata = [\"resident\", \"pageable\", \"pinned\", \"prefetch\"]",
        );
        let (experiment, LeftOut { of_all, .. }) = found.expect("runs");
        let rest = spec("[train]\nprecision = \"fp32\"\ndata = [\"resident\", \"pageable\"]");
        assert_eq!(experiment, rest);
        assert_eq!(of_all.len(), 3);
        assert!(of_all[0].starts_with("`precision = \"tf32\"`: without a GPU it is computed in fp32"));
        assert!(of_all[1] == "`data = \"pinned\"` applies only to GPUs", "{of_all:?}");
    }

    #[test]
    fn a_value_that_one_engine_lacks_makes_cells_only_of_the_other() {
        // The CPU engine has no algorithms to choose from; that which plays a known truth takes every setting.
        let text =
            "[engine]\nname = [\"cpu\", \"synthetic\"]\nalgorithms = [\"heuristic\", \"autotune\"]\n[synthetic]\n";
        let Experiment { engine, mut grid, .. } = spec(text);
        let mut engines = Engines::open(&engine.name, DeviceChoice::Cpu, spec(text).truth().as_ref()).expect("there");
        let LeftOut { of_all, of_some } = drop_unsupported(&mut grid, &engine.name, &mut engines).expect("runs");
        assert_eq!(of_all, Vec::<String>::new());
        assert_eq!(of_some.len(), 1, "{of_some:?}");
        assert!(of_some[0].starts_with("no cells of `cpu` with `algorithms = \"autotune\"`: "), "{of_some:?}");
        assert_eq!((grid.count(EngineName::Cpu), grid.count(EngineName::Synthetic)), (1, 2));
    }

    #[test]
    fn what_one_of_the_engines_has_stays() {
        // candle has `resident` and `pageable` as the CPU's engine has; neither has `pinned`.
        let text =
            "[train]\nprecision = \"fp32\"\ndata = [\"pageable\", \"pinned\"]\n[engine]\nname = [\"cpu\", \"candle\"]";
        assert_eq!(narrowed(text).expect("runs").1.of_all.len(), 1);
        let text = "[engine]\nname = [\"cpu\", \"candle\"]\nwinograd = [\"any\", \"never\"]";
        assert_eq!(narrowed(text).expect("runs").1.of_all, Vec::<String>::new());
    }
}
