//! The sizes of one convolution, and of the matrix product that computes it.

use crate::engine::cpu::blocking::{Blocking, Factors};
use crate::error::{Error, Result};
use crate::network::{Conv2d, Extent, Padding};

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
    /// Checks that input, weights and parameters belong together.
    ///
    /// # Errors
    /// Says which two numbers do not fit.
    pub fn new(x: &[usize], weight: &[usize], p: &Conv2d) -> Result<Self> {
        let &[batch, in_channels, height, width] = x else {
            return Err(Error::engine(format!(
                "conv2d: the input needs 4 axes (batch, channels, height, width), got {x:?}"
            )));
        };
        if batch == 0 || in_channels == 0 {
            return Err(Error::engine(format!("conv2d: the batch is empty (shape {x:?})")));
        }
        if p.groups == 0
            || !in_channels.is_multiple_of(p.groups)
            || !p.out_channels.is_multiple_of(p.groups)
            || p.out_channels == 0
        {
            return Err(Error::engine(format!(
                "conv2d: {in_channels} and {} channels do not split into {} groups",
                p.out_channels, p.groups
            )));
        }
        let expected = [p.out_channels, in_channels / p.groups, p.kernel.height, p.kernel.width];
        if weight != expected {
            return Err(Error::engine(format!("conv2d: the weights must be {expected:?}, got {weight:?}")));
        }
        let pad = p.padding;
        let (Some(out_height), Some(out_width)) = (
            output_size(height + pad.top + pad.bottom, p.kernel.height, p.stride.height),
            output_size(width + pad.left + pad.right, p.kernel.width, p.stride.width),
        ) else {
            return Err(Error::engine(format!(
                "conv2d: a {} kernel with stride {} does not fit on the padded {x:?}",
                p.kernel, p.stride
            )));
        };
        Ok(Self {
            batch,
            in_channels,
            height,
            width,
            out_channels: p.out_channels,
            out_height,
            out_width,
            kernel: p.kernel,
            stride: p.stride,
            padding: pad,
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
        if self.kernel != Extent::square(1) || self.stride != Extent::square(1) || self.padding != Padding::default() {
            return self;
        }
        let pixels = self.height * self.width;
        Self { height: 1, width: pixels, out_height: 1, out_width: pixels, ..self }
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

/// How many windows fit on a padded axis; `None` where none does.
fn output_size(padded: usize, kernel: usize, stride: usize) -> Option<usize> {
    if kernel == 0 || stride == 0 { None } else { Some(padded.checked_sub(kernel)? / stride + 1) }
}
