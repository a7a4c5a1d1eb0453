//! Engines whose kernels cuDNN compiles when they are chosen, which takes more than a second for each shape. Tested
//! with recorded calls, in a separate process.

use std::path::Path;

use super::*;
use crate::device::cuda::libraries::{Libraries, Search as Places};
use crate::engine::cudnn::cuda::convolution::Chooser;
use crate::engine::cudnn::cuda::device::Gpu;
use crate::engine::cudnn::recorded::{self, Called, Fault};
use crate::error::Result;

const NAME: &str = "engine::cudnn::cuda::convolution::tests::compiled::an_engine_that_is_compiled_is_the_last_resort";

/// The choice if the first `compiled` of cuDNN's two proposals are compiled, and if cuDNN's older calls list an
/// algorithm or none.
fn chosen(compiled: i64, has_older: bool, kind: ConvolutionKind) -> Result<Choice> {
    let (library, name) = (recorded::Library::Cudnn, "cudnnGetConvolutionForwardAlgorithm_v7");
    let call = Called { library, name, when: "", captured: false };
    // CUDNN_STATUS_NOT_SUPPORTED.
    let fault = Fault { call, occurrence: 0, code: 3000, lasts: false };
    recorded::begin((!has_older).then_some(fault));
    recorded::compile_when_chosen(compiled);
    let nothing = Libraries::open(&Places::new(Path::new("/nonexistent"), &|_| None), None);
    let gpu = Gpu::with(&nothing, 0, |_, _| None)?;
    let convolution = sample(Element::F32, Math::Tf32, Layout::Nchw);
    Chooser::new(&gpu).choose(&convolution, kind, &Search::default())
}

#[test]
fn an_engine_that_is_compiled_is_the_last_resort() {
    if !recorded::is_apart(NAME) {
        return;
    }
    let kind = ConvolutionKind::Forward;
    // The proposals are engines 10 and 11.
    let name = |choice: Result<Choice>| choice.map(|choice| (choice.algorithm.to_string(), choice.compiled)).unwrap();
    assert_eq!(name(chosen(0, true, kind)), ("graph:eng10{k4=2}".into(), false));
    assert_eq!(name(chosen(1, true, kind)), ("graph:eng11{k4=2}".into(), false));
    let (older, compiled) = name(chosen(2, true, kind));
    assert!(older.starts_with("legacy:") && !compiled, "{older}");
    let last = chosen(2, false, kind).unwrap();
    assert_eq!((last.algorithm.to_string().as_str(), last.compiled), ("graph:eng10{k4=2}", true));
    assert!(last.remark.unwrap().contains("no engine that is already compiled"));
    // With bias and ReLU the plain convolution is always possible, so nothing is compiled for the search.
    let fused = ConvolutionKind::ForwardBiasRelu;
    assert_eq!(name(chosen(1, true, fused)), ("graph:fused_eng11{k4=2}".into(), false));
    let error = chosen(2, false, fused).unwrap_err().to_string();
    assert!(error.contains("graph:fused_eng10{k4=2} is compiled when it is chosen"), "{error}");
}
