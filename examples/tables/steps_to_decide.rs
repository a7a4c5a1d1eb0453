//! Prints how many steps it takes to decide on jumps, against the rule that waits until every cell is known:
//! `cargo run --release --example tables steps_to_decide [RUNS [STEPS_PER_VISIT [RUNS_BY_CELLS [CURVES [complete]]]]]`, CURVES such as "line,bends".
//!
//! 70 batch sizes; jumps of 1 % (5 % under a common factor). "Other jump" counts the runs in which the detector reports a jump that was not
//! planted, a neighbouring place included; "covered" is the share of the found ones whose size lies in the reported interval; "shown other" those whose own tests show one that is further off, "ruled out" the planted jumps of which these tests say that they are not there. STEPS_PER_VISIT 0: each run chooses; by cells there are 5. By cells a run ends after 600 blocks (210,000 steps of five a visit): savings from there on are lower bounds.

use crate::argument;
use batchstep::error::Result;
use batchstep::run::simulation::Noise;
use batchstep::run::simulation::decisions::{Decisions, PlantedCurve, Rule, decisions};

/// What one machine does to one curve, by both rules.
struct Compared {
    machine: Noise,
    jumps: Decisions,
    cells: Decisions,
}

pub fn run() -> Result<()> {
    let text = |n: usize| argument(n);
    let number = |n: usize, default: u64| text(n).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (runs, steps, by_cells) = (number(1, 100), number(2, 5) as usize, number(3, 3));
    let wanted = text(4).unwrap_or_default();
    // Twenty complete blocks in place of blocks that go where decisions are open.
    let rule = if text(5).is_some_and(|text| text == "complete") { Rule::Complete } else { Rule::Jumps };
    println!("{runs} runs each, {steps} steps a visit; by cells: {by_cells}");
    println!(
        "curve               noise              steps    found  covered  other jump  shown other  ruled out  undecided    by cells    saved"
    );
    let (mut logarithms, mut count) = (0.0, 0);
    for &curve in PlantedCurve::ALL.iter().filter(|curve| wanted.split(',').any(|one| curve.name().starts_with(one))) {
        let compare = |machine| {
            let jumps = decisions(machine, curve, rule, steps, 0..runs)?;
            Ok(Compared { machine, jumps, cells: decisions(machine, curve, Rule::Cells, steps, 0..by_cells)? })
        };
        let compared: Vec<Result<Compared>> = std::thread::scope(|scope| {
            let start = |machine: &Noise| {
                let machine = *machine;
                scope.spawn(move || compare(machine))
            };
            let threads: Vec<_> = Noise::ALL.iter().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        for one in compared {
            let Compared { machine, jumps, cells } = one?;
            let share = |part: usize, of: usize| {
                if of > 0 { format!("{:.1} %", 100.0 * part as f64 / of as f64) } else { "-".to_string() }
            };
            let found = share(jumps.found, jumps.planted);
            let covered = share(jumps.covered, jumps.found);
            let ruled_out = share(jumps.ruled_out, jumps.planted);
            let saved = cells.steps_per_run() / jumps.steps_per_run();
            if saved > 0.0 {
                logarithms += saved.ln();
                count += 1;
            }
            let (by_jumps, by_cells) = (jumps.steps_per_run(), cells.steps_per_run());
            println!(
                "{:<20}{:<15}{by_jumps:>9.0}{found:>9}{covered:>9}{:>12}{:>13}{ruled_out:>11}{:>11}{by_cells:>12.0}{saved:>9.1}",
                curve.name(),
                machine.name(),
                jumps.with_false,
                jumps.shown_false,
                jumps.undecided,
            );
        }
    }
    if count > 0 {
        println!("geometric mean of the savings: {:.1}", (logarithms / f64::from(count)).exp());
    }
    Ok(())
}
