//! The highest rates that the GPU reaches: a large matrix product in the precision of a step, and a copy within its
//! memory.

use super::call::{Call, Epilogue, Gemm, Product, Slice};
use super::cuda::{Gpu, Memory, Placement, Program, ProgramLayout, Range, StreamId, product};
use super::element::{Element, Math};
use super::feature_maps::FeatureMaps;
use super::op::initial::inputs;
use crate::engine::Peaks;
use crate::error::Result;
use crate::settings::{Layout, Precision};

/// Rows and columns of the product: 1.1 TFLOP.
const SIDE: usize = 8192;
/// Runs between two events, and how often they are timed: the best time counts.
const RUNS: usize = 5;
const TRIALS: usize = 3;

/// Bytes of each matrix.
fn matrix_bytes(element: Element) -> usize {
    SIDE * SIDE * element.bytes()
}

/// The device memory that [`measure`] needs.
pub fn bytes(precision: Precision) -> u64 {
    3 * matrix_bytes(Element::of(precision)) as u64 + product::WORKSPACE
}

/// Measures both on `memory`, with random numbers: a product of zeros draws less power, so that the GPU clocks higher.
pub fn measure(gpu: &Gpu, memory: &Memory, precision: Precision) -> Result<Peaks> {
    let element = Element::of(precision);
    let bytes = matrix_bytes(element);
    let place = |number: u64| (number * bytes as u64, bytes as u64);
    let placement = Placement::in_arena(memory.address(), &[place(0), place(1), place(2)]);
    let workspace = Range { address: memory.address() + place(3).0, bytes: product::WORKSPACE };
    let choices = Default::default();
    let layout = ProgramLayout::in_turn(&placement, &choices, workspace);

    let matrices = calls(element, Math::of(precision), bytes);
    let program = Program::new(gpu, &matrices, layout)?;
    let last = program.len() - 1;
    program.enqueue(0..last)?;
    let product = best(gpu, || program.enqueue(last..last + 1))?;
    let copy = best(gpu, || gpu.enqueue_within_device(memory.address() + bytes as u64, memory.address(), bytes))?;
    Ok(Peaks { flops_per_s: 2.0 * (SIDE as f64).powi(3) / product, bytes_per_s: 2.0 * bytes as f64 / copy })
}

/// Two random matrices, and their product.
fn calls(element: Element, math: Math, bytes: usize) -> Vec<Call> {
    let [a, b, c] = [0, 1, 2].map(|number| Slice::new(number, 0, bytes));
    let maps = FeatureMaps { batch: 1, channels: 1, height: SIDE, width: SIDE, layout: Layout::Nchw };
    let sizes = Product { element, math, m: SIDE, n: SIDE, k: SIDE, transpose_a: false, transpose_b: true };
    let [first, second] = [(a, 1), (b, 2)].map(|(dst, key)| Call::Launch(inputs(element, maps, dst, key)));
    vec![first, second, Call::Gemm(Gemm { product: sizes, a, b, c, epilogue: Epilogue::Nothing })]
}

/// Seconds of one run of `enqueue`, by events.
fn best(gpu: &Gpu, enqueue: impl Fn() -> Result<()>) -> Result<f64> {
    let (start, end) = (gpu.event()?, gpu.event()?);
    enqueue()?;
    let mut best = f64::INFINITY;
    for _ in 0..TRIALS {
        start.record(StreamId::Compute)?;
        (0..RUNS).try_for_each(|_| enqueue())?;
        end.record(StreamId::Compute)?;
        end.wait()?;
        best = best.min(end.seconds_since(&start)? / RUNS as f64);
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::arena::{Arena, Buffer, Life, check};

    #[test]
    fn the_matrices_are_written_before_they_are_multiplied() {
        let bytes = matrix_bytes(Element::Bf16);
        let calls = calls(Element::Bf16, Math::Half, bytes);
        let buffers = [Buffer { bytes, life: Life::Step }; 3];
        let arena = Arena::new(&buffers, check::in_turn(&calls));
        assert_eq!(check::problems(&buffers, check::in_turn(&calls), &arena), Vec::<String>::new());
        assert!(matches!(calls.last(), Some(Call::Gemm(_))));
        assert_eq!(super::bytes(Precision::Bf16), 3 * (2 << 26) + (32 << 20));
    }
}
