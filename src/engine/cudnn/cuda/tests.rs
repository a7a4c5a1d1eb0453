//! Tests on a GPU, if there is one. What its calls compute, eagerly, in graphs and on two streams, is compared with the reference by
//! `batchstep selftest`.

use std::collections::BTreeMap;

use super::{Chooser, Gpu, Memory, Placement, Policy, Program, ProgramLayout, Range, Search, StreamId};
use crate::engine::cudnn::call::{
    Arg, Call, Convolution, ConvolutionKind, Epilogue, Gemm, Kernel, Launch, Product, Slice,
};
use crate::engine::cudnn::element::{Element, Math};
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::error::Result;
use crate::network::Extent;
use crate::settings::{Layout, Winograd};

const SOURCE: &str = r#"
    extern "C" __global__ void scale(const float *x, float *y, float factor, long long n) {
        long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = factor * x[i];
    }"#;

fn gpu() -> Option<Gpu> {
    match Gpu::open(0, |operator, _| (operator == "scale").then(|| SOURCE.to_string())) {
        Ok(gpu) => Some(gpu),
        Err(error) if error.kind() == crate::error::Kind::Device => {
            crate::needs::missing("gpu", error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Small integers: every precision here represents their products and sums exactly.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 104_729) % 7) as f32 - 3.0).collect()
}

/// Buffers of float32 numbers side by side on the device, each at a multiple of 256 bytes, and a workspace after them.
struct TestBuffers {
    gpu: Gpu,
    _memory: Memory,
    placement: Placement,
    slices: Vec<Slice>,
    workspace: Range,
}

impl TestBuffers {
    /// The buffers hold NaN at first.
    fn new(gpu: &Gpu, counts: &[usize]) -> Self {
        let mut places = Vec::new();
        let mut end = 0;
        for count in counts {
            places.push((end, 4 * *count as u64));
            end += (4 * *count as u64).next_multiple_of(256);
        }
        let workspace = 256_u64 << 20;
        let memory = gpu.allocate(end + workspace).unwrap();
        gpu.enqueue_fill(StreamId::Compute, memory.address(), 0xFF, memory.bytes()).unwrap();
        let slice = |(index, count): (usize, &usize)| Slice::new(index, 0, 4 * count);
        let (address, slices) = (memory.address(), counts.iter().enumerate().map(slice).collect());
        let placement = Placement::in_arena(address, &places);
        Self {
            gpu: gpu.clone(),
            _memory: memory,
            placement,
            slices,
            workspace: Range { address: address + end, bytes: workspace },
        }
    }

