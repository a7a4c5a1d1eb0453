//! The kernels compiled by NVRTC, which needs neither a GPU nor a driver.

use crate::device::cuda::libraries::{self, Library};
use crate::engine::cudnn::cuda::compiler::{CompileTarget, compile};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::source::OPERATORS;

/// For the T4 of the study; and for later GPUs, if the source has other lines for them. All that it asks is whether the GPU is one of 8.0 or later.
#[test]
#[ignore = "slow"]
fn every_module_compiles_for_every_architecture() {
    if !libraries::is_loaded(Library::Nvrtc) {
        return;
    }
    for (operator, element) in OPERATORS.iter().flat_map(|operator| Element::ALL.map(|e| (operator, e))) {
        let source = operator.source(element);
        let asked: Vec<&str> = source.split("__CUDA_ARCH__").skip(1).collect();
        let of_80 = asked.iter().all(|rest| [" >= 800", " < 800", ") && "].iter().any(|end| rest.starts_with(end)));
        assert!(of_80, "{}: compile it for what it asks, too", operator.name);
        // The first asks in the prelude, for bfloat16.
        let later = (element == Element::Bf16 || asked.len() > 1).then_some(80);
        for architecture in [75].into_iter().chain(later) {
            let ptx = compile(operator.name, &source, element, CompileTarget { architecture, native: false });
            let ptx = ptx.unwrap_or_else(|log| panic!("{} {architecture} {element:?}: {log}", operator.name));
            let ptx = String::from_utf8_lossy(&ptx);
            let mut made: Vec<&str> = ptx.split(".entry ").skip(1).filter_map(|rest| rest.split('(').next()).collect();
            let mut kernels = operator.kernels();
            made.sort_unstable();
            kernels.sort_unstable();
            assert_eq!(made, kernels, "{} {element:?}", operator.name);
        }
    }
}
