//! What cuDNN answers without a GPU: always shapes, and also engines and plans for a GPU that is only described, if
//! cuDNN finds the driver's library to which its parts are linked.

mod compiled;
mod gpus;
mod replay;

use gpus::{GPUS, H200};

use super::descriptor::{Descriptor, Kind, Name};
use super::graph::{Operation, Target};
use super::note::{Eligibility, Notes};
use super::{Choice, Problem, Search, TIMED, WORKSPACE_LIMIT, algorithm, legacy};
use crate::device::cuda::libraries::{self, Library};
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::cuda::status;
use crate::engine::cudnn::element::{Element, Math};
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::network::{self, Extent, Network};
use crate::settings::{Layout, Winograd};

/// The last one computes the forward direction with others.
const KINDS: [ConvolutionKind; 4] = [
    ConvolutionKind::Forward,
    ConvolutionKind::BackwardData,
    ConvolutionKind::BackwardWeights,
    ConvolutionKind::ForwardBiasRelu,
];

fn cudnn() -> bool {
    libraries::is_loaded(Library::Cudnn)
}

/// Whether graph descriptors can be finalised: cuDNN 9.28's libcudnn_engines_runtime_compiled is linked to libcuda.so.1.
fn graphs() -> bool {
    if !cudnn() {
        return false;
    }
    match Operation::new(
        &sample(Element::F32, Math::Fp32, Layout::Nchw),
        ConvolutionKind::Forward,
        Target { handle: None, device: None },
    ) {
        Err(error) if error.to_string().contains("SUBLIBRARY_LOADING_FAILED") => {
            crate::needs::missing(
                "cudnn-graph",
                "cuDNN does not load all of its parts (one is linked to libcuda.so.1)",
            );
            false
        }
        _ => true,
    }
}

/// A layer in the middle of ResNet50, at batch 16.
fn sample(element: Element, math: Math, layout: Layout) -> Convolution {
    let maps = |channels| FeatureMaps { batch: 16, channels, height: 56, width: 56, layout };
    Convolution { element, math, ..Convolution::between(maps(64), maps(128), 3) }
}

/// Every convolution of a network. If TensorFlow's `same` pads one side more, the input is larger by the difference, as if
/// it had been padded before.
fn convolutions(network: &Network, batch: usize, layout: Layout) -> Vec<Convolution> {
    let convolution = |index: usize| {
        let network::Operation::Conv2d(conv) = network.layers[index].operation else { return None };
        let mut input = FeatureMaps::new(batch, network.sources(index).next()?, layout);
        let padding = conv.padding;
        input.height += padding.bottom - padding.top;
        input.width += padding.right - padding.left;
        let output = FeatureMaps::new(batch, network.layers[index].output, layout);
        let (element, math, groups) = (Element::F16, Math::Half, conv.groups);
        let padding = Extent::new(padding.top, padding.left);
        Some(Convolution { element, math, input, output, kernel: conv.kernel, stride: conv.stride, padding, groups })
    };
    (0..network.layers.len()).filter_map(convolution).collect()
}

fn networks() -> Vec<Network> {
    let named = |name| {
        let (shape, classes) = Network::default_input(name).unwrap();
        Network::by_name(name, shape, classes).unwrap()
    };
    ["vgg16", "vgg19", "mobilenet", "resnet50", "mnist_cnn"].map(named).into()
}

#[test]
fn cudnn_calculates_the_same_output_for_every_convolution_of_the_networks_and_refuses_another() {
    if !cudnn() {
        return;
    }
    let mut count = 0;
    for network in networks() {
        for layout in [Layout::Nchw, Layout::Nhwc] {
            for convolution in convolutions(&network, 70, layout) {
                legacy::Descriptors::new(&convolution, ConvolutionKind::Forward)
                    .unwrap_or_else(|error| panic!("{}: {convolution:?}: {error}", network.name));
                count += 1;
            }
        }
    }
    // 13 and 16 of VGG, 27 of MobileNet, 53 of ResNet50, 3 of the network for digits, in two layouts.
    assert_eq!(count, 2 * (13 + 16 + 27 + 53 + 3));
    let mut wrong = sample(Element::F32, Math::Fp32, Layout::Nchw);
    wrong.output.height = 55;
    let error = legacy::Descriptors::new(&wrong, ConvolutionKind::Forward).unwrap_err().to_string();
    assert!(error.contains("[16, 128, 56, 56] where the plan has [16, 128, 55, 56]"), "{error}");
}

#[test]
fn cudnn_reports_why_it_refuses() {
    if !cudnn() {
        return;
    }
    let tensor = Descriptor::new(Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR).unwrap();
    // A float where integers belong.
    let error = tensor.set(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, &[1.0_f32]).unwrap_err().to_string();
    assert!(error.contains("cuDNN refused to set CUDNN_ATTR_TENSOR_DIMENSIONS: CUDNN_STATUS_BAD_PARAM"), "{error}");
}

