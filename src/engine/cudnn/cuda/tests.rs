//! Tests on a GPU, if there is one: the libraries' results are compared with loops on the CPU in float64.

use std::collections::BTreeMap;

use super::{Chooser, Gpu, Layout as ProgramLayout, Memory, Placement, Policy, Program, Range, Search, StreamId};
use crate::engine::cudnn::call::{
    Arg, Call, Convolution, ConvolutionKind, ConvolutionTask, Epilogue, Gemm, Kernel, Launch, Product, Slice,
};
use crate::engine::cudnn::element::{Element, Math};
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::cudnn::order::{Assigned, Order, StepStream};
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
    convolutions: Chooser,
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
        let convolutions = Chooser::new(gpu);
        Self {
            gpu: gpu.clone(),
            convolutions,
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

    fn program(&self, call: Call, search: &Search) -> Program {
        let mut choices = BTreeMap::new();
        if let Call::Convolution(convolution, task) = &call {
            choices.insert(0, self.convolutions.choose(convolution, task.kind, search).unwrap());
        }
        let layout = ProgramLayout::in_turn(&self.placement, &choices, self.workspace);
        Program::new(&self.gpu, &[call], layout).unwrap()
    }

    fn run(&self, call: Call, search: &Search) {
        self.program(call, search).enqueue(0..1).unwrap();
        self.gpu.synchronize(StreamId::Compute).unwrap();
    }
}

fn scale(bench: &TestBuffers, factor: f32, count: usize) -> Call {
    scale_between(bench.slices[0], bench.slices[1], factor, count)
}

fn scale_between(from: Slice, to: Slice, factor: f32, count: usize) -> Call {
    let kernel = Kernel { operator: "scale", name: "scale", element: Element::F32 };
    let args = vec![Arg::Read(from), Arg::Write(to), Arg::F32(factor), Arg::I64(count as i64)];
    let blocks = u32::try_from(count.div_ceil(256)).unwrap();
    Call::Launch(Launch { kernel, grid: [blocks, 1, 1], block: [256, 1, 1], shared_bytes: 0, args })
}

#[test]
fn a_kernel_runs_eagerly_and_in_a_graph() {
    let Some(gpu) = gpu() else { return };
    let bench = TestBuffers::new(&gpu, &[1000, 1000]);
    let x = numbers(1000, 1);
    bench.put(0, &x);
    let program = bench.program(scale(&bench, -2.0, 1000), &Search::default());
    let expected: Vec<f32> = x.iter().map(|x| -2.0 * x).collect();
    program.enqueue(0..1).unwrap();
    assert_eq!(bench.get(1), expected);
    let (start, end) = (gpu.event().unwrap(), gpu.event().unwrap());
    let graph = gpu.capture(|| {
        start.record(StreamId::Compute)?;
        program.enqueue(0..1)?;
        end.record(StreamId::Compute)
    });
    let graph = graph.unwrap();
    assert_eq!(graph.handles().unwrap().len(), 3);
    bench.gpu.enqueue_fill(StreamId::Compute, bench.placement.resolve(bench.slices[1]).unwrap(), 0xFF, 4000).unwrap();
    graph.launch().unwrap();
    // An event that only a graph records may count as not recorded until the graph has reached it.
    gpu.synchronize(StreamId::Compute).unwrap();
    assert!((1e-9..1.0).contains(&end.seconds_since(&start).unwrap()));
    assert_eq!(bench.get(1), expected);
}

