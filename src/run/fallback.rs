//! What must not run on the CPU because no GPU was found.
//!
//! `auto` takes the CPU where there is no GPU. A spec that names a setting that only a GPU has (tf32, a CUDA graph, a second
//! stream) asks for a GPU: on the CPU it would be the measurement of something else. Who wants that asks for the CPU.

use crate::engine::Engine;
use crate::engine::open::Engines;
use crate::error::{Error, Result};
use crate::settings::{AXES, Axis, EngineName, Settings, Value};
use crate::spec::Experiment;

/// Fails where `auto` means the CPU and the spec names a value that the CPU's engine does not have.
///
/// # Errors
/// [`crate::error::Kind::Device`] with the setting and the remedy.
pub fn check(experiment: &Experiment, engines: &mut Engines) -> Result<()> {
    let Some(why) = engines.fallback().map(str::to_owned) else { return Ok(()) };
    refuse(experiment, engines.get(EngineName::Auto)?).map_err(|error| error.at(why))
}

fn refuse(experiment: &Experiment, cpu: &dyn Engine) -> Result<()> {
    for axis in AXES.iter().filter(|axis| experiment.grid.is_named(axis)) {
        for &value in experiment.grid.values(axis) {
            let Some(remedy) = remedy(cpu, axis, value) else { continue };
            let what = format!("`{}` of [{}] is not for the CPU", written(axis, value), axis.table);
            return Err(Error::device(what).hint(remedy));
        }
    }
    Ok(())
}

/// What to do for a value that the CPU's engine does not have; `None` where it has it.
fn remedy(cpu: &dyn Engine, axis: &Axis, value: Value) -> Option<String> {
    let mut asked = Settings::default();
    (axis.set)(&mut asked, value);
    match cpu.in_force(&asked).map(|in_force| (axis.get)(&in_force)) {
        Ok(in_force) if in_force == value => None,
        Ok(in_force) => Some(format!("to measure the CPU, which computes in {in_force}, run with `--device cpu`")),
        Err(_) => {
            let default = written(axis, axis.default_value());
            Some(format!("to measure the CPU, write `{default}` and run with `--device cpu`"))
        }
    }
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
    use crate::engine::cpu::CpuEngine;

    fn said(text: &str) -> Result<(), String> {
        let spec = format!("version = 1\nname = \"a\"\n[model]\nname = \"mlp\"\n{text}");
        let experiment = Experiment::parse(&spec, "a.toml").unwrap();
        refuse(&experiment, &CpuEngine::cpu(None)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_the_spec_names_and_the_cpu_lacks_is_refused_with_the_setting_and_the_remedy() {
        let lacking = [
            ("[train]\nprecision = \"tf32\"", "`precision = \"tf32\"` of [train]", "computes in fp32, run with"),
            ("[train]\nprecision = [\"fp32\", \"bf16\"]", "`precision = \"bf16\"` of [train]", "--device cpu"),
            ("[train]\nlayout = \"nhwc\"", "`layout = \"nhwc\"` of [train]", "write `layout = \"nchw\"`"),
            ("[train]\ndata = \"pinned\"", "`data = \"pinned\"` of [train]", "write `data = \"resident\"`"),
            ("[engine]\nlaunch = \"graph\"", "`launch = \"graph\"` of [engine]", "write `launch = \"eager\"`"),
            ("[engine]\nstreams = 2", "`streams = 2` of [engine]", "write `streams = 1`"),
        ];
        for (text, setting, remedy) in lacking {
            let error = said(text).unwrap_err();
            assert!(error.contains(setting) && error.contains(remedy) && error.contains("--device cpu"), "{error}");
        }
    }

    #[test]
    fn a_default_that_nobody_named_and_what_the_cpu_has_are_let_through() {
        for text in ["", "[train]\nprecision = \"fp32\"\nlayout = \"nchw\"", "[engine]\nthreads = [1, 2]\nstreams = 1"]
        {
            assert_eq!(said(text), Ok(()), "{text}");
        }
    }
}
