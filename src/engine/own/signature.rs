//! The parameters of a file's function `step`, read without running anything.

use std::time::Duration;

use serde::Deserialize;

use super::resolved;
use crate::device::interpreter;
use crate::error::{Error, Result};
use crate::foreign;
use crate::os::child;
use crate::settings::own::{OwnSteps, StepFile};

const TEXT: &str = include_str!("worker/signature.py");

/// Holds the arguments against the parameters of `step` in each file, which is read and not run. `None` where no Python can read it.
///
/// # Errors
/// [`crate::error::Kind::Spec`] where a file has no `step`, or it takes other arguments.
pub fn check_signatures(steps: &OwnSteps) -> Result<Option<()>> {
    for file in &steps.files {
        let mut command = interpreter::command(&interpreter::interpreter(), TEXT);
        command.arg(resolved(file));
        let Ok(ended) = child::run(&mut command, Some(Duration::from_secs(20)), 1 << 20) else {
            return Ok(None);
        };
        match serde_json::from_str(&ended.stdout) {
            Ok(Signature::Error { error }) => return Err(Error::spec(foreign::line(&error).into_owned())),
            Ok(Signature::Known { parameters: Some(parameters), any }) => check(steps, file, &parameters, any)?,
            Ok(Signature::Known { parameters: None, .. }) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(()))
}

/// As `signature.py` writes it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Signature {
    Error {
        error: String,
    },
    Known {
        /// `None`: `step` is no plain function.
        parameters: Option<Vec<Parameter>>,
        #[serde(default)]
        any: bool,
    },
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    default: Option<String>,
}

fn check(steps: &OwnSteps, file: &StepFile, parameters: &[Parameter], any: bool) -> Result<()> {
    let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    let given = steps.argument_names();
    let name = file.name();
    if let Some(unknown) = given.iter().find(|one| !any && !known.contains(*one)) {
        let error = Error::spec(format!("step() in {name} takes no `{unknown}`; it takes {}", known.join(", ")));
        return Err(match crate::error::nearest(unknown, &known) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        });
    }
    match parameters.iter().find(|one| one.default.is_none() && !given.contains(&one.name.as_str())) {
        Some(Parameter { name: lacking, .. }) => {
            Err(Error::spec(format!("step() in {name} needs `{lacking}`, and it is given no value"))
                .hint(format!("`--set {lacking}=...`, or a key of [sweep]")))
        }
        None => Ok(()),
    }
}
