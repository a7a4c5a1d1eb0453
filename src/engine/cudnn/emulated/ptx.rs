//! The kernels compiled by NVRTC. It needs neither a GPU nor a driver, so wherever it is installed each launch that a
//! test checks is compared with the signature of the kernel that will run on a GPU.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::device::cuda::libraries::{self, Library};
use crate::engine::cudnn::call::{Arg, Launch};
use crate::engine::cudnn::cuda::compiler::{CompileTarget, compile};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::source::Operator;

/// Whether NVRTC is loaded; where it is not, the test is recorded as skipped.
pub fn nvrtc() -> bool {
    libraries::is_loaded(Library::Nvrtc)
}

/// The types of a kernel's parameters: `u64` for pointers, `u32`, `f32`.
type Parameters = Vec<String>;
/// The parameters of each kernel of a module, by the kernel's name; or NVRTC's message.
type Compiled = Result<HashMap<String, Parameters>, String>;

/// What the launches' arguments are compared with.
const OLDEST: u32 = 75;

/// A module as NVRTC compiles it for `architecture`, such as 75; once in a process. NVRTC must be there.
fn compiled(operator: &'static Operator, element: Element, architecture: u32) -> Arc<OnceLock<Compiled>> {
    type Modules = HashMap<(&'static str, Element, u32), Arc<OnceLock<Compiled>>>;
    static MODULES: OnceLock<Mutex<Modules>> = OnceLock::new();
    let module = {
        let mut modules = MODULES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        modules.entry((operator.name, element, architecture)).or_default().clone()
    };
    module.get_or_init(|| {
        let target = CompileTarget { architecture, native: false };
        let ptx = compile(operator.name, &operator.source(element), element, target);
        ptx.map(|ptx| signatures(&String::from_utf8_lossy(&ptx))).map_err(|error| error.to_string())
    });
    module
}

fn signatures(ptx: &str) -> HashMap<String, Parameters> {
    let entry = |text: &str| {
        let (name, rest) = text.split_once('(')?;
        let parameters = rest.split_once(')')?.0;
        let kind = |parameter: &str| {
            let word = parameter.split_whitespace().nth(1)?;
            Some(word.trim_start_matches('.').to_string())
        };
        Some((name.trim().to_string(), parameters.split(',').filter_map(kind).collect()))
    };
    ptx.split(".entry ").skip(1).filter_map(entry).collect()
}

/// Compares a launch's arguments with the kernel's parameters, where NVRTC is there and knows the operator.
pub fn fits(launch: &Launch) -> Result<(), String> {
    let kernel = launch.kernel;
    let Some(operator) = Operator::by_name(kernel.operator).filter(|_| nvrtc()) else { return Ok(()) };
    let module = compiled(operator, kernel.element, OLDEST);
    let module = module.wait().as_ref().unwrap_or_else(|log| panic!("{}: {log}", operator.name));
    let expected: Vec<&str> = launch.args.iter().map(kind).collect();
    match module.get(kernel.name) {
        Some(parameters) if *parameters == expected => Ok(()),
        Some(parameters) => Err(format!("arguments {expected:?} for parameters {parameters:?}")),
        None => Err("NVRTC's module has no such kernel".into()),
    }
}

fn kind(arg: &Arg) -> &'static str {
    match arg {
        Arg::Read(_) | Arg::Write(_) | Arg::Update(_) | Arg::Null | Arg::I64(_) | Arg::U64(_) => "u64",
        Arg::I32(_) => "u32",
        Arg::F32(_) => "f32",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::source::OPERATORS;

    /// For the T4 of the study; and for later GPUs, if the source has other lines for them. All that it asks is whether the GPU is one of 8.0 or later.
    #[test]
    fn every_module_compiles_for_every_architecture() {
        if !nvrtc() {
            return;
        }
        for (operator, element) in OPERATORS.iter().flat_map(|operator| Element::ALL.map(|e| (operator, e))) {
            let source = operator.source(element);
            let asked: Vec<&str> = source.split("__CUDA_ARCH__").skip(1).collect();
            let of_80 = asked.iter().all(|rest| [" >= 800", " < 800", ") && "].iter().any(|end| rest.starts_with(end)));
            assert!(of_80, "{}: compile it for what it asks, too", operator.name);
            // The first asks in the prelude, for bfloat16.
            let later = (element == Element::Bf16 || asked.len() > 1).then_some(80);
            for architecture in [OLDEST].into_iter().chain(later) {
                let module = compiled(operator, element, architecture);
                let signatures = module.wait().as_ref();
                let signatures =
                    signatures.unwrap_or_else(|log| panic!("{} {architecture} {element:?}: {log}", operator.name));
                for kernel in operator.kernels() {
                    assert!(signatures.contains_key(kernel), "{} {element:?}: {kernel}", operator.name);
                }
                assert_eq!(signatures.len(), operator.kernels().len(), "{}", operator.name);
            }
        }
    }

    #[test]
    fn signatures_are_read_with_and_without_the_marks_of_pointers() {
        let ptx = ".visible .entry one(\n\t.param .u64 .ptr .align 1 one_param_0,\n\t.param .u32 one_param_1\n)\n{ call (x), f; }\n\
                   .visible .entry two(\n\t.param .u64 two_param_0,\n\t.param .f32 two_param_1\n)\n.maxntid 256\n{}";
        let signatures = signatures(ptx);
        assert_eq!(signatures["one"], ["u64", "u32"]);
        assert_eq!(signatures["two"], ["u64", "f32"]);
        assert_eq!(signatures.len(), 2);
    }
}
