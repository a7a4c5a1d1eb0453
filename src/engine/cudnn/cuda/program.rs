//! The calls of a plan, made ready: every address, descriptor, algorithm and argument exists before the first step, so
//! that enqueueing a call is one call of a library.

use std::collections::BTreeMap;
use std::ops::Range;

use super::api::driver as sys;

use super::argument::Arguments;
use super::convolution::{self, Choice, Operands};
use super::device::{Gpu, StreamId};
use super::event::Event;
use super::execution::Execution;
use super::module::Function;
use super::placement::{self, Placement};
use super::{product, status};
use crate::engine::cudnn::call::{Call, Launch};
use crate::engine::cudnn::kernels::Launched;
use crate::engine::cudnn::order::{Order, StepStream};
use crate::error::{Error, Result};

/// What a program is made from, besides the calls.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLayout<'a> {
    pub placement: &'a Placement,
    /// The algorithm of each convolution, by the index of its call.
    pub choices: &'a BTreeMap<usize, Choice>,
    /// The memory that the convolutions and products of a stream use while they run, one after another; one range for the
    /// main stream and one for the side stream.
    pub workspaces: [placement::Range; 2],
    /// Which calls are on which stream, and what they wait for; `None`: one after the other.
    pub order: Option<&'a Order>,
}

impl<'a> ProgramLayout<'a> {
    /// Calls one after the other, with one workspace.
    pub fn in_turn(
        placement: &'a Placement,
        choices: &'a BTreeMap<usize, Choice>,
        workspace: placement::Range,
    ) -> Self {
        Self { placement, choices, workspaces: [workspace, placement::Range::default()], order: None }
    }

    fn stream(&self, index: usize) -> StepStream {
        self.order.map_or(StepStream::Main, |order| order.0[index].stream)
    }
}

/// A plan's calls on one GPU.
#[derive(Debug)]
pub struct Program {
    gpu: Gpu,
    calls: Vec<ReadyCall>,
    /// By call: recorded when it is done, where a call of the other stream waits for it.
    signals: BTreeMap<usize, Event>,
    /// Recorded when the side stream has finished, where it is used.
    join: Option<Event>,
}

#[derive(Debug)]
struct ReadyCall {
    work: BoundCall,
    execution: Execution,
    stream: StreamId,
    /// The call of the other stream that must finish before.
    waits: Option<usize>,
}

#[derive(Debug)]
enum BoundCall {
    Kernel(Box<Prepared>),
    Convolution(convolution::BoundConvolution),
    Product(Box<product::BoundProduct>),
    Zero { address: u64, bytes: u64 },
}

/// A launch with its function and its arguments.
#[derive(Debug)]
struct Prepared {
    function: Function,
    arguments: Arguments,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
}

impl Program {
    /// Makes calls ready. Kernels are compiled, or taken from the cache, and loaded.
    pub fn new(gpu: &Gpu, calls: &[Call], layout: ProgramLayout) -> Result<Self> {
        gpu.bind()?;
        let modules = calls.iter().filter_map(|call| match call {
            Call::Launch(launch) => Some((launch.kernel.operator, launch.kernel.element)),
            _ => None,
        });
        gpu.shared.modules.borrow_mut().load(&modules.collect())?;
        let made = |(index, call): (usize, &Call)| {
            ready_call(gpu, index, call, layout)
                .map_err(|error| error.at(format!("call {index} of the step: {}", title(call))))
        };
        let calls = calls.iter().enumerate().map(made).collect::<Result<Vec<ReadyCall>>>()?;
        let awaited = calls.iter().filter_map(|call| call.waits);
        let signals = awaited.map(|index| Ok((index, gpu.signal()?))).collect::<Result<_>>()?;
        let forks = calls.iter().any(|call| call.stream == StreamId::Side);
        let join = forks.then(|| gpu.signal()).transpose()?;
        Ok(Self { gpu: gpu.clone(), calls, signals, join })
    }

    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Starts some of the calls, each on its stream. Later work on the compute stream waits for all of them.
    pub fn enqueue(&self, range: Range<usize>) -> Result<()> {
        let mut apart = false;
        let started = self.start_each(range, &mut apart);
        let Some(join) = self.join.as_ref().filter(|_| apart) else { return started };
        // Also after a failure: the memory that the side stream still uses may be reused.
        started.and(join.note(StreamId::Side).and_then(|()| join.hold(StreamId::Compute)))
    }