fn h200() -> Option<Descriptor> {
    described_gpu(&H200.json())
}

/// A Tesla T4.
fn t4() -> Option<Descriptor> {
    described_gpu(&GPUS[0].json())
}

fn described_gpu(properties: &str) -> Option<Descriptor> {
    if !graphs() {
        return None;
    }
    let made = Descriptor::new(Kind::CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).and_then(|device| {
        device.set(Name::CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, properties.as_bytes())?;
        device.finalize("a GPU")?;
        Ok(device)
    });
    match made {
        Ok(device) => Some(device),
        Err(error) => {
            crate::needs::missing("cudnn-graph", format!("this cuDNN does not take a described GPU: {error}"));
            None
        }
    }
}

fn described(device: &Descriptor) -> Target<'_> {
    Target { handle: None, device: Some(device) }
}

#[test]
fn operation_graphs_of_every_direction_layout_and_element_are_finalised() {
    let Some(device) = h200() else { return };
    for kind in KINDS {
        for layout in [Layout::Nchw, Layout::Nhwc] {
            for (element, math) in [(Element::F32, Math::Tf32), (Element::F16, Math::Half), (Element::Bf16, Math::Half)]
            {
                let operation = Operation::new(&sample(element, math, layout), kind, described(&device));
                let engines = operation.unwrap().engine_count().unwrap();
                assert!(engines > 0, "{kind:?} {layout:?} {element:?}");
            }
        }
    }
}

#[test]
fn operation_graphs_of_all_convolutions_of_the_networks_are_finalised() {
    let Some(device) = h200() else { return };
    for network in networks() {
        for convolution in convolutions(&network, 17, Layout::Nhwc) {
            for kind in KINDS {
                Operation::new(&convolution, kind, described(&device))
                    .unwrap_or_else(|error| panic!("{}: {convolution:?}: {error}", network.name));
            }
        }
    }
}

/// The notes and workspaces of all engines that make a plan, each found again by its name.
fn plans(convolution: &Convolution, kind: ConvolutionKind, device: &Descriptor) -> Vec<(Notes, u64)> {
    let target = described(device);
    let operation = Operation::new(convolution, kind, target).unwrap();
    let mut plans = Vec::new();
    for engine in 0..operation.engine_count().unwrap() {
        let Ok(configuration) = operation.configure(engine, &[], target) else { continue };
        // These need a driver to compile.
        if configuration.compiles {
            continue;
        }
        let name = configuration.algorithm.to_string();
        let notes = configuration.notes;
        if let Ok(plan) = configuration.plan(target) {
            let algorithm: algorithm::Algorithm = name.parse().unwrap();
            let algorithm::Implementation::Graph { engine: read, knobs } = algorithm.implementation else {
                panic!("{name}")
            };
            let again = operation.configure(read, &knobs, target).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((again.algorithm.to_string(), again.notes), (name, notes));
            assert_eq!(again.plan(target).unwrap().workspace_bytes, plan.workspace_bytes);
            plans.push((notes, plan.workspace_bytes));
        }
    }
    plans
}

#[test]
fn every_precision_and_direction_has_a_plan_that_it_allows() {
    let Some(device) = h200() else { return };
    for kind in KINDS.into_iter().take(3) {
        for layout in [Layout::Nchw, Layout::Nhwc] {
            for (element, math) in [
                (Element::F32, Math::Fp32),
                (Element::F32, Math::Tf32),
                (Element::F16, Math::Half),
                (Element::Bf16, Math::Half),
            ] {
                let plans = plans(&sample(element, math, layout), kind, &device);
                let allowed = |notes: &Notes| notes.eligibility(math) == Eligibility::Allowed;
                let count = plans.iter().filter(|(notes, _)| allowed(notes)).count();
                assert!(count > 0, "{kind:?} {layout:?} {element:?} {math:?}: none of {}", plans.len());
                let tensor_cores = plans.iter().any(|(notes, _)| allowed(notes) && notes.has(Notes::TENSOR_CORE));
                assert_eq!(tensor_cores, math != Math::Fp32, "{kind:?} {layout:?} {math:?}");
            }
        }
    }
}

/// The basis of the verdicts on float32: engines with DOWN_CONVERT_INPUTS copy their inputs to 16 bits.
#[test]
fn engines_that_convert_their_inputs_take_half_the_workspace_of_tf32() {
    let Some(device) = h200() else { return };
    let plans = plans(&sample(Element::F32, Math::Tf32, Layout::Nchw), ConvolutionKind::Forward, &device);
    let of = |converts: bool| {
        let wanted =
            move |notes: &Notes| notes.has(Notes::TENSOR_CORE) && notes.has(Notes::DOWN_CONVERT_INPUTS) == converts;
        plans.iter().filter(move |(notes, _)| wanted(notes)).map(|(_, bytes)| *bytes).max().unwrap_or(0)
    };
    let (half, full) = (of(true), of(false));
    assert!(half > 0 && full > half, "{half} and {full} bytes");
}

