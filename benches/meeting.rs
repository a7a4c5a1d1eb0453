//! Undisturbed steps in a second beside eight programs that never wait: with the threads' rest and meeting before each step, and without, in turns.
//!
//! `cargo bench --bench meeting`

use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use batchstep::engine::cpu::thread_team::{Team, share, threads};

/// Programs beside the steps.
const PROGRAMS: usize = 8;
/// How often each way takes its turn, and for how long.
const TURNS: usize = 3;
const TURN: Duration = Duration::from_secs(3);
/// Tasks of a step, for all threads together, and operations of a task.
const TASKS: [usize; 3] = [8, 20, 40];
const OPERATIONS: u64 = 60_000;
/// A step is undisturbed up to this multiple of the time that a fiftieth of all steps stay below.
const UNDISTURBED: f64 = 1.15;
/// The argument that makes this program one of the others.
const SPIN: &str = "spin";

fn step(tasks: usize) {
    let next = AtomicUsize::new(0);
    share(threads(), &|| {
        while next.fetch_add(1, Ordering::Relaxed) < tasks {
            (0..OPERATIONS).fold(0u64, |sum, i| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i)));
        }
    });
}

/// The times of the steps of a turn, in seconds.
fn turn(team: &Team, tasks: usize, meet: bool) -> Vec<f64> {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < TURN {
        if meet {
            team.gather();
        }
        let start = Instant::now();
        team.install(|| step(tasks));
        times.push(start.elapsed().as_secs_f64());
    }
    times
}

fn main() {
    if std::env::args().any(|argument| argument == SPIN) {
        loop {
            std::hint::spin_loop();
        }
    }
    let this = std::env::current_exe().expect("this program");
    let spin = |_| Command::new(&this).arg(SPIN).spawn().expect("a process");
    let mut others: Vec<Child> = (0..PROGRAMS).map(spin).collect();
    let team = Team::new(2).expect("two threads");
    println!("{:>10} {:>14} {:>14} {:>7}   undisturbed steps in a second", "step", "without", "with", "ratio");
    for tasks in TASKS {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for (meet, all) in [false, true].into_iter().zip(&mut times) {
                all.extend(turn(&team, tasks, meet));
            }
        }
        let mut all = times.concat();
        all.sort_by(f64::total_cmp);
        let quick = all[all.len() / 50];
        let rates = times.map(|times| {
            let undisturbed = times.iter().filter(|time| **time < UNDISTURBED * quick).count();
            undisturbed as f64 / (TURNS as f64 * TURN.as_secs_f64())
        });
        println!("{:>7.2} ms {:>14.1} {:>14.1} {:>7.1}", 1e3 * quick, rates[0], rates[1], rates[1] / rates[0]);
    }
    others.iter_mut().for_each(|other| drop(other.kill().and_then(|()| other.wait())));
}
