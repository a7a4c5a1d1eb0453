//! The calls of a training step: launches of our own kernels, convolutions and matrix products, on parts of buffers.
//!
//! All of it is plain data. A plan is a list of such calls, so the calls, their order and their memory can be read and
//! tested without a GPU; [`super::cuda`] turns each into one call of a library.

use super::element::{Element, Math};
use super::feature_maps::FeatureMaps;
use crate::network::Extent;

/// A buffer of a plan, by its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub usize);

/// A part of a buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    pub buffer: BufferId,
    pub offset: usize,
    pub bytes: usize,
}

impl Slice {
    /// `bytes` of this slice from its byte `offset` on.
    pub fn part(self, offset: usize, bytes: usize) -> Self {
        debug_assert!(offset + bytes <= self.bytes, "{offset} + {bytes} of {}", self.bytes);
        Self { buffer: self.buffer, offset: self.offset + offset, bytes }
    }
}

/// One argument of a kernel, in the type that the kernel's signature has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// A `const T*`: every byte of it may be read.
    Read(Slice),
    /// A `T*`: every byte of it is written, and none read before.
    Write(Slice),
    /// A `T*`: read, and written.
    Update(Slice),
    /// A null pointer, for an operand that is left out.
    Null,
    /// An `int`.
    I32(i32),
    /// A `long long`.
    I64(i64),
    /// An `unsigned long long`.
    U64(u64),
    /// A `float`.
    F32(f32),
}

/// A kernel by the operator that holds it (the folder's name in [`super::op`]), its name, and the element type that it is
/// compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kernel {
    pub operator: &'static str,
    pub name: &'static str,
    pub element: Element,
}

/// One launch of one of our kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub kernel: Kernel,
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    pub args: Vec<Arg>,
}

/// The sizes of a convolution (cross-correlation) as cuDNN takes them: padding the same on both sides. Weights are K x
/// (C / groups) x R x S in the layout of the feature maps: K, C, R, S for NCHW and K, R, S, C for NHWC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    pub element: Element,
    pub math: Math,
    /// The input maps.
    pub input: FeatureMaps,
    /// The output maps, of the same batch and layout.
    pub output: FeatureMaps,
    pub kernel: Extent,
    pub stride: Extent,
    /// Zeros above and below, left and right.
    pub padding: Extent,
    pub groups: usize,
}

impl Convolution {
    /// The number of weights.
    pub fn weights(&self) -> usize {
        self.output.channels * (self.input.channels / self.groups) * self.kernel.area()
    }
}

/// What a convolution computes, and on what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConvolutionTask {
    /// y = x * w.
    Forward { x: Slice, w: Slice, y: Slice },
    /// y = max(x * w + bias, 0): the bias is K numbers of the convolution's element type.
    ForwardBiasRelu { x: Slice, w: Slice, bias: Slice, y: Slice },
    /// dx from dy and w.
    BackwardData { dy: Slice, w: Slice, dx: Slice },
    /// dw from x and dy.
    BackwardWeights { x: Slice, dy: Slice, dw: Slice },
}

/// The kinds of [`ConvolutionTask`], without the memory: with a [`Convolution`] the key of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConvolutionKind {
    Forward,
    ForwardBiasRelu,
    BackwardData,
    BackwardWeights,
}

impl ConvolutionTask {
    /// The kind, without the memory.
    pub fn kind(&self) -> ConvolutionKind {
        match self {
            Self::Forward { .. } => ConvolutionKind::Forward,
            Self::ForwardBiasRelu { .. } => ConvolutionKind::ForwardBiasRelu,
            Self::BackwardData { .. } => ConvolutionKind::BackwardData,
            Self::BackwardWeights { .. } => ConvolutionKind::BackwardWeights,
        }
    }

    /// The slices that it reads, and the slice that it writes entirely.
    pub fn operands(&self) -> (Vec<Slice>, Slice) {
        match *self {
            Self::Forward { x, w, y } => (vec![x, w], y),
            Self::ForwardBiasRelu { x, w, bias, y } => (vec![x, w, bias], y),
            Self::BackwardData { dy, w, dx } => (vec![dy, w], dx),
            Self::BackwardWeights { x, dy, dw } => (vec![x, dy], dw),
        }
    }
}

