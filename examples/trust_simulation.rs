//! Prints the tables of docs/method.md on coverage, cost and false jumps: `cargo run --release --example trust_simulation [RUNS] [coverage|alarms [EVENT]|machines]`.

use batchstep::detect::baseline::Baseline;
use batchstep::error::Result;
use batchstep::simulation::alarms::{Event, Procedure, alarms};
use batchstep::simulation::coverage::{NoiseModel, Stop, coverage};
use batchstep::simulation::machines::{self, Fleet};

fn main() -> Result<()> {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(1000);
    match std::env::args().nth(2).as_deref() {
        Some("coverage") => print_coverage(runs),
        Some("alarms") => print_alarms(runs),
        Some("machines") => print_machines(runs),
        _ => print_coverage(runs).and_then(|()| print_alarms(runs)),
    }
}

fn print_coverage(runs: u64) -> Result<()> {
    println!("Coverage of the 95 % interval of a cell's median, {runs} runs of 4 cells");
    println!("{:<14}{:>18}{:>10}{:>10}{:>10}", "noise", "stop", "covered", "blocks", "steps");
    for noise in NoiseModel::ALL {
        let fixed = [5, 6, 7, 8, 10, 30].map(Stop::Fixed);
        for stop in fixed.into_iter().chain([8, 5].map(Stop::Resolved)) {
            let found = coverage(noise, stop, runs)?;
            let (share, stop) = (100.0 * found.share(), format!("{stop:?}"));
            println!("{:<14}{stop:>18}{share:>9.1}%{:>10.1}{:>10.1}", noise.name(), found.blocks, found.steps);
        }
    }
    Ok(())
}

fn print_alarms(runs: u64) -> Result<()> {
    println!("\nRuns with a jump where there is none, of {runs}");
    let procedures = [
        ("blocks", Procedure::Blocks),
        ("ascending", Procedure::Ascending),
        ("differences", Procedure::AscendingBy(Baseline::Differences)),
        ("PELT", Procedure::AscendingBy(Baseline::Pelt)),
        ("E-divisive", Procedure::AscendingBy(Baseline::EDivisive)),
    ];
    println!("{:<30}{}", "event", procedures.map(|(name, _)| format!("{name:>13}")).concat());
    let asked = std::env::args().nth(3).unwrap_or_default();
    for event in Event::ALL.into_iter().filter(|event| event.name().contains(&asked)) {
        let mut line = format!("{:<30}", event.name());
        for (_, procedure) in procedures {
            let rate = alarms(event, procedure, 0..runs)?.rate();
            line += &format!("{:>12.1}%", 100.0 * rate);
        }
        println!("{line}");
    }
    Ok(())
}

fn print_machines(runs: u64) -> Result<()> {
    println!("Experiments with a jump where there is none, of {runs}; machines differ by 10 %");
    println!(
        "{:>10}{:>14}{:>14}{:>14}{:>24}",
        "machines", "blocks each", "at one size", "false jumps", "machines not known"
    );
    for (machines, blocks) in [(2, 4), (4, 4), (8, 4), (2, 16), (4, 16)] {
        for cell_sd in [0.0, 0.005, 0.02] {
            let fleet = Fleet { machines, blocks, relative_sd: 0.1, cell_sd, jump: 0.0 };
            let [known, unknown] = [true, false].map(|known| machines::alarms(fleet, known, 0..runs));
            let (known, unknown) = (100.0 * known?.rate(), 100.0 * unknown?.rate());
            println!("{machines:>10}{blocks:>14}{:>13.1}%{known:>13.1}%{unknown:>23.1}%", 100.0 * cell_sd);
        }
    }
    Ok(())
}
