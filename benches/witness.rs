//! What it costs to read the accounts of a step's threads, and the share of a step of 0.3 ms that it takes.
//!
//! `cargo bench --bench witness -- [threads]`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use batchstep::device::root::FilesystemRoot;
use batchstep::device::witness::Witness;
use batchstep::stats::quantile::median;

const STEP_S: f64 = 0.3e-3;
/// Readings of a visit, and visits.
const READINGS: usize = 50;
const VISITS: usize = 200;

fn main() {
    let given = std::env::args().skip(1).find_map(|argument| argument.parse::<usize>().ok());
    let threads = given.unwrap_or(2);
    let ends = Arc::new(AtomicBool::new(false));
    // They compute a little all the time, so that they are read after each step.
    let helpers: Vec<_> = (1..threads)
        .map(|_| {
            let ends = ends.clone();
            std::thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
            })
        })
        .collect();
    let mut witness = Witness::open(&FilesystemRoot::system());
    let (mut begun, mut readings) = (Vec::new(), Vec::new());
    let mut source = "nothing";
    for _ in 0..VISITS {
        let start = Instant::now();
        witness.begin();
        begun.push(start.elapsed().as_secs_f64());
        // The first one finds out which threads compute.
        std::thread::sleep(std::time::Duration::from_millis(1));
        witness.step();
        for _ in 0..READINGS {
            let start = Instant::now();
            source = std::hint::black_box(witness.step()).source();
            readings.push(start.elapsed().as_secs_f64());
        }
    }
    ends.store(true, Ordering::Relaxed);
    helpers.into_iter().for_each(|helper| drop(helper.join()));
    let (begin_s, step_s) = (median(&mut begun), median(&mut readings));
    println!("{threads} threads, from {source}");
    println!("a visit's beginning {:8.2} us", 1e6 * begin_s);
    println!("after each step     {:8.2} us, {:.2} % of a step of 0.3 ms", 1e6 * step_s, 100.0 * step_s / STEP_S);
}
