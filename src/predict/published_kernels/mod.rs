//! Published times of GPU kernels, and how well the mechanisms explain them: how well the times follow from the grids
//! ([`validation`]), and what they predict for a network ([`forecast`]). `examples/tables/published_check.rs` counts the grids that equal those of the formulas.
//!
//! The data: NeuSight (github.com/sitar-lab/NeuSight, MIT licence; Lee et al., ASPLOS 2025), about 5,000 random forward convolutions of
//! 3 x 3 taps and stride 1 on each of five GPUs, and 6,500 dense layers; float32 without TF32, PyTorch 2.1, cuDNN 8.9.2 with
//! `benchmark = True`, so that only the fastest kernel of each layer is known. A time is the mean of the 5 fastest of 25 calls.
//! `scripts/fetch-published` fetches them.

pub mod forecast;
pub mod model;
#[cfg(test)]
mod tests;
pub mod validation;

use std::path::Path;

use crate::analysis::mechanisms::formulas::{Kernel, KnownOperation, LayerSizes};
use crate::error::{Error, Result, nearest};
use crate::os::look;
use crate::predict::called;
use crate::store::Table;

/// Where `scripts/fetch-published` writes by default.
pub const PATH: &str = "results/published/kernels.parquet";

/// The manufacturer's figures of a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuFigures {
    /// As its driver names it.
    pub name: String,
    pub multiprocessors: usize,
    /// Float32, without tensor cores.
    pub flops_per_s: f64,
    pub bytes_per_s: f64,
    /// The second-level cache.
    pub l2_bytes: usize,
}

/// One layer at one batch size, with the kernel that computed it.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerLaunch {
    /// The place of its GPU in [`Published::gpus`].
    pub gpu: usize,
    pub layer: LayerSizes,
    pub batch: usize,
    /// `None` where no formula knows it.
    pub kernel: Option<Kernel>,
    /// Blocks along x, y and z.
    pub grid: [usize; 3],
    pub time_s: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    pub gpus: Vec<GpuFigures>,
    pub launches: Vec<LayerLaunch>,
}

impl Published {
    /// Reads the table that `scripts/fetch-published` writes.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where it is not there, or lacks a column, or holds what is not a size.
    pub fn read(path: &Path) -> Result<Self> {
        if !look::is_file(path)? {
            return Err(Error::data("the published kernel times are not there")
                .at(path.display().to_string())
                .hint("fetch them with `scripts/fetch-published`, or name the file with `--data PATH`"));
        }
        let table = Table::read(path, &COLUMNS.concat())?;
        Self::from_table(&table).map_err(|error| error.at(path.display().to_string()))
    }

    fn from_table(table: &Table) -> Result<Self> {
        let [names, operations, kernels, all_kernels] = array(TEXTS, |name| table.texts(name))?;
        let numbers = array(NUMBERS, |name| table.numbers(name))?;
        let mut published = Self::default();
        for row in 0..table.rows() {
            let value = |column: usize| numbers[column][row];
            let size = |column: usize| match value(column) {
                number if number >= 1.0 && number.fract() == 0.0 && number < 1e9 => Ok(number as usize),
                number => Err(Error::data(format!(
                    "`{}` of row {} is {number}, which is not a size",
                    NUMBERS[column],
                    row + 1
                ))),
            };
            let [multiprocessors, batch, inputs, outputs, height, width] = array([0, 3, 4, 5, 6, 7], size)?;
            let window = [value(8), value(9), value(10)];
            let product = match operations[row].as_str() {
                "conv2d" if window == [3.0, 1.0, 1.0] => KnownOperation::Convolution3x3,
                "dense" => KnownOperation::Dense,
                _ => continue,
            };
            let (name, flops_per_s, bytes_per_s) = (names[row].clone(), value(1), value(2));
            let gpu = GpuFigures { name, multiprocessors, flops_per_s, bytes_per_s, l2_bytes: size(15)? };
            let grid = array([11, 12, 13], size)?;
            let kernel = Kernel::of(product, &kernels[row], &all_kernels[row]);
            let layer = LayerSizes { product, inputs, outputs, height, width };
            let time_s = value(14);
            if !(time_s > 0.0 && gpu.flops_per_s > 0.0 && gpu.bytes_per_s > 0.0) {
                return Err(Error::data(format!("row {} has no time, or its GPU no rates", row + 1)));
            }
            let gpu = published.place_of(gpu);
            published.launches.push(LayerLaunch { gpu, layer, batch, kernel, grid, time_s });
        }
        match published.launches.is_empty() {
            true => Err(Error::data("no row is a 3x3 convolution with stride 1, or a dense layer")),
            false => Ok(published),
        }
    }

    fn place_of(&mut self, gpu: GpuFigures) -> usize {
        // Rows of one GPU follow each other.
        self.gpus.iter().rposition(|known| *known == gpu).unwrap_or_else(|| {
            self.gpus.push(gpu);
            self.gpus.len() - 1
        })
    }

    /// The place of the GPU that `asked` names: by its whole name, or by a part of it, in any case, that only one has: `t4`, `v100`.
    /// Only GPUs with convolutions count.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where none or several have it, with those that there are.
    pub fn find(&self, asked: &str) -> Result<usize> {
        let convolves = |&place: &usize| {
            self.launches.iter().any(|l| l.gpu == place && l.layer.product == KnownOperation::Convolution3x3)
        };
        let places: Vec<usize> = (0..self.gpus.len()).filter(convolves).collect();
        let names: Vec<&str> = places.iter().map(|&place| self.gpus[place].name.as_str()).collect();
        let found = called(&names, asked);
        if let [one] = found[..] {
            return Ok(places[one]);
        }
        let words: Vec<&str> = names.iter().flat_map(|name| name.split([' ', '-'])).collect();
        let what = if found.is_empty() { "no GPU" } else { "more than one GPU" };
        let error = Error::spec(format!(
            "{what} with published convolutions is called `{asked}`; there are: {}",
            names.join(", ")
        ));
        Err(match nearest(asked, &words).filter(|_| found.is_empty()) {
            Some(near) => error.hint(format!("did you mean `{}`?", near.to_lowercase())),
            None => error.hint("name one of them, or measure your own GPU: `batchstep run experiments/vgg16.toml`"),
        })
    }
}

/// The columns of the table.
const TEXTS: [&str; 4] = ["device_name", "operation", "kernel", "kernels"];
const NUMBERS: [&str; 16] = [
    "multiprocessors",
    "flops_per_s",
    "bytes_per_s",
    "batch_size",
    "in_channels",
    "out_channels",
    "height",
    "width",
    "kernel_size",
    "stride",
    "padding",
    "grid_x",
    "grid_y",
    "grid_z",
    "time_s",
    "l2_bytes",
];
const COLUMNS: [&[&str]; 2] = [&TEXTS, &NUMBERS];

/// `of` each element, up to the first error.
fn array<A: Copy, B, const N: usize>(from: [A; N], of: impl Fn(A) -> Result<B>) -> Result<[B; N]> {
    let all: Vec<B> = from.into_iter().map(of).collect::<Result<_>>()?;
    all.try_into().map_err(|_| Error::data("an array changed its length"))
}