/// What is done to a matrix product before it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Epilogue {
    Nothing,
    /// Adds `bias`, n numbers of the product's element type, to every row.
    Bias(Slice),
    /// The same, then max(., 0).
    BiasRelu(Slice),
}

/// The sizes of a matrix product, all matrices in row-major order: c (m x n) = a' b', where a' is `a` (m x k), or the
/// transpose of `a` (k x m) where `transpose_a`; b' is `b` (k x n), or the transpose of `b` (n x k) where
/// `transpose_b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub element: Element,
    pub math: Math,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub transpose_a: bool,
    pub transpose_b: bool,
}

/// A matrix product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemm {
    pub product: Product,
    pub a: Slice,
    pub b: Slice,
    pub c: Slice,
    pub epilogue: Epilogue,
}

/// One call on the device.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    Launch(Launch),
    Convolution(Convolution, ConvolutionTask),
    Gemm(Gemm),
    /// Every byte becomes 0.
    Zero(Slice),
}

impl Call {
    /// The slices whose earlier content it reads.
    pub fn reads(&self) -> Vec<Slice> {
        match self {
            Self::Launch(launch) => launch.slices(|arg| matches!(arg, Arg::Read(_) | Arg::Update(_))),
            Self::Convolution(_, task) => task.operands().0,
            Self::Gemm(Gemm { a, b, epilogue, .. }) => match epilogue {
                Epilogue::Nothing => vec![*a, *b],
                Epilogue::Bias(bias) | Epilogue::BiasRelu(bias) => vec![*a, *b, *bias],
            },
            Self::Zero(_) => Vec::new(),
        }
    }

    /// The slices that it writes.
    pub fn writes(&self) -> Vec<Slice> {
        match self {
            Self::Launch(launch) => launch.slices(|arg| matches!(arg, Arg::Write(_) | Arg::Update(_))),
            Self::Convolution(_, task) => vec![task.operands().1],
            Self::Gemm(Gemm { c, .. }) => vec![*c],
            Self::Zero(slice) => vec![*slice],
        }
    }
}

#[cfg(test)]
impl Call {
    /// The same call on other memory.
    pub fn moved(&self, place: &mut dyn FnMut(Slice) -> Slice) -> Self {
        let mut call = self.clone();
        match &mut call {
            Self::Launch(launch) => launch.args.iter_mut().for_each(|arg| {
                if let Arg::Read(slice) | Arg::Write(slice) | Arg::Update(slice) = arg {
                    *slice = place(*slice);
                }
            }),
            Self::Convolution(_, task) => {
                let slices = match task {
                    ConvolutionTask::Forward { x, w, y } => vec![x, w, y],
                    ConvolutionTask::ForwardBiasRelu { x, w, bias, y } => vec![x, w, bias, y],
                    ConvolutionTask::BackwardData { dy, w, dx } => vec![dy, w, dx],
                    ConvolutionTask::BackwardWeights { x, dy, dw } => vec![x, dy, dw],
                };
                slices.into_iter().for_each(|slice| *slice = place(*slice));
            }
            Self::Gemm(Gemm { a, b, c, epilogue, .. }) => {
                [a, b, c].into_iter().for_each(|slice| *slice = place(*slice));
                if let Epilogue::Bias(bias) | Epilogue::BiasRelu(bias) = epilogue {
                    *bias = place(*bias);
                }
            }
            Self::Zero(slice) => *slice = place(*slice),
        }
        call
    }
}

impl Launch {
    fn slices(&self, wanted: impl Fn(&Arg) -> bool) -> Vec<Slice> {
        let slice = |arg: &Arg| match *arg {
            Arg::Read(slice) | Arg::Write(slice) | Arg::Update(slice) => Some(slice),
            _ => None,
        };
        self.args.iter().filter(|arg| wanted(arg)).filter_map(slice).collect()
    }
}
