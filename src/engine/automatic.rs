//! What `auto` means on a device.

use super::cudnn::engine::CudnnEngine;
use super::open::DeviceChoice;
use super::torch::TorchEngine;
use crate::device::cuda::driver;
use crate::error::{Error, Result};
use crate::settings::EngineName;

/// The engine that `auto` means.
pub enum Fastest<C = CudnnEngine, T = TorchEngine> {
    /// The engine `cudnn`, already opened.
    Cudnn(C),
    /// PyTorch on the same GPU, if the engine `cudnn` cannot be opened.
    Torch(T),
    Cpu,
}

/// The engine that `auto` means; the CPU if `names` does not contain `auto`.
///
/// # Errors
/// Why an existing GPU cannot be used, by the engine or by PyTorch instead.
pub fn fastest(device: DeviceChoice, names: &[EngineName], notices: &mut Vec<String>) -> Result<Fastest> {
    if !names.contains(&EngineName::Auto) {
        return Ok(Fastest::Cpu);
    }
    match device {
        DeviceChoice::Cpu => Ok(Fastest::Cpu),
        DeviceChoice::Cuda(index) => CudnnEngine::open(u32::try_from(index).unwrap_or(u32::MAX)).map(Fastest::Cudnn),
        // A machine without a GPU needs no notice in every run. An installed driver that refuses ends the run.
        DeviceChoice::Auto if !driver::has_gpu()? => Ok(Fastest::Cpu),
        DeviceChoice::Auto => {
            // If PyTorch is named together with the engine `cpu`, it runs on the CPU, and a run has only one PyTorch
            // process.
            let is_taken = [EngineName::Torch, EngineName::Cpu].iter().all(|name| names.contains(name));
            let torch = || match is_taken {
                true => Err(Error::device("in this run it is on the CPU, beside the engine `cpu`")),
                false => TorchEngine::open("cuda:0"),
            };
            on_gpu(CudnnEngine::open(0), torch, notices)
        }
    }
}

/// Work for the GPU runs on the GPU or not at all. If the GPU has a driver but the engine `cudnn` cannot be opened (an
/// old GPU, a missing library), PyTorch uses it.
///
/// # Errors
/// Why the engine does not open, if PyTorch cannot replace it.
fn on_gpu<C, T>(
    cudnn: Result<C>,
    torch: impl FnOnce() -> Result<T>,
    notices: &mut Vec<String>,
) -> Result<Fastest<C, T>> {
    let error = match cudnn {
        Ok(engine) => return Ok(Fastest::Cudnn(engine)),
        Err(error) => error,
    };
    match torch() {
        Ok(engine) => {
            notices.push(format!("{error}\n  `auto` takes PyTorch on this GPU instead"));
            Ok(Fastest::Torch(engine))
        }
        Err(missing) => {
            let what = format!("{}; PyTorch cannot take its place: {}", error.clause(), missing.clause());
            let remedy = error.remedy().map_or(String::new(), |remedy| format!("{remedy}; "));
            Err(Error::device(what).hint(format!("{remedy}to run on the CPU, say so: `--device cpu`")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    const OLD: &str = "NVIDIA Tesla P100 has compute capability 6.0";

    fn old() -> Error {
        Error::device(OLD).hint("use a newer GPU")
    }

    #[test]
    fn a_gpu_whose_engine_does_not_open_is_pytorchs_and_says_why() {
        let mut notices = Vec::new();
        let found = on_gpu(Err::<(), _>(old()), || Ok("PyTorch"), &mut notices);
        assert!(matches!(found, Ok(Fastest::Torch("PyTorch"))));
        let [notice] = notices.as_slice() else { panic!("{notices:?}") };
        assert!(notice.contains(OLD) && notice.contains("`auto` takes PyTorch on this GPU instead"), "{notice}");
    }

    #[test]
    fn where_pytorch_is_not_there_either_the_run_ends_with_both_reasons_and_remedies() {
        let none = || Err::<(), _>(Error::device("python3 cannot import torch"));
        let mut notices = Vec::new();
        let error = on_gpu(Err::<(), _>(old()), none, &mut notices).err().unwrap();
        assert_eq!((error.kind(), notices.len()), (Kind::Device, 0));
        let error = error.to_string();
        assert!(error.contains(OLD) && error.contains("PyTorch cannot take its place: python3 cannot"), "{error}");
        assert!(error.contains("use a newer GPU; ") && error.contains("`--device cpu`"), "{error}");
    }

    #[test]
    fn pytorch_is_not_started_where_the_engine_opens() {
        let never = || -> Result<()> { panic!("started") };
        assert!(matches!(on_gpu(Ok(7), never, &mut Vec::new()), Ok(Fastest::Cudnn(7))));
    }
}
