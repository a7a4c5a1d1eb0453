//! Prints the tables of docs/method.md on coverage, cost and false jumps: `cargo run --release --example tables trust_simulation [RUNS]
//! [coverage|alarms [EVENT]|machines [alarms|levels|power]]`.

use crate::argument;
use batchstep::detect::baseline::Baseline;
use batchstep::error::Result;
use batchstep::run::simulation::Noise;
use batchstep::run::simulation::alarms::{Event, Procedure, alarms};
use batchstep::run::simulation::coverage::{Stop, coverage};
use batchstep::run::simulation::machines::{self, Fleet, VisitPattern};

pub fn run() -> Result<()> {
    let runs = argument(1).and_then(|runs| runs.parse().ok()).unwrap_or(1000);
    match argument(2).as_deref() {
        Some("coverage") => print_coverage(runs),
        Some("alarms") => print_alarms(runs),
        Some("machines") => print_machines(runs),
        _ => print_coverage(runs).and_then(|()| print_alarms(runs)),
    }
}

fn print_coverage(runs: u64) -> Result<()> {
    println!("Coverage of the 95 % interval of a cell's median, {runs} runs of 4 cells");
    println!("{:<14}{:>18}{:>10}{:>10}{:>10}", "noise", "stop", "covered", "blocks", "steps");
    for noise in Noise::COMMON {
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
    let asked = argument(3).unwrap_or_default();
    for &event in Event::ALL.iter().filter(|event| event.name().contains(&asked)) {
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
    match argument(3).as_deref() {
        Some("alarms") => print_machine_alarms(runs),
        Some("levels") => print_machine_levels(runs),
        Some("power") => print_machine_power(runs),
        _ => print_machine_alarms(runs)
            .and_then(|()| print_machine_levels(runs))
            .and_then(|()| print_machine_power(runs)),
    }
}

const TEN_PERCENT: Fleet =
    Fleet { machines: 2, blocks: 4, visits: VisitPattern::Decided, relative_sd: 0.1, cell_sd: 0.0, jump: 0.0 };

fn print_machine_alarms(runs: u64) -> Result<()> {
    println!("Experiments with a jump where there is none, of {runs}; machines differ by 10 %");
    println!(
        "{:>10}{:>14}{:>14}{:>14}{:>24}",
        "machines", "blocks each", "at one size", "false jumps", "machines not known"
    );
    for (machines, blocks) in [(2, 4), (4, 4), (8, 4), (2, 16), (4, 16)] {
        for cell_sd in [0.0, 0.005, 0.02] {
            let fleet = Fleet { machines, blocks, cell_sd, ..TEN_PERCENT };
            let [known, unknown] = [true, false].map(|known| machines::alarms(fleet, known, 0..runs));
            let (known, unknown) = (100.0 * known?.rate(), 100.0 * unknown?.rate());
            println!("{machines:>10}{blocks:>14}{:>13.1}%{known:>13.1}%{unknown:>23.1}%", 100.0 * cell_sd);
        }
    }
    Ok(())
}

fn print_machine_levels(runs: u64) -> Result<()> {
    println!("\nLevels that their 95 % interval holds, of 40 in each of {runs} experiments, and its mean width");
    println!(
        "{:>10}{:>10}{:>14}{:>19}{:>19}{:>19}",
        "machines", "differ by", "visits each", "0 % at one size", "0.5 %", "2 %"
    );
    for (blocks, visits) in [(4, VisitPattern::Equal), (16, VisitPattern::Unequal)] {
        for relative_sd in [0.05, 0.1] {
            for machines in [2, 3, 4, 8] {
                let mut line = String::new();
                for cell_sd in [0.0, 0.005, 0.02] {
                    let fleet = Fleet { machines, blocks, visits, relative_sd, cell_sd, ..TEN_PERCENT };
                    let found = machines::coverage(fleet, true, 0..runs)?;
                    line += &format!("{:>11.1}%{:>7.2}%", 100.0 * found.share(), 100.0 * found.width);
                }
                let each = if visits == VisitPattern::Equal { "4" } else { "4 to 16" };
                println!("{machines:>10}{:>9.0}%{each:>14}{line}", 100.0 * relative_sd);
            }
        }
    }
    Ok(())
}

fn print_machine_power(runs: u64) -> Result<()> {
    println!(
        "\nThe jump that is found in 90 % of {runs} experiments of 16 visits to each of 40 batch sizes, with its 95 % interval"
    );
    print!("{:>10}", "machines");
    let differences = [(0.0, 0.0), (0.05, 0.0), (0.1, 0.0), (0.1, 0.005), (0.1, 0.02)];
    for (all, one) in differences {
        print!("{:>24}", format!("{:.0} %, {:.1} % at one", 100.0 * all, 100.0 * one));
    }
    println!();
    for machines in [1, 2, 4, 8] {
        print!("{machines:>10}");
        for (relative_sd, cell_sd) in differences {
            let (blocks, visits) = (16 / machines, VisitPattern::Equal);
            let fleet = Fleet { machines, blocks, visits, relative_sd, cell_sd, ..TEN_PERCENT };
            let found = machines::power(fleet, 0..runs)?;
            let [jump, low, high] = [found.jump, found.low, found.high].map(|share| 100.0 * share);
            print!("{:>24}", format!("{jump:.2}% ({low:.2} to {high:.2})"));
        }
        println!();
    }
    Ok(())
}