    fn start_each(&self, range: Range<usize>, apart: &mut bool) -> Result<()> {
        for (index, call) in range.clone().zip(self.calls(range)?) {
            *apart |= call.stream == StreamId::Side;
            if let Some(signal) = call.waits.and_then(|other| self.signals.get(&other)) {
                signal.hold(call.stream)?;
            }
            self.start(index, call, call.stream)?;
            if let Some(signal) = self.signals.get(&index) {
                signal.note(call.stream)?;
            }
        }
        Ok(())
    }

    /// Starts some of the calls one after another, all on the compute stream, and calls `before` ahead of each, for
    /// example to record an event.
    pub fn enqueue_each(&self, range: Range<usize>, mut before: impl FnMut(usize) -> Result<()>) -> Result<()> {
        for (index, call) in range.clone().zip(self.calls(range)?) {
            before(index)?;
            self.start(index, call, StreamId::Compute)?;
        }
        Ok(())
    }

    /// Executes a single call and waits for it; the library's message where it is refused, after which the GPU works as
    /// before.
    ///
    /// # Errors
    /// [`crate::error::Kind::OutOfMemory`] where it needs more memory than there is; [`crate::error::Kind::Engine`]
    /// where the GPU no longer works.
    pub fn attempt(&self, index: usize) -> Result<Option<String>> {
        self.gpu.synchronize(StreamId::Compute)?;
        let started = self.enqueue_each(index..index + 1, |_| Ok(()));
        self.gpu.synchronize(StreamId::Compute)?;
        match started {
            Ok(()) => Ok(None),
            Err(error) if error.is_out_of_memory() => Err(error),
            Err(error) => Ok(Some(error.clause())),
        }
    }

    fn calls(&self, range: Range<usize>) -> Result<&[ReadyCall]> {
        let beyond = || Error::engine(format!("calls {range:?} of a step of {}", self.calls.len()));
        self.calls.get(range.clone()).ok_or_else(beyond)
    }

    /// How a call is executed; `None` past the last.
    pub fn execution(&self, index: usize) -> Option<&Execution> {
        self.calls.get(index).map(|call| &call.execution)
    }

    /// The kernels that a call launches, found by capturing the call, so that nothing runs; every call must have run
    /// once before. `None` where the driver does not report them, or the call cannot be captured.
    ///
    /// It costs as much as enqueueing the call, and a few queries of the driver for each kernel: 2 to 8 ms for all
    /// calls of a step of VGG16, MobileNet or ResNet50 (83 to 362 calls) in the host code of cuDNN 9.19, without a GPU.
    pub fn kernels(&self, index: usize) -> Option<Vec<Launched>> {
        self.gpu.make_current().ok()?;
        let start = || self.enqueue_each(index..index + 1, |_| Ok(()));
        match self.gpu.record(start) {
            Ok(graph) => graph.kernels(self.gpu.properties().multiprocessors),
            Err(_) => {
                // CUDA's runtime inside a library may keep the error that made the capture fail and return it at its
                // next call. That should be this call, whose result is ignored, rather than a call of a step.
                let _ = start();
                let _ = self.gpu.synchronize(StreamId::Compute);
                None
            }
        }
    }

    fn start(&self, index: usize, call: &ReadyCall, id: StreamId) -> Result<()> {
        let started = match &call.work {
            BoundCall::Kernel(prepared) => prepared.launch(self.gpu.stream(id)),
            BoundCall::Convolution(bound) => bound.enqueue(&self.gpu, id),
            BoundCall::Product(bound) => bound.enqueue(&self.gpu, id),
            BoundCall::Zero { address, bytes } => self.gpu.enqueue_fill(id, *address, 0, *bytes),
        };
        started.map_err(|error| error.at(format!("call {index} of the step, {}", call.execution.algorithm)))
    }
}

impl Prepared {
    fn launch(&self, stream: sys::CUstream) -> Result<()> {
        let Self { function, arguments, grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes } = self;
        let (function, values, none) = (function.handle, arguments.pointers(), std::ptr::null_mut());
        // SAFETY: the function is loaded; the arguments live and were checked against its parameters where the driver
        // reports them; they point to memory of the plan.
        let answer =
            unsafe { sys::cuLaunchKernel(function, *gx, *gy, *gz, *bx, *by, *bz, *shared_bytes, stream, values, none) };
        status::driver("launch a kernel", answer)
    }
}

