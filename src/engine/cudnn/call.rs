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
    pub const fn new(buffer: usize, offset: usize, bytes: usize) -> Self {
        Self { buffer: BufferId(buffer), offset, bytes }
    }

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
    pub fn weights(&self) -> usize {
        self.output.channels * (self.input.channels / self.groups) * self.kernel.area()
    }
}

#[cfg(test)]
impl Convolution {
    /// In strict float32, by square filters of that side, whose padding would keep the size with a stride of 1.
    pub fn between(input: FeatureMaps, output: FeatureMaps, side: usize) -> Self {
        let [kernel, padding] = [side, side / 2].map(Extent::square);
        let stride = Extent::new(input.height.div_ceil(output.height), input.width.div_ceil(output.width));
        Self { element: Element::F32, math: Math::Fp32, input, output, kernel, stride, padding, groups: 1 }
    }
}

/// What a convolution computes, and on what: in a backward pass x or w, which is written, and y are gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvolutionTask {
    pub kind: ConvolutionKind,
    pub x: Slice,
    pub w: Slice,
    pub y: Slice,
    /// K numbers of the convolution's element type.
    pub bias: Option<Slice>,
}

/// With a [`Convolution`] the key of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConvolutionKind {
    /// y = x * w.
    Forward,
    /// y = max(x * w + bias, 0).
    ForwardBiasRelu,
    /// dx from dy and w.
    BackwardData,
    /// dw from x and dy.
    BackwardWeights,
}

impl ConvolutionTask {
    /// The slices that it reads, and the slice that it writes entirely.
    pub fn operands(&self) -> (Vec<Slice>, Slice) {
        let Self { kind, x, w, y, bias } = *self;
        match kind {
            ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => {
                ([x, w].into_iter().chain(bias).collect(), y)
            }
            ConvolutionKind::BackwardData => (vec![y, w], x),
            ConvolutionKind::BackwardWeights => (vec![x, y], w),
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

#[cfg(test)]
impl Product {
    /// That of a dense layer, with float32 numbers rounded to tf32.
    pub fn plain(m: usize, n: usize, k: usize) -> Self {
        Self { element: Element::F32, math: Math::Tf32, m, n, k, transpose_a: false, transpose_b: true }
    }
}

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
            Self::Convolution(_, ConvolutionTask { x, w, y, bias, .. }) => {
                [x, w, y].into_iter().chain(bias).for_each(|slice| *slice = place(*slice));
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