/// The main stream writes b, then d; at the same time the side stream computes c from b. The second step's b waits for
/// that.
#[test]
fn two_streams_keep_to_their_order_eagerly_and_in_a_graph() {
    let Some(gpu) = gpu() else { return };
    let count = 1 << 22;
    let bench = TestBuffers::new(&gpu, &[count; 5]);
    let x = numbers(count, 1);
    bench.put(0, &x);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|index| bench.slices[index]);
    let pairs = [(a, b, 2.0), (b, c, 3.0), (b, d, 5.0), (a, b, 0.5), (c, e, 7.0)];
    let calls = pairs.map(|(from, to, factor)| scale_between(from, to, factor, count));
    let streams = [StepStream::Main, StepStream::Side, StepStream::Main, StepStream::Main, StepStream::Main];
    let order =
        Order::new(&calls.iter().zip(streams).map(|(call, stream)| Assigned { call, stream }).collect::<Vec<_>>());
    let choices = BTreeMap::new();
    let layout =
        ProgramLayout { order: Some(&order), ..ProgramLayout::in_turn(&bench.placement, &choices, bench.workspace) };
    let program = Program::new(&gpu, &calls, layout).unwrap();
    let scaled: Vec<Vec<f32>> = [0.5, 6.0, 10.0, 42.0].iter().map(|f| x.iter().map(|x| f * x).collect()).collect();
    let clear = || (1..5).for_each(|index| bench.put(index, &vec![f32::NAN; count]));
    clear();
    program.enqueue(0..5).unwrap();
    assert!((0..4).all(|index| bench.get(index + 1) == scaled[index]));
    clear();
    let graph = gpu.capture(|| program.enqueue(0..5)).unwrap();
    assert_eq!(graph.handles().unwrap().len(), 5);
    graph.launch().unwrap();
    assert!((0..4).all(|index| bench.get(index + 1) == scaled[index]));
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
    let program = bench.program(scale(&bench, 3.0, 1000), &Search::default());
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
    let program = bench.program(call.clone(), &Search::default());
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
    bench.run(scale(&bench, 2.0, 1000), &Search::default());
    assert_eq!(bench.get(1), numbers(1000, 1).iter().map(|x| 2.0 * x).collect::<Vec<f32>>());
}

#[test]
fn a_launch_that_does_not_fit_its_kernel_is_refused_before_it_runs() {
    let Some(gpu) = gpu() else { return };
    let bench = TestBuffers::new(&gpu, &[8, 8]);
    let Call::Launch(launch) = scale(&bench, 1.0, 8) else { unreachable!() };
    let wrong = Call::Launch(Launch { args: launch.args[..3].to_vec(), ..launch });
    let choices = BTreeMap::new();
    let layout = ProgramLayout::in_turn(&bench.placement, &choices, bench.workspace);
    let made = Program::new(&gpu, &[wrong], layout);
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
fn products_match_a_loop() {
    let Some(gpu) = gpu() else { return };
    let (m, n, k) = (17, 40, 24);
    let bench = TestBuffers::new(&gpu, &[m * k, k * n, m * n, n]);
    let (a, b, bias) = (numbers(m * k, 1), numbers(k * n, 2), numbers(n, 3));
    for (index, values) in [(0, &a), (1, &b), (3, &bias)] {
        bench.put(index, values);
    }
    let [sa, sb, sc, sbias] = [0, 1, 2, 3].map(|index| bench.slices[index]);
    for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
        for epilogue in [Epilogue::Nothing, Epilogue::Bias(sbias), Epilogue::BiasRelu(sbias)] {
            for math in [Math::Fp32, Math::Tf32] {
                let product = Product { element: Element::F32, math, m, n, k, transpose_a, transpose_b };
                bench.run(Call::Gemm(Gemm { product, a: sa, b: sb, c: sc, epilogue }), &Search::default());
                let expected = |at: usize| {
                    let (i, j) = (at / n, at % n);
                    let left = |l: usize| if transpose_a { a[l * m + i] } else { a[i * k + l] };
                    let right = |l: usize| if transpose_b { b[j * k + l] } else { b[l * n + j] };
                    let sum: f32 = (0..k).map(|l| left(l) * right(l)).sum();
                    match epilogue {
                        Epilogue::Nothing => sum,
                        Epilogue::Bias(_) => sum + bias[j],
                        Epilogue::BiasRelu(_) => (sum + bias[j]).max(0.0),
                    }
                };
                let expected: Vec<f32> = (0..m * n).map(expected).collect();
                assert_eq!(bench.get(2), expected, "{product:?} {epilogue:?}");
            }
        }
    }
}