fn ready_call(gpu: &Gpu, index: usize, call: &Call, layout: ProgramLayout) -> Result<ReadyCall> {
    let ProgramLayout { placement, choices, workspaces, order } = layout;
    let (workspace, stream) = match layout.stream(index) {
        StepStream::Main => (workspaces[0], StreamId::Compute),
        StepStream::Side => (workspaces[1], StreamId::Side),
    };
    let mut execution = Execution { algorithm: title(call), workspace_bytes: 0, math_mode: None, remark: None };
    let work = match call {
        Call::Launch(launch) => BoundCall::Kernel(Box::new(prepare(gpu, launch, placement)?)),
        Call::Convolution(convolution, task) => {
            let Some(choice) = choices.get(&index) else {
                return Err(Error::engine("no algorithm was chosen for this convolution"));
            };
            enough(choice.workspace_bytes(), workspace.bytes)?;
            execution = Execution {
                algorithm: choice.algorithm.to_string(),
                workspace_bytes: choice.workspace_bytes(),
                math_mode: Some(choice.math_mode()),
                remark: choice.remark.clone(),
            };
            let operands = Operands::of(convolution, task, placement)?;
            BoundCall::Convolution(choice.executable.bind(operands, workspace.address)?)
        }
        Call::Gemm(gemm) => {
            let (bound, executed) = gpu.product(gemm, placement, workspace)?;
            execution = executed;
            BoundCall::Product(Box::new(bound))
        }
        Call::Zero(slice) => BoundCall::Zero { address: placement.resolve(*slice)?, bytes: slice.bytes as u64 },
    };
    Ok(ReadyCall { work, execution, stream, waits: order.and_then(|order| order.0[index].wait) })
}

fn prepare(gpu: &Gpu, launch: &Launch, placement: &Placement) -> Result<Prepared> {
    let function = gpu.shared.modules.borrow().function(launch.kernel, launch.shared_bytes)?;
    let arguments = Arguments::new(&launch.args, |slice| placement.resolve(slice))?;
    function.check(launch, &arguments)?;
    let Launch { grid, block, shared_bytes, .. } = *launch;
    Ok(Prepared { function, arguments, grid, block, shared_bytes })
}

fn enough(wanted: u64, given: u64) -> Result<()> {
    match wanted <= given {
        true => Ok(()),
        false => Err(Error::engine(format!("its algorithm needs a workspace of {wanted} bytes; the step has {given}"))),
    }
}

fn title(call: &Call) -> String {
    match call {
        Call::Launch(launch) => format!("kernel:{}/{}", launch.kernel.operator, launch.kernel.name),
        Call::Convolution(convolution, task) => {
            let (n, c) = (convolution.input.batch, convolution.input.channels);
            let (k, kernel) = (convolution.output.channels, convolution.kernel);
            format!("{:?} of a convolution {c} -> {k}, {kernel}, batch {n}", task.kind)
        }
        Call::Gemm(gemm) => {
            let product = &gemm.product;
            format!("product {} x {} x {}, {:?}", product.m, product.n, product.k, product.math)
        }
        Call::Zero(_) => "memset".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::call::{Epilogue, Gemm};
    use crate::engine::cudnn::call::{Kernel, Product, Slice};
    use crate::engine::cudnn::element::Element;

    #[test]
    fn calls_have_titles_with_their_sizes() {
        let slice = Slice::new(0, 0, 4);
        let kernel = Kernel { operator: "max_pool2d", name: "forward", element: Element::F32 };
        let launch = Launch { kernel, grid: [1; 3], block: [1; 3], shared_bytes: 0, args: Vec::new() };
        assert_eq!(title(&Call::Launch(launch)), "kernel:max_pool2d/forward");
        let product = Product::plain(64, 4096, 25_088);
        let gemm = Gemm { product, a: slice, b: slice, c: slice, epilogue: Epilogue::Nothing };
        assert_eq!(title(&Call::Gemm(gemm)), "product 64 x 4096 x 25088, Tf32");
        assert_eq!(title(&Call::Zero(slice)), "memset");
    }

    #[test]
    fn a_workspace_that_is_too_small_is_reported_in_bytes() {
        assert!(enough(5, 5).is_ok());
        assert!(enough(6, 5).unwrap_err().to_string().contains("needs a workspace of 6 bytes; the step has 5"));
    }
}
