//! Compares the CPU engine's matrix product with that of the crate `gemm`, on one thread, in turns: for the shapes of a
//! training step's products, the shortest of some rounds. If the processor multiplies bfloat16, our bfloat16 product is
//! measured as well.
//!
//! `cargo bench --bench product [-- PART_OF_A_NAME]`

use std::time::Instant;

use batchstep::engine::cpu::op::product::{Factors, Matrix, MatrixMut, Write, bf16, multiply};

const ROUNDS: usize = 20;
/// About how many operations a timed repetition has.
const FLOP: f64 = 3e8;

/// `target += a b`, with the distances of the rows of both sides in memory; a side may be the transpose of the stored
/// matrix.
struct Shape {
    name: &'static str,
    rows: usize,
    columns: usize,
    inner: usize,
    turned: [bool; 2],
    strides: [usize; 2],
}

const fn shape(
    name: &'static str,
    [rows, columns, inner]: [usize; 3],
    turned: [bool; 2],
    strides: [usize; 2],
) -> Shape {
    Shape { name, rows, columns, inner, turned, strides }
}

/// On maps of 56 to 7 pixels a side, as in ResNet50 and VGG16; gradients of the input (dx) and of the weights (dw).
const SHAPES: [Shape; 20] = [
    shape("1x1 forward, 64 to 256", [256, 256, 64], [false, false], [64, 3136]),
    shape("1x1 forward, 256 to 64", [64, 256, 256], [false, false], [256, 3136]),
    shape("1x1 forward, 1024 to 256", [256, 196, 1024], [false, false], [1024, 196]),
    shape("1x1 forward, 256 to 1024", [1024, 196, 256], [false, false], [256, 196]),
    shape("1x1 dx, 256 to 1024", [256, 196, 1024], [true, false], [256, 196]),
    shape("1x1 dx, 1024 to 256", [1024, 196, 256], [true, false], [1024, 196]),
    shape("1x1 dw, 1024 to 256", [256, 320, 128], [false, true], [196, 196]),
    shape("1x1 dw, 256 to 64", [64, 256, 128], [false, true], [3136, 3136]),
    shape("unfolded forward, 512", [512, 196, 384], [false, false], [4608, 208]),
    shape("unfolded forward, 7x7 of 3", [64, 256, 147], [false, false], [147, 256]),
    shape("unfolded dx, 512", [384, 196, 128], [true, false], [4608, 196]),
    shape("unfolded dw, 512", [512, 320, 128], [false, true], [196, 128]),
    shape("Winograd forward, 64", [64, 192, 64], [false, false], [64, 192]),
    shape("Winograd forward, 512", [512, 64, 512], [false, false], [512, 64]),
    shape("Winograd dw, 256", [256, 256, 192], [false, true], [192, 192]),
    shape("dense forward, batch 16", [64, 16, 25088], [false, false], [25088, 16]),
    shape("dense forward, batch 64", [64, 64, 4096], [false, false], [4096, 64]),
    shape("dense dx, batch 8", [8, 256, 64], [false, false], [4096, 25088]),
    shape("dense dw, batch 64", [256, 25088, 64], [true, false], [4096, 25088]),
    shape("square, 1024", [1024, 1024, 1024], [false, false], [1024, 1024]),
];

fn main() {
    // `cargo bench` passes `--bench` on.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!(
        "| product | rows x columns x inner | GFLOP/s | `gemm` | ratio | bf16 | ratio |\n|---|---|---:|---:|---:|---:|---:|"
    );
    let mut logarithms = Vec::new();
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(&wanted)) {
        let Shape { name, rows, columns, inner, .. } = *shape;
        let flop = 2.0 * (rows * columns * inner) as f64;
        let [own, gemm, rounded] = shape.seconds().map(|seconds| flop / seconds / 1e9);
        print!("| {name} | {rows} x {columns} x {inner} | {own:.0} | {gemm:.0} | {:.2} |", own / gemm);
        match bf16::is_there() {
            true => println!(" {rounded:.0} | {:.2} |", rounded / own),
            false => println!(" | |"),
        }
        logarithms.push((own / gemm).ln());
    }
    let mean = logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64;
    println!("\ngeometric mean: {:.3}", mean.exp());
}

impl Shape {
    /// Seconds of one product: ours, that of `gemm`, and ours with bfloat16.
    fn seconds(&self) -> [f64; 3] {
        let Self { rows, columns, inner, turned: [left, right], strides: [of_a, of_b], .. } = *self;
        let a = vec![0.5f32; if left { inner } else { rows } * of_a];
        let b = vec![0.25f32; if right { columns } else { inner } * of_b];
        let mut y = vec![0f32; rows * columns];
        let repetitions = ((FLOP / 2.0) as usize / (rows * columns * inner)).max(1);
        let mut best = [f64::INFINITY; 3];
        for _ in 0..ROUNDS {
            let mut ours = |factors| {
                timed(repetitions, || {
                    let a = if left {
                        Matrix::new(&a, inner, rows, of_a).transposed()
                    } else {
                        Matrix::new(&a, rows, inner, of_a)
                    };
                    let b = if right {
                        Matrix::new(&b, columns, inner, of_b).transposed()
                    } else {
                        Matrix::new(&b, inner, columns, of_b)
                    };
                    multiply(MatrixMut::new(&mut y, rows, columns, columns), a, b, Write::AddTo, factors);
                })
            };
            let own = ours(Factors::Exact);
            let rounded = if bf16::is_there() { ours(Factors::Bf16) } else { f64::INFINITY };
            let [(a_row, a_column), (b_row, b_column)] = [(left, of_a), (right, of_b)]
                .map(|(turned, stride)| if turned { (1, stride as isize) } else { (stride as isize, 1) });
            let gemm = timed(repetitions, || {
                // SAFETY: the matrices have these sizes.
                unsafe {
                    gemm::gemm(
                        rows,
                        columns,
                        inner,
                        y.as_mut_ptr(),
                        1,
                        columns as isize,
                        true,
                        a.as_ptr(),
                        a_column,
                        a_row,
                        b.as_ptr(),
                        b_column,
                        b_row,
                        1.0f32,
                        1.0f32,
                        false,
                        false,
                        false,
                        gemm::Parallelism::None,
                    );
                }
            });
            best = [best[0].min(own), best[1].min(gemm), best[2].min(rounded)];
        }
        best
    }
}

fn timed(repetitions: usize, mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..repetitions).for_each(|_| work());
    begun.elapsed().as_secs_f64() / repetitions as f64
}
