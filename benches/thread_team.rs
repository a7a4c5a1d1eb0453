//! The cost of sharing work among threads, by the CPU engine's team and by rayon instead, after serial work of several
//! lengths.
//!
//! `cargo bench --bench thread_team [-- THREADS]`

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use batchstep::engine::cpu::thread_team::{Team, share};
use rayon::prelude::*;

/// The shared tasks for each thread, and how long each takes.
const TASKS: usize = 4;
const TASK: Duration = Duration::from_micros(5);
/// The serial work before the tasks are shared.
const GAPS: [u64; 5] = [0, 10, 30, 100, 300];
/// Rounds of each kind in a turn, and turns.
const ROUNDS: usize = 400;
const TURNS: usize = 9;

fn busy(length: Duration) {
    let start = Instant::now();
    while start.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// Takes tasks until none is left.
fn work(next: &AtomicUsize, tasks: usize) {
    while next.fetch_add(1, Ordering::Relaxed) < tasks {
        busy(TASK);
    }
}

fn by_team(tasks: usize, threads: usize) {
    let next = AtomicUsize::new(0);
    share(threads, &|| work(&next, tasks));
}

/// As in the CPU engine before it had teams: a job for each thread.
fn by_rayon(tasks: usize) {
    let next = AtomicUsize::new(0);
    (0..rayon::current_num_threads()).into_par_iter().with_max_len(1).for_each(|_| work(&next, tasks));
}

/// Seconds of one sharing: the median of a turn.
fn median(gap: Duration, share: impl Fn()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            busy(gap);
            let start = Instant::now();
            share();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn main() {
    // `cargo bench` passes `--bench` on.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let threads = arguments.next().and_then(|threads| threads.parse().ok()).unwrap_or(2);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let team = Team::new(threads).expect("a team");
    let tasks = TASKS * threads;
    println!("{threads} threads; {tasks} tasks of 5 us, ideally 20 us; medians, the quickest of {TURNS} turns\n");
    println!("| serial work before, us | team, us | rayon, us | rayon / team |\n|---:|---:|---:|---:|");
    for gap in GAPS {
        let length = Duration::from_micros(gap);
        let (mut ours, mut rayons) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TURNS {
            ours = ours.min(team.install(|| median(length, || by_team(tasks, threads))));
            rayons = rayons.min(pool.install(|| median(length, || by_rayon(tasks))));
        }
        println!("| {gap} | {:.1} | {:.1} | {:.2} |", ours * 1e6, rayons * 1e6, rayons / ours);
    }
}
