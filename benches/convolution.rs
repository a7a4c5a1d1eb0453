//! Compares the CPU engine's algorithms for dense convolutions, in turns: for each shape, the shortest of some rounds
//! of the forward pass, the input's gradient and the weights' gradient.
//!
//! `cargo bench --bench convolution [-- PART_OF_A_NAME [THREADS]]`

use std::time::Instant;

use batchstep::engine::cpu::algorithm_choice::WinogradThreshold;
use batchstep::engine::cpu::blocking::{Blocking, Factors};
use batchstep::engine::cpu::op::activation::Rectifier;
use batchstep::engine::cpu::op::conv2d::{Convolution, Gradients};
use batchstep::engine::cpu::op::filters::Filters;
use batchstep::engine::cpu::op::product::bf16;
use batchstep::network::{self, Conv2d, Extent, Padding};
use batchstep::settings::Winograd;

const ROUNDS: usize = 12;
/// About how long a timed repetition takes.
const SECONDS: f64 = 0.01;

struct Shape {
    name: &'static str,
    batch: usize,
    /// Channels in, channels out, and the side of the input's maps.
    sizes: [usize; 3],
    kernel: usize,
    stride: usize,
}

const fn shape(name: &'static str, batch: usize, sizes: [usize; 3], kernel: usize, stride: usize) -> Shape {
    Shape { name, batch, sizes, kernel, stride }
}

const SHAPES: [Shape; 20] = [
    shape("5x5, 32 to 32 on 12x12", 64, [32, 32, 12], 5, 1),
    shape("5x5, 16 to 32 on 28x28", 16, [16, 32, 28], 5, 1),
    shape("5x5, 64 to 192 on 27x27", 4, [64, 192, 27], 5, 1),
    shape("7x7, 64 to 64 on 28x28", 4, [64, 64, 28], 7, 1),
    shape("7x7 of 3, stride 2", 2, [3, 64, 224], 7, 2),
    shape("3x3, stride 2, 128 on 56x56", 4, [128, 128, 56], 3, 2),
    shape("3x3, stride 2, 256 on 28x28", 4, [256, 256, 28], 3, 2),
    shape("3x3, stride 2, 512 on 14x14", 4, [512, 512, 14], 3, 2),
    shape("1x1, stride 2, 256 to 512 on 56x56", 4, [256, 512, 56], 1, 2),
    shape("1x1, stride 2, 1024 to 2048 on 14x14", 4, [1024, 2048, 14], 1, 2),
    shape("3x3, 64 on 8x8", 4, [64, 64, 8], 3, 1),
    shape("3x3, 256 on 8x8", 2, [256, 256, 8], 3, 1),
    shape("3x3, 512 on 4x4", 4, [512, 512, 4], 3, 1),
    shape("3x3, 512 on 7x7", 2, [512, 512, 7], 3, 1),
    shape("3x3, 512 on 7x7", 4, [512, 512, 7], 3, 1),
    shape("3x3, 512 on 7x7", 8, [512, 512, 7], 3, 1),
    shape("3x3, 512 on 14x14", 2, [512, 512, 14], 3, 1),
    shape("3x3, 128 on 14x14", 1, [128, 128, 14], 3, 1),
    shape("3x3, 256 on 14x14", 4, [256, 256, 14], 3, 1),
    shape("3x3, 64 on 56x56", 2, [64, 64, 56], 3, 1),
];

fn main() {
    // `cargo bench` passes `--bench` on.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let wanted = arguments.next().unwrap_or_default();
    let threads = arguments.next().and_then(|threads| threads.parse().ok()).unwrap_or(1);
    let team = batchstep::engine::cpu::thread_team::Team::new(threads).expect("a team");
    println!("{threads} threads; milliseconds, and GFLOP/s of the definition in all three\n");
    println!("| convolution | batch | factors | algorithm | forward | gradient of input | of weights | GFLOP/s |");
    println!("|---|---:|---|---|---:|---:|---:|---:|");
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(&wanted)) {
        team.install(|| shape.print());
    }
}

impl Shape {
    fn print(&self) {
        let Self { name, batch, sizes: [from, to, side], kernel, stride } = *self;
        let layer = Conv2d {
            stride: Extent::square(stride),
            padding: Padding::all(kernel / 2),
            bias: false,
            ..Conv2d::square(to, kernel)
        };
        let input = network::Shape::Maps { channels: from, height: side, width: side };
        let convolution =
            Convolution::new(batch, input, &layer, Winograd::Any, WinogradThreshold::default()).expect("a convolution");
        let factors = [Some(Factors::Exact), bf16::is_there().then_some(Factors::Bf16)];
        let mut ways = Vec::new();
        for factors in factors.into_iter().flatten() {
            let blocking = Blocking { factors, ..Blocking::default() };
            ways.extend(convolution.cut(blocking).ways().map(|way| (way, factors, [f64::INFINITY; 3])));
        }
        let out = (side + 2 * (kernel / 2) - kernel) / stride + 1;
        let numbers = |count: usize| (0..count).map(|i| (i * 7 % 11) as f32 - 5.0).collect::<Vec<_>>();
        let (x, weight) = (numbers(batch * input.count()), numbers(to * from * kernel * kernel));
        let dy = numbers(batch * to * out * out);
        let (mut y, mut dx, mut dw) = (dy.clone(), x.clone(), weight.clone());
        for round in 0..=ROUNDS {
            for (way, _, best) in &mut ways {
                let filters = Filters { weight: &weight, bias: None, rectifier: Rectifier::Identity };
                for (direction, best) in best.iter_mut().enumerate() {
                    let mut repetitions = 0;
                    let begun = Instant::now();
                    while begun.elapsed().as_secs_f64() < SECONDS {
                        match direction {
                            0 => way.forward(&x, filters, &mut y),
                            1 => way.backward(&x, &weight, &dy, Gradients { x: Some(&mut dx), weight: None }),
                            _ => way.backward(&x, &weight, &dy, Gradients { x: None, weight: Some(&mut dw) }),
                        }
                        repetitions += 1;
                    }
                    let seconds = begun.elapsed().as_secs_f64() / f64::from(repetitions);
                    // The first round allocates the scratch memory.
                    *best = if round == 0 { *best } else { best.min(seconds) };
                }
            }
        }
        let flop = 6.0 * (batch * to * out * out * from * kernel * kernel) as f64;
        for (way, factors, seconds) in &ways {
            let (algorithm, rate) = (way.algorithm(), flop / seconds.iter().sum::<f64>() / 1e9);
            let [forward, input, weights] = seconds.map(|seconds| seconds * 1e3);
            println!(
                "| {name} | {batch} | {factors:?} | {algorithm} | {forward:.3} | {input:.3} | {weights:.3} | {rate:.0} |"
            );
        }
    }
}
