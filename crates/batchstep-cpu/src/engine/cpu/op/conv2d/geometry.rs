//! The sizes of one convolution, and of the matrix product that computes it.

use crate::engine::cpu::blocking::{Blocking, Factors};
use crate::error::{Error, Result};
use crate::network::{Conv2d, Extent, Operation, Padding, Shape};

/// A convolution of known shapes. As a matrix product, for each group: `output (M x N) = weights (M x K) * columns
/// (K x N)`, where a column holds the input values under the kernel at one output position of one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub batch: usize,
    pub in_channels: usize,
    pub height: usize,
    pub width: usize,
    pub out_channels: usize,
    pub out_height: usize,
    pub out_width: usize,
    pub kernel: Extent,
    pub stride: Extent,
    pub padding: Padding,
    pub groups: usize,
    pub blocking: Blocking,
}

impl Geometry {
    /// The convolution `p` of a batch of maps.
    ///
    /// # Errors
    /// As [`Operation::output`], and where the batch is empty.
    pub fn new(batch: usize, input: Shape, p: &Conv2d) -> Result<Self> {
        if batch == 0 {
            return Err(Error::engine("conv2d: the batch is empty"));
        }
        let output = Operation::from(*p).output(&[input])?.extent();
        let Extent { height, width } = input.extent();
        Ok(Self {
            batch,
            in_channels: input.channels(),
            height,
            width,
            out_channels: p.out_channels,
            out_height: output.height,
            out_width: output.width,
            kernel: p.kernel,
            stride: p.stride,
            padding: p.padding,
            groups: p.groups,
            blocking: Blocking::default(),
        })
    }

    /// What products round their factors to.
    pub fn factors(&self) -> Factors {
        self.blocking.factors(self.columns())
    }

    /// Images that Winograd's algorithm works on: the batch, padded as the settings say.
    pub fn winograd_images(&self) -> usize {
        self.blocking.winograd_images(self.batch)
    }

    /// The same convolution with all pixels in one row, where that is possible: a 1x1 kernel reads no neighbours, and
    /// longer rows are quicker to copy.
    pub fn flattened(self) -> Self {
        if !self.is_pointwise() {
            return self;
        }
        let pixels = self.height * self.width;
        Self { height: 1, width: pixels, out_height: 1, out_width: pixels, ..self }
    }

    /// One tap, which reads each pixel once.
    pub fn is_pointwise(&self) -> bool {
        [self.kernel, self.stride] == [Extent::square(1); 2] && self.padding == Padding::default()
    }

    /// All channels have a filter in common, which goes on by one pixel at a time and never lies beside the image.
    pub fn is_dense(&self) -> bool {
        let Padding { top, bottom, left, right } = self.padding;
        self.groups == 1
            && self.stride == Extent::square(1)
            && top.max(bottom) < self.kernel.height
            && left.max(right) < self.kernel.width
    }

    /// Every channel has its own filter.
    pub fn is_depthwise(&self) -> bool {
        self.groups == self.in_channels && self.groups == self.out_channels
    }

    pub fn taps(&self) -> usize {
        self.kernel.area()
    }

    pub fn group_in(&self) -> usize {
        self.in_channels / self.groups
    }

    pub fn group_out(&self) -> usize {
        self.out_channels / self.groups
    }

    /// K: the length of a filter.
    pub fn depth(&self) -> usize {
        self.group_in() * self.taps()
    }

    /// Output positions in one image.
    pub fn positions(&self) -> usize {
        self.out_height * self.out_width
    }

    /// N: output positions in the batch.
    pub fn columns(&self) -> usize {
        self.batch * self.positions()
    }

    pub fn input_len(&self) -> usize {
        self.batch * self.in_channels * self.height * self.width
    }

    pub fn output_len(&self) -> usize {
        self.out_channels * self.columns()
    }

    pub fn weight_len(&self) -> usize {
        self.out_channels * self.depth()
    }
}
