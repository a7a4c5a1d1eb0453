//! Which share of a step's time another program may take before the step stops counting: what each share leaves of the noise, and of the steps.
//!
//! ```text
//! cargo run --release --example tables interference_share
//! ```
//!
//! Steps with normal noise of 1 % run beside programs that take the processor now and then: each step is interrupted with a probability that grows
//! with its length, for times of an exponential distribution. A visit is the median of its five undisturbed steps; it gives up after eighteen
//! disturbed ones, and then counts by all. The bias of a visit is its median over the undisturbed time, and its scatter what the jumps must
//! exceed. `steps` is how many steps a visit takes.

use batchstep::measure::interference;
use batchstep::random::Rng;
use batchstep::stats::quantile::median;

const SHARES: [f64; 8] = [0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, f64::INFINITY];
const NOISE: f64 = 0.01;
const STEPS: usize = 5;
const PATIENCE: usize = 18;
const VISITS: usize = 20_000;

/// Programs beside a step: seconds between two interruptions, and of one, on average.
struct Load {
    name: &'static str,
    every_s: f64,
    lasts_s: f64,
}

const LOADS: [Load; 4] = [
    Load { name: "timers and other threads of the system", every_s: 4e-3, lasts_s: 5e-6 },
    Load { name: "a program in bursts", every_s: 20e-3, lasts_s: 1e-3 },
    Load { name: "a compiler", every_s: 4e-3, lasts_s: 3e-3 },
    Load { name: "eight spinners on two processors", every_s: 3e-3, lasts_s: 12e-3 },
];

pub fn run() {
    println!("batchstep uses {:.0} %", 100.0 * interference::SHARE);
    for step_s in [0.3e-3, 3e-3, 30e-3] {
        for load in &LOADS {
            println!("\n{} beside steps of {} ms", load.name, 1e3 * step_s);
            println!("{:>10} {:>9} {:>9} {:>7} {:>10}", "share", "bias", "scatter", "steps", "given up");
            for share in SHARES {
                let mut rng = Rng::new(7);
                let visits: Vec<Visit> = (0..VISITS).map(|_| visit(step_s, load, share, &mut rng)).collect();
                let mut values: Vec<f64> = visits.iter().map(|visit| (visit.median_s / step_s).ln()).collect();
                let mean = |of: &dyn Fn(&Visit) -> f64| visits.iter().map(of).sum::<f64>() / VISITS as f64;
                let bias = median(&mut values);
                let scatter = (values.iter().map(|value| (value - bias).powi(2)).sum::<f64>() / VISITS as f64).sqrt();
                let (steps, given_up) = (mean(&|visit| visit.steps as f64), mean(&|visit| f64::from(visit.gave_up)));
                let share = if share.is_finite() { format!("{:.0} %", 100.0 * share) } else { "all count".to_owned() };
                println!(
                    "{share:>10} {:>7.2} % {:>7.2} % {steps:>7.1} {:>8.1} %",
                    100.0 * bias,
                    100.0 * scatter,
                    100.0 * given_up
                );
            }
        }
    }
}

struct Visit {
    median_s: f64,
    steps: usize,
    gave_up: bool,
}

fn visit(step_s: f64, load: &Load, share: f64, rng: &mut Rng) -> Visit {
    let (mut quiet, mut all) = (Vec::new(), Vec::new());
    while quiet.len() < STEPS && all.len() - quiet.len() < PATIENCE {
        let own_s = step_s * (NOISE * rng.normal()).exp();
        let (mut done_s, mut waited_s) = (exponential(load.every_s, rng), 0.0);
        while done_s < own_s {
            waited_s += exponential(load.lasts_s, rng);
            done_s += exponential(load.every_s, rng);
        }
        let time_s = own_s + waited_s;
        if waited_s <= share * time_s {
            quiet.push(time_s);
        }
        all.push(time_s);
    }
    let steps = all.len();
    let gave_up = quiet.is_empty();
    let median_s = median(if gave_up { &mut all } else { &mut quiet });
    Visit { median_s, steps, gave_up }
}

fn exponential(mean: f64, rng: &mut Rng) -> f64 {
    -mean * (1.0 - rng.uniform()).ln()
}
