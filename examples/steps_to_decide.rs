//! Prints how many steps it takes to decide on jumps, against the rule that waits until every cell is known:
//! `cargo run --release --example steps_to_decide [RUNS [STEPS_PER_VISIT [RUNS_BY_CELLS]]]`.
//!
//! 70 batch sizes; jumps of 1 % (5 % under a common factor), false alarms of the detector at most in 1 % of the series without a jump.

use batchstep::error::Result;
use batchstep::simulation::decisions::{Curve, Machine, Rule, decisions};

fn main() -> Result<()> {
    let number = |n: usize| std::env::args().nth(n).and_then(|text| text.parse::<u64>().ok());
    let (runs, steps) = (number(1).unwrap_or(100), number(2).unwrap_or(5) as usize);
    let by_cells = number(3).unwrap_or(3);
    println!("{runs} runs each, {steps} steps a visit; by cells: {by_cells}");
    println!(
        "{:<20}{:<15}{:>9}{:>9}{:>12}{:>11}{:>12}{:>9}",
        "curve", "noise", "steps", "found", "other jump", "undecided", "by cells", "saved"
    );
    let mut product = (0.0, 0);
    for curve in Curve::ALL {
        for machine in Machine::ALL {
            let found = decisions(machine, curve, Rule::Jumps, steps, 0..runs)?;
            let cells = decisions(machine, curve, Rule::Cells, steps, 0..by_cells)?;
            let saved = cells.steps_per_run() / found.steps_per_run();
            let power = if found.planted > 0 { format!("{:.1} %", 100.0 * found.power()) } else { "-".to_string() };
            if by_cells > 0 {
                product = (product.0 + saved.ln(), product.1 + 1);
            }
            println!(
                "{:<20}{:<15}{:>9.0}{power:>9}{:>12}{:>11}{:>12.0}{saved:>9.1}",
                curve.name(),
                machine.name(),
                found.steps_per_run(),
                found.with_false,
                found.undecided,
                cells.steps_per_run(),
            );
        }
    }
    println!("geometric mean of the savings: {:.1}", (product.0 / f64::from(product.1.max(1))).exp());
    Ok(())
}
