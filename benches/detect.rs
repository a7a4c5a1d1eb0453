//! How long the jump detector takes for one series, in one thread.
//!
//! `cargo bench --bench detect`. How well it finds jumps compared with other methods: `examples/compare_methods.rs`.

use std::hint::black_box;

use batchstep::detect::{Observation, Settings, detect};
use batchstep::random::Rng;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A line over 1..=`points` with 20 repetitions and a jump of a tenth of the level after each of `jumps` equal parts.
fn series(points: u32, jumps: u32) -> Vec<Observation> {
    let mut rng = Rng::new(u64::from(points + jumps));
    let part = points / (jumps + 1);
    let truth: Vec<f64> = (1..=jumps).map(|i| f64::from(i * part - i * i % 5)).collect();
    let level = |x: f64| 10.0 + 20.0 * x / f64::from(points) + truth.iter().filter(|k| x > **k).count() as f64;
    let steps = (1..=points).flat_map(|x| [f64::from(x); 20]);
    steps.map(|x| Observation::new(x, level(x) * (0.01 * rng.normal()).exp())).collect()
}

fn detection(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("detect");
    group.sample_size(20);
    for (points, jumps) in [(70, 0), (70, 1), (70, 4), (1000, 10), (5000, 40)] {
        let observations = series(points, jumps);
        for resamples in [0, 1000] {
            let settings = Settings { resamples, ..Settings::default() };
            let name = format!("{points} points, {jumps} jumps");
            group.bench_function(BenchmarkId::new(name, format!("{resamples} resamples")), |bencher| {
                bencher.iter(|| detect(black_box(&observations), &settings));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, detection);
criterion_main!(benches);