/// The choice on the described GPU, by heuristics without measurements.
fn first(convolution: &Convolution, kind: ConvolutionKind, device: &Descriptor, count: usize) -> Vec<Choice> {
    let problem = Problem { convolution, kind, target: described(device) };
    problem.first(&Search::default(), count, &[]).unwrap_or_else(|error| panic!("{problem}: {error}"))
}

#[test]
#[ignore = "slow"]
fn heuristics_propose_an_algorithm_for_every_convolution_of_the_networks() {
    let Some(device) = h200() else { return };
    let settings = [
        (Element::F32, Math::Fp32, Layout::Nchw),
        (Element::F32, Math::Tf32, Layout::Nchw),
        (Element::Bf16, Math::Half, Layout::Nhwc),
    ];
    for (element, math, layout) in settings {
        let all = networks().into_iter().flat_map(|network| convolutions(&network, 17, layout));
        // VGG and ResNet repeat their layers.
        let different: std::collections::HashSet<Convolution> = all.collect();
        for convolution in different {
            let convolution = Convolution { element, math, ..convolution };
            let dense = convolution.groups == 1;
            for kind in KINDS.into_iter().take(3) {
                let ready = first(&convolution, kind, &device, 1).remove(0);
                assert!(ready.workspace_bytes() <= WORKSPACE_LIMIT);
                // Without the older calls, which need a GPU, strict float32 is left to fallbacks in many layers.
                let remark = ready.remark.clone().unwrap_or_default();
                let fallback = (math == Math::Fp32 || !dense) && remark.contains("fallbacks");
                assert!(remark.is_empty() || fallback, "{convolution:?} {kind:?}: {remark}");
                let tensor_cores = ready.math_mode().starts_with("tensor_core");
                assert!(math != Math::Fp32 || !tensor_cores, "{}", ready.math_mode());
                // The first layers have too few channels for tensor cores, and single channels as well.
                let wide = dense && convolution.input.channels >= 64;
                assert!(!(wide && math == Math::Half) || tensor_cores, "{convolution:?}: {}", ready.math_mode());
            }
        }
    }
}

#[test]
fn candidates_to_measure_differ_and_are_found_again_by_name() {
    let Some(device) = h200() else { return };
    let convolution = sample(Element::F32, Math::Tf32, Layout::Nhwc);
    let ready = first(&convolution, ConvolutionKind::Forward, &device, TIMED);
    assert_eq!(ready.len(), TIMED);
    let problem = Problem { convolution: &convolution, kind: ConvolutionKind::Forward, target: described(&device) };
    for (index, one) in ready.iter().enumerate() {
        let name = one.algorithm.to_string();
        assert!(ready[..index].iter().all(|other| other.algorithm != one.algorithm), "{name}");
        let again = problem.fixed(&name, &Search::default()).unwrap();
        assert_eq!(again.workspace_bytes(), one.workspace_bytes(), "{name}");
        assert_eq!((again.algorithm.to_string(), again.math_mode()), (name, one.math_mode()));
    }
}

#[test]
fn a_named_algorithm_must_fit_the_direction_the_precision_and_the_workspace() {
    let Some(device) = h200() else { return };
    let convolution = sample(Element::F32, Math::Tf32, Layout::Nchw);
    let tf32 = first(&convolution, ConvolutionKind::Forward, &device, 1).remove(0);
    let name = tf32.algorithm.to_string();
    let strict = Convolution { math: Math::Fp32, ..convolution };
    let of = |convolution, limit| {
        let problem = Problem { convolution, kind: ConvolutionKind::Forward, target: described(&device) };
        let search = Search { workspace_limit: limit, ..Search::default() };
        problem.fixed(&name, &search).map(|ready| ready.math_mode()).map_err(|error| error.to_string())
    };
    assert_eq!(of(&convolution, WORKSPACE_LIMIT).unwrap(), "tensor_core");
    assert!(of(&strict, WORKSPACE_LIMIT).unwrap_err().contains("is tensor_core, which this precision does not allow"));
    assert!(of(&convolution, 1).unwrap_err().contains("and the limit is 1"));
    let problem = Problem { convolution: &convolution, kind: ConvolutionKind::Forward, target: described(&device) };
    let wrong =
        |name: &str| problem.fixed(name, &Search::default()).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(wrong(&name.replace(':', ":fused_")).contains("not for this kind of call"));
    assert!(wrong("legacy:backward_data_1/default").contains("does not compute this direction"));
    assert!(wrong("legacy:backward_weights_0/default").contains("not deterministic"));
    assert!(wrong("legacy:implicit_gemm/tensor_op_allow_conversion").contains("does not allow its arithmetic"));
}