    fn put(&self, index: usize, values: &[f32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.gpu.copy_to_device(self.placement.resolve(self.slices[index]).unwrap(), &bytes).unwrap();
    }

    fn get(&self, index: usize) -> Vec<f32> {
        let slice = self.slices[index];
        let bytes = self.gpu.read(self.placement.resolve(slice).unwrap(), slice.bytes).unwrap();
        bytes.chunks_exact(4).map(|four| f32::from_ne_bytes(four.try_into().unwrap())).collect()
    }

    fn program(&self, call: Call) -> Result<Program> {
        let choices = BTreeMap::new();
        Program::new(&self.gpu, &[call], ProgramLayout::in_turn(&self.placement, &choices, self.workspace))
    }
}

fn scale(bench: &TestBuffers, factor: f32, count: usize) -> Call {
    let [from, to] = [bench.slices[0], bench.slices[1]];
    let kernel = Kernel { operator: "scale", name: "scale", element: Element::F32 };
    let args = vec![Arg::Read(from), Arg::Write(to), Arg::F32(factor), Arg::I64(count as i64)];
    let blocks = u32::try_from(count.div_ceil(256)).unwrap();
    Call::Launch(Launch { kernel, grid: [blocks, 1, 1], block: [256, 1, 1], shared_bytes: 0, args })
}

/// What the driver reports about a call's kernels; since CUDA 12.3 it names them.
fn reported<T>(gpu: &Gpu, kernels: Option<T>) -> Option<T> {
    if kernels.is_none() {
        let (major, minor) = gpu.properties().driver_cuda;
        assert!((major, minor) < (12, 3), "a driver of CUDA {major}.{minor} reports the names of kernels");
        crate::needs::missing("driver", "a driver older than CUDA 12.3 does not report the names of kernels");
    }
    kernels
}

#[test]
fn the_kernels_of_a_call_are_listed_without_running_it() {
    let Some(gpu) = gpu() else { return };
    let bench = TestBuffers::new(&gpu, &[1000, 1000]);
    let x = numbers(1000, 1);
    bench.put(0, &x);
    let program = bench.program(scale(&bench, 3.0, 1000)).unwrap();
    program.enqueue(0..1).unwrap();
    bench.put(1, &[f32::NAN; 1000]);
    let Some(kernels) = reported(&gpu, program.kernels(0)) else { return };
    let [kernel] = kernels.as_slice() else { panic!("{kernels:?}") };
    assert_eq!((kernel.name.as_str(), kernel.blocks, kernel.threads_per_block), ("scale", 4, 256));
    // A multiprocessor of every GPU since Turing holds at least 1024 threads, and this kernel needs little else.
    let blocks = kernel.blocks_per_multiprocessor.unwrap();
    assert!((4..=8).contains(&blocks), "{blocks}");
    assert_eq!(kernel.capacity, Some(u64::from(blocks * gpu.properties().multiprocessors)));
    // Nothing ran, and the stream takes work as before.
    assert!(bench.get(1).iter().all(|y| y.is_nan()));
    program.enqueue(0..1).unwrap();
    assert_eq!(bench.get(1), x.iter().map(|x| 3.0 * x).collect::<Vec<f32>>());
}

#[test]
fn a_product_has_a_kernel_that_multiplies() {
    let Some(gpu) = gpu() else { return };
    let (m, n, k) = (256, 512, 64);
    let bench = TestBuffers::new(&gpu, &[m * k, k * n, m * n]);
    let [a, b, c] = [0, 1, 2].map(|index| bench.slices[index]);
    let (element, math) = (Element::F32, Math::Fp32);
    let product = Product { element, math, m, n, k, transpose_a: false, transpose_b: true };
    let call = Call::Gemm(Gemm { product, a, b, c, epilogue: Epilogue::Nothing });
    let program = bench.program(call.clone()).unwrap();
    program.enqueue(0..1).unwrap();
    gpu.synchronize(StreamId::Compute).unwrap();
    let Some(kernels) = reported(&gpu, program.kernels(0)) else { return };
    let launches: Vec<_> = kernels.into_iter().map(|launched| (&call, launched)).collect();
    let main = crate::engine::cudnn::kernels::main(&launches).unwrap();
    assert!(main.blocks > 0 && main.threads_per_block >= 32 && main.blocks_per_multiprocessor.is_some(), "{main:?}");
    assert!(main.waves.is_none_or(|waves| waves > 0.0), "{main:?}");
}

#[test]
fn what_cannot_be_captured_leaves_the_stream_usable() {
    let Some(gpu) = gpu() else { return };
    let bench = TestBuffers::new(&gpu, &[1000, 1000]);
    // Waiting for a stream during its capture is an error and invalidates the capture.
    let captured = gpu.capture(|| gpu.synchronize(StreamId::Compute));
    assert!(captured.unwrap_err().to_string().contains("cannot be one CUDA graph"));
    bench.put(0, &numbers(1000, 1));
    bench.program(scale(&bench, 2.0, 1000)).unwrap().enqueue(0..1).unwrap();
    assert_eq!(bench.get(1), numbers(1000, 1).iter().map(|x| 2.0 * x).collect::<Vec<f32>>());
}

#[test]
fn a_launch_that_does_not_fit_its_kernel_is_refused_before_it_runs() {
    let Some(gpu) = gpu() else { return };
    let bench = TestBuffers::new(&gpu, &[8, 8]);
    let Call::Launch(launch) = scale(&bench, 1.0, 8) else { unreachable!() };
    let wrong = Call::Launch(Launch { args: launch.args[..3].to_vec(), ..launch });
    let made = bench.program(wrong);
    if gpu.properties().driver_cuda < (12, 4) {
        crate::needs::missing("driver", "a driver older than CUDA 12.4 does not report the parameters of kernels");
        return;
    }
    assert!(made.unwrap_err().to_string().contains("parameters have [8, 8, 4, 8] bytes"));
}

#[test]
fn more_memory_than_there_is_is_out_of_memory() {
    let Some(gpu) = gpu() else { return };
    assert!(gpu.allocate(1 << 50).unwrap_err().is_out_of_memory());
    assert!(gpu.allocate(0).is_ok() && gpu.free_bytes().unwrap() > 0);
}

#[test]
fn a_choice_is_kept_and_its_name_chooses_the_same() {
    let Some(gpu) = gpu() else { return };
    let chooser = Chooser::new(&gpu);
    let maps = |channels| FeatureMaps { batch: 8, channels, height: 28, width: 28, layout: Layout::Nhwc };
    let convolution = Convolution { math: Math::Tf32, ..Convolution::between(maps(64), maps(64), 3) };
    let of = |policy| {
        let search = Search { policy, ..Search::default() };
        chooser.choose(&convolution, ConvolutionKind::Forward, &search).unwrap()
    };
    let measured = of(Policy::Autotune);
    assert!(measured.seconds.is_some_and(|seconds| seconds > 0.0) && measured.remark.is_none());
    assert_eq!(of(Policy::Autotune).seconds, measured.seconds);
    let named = of(Policy::Fixed(measured.algorithm.to_string()));
    assert_eq!((&named.algorithm, named.math_mode()), (&measured.algorithm, measured.math_mode()));
    assert_eq!((named.workspace_bytes(), named.seconds), (measured.workspace_bytes(), None));
}

/// In each direction the algorithm of that name, by the older calls, is taken and reported.
#[test]
fn non_fused_winograd_is_taken_in_every_direction_where_it_is_wanted_and_winograd_in_none_where_not() {
    let Some(gpu) = gpu() else { return };
    let chooser = Chooser::new(&gpu);
    let maps = FeatureMaps { batch: 17, channels: 64, height: 28, width: 28, layout: Layout::Nchw };
    let convolution = Convolution::between(maps, maps, 3);
    for kind in [ConvolutionKind::Forward, ConvolutionKind::BackwardData, ConvolutionKind::BackwardWeights] {
        let of = |winograd, policy| {
            let search = Search { winograd, policy, ..Search::default() };
            chooser
                .choose(&convolution, kind, &search)
                .map(|choice| format!("{},{}", choice.algorithm, choice.math_mode()))
        };
        for policy in [Policy::Heuristic, Policy::Autotune] {
            let forced = of(Winograd::NonFused, policy.clone()).unwrap();
            assert!(forced.contains("winograd_nonfused/fma"), "{kind:?}: {forced}");
            let without = of(Winograd::Never, policy).unwrap();
            assert!(!without.contains("winograd"), "{kind:?}: {without}");
        }
    }
    // The algorithm does not compute convolutions with a stride of 2.
    let output = FeatureMaps { height: 14, width: 14, ..maps };
    let strided = Convolution { output, stride: Extent::square(2), ..convolution };
    let search = Search { winograd: Winograd::NonFused, ..Search::default() };
    let refused = chooser.choose(&strided, ConvolutionKind::Forward, &search).unwrap_err().to_string();
    assert!(refused.contains("does not compute this convolution by non-fused Winograd"), "{refused}");
}