/// Visits every product of a convolution: the places in x, w and y.
fn taps(c: &Convolution, mut visit: impl FnMut(usize, usize, usize)) {
    let (group_in, group_out) = (c.input.channels / c.groups, c.output.channels / c.groups);
    let [xs, ys] = [c.input.strides(), c.output.strides()];
    let weights = FeatureMaps {
        batch: c.output.channels,
        channels: group_in,
        height: c.kernel.height,
        width: c.kernel.width,
        ..c.input
    };
    let ws = weights.strides();
    for (n, k) in (0..c.input.batch).flat_map(|n| (0..c.output.channels).map(move |k| (n, k))) {
        for (p, q) in (0..c.output.height).flat_map(|p| (0..c.output.width).map(move |q| (p, q))) {
            for (r, s) in (0..c.kernel.height).flat_map(|r| (0..c.kernel.width).map(move |s| (r, s))) {
                let (h, w) = (p * c.stride.height + r, q * c.stride.width + s);
                let (Some(h), Some(w)) = (h.checked_sub(c.padding.height), w.checked_sub(c.padding.width)) else {
                    continue;
                };
                if h >= c.input.height || w >= c.input.width {
                    continue;
                }
                for channel in 0..group_in {
                    let from = k / group_out * group_in + channel;
                    visit(
                        n * xs[0] + from * xs[1] + h * xs[2] + w * xs[3],
                        k * ws[0] + channel * ws[1] + r * ws[2] + s * ws[3],
                        n * ys[0] + k * ys[1] + p * ys[2] + q * ys[3],
                    );
                }
            }
        }
    }
}

/// Every direction of a convolution against the loop, for one policy.
fn convolution_is_that_of_a_loop(gpu: &Gpu, convolution: &Convolution, policy: Policy) {
    let search = Search { policy, workspace_limit: 256 << 20, ..Search::default() };
    let counts =
        [convolution.input.count(), convolution.weights(), convolution.output.count(), convolution.output.channels];
    let bench = TestBuffers::new(gpu, &counts);
    let [x, w, y, bias] = [0, 1, 2, 3].map(|index| bench.slices[index]);
    let [xs, ws, ys, biases] = [0, 1, 2, 3].map(|index| numbers(counts[index], index));
    let tasks = [
        (ConvolutionKind::Forward, None, 2),
        (ConvolutionKind::ForwardBiasRelu, Some(bias), 2),
        (ConvolutionKind::BackwardData, None, 0),
        (ConvolutionKind::BackwardWeights, None, 1),
    ];
    for (kind, bias, output) in tasks {
        let task = ConvolutionTask { kind, x, w, y, bias };
        for (index, values) in [&xs, &ws, &ys, &biases].into_iter().enumerate() {
            let poison = vec![f32::NAN; values.len()];
            bench.put(index, if index == output { &poison } else { values });
        }
        bench.run(Call::Convolution(*convolution, task), &search);
        let mut expected = vec![0.0_f32; counts[output]];
        taps(convolution, |ix, iw, iy| match output {
            0 => expected[ix] += ws[iw] * ys[iy],
            1 => expected[iw] += xs[ix] * ys[iy],
            _ => expected[iy] += xs[ix] * ws[iw],
        });
        if task.kind == ConvolutionKind::ForwardBiasRelu {
            let [_, of_channel, _, _] = convolution.output.strides();
            let channel = |at: usize| at / of_channel % convolution.output.channels;
            for (at, value) in expected.iter_mut().enumerate() {
                *value = (*value + biases[channel(at)]).max(0.0);
            }
        }
        // Winograd's and Fourier's transforms of integers are not exact.
        let largest = expected.iter().fold(1.0_f32, |most, value| most.max(value.abs()));
        for (at, (got, wanted)) in bench.get(output).iter().zip(&expected).enumerate() {
            assert!((got - wanted).abs() <= 1e-3 * largest, "{task:?} at {at}: {got}, not {wanted}");
        }
    }
}

#[test]
fn convolutions_match_a_loop() {
    let Some(gpu) = gpu() else { return };
    for layout in [Layout::Nchw, Layout::Nhwc] {
        for (groups, stride, policy) in [(1, 1, Policy::Heuristic), (1, 2, Policy::Autotune), (4, 1, Policy::Heuristic)]
        {
            for math in [Math::Fp32, Math::Tf32] {
                let input = FeatureMaps { batch: 3, channels: 16, height: 12, width: 10, layout };
                let size = |input: usize| (input + 2 - 3) / stride + 1;
                let output = FeatureMaps { channels: 32, height: size(12), width: size(10), ..input };
                let stride = Extent::square(stride);
                let convolution = Convolution { math, stride, groups, ..Convolution::between(input, output, 3) };
                convolution_is_that_of_a_loop(&gpu, &convolution, policy.clone());
            }
        }
    }
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