/// A layer in the middle of VGG16 in strict float32, which the fused kernels compute on a T4.
fn vgg16_layer(batch: usize) -> Convolution {
    let maps = FeatureMaps { batch, channels: 256, height: 56, width: 56, layout: Layout::Nchw };
    Convolution { input: maps, output: maps, ..sample(Element::F32, Math::Fp32, Layout::Nchw) }
}

fn has_winograd(modes: &[String]) -> bool {
    modes.iter().any(|mode| mode.contains("winograd"))
}

/// Seen with cuDNN 9.10, forward and for the gradients of inputs.
fn no_winograd() {
    crate::needs::missing("cudnn-graph", "this cuDNN has no engine with the notes of Winograd for a described T4");
}

#[test]
fn without_winograd_no_engine_with_its_notes_is_a_candidate() {
    let Some(device) = t4() else { return };
    let mut seen = false;
    for kind in KINDS.into_iter().take(3) {
        let convolution = vgg16_layer(17);
        let problem = Problem { convolution: &convolution, kind, target: described(&device) };
        let modes = |winograd| {
            let search = Search { winograd, ..Search::default() };
            let ready = problem.first(&search, TIMED, &[]).unwrap_or_else(|error| panic!("{problem}: {error}"));
            ready.into_iter().map(|one| one.math_mode()).collect::<Vec<_>>()
        };
        let (any, never) = (modes(Winograd::Any), modes(Winograd::Never));
        seen |= has_winograd(&any);
        assert!(!never.is_empty() && !has_winograd(&never), "{kind:?}: {never:?}");
    }
    if !seen {
        no_winograd();
    }
}

/// The reason why the graph API is not asked for non-fused Winograd: the engines with Winograd's notes need a workspace
/// that does not grow with the batch, so it cannot hold the transformed tiles of all images.
#[test]
fn the_workspace_of_engines_with_the_notes_of_winograd_does_not_grow_with_the_batch() {
    let Some(device) = t4() else { return };
    let workspace = |batch: usize| {
        let plans = plans(&vgg16_layer(batch), ConvolutionKind::Forward, &device);
        let winograd = plans.iter().filter(|(notes, _)| notes.math_mode().contains("winograd_4x4"));
        winograd.map(|(_, bytes)| *bytes).collect::<Vec<_>>()
    };
    let (small, large) = (workspace(16), workspace(52));
    if small.is_empty() {
        return no_winograd();
    }
    assert_eq!(small, large);
}

#[test]
fn where_nothing_computes_non_fused_winograd_the_layer_is_refused() {
    let Some(device) = t4() else { return };
    let convolution = vgg16_layer(17);
    let search = Search { winograd: Winograd::NonFused, ..Search::default() };
    let refusal = |kind| {
        let problem = Problem { convolution: &convolution, kind, target: described(&device) };
        problem.first(&search, TIMED, &[]).err().map(|error| error.to_string()).unwrap_or_default()
    };
    // Only the older calls name it, and they do not exist without a GPU.
    let text = refusal(ConvolutionKind::Forward);
    for words in
        ["by non-fused Winograd: cuDNN's older calls need a GPU", "`winograd = \"any\"`", "raise `workspace_limit`"]
    {
        assert!(text.contains(words), "{text}");
    }
    assert!(refusal(ConvolutionKind::ForwardBiasRelu).contains("adds bias and ReLU"));
    // An algorithm chosen by name must also be one that the setting allows.
    let problem = Problem { convolution: &convolution, kind: ConvolutionKind::Forward, target: described(&device) };
    let named = |name: &str, winograd| {
        let search = Search { winograd, ..Search::default() };
        problem.fixed(name, &search).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(named("legacy:implicit_gemm/fma", Winograd::NonFused).contains("not what `winograd = \"nonfused\"`"));
    assert!(named("legacy:winograd_nonfused/fma", Winograd::Never).contains("not what `winograd = \"never\"`"));
    assert!(named("legacy:winograd_nonfused/fma", Winograd::NonFused).contains("need a GPU"));
}

#[test]
fn a_status_in_an_error_is_cudnns_own_name() {
    if !cudnn() {
        return;
    }
    use cudarc::cudnn::sys::cudnnStatus_t as Status;
    assert!(status::cudnn("do nothing", Status::CUDNN_STATUS_SUCCESS).is_ok());
    let error = status::cudnn("try", Status::CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH).unwrap_err().to_string();
    assert!(error.contains("cuDNN refused to try: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH"), "{error}");
    let lacks = Status::CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    assert!(status::cudnn("try", lacks).unwrap_err().is_out_of_memory());
}
