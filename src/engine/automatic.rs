//! What `auto` means on a device.

use super::cudnn::engine::CudnnEngine;
use super::device_choice::DeviceChoice;
use super::torch::TorchEngine;
use super::{Engine, contact};
use crate::device::cuda::driver;
use crate::error::{Error, Result};
use crate::settings::EngineName;

/// Which engine `auto` takes on a GPU; the other one if it cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// Its steps are what people run, and it works on every GPU that it is built for.
    Torch,
    /// For what PyTorch's step does not have: settings of our kernels, a loader of ours.
    Cudnn,
}

/// The engine that `auto` means, opened; `None` for the CPU, and if `names` does not contain `auto`.
///
/// # Errors
/// Why an existing GPU cannot be used, neither by PyTorch nor by the engine `cudnn`.
pub fn fastest(
    device: DeviceChoice,
    names: &[EngineName],
    first: First,
    notices: &mut Vec<String>,
) -> Result<Option<(EngineName, Box<dyn Engine>)>> {
    let is_on_gpu = names.contains(&EngineName::Auto)
        && match device {
            DeviceChoice::Cpu => false,
            DeviceChoice::Cuda(_) => driver::devices().map(|_| true)?,
            // A machine without a GPU needs no notice in every run. An installed driver that refuses ends the run.
            DeviceChoice::Auto => driver::has_gpu()?,
        };
    if !is_on_gpu {
        return Ok(None);
    }
    // If PyTorch is named together with the engine `cpu`, it runs on the CPU, and a run has only one PyTorch process.
    let is_taken = [EngineName::Torch, EngineName::Cpu].iter().all(|name| names.contains(name));
    let torch = || -> Result<(EngineName, Box<dyn Engine>)> {
        if is_taken {
            return Err(Error::device("in this run it is on the CPU, beside the engine `cpu`"));
        }
        Ok((EngineName::Torch, Box::new(TorchEngine::open(&format!("cuda:{}", device.ordinal()))?)))
    };
    let own = || Ok((EngineName::Cudnn, cudnn(device.ordinal())?));
    let opened = match first {
        First::Torch => on_gpu(["PyTorch", "the engine `cudnn`"], torch, own, notices),
        First::Cudnn => on_gpu(["the engine `cudnn`", "PyTorch"], own, torch, notices),
    };
    opened.map(Some)
}

/// The engine `cudnn` on the GPU of that number, unless it died there when it was tried.
///
/// # Errors
/// As [`CudnnEngine::open`].
pub fn cudnn(ordinal: u32) -> Result<Box<dyn Engine>> {
    match contact::died(ordinal) {
        Some(died) => Err(died.error()),
        None => Ok(Box::new(CudnnEngine::open(ordinal)?)),
    }
}

/// Work for the GPU runs on the GPU or not at all: the first of two engines, by their names, or the second.
///
/// # Errors
/// Why neither opens.
fn on_gpu<F>(
    names: [&str; 2],
    first: impl FnOnce() -> Result<F>,
    second: impl FnOnce() -> Result<F>,
    notices: &mut Vec<String>,
) -> Result<F> {
    let missing = match first() {
        Ok(engine) => return Ok(engine),
        Err(missing) => missing,
    };
    match second() {
        Ok(engine) => {
            notices.push(format!(
                "`auto` takes {} on this GPU, since {} is missing: {}",
                names[1],
                names[0],
                missing.clause()
            ));
            Ok(engine)
        }
        Err(error) => {
            let what = format!(
                "{} cannot use this GPU: {}; nor can {}: {}",
                names[0],
                missing.clause(),
                names[1],
                error.clause()
            );
            let remedies = [missing.remedy(), error.remedy()].into_iter().flatten();
            let remedies: String = remedies.map(|remedy| format!("{remedy}; ")).collect();
            Err(Error::device(what).hint(format!("{remedies}to run on the CPU, say so: `--device cpu`")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    const OLD: &str = "NVIDIA Tesla P100 has compute capability 6.0";

    fn missing() -> Error {
        Error::device("python3 cannot import torch").hint("pip install torch")
    }

    const NAMES: [&str; 2] = ["PyTorch", "the engine `cudnn`"];

    #[test]
    fn the_second_engine_is_not_started_where_the_first_one_opens() {
        let never = || -> Result<&str> { panic!("opened") };
        let mut notices = Vec::new();
        assert_eq!(on_gpu(NAMES, || Ok("PyTorch"), never, &mut notices).unwrap(), "PyTorch");
        assert!(notices.is_empty(), "{notices:?}");
    }

    #[test]
    fn the_second_engine_takes_the_place_of_the_first_and_says_why() {
        let mut notices = Vec::new();
        assert_eq!(on_gpu(NAMES, || Err(missing()), || Ok(7), &mut notices).unwrap(), 7);
        let [notice] = notices.as_slice() else { panic!("{notices:?}") };
        assert!(notice.contains("takes the engine `cudnn`") && notice.contains("cannot import torch"), "{notice}");
    }

    #[test]
    fn where_neither_opens_the_run_ends_with_both_reasons_and_remedies() {
        let old = || Err::<(), _>(Error::device(OLD).hint("use a newer GPU"));
        let mut notices = Vec::new();
        let error = on_gpu(NAMES, || Err(missing()), old, &mut notices).err().unwrap();
        assert_eq!((error.kind(), notices.len()), (Kind::Device, 0));
        let error = error.to_string();
        assert!(
            error.contains("python3 cannot import torch; nor can the engine `cudnn`: ") && error.contains(OLD),
            "{error}"
        );
        assert!(error.contains("pip install torch; use a newer GPU; ") && error.contains("`--device cpu`"), "{error}");
    }
}
