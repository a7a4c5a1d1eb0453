//! What more threads and more processes bring, as tables and sentences.

use super::comparison::interval;
use super::{Document, Table};
use crate::analysis::contrast::Contrast;
use crate::analysis::contrast::parallel::{Beside, PROMISED, Parallel, ParallelCell};
use crate::settings;
use crate::units::human;

/// Threads for which the speed-up is modelled, where fewer were measured.
const MODELLED: [u32; 3] = [4, 16, 64];

/// Every cell, then the geometric means. Empty for nothing.
pub fn scaling(found: &[Contrast<u32>]) -> Document {
    let Some(first) = found.first() else { return Document::default() };
    let numbers = ["batch size", "threads", "time", "speed-up", "95 % interval", "efficiency"];
    let mut table = Table::of(&["series"], &numbers);
    for (scaling, cell) in found.iter().flat_map(|scaling| scaling.cells.iter().map(move |cell| (scaling, cell))) {
        let [speed_up, low, high] = cell.speed_up();
        table.row([
            scaling.name.clone(),
            human::batch_size(cell.x),
            scaling.value.to_string(),
            human::quantity(cell.second, &scaling.unit),
            format!("{speed_up:.2}"),
            interval([low, high], "", |end| format!("{end:.2}")),
            percent(scaling.efficiency(speed_up)),
        ]);
    }
    let means_of = format!(
        "speed-up: the time on {} over the time on more; efficiency: its share of what as many threads could bring",
        human::counted(u64::from(first.baseline), "thread")
    );
    let mut document = Document::of_table("Scaling: more threads against the fewest", table).with_text(means_of);
    document.append(means(found));
    document
}

fn means(found: &[Contrast<u32>]) -> Document {
    let on = format!("on {}", MODELLED.map(|threads| threads.to_string()).join(", "));
    let mut table = Table::of(&["series"], &["threads", "cells", "speed-up", "efficiency", "serial share", &on]);
    for scaling in found {
        let Some(mean) = scaling.mean_speed_up() else { continue };
        let modelled = |threads: u32| match threads > scaling.value {
            true => format!("{:.1}", scaling.modelled(mean, threads)),
            false => "-".to_owned(),
        };
        table.row([
            scaling.name.clone(),
            scaling.value.to_string(),
            human::count(scaling.cells.len() as u64),
            format!("{mean:.2}"),
            percent(scaling.efficiency(mean)),
            format!("{:.1} %", 100.0 * scaling.serial_share(mean)),
            MODELLED.map(modelled).join(", "),
        ]);
    }
    Document::of_table("Scaling: geometric means", table).with_text(
        "serial share: of the time, what more threads did not shorten (Karp and Flatt 1990); on more threads: the speed-up if that share stays (formula: Amdahl's law)",
    )
}

/// Every cell, where the efficiency changes, and what it means. Empty for nothing.
pub fn parallel(found: &[Parallel]) -> Document {
    if found.is_empty() {
        return Document::default();
    }
    let numbers = ["batch size", "processes", "time", "efficiency", "95 % interval", "in all-reduce"];
    let mut table = Table::of(&["series", "scaling"], &numbers);
    for (parallel, cell) in found.iter().flat_map(|parallel| parallel.cells.iter().map(move |cell| (parallel, cell))) {
        table.row([
            parallel.name.clone(),
            parallel.scaling.to_string(),
            human::batch_size(cell.batch_size),
            parallel.processes.to_string(),
            human::quantity(cell.together, &parallel.unit),
            percent(cell.efficiency),
            range(cell),
            cell.reducing.map_or_else(|| "unknown".to_owned(), percent),
        ]);
    }
    let mut document = Document::of_table("Processes: data parallel training", table);
    document.text(meaning(found));
    found.iter().flat_map(sentences).for_each(|sentence| document.text(sentence));
    document
}

fn meaning(found: &[Parallel]) -> String {
    let fewest = match found[0].fewest {
        1 => "1 process".to_owned(),
        more => format!("{more} processes"),
    };
    let weak = format!(
        "weak: the batch size is that of each process, and the efficiency the time of {fewest} over the time of more"
    );
    let strong =
        "strong: it is that of all together, and the efficiency that ratio over the ratio of the numbers of processes"
            .to_owned();
    let has = |scaling: settings::Scaling| found.iter().any(|parallel| parallel.scaling == scaling);
    let mut parts = Vec::new();
    parts.extend(has(settings::Scaling::Weak).then_some(weak));
    parts.extend(has(settings::Scaling::Strong).then_some(strong));
    parts.push(
        "in all-reduce: the share of the step in which gradients were being averaged, waits for slower processes included; a part of it lies beside \
         the backward pass"
            .to_owned(),
    );
    parts.join("; ")
}

/// How many cells reach what is promised, and what becomes of the efficiency where step times jump.
fn sentences(parallel: &Parallel) -> Vec<String> {
    let Parallel { name, scaling, processes, cells, jumps, .. } = parallel;
    let reach = cells.iter().filter(|cell| cell.efficiency >= PROMISED).count();
    let mut sentences = vec![format!(
        "{name}, {scaling}, {processes} processes: {reach} of {} reach {} (a figure of builders of such platforms: measured by others).",
        human::counted(cells.len() as u64, "batch size"),
        percent(PROMISED)
    )];
    sentences.extend(jumps.iter().map(|beside| at_jump(parallel, beside)));
    sentences
}

fn at_jump(parallel: &Parallel, beside: &Beside) -> String {
    let Parallel { fewest, processes, .. } = parallel;
    let who = match (beside.alone_jumps, beside.together_jumps) {
        (true, true) => format!("the steps of {fewest} and of {processes} jump"),
        (true, false) => format!("the step of {fewest} jumps"),
        (false, true) => format!("the step of {processes} jumps"),
        (false, false) => "no step time jumps".to_owned(),
    };
    let side = |cell: &ParallelCell| format!("{} ({})", percent(cell.efficiency), range(cell));
    let change = match beside.changes() {
        true if beside.behind.efficiency < beside.before.efficiency => "falls",
        true => "rises",
        false => "does not provably change",
    };
    format!(
        "After batch size {} {who}, and the efficiency {change}: {}, then {}.",
        human::batch_size(beside.before.batch_size),
        side(&beside.before),
        side(&beside.behind)
    )
}

fn range(cell: &ParallelCell) -> String {
    interval([cell.low, cell.high], " %", |end| format!("{:.0}", 100.0 * end))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::compare::ComparedCell;
    use crate::report::{Style, assert_lines};

    #[test]
    fn cells_and_means_are_listed() {
        let cell = |x, first, ratio, high| ComparedCell::planted(x, first, [ratio, 0.25, high]);
        let cells = vec![cell(1.0, 0.010, 1.0, 1.0 / 0.9), cell(2.0, 0.080, 0.25, f64::INFINITY)];
        let (name, unit) = ("vgg16".to_owned(), "s".to_owned());
        let found = [Contrast { name, unit, baseline: 1, value: 4, cells, overall: None }];
        let text = scaling(&found).render(&Style::PLAIN);
        // By hand: the geometric mean of 1 and 4 is 2, half of the possible speed-up of 4 threads; 1/2 = s + (1 - s)/4 has s = 1/3; 1/(1/3 + 2/3/16) = 2.67,
        // 1/(1/3 + 2/3/64) = 2.91.
        let wanted = [
            "vgg16 1 4 10.0 ms 1.00 0.90 to 4.00 25 %",
            "vgg16 2 4 20.0 ms 4.00 unknown 100 %",
            "vgg16 4 2 2.00 50 % 33.3 % -, 2.7, 2.9",
        ];
        assert_lines(&text, &wanted);
        assert!(scaling(&[]).is_empty());
    }

    #[test]
    fn efficiency_and_the_effect_of_jumps_on_it_are_reported() {
        let cell = |batch_size, efficiency: f64| ParallelCell {
            batch_size,
            together: 0.010 / efficiency,
            efficiency,
            low: efficiency - 0.02,
            high: efficiency + 0.02,
            reducing: Some(0.25),
        };
        let cells = vec![cell(16.0, 0.8), cell(17.0, 0.96)];
        let jump = Beside { before: cells[0], behind: cells[1], alone_jumps: true, together_jumps: false };
        let found = [Parallel {
            name: "vgg16".into(),
            scaling: settings::Scaling::Weak,
            unit: "s".into(),
            fewest: 1,
            processes: 2,
            cells,
            jumps: vec![jump],
        }];
        let text = parallel(&found).render(&Style { width: 200, ..Style::PLAIN });
        let wanted = [
            "vgg16 weak 16 2 12.5 ms 80 % 78 to 82 % 25 %",
            "vgg16, weak, 2 processes: 1 of 2 batch sizes reach 95 % (a figure of builders of such platforms: measured by others).",
            "After batch size 16 the step of 1 jumps, and the efficiency rises: 80 % (78 to 82 %), then 96 % (94 to 98 %).",
        ];
        assert_lines(&text, &wanted);
        assert!(parallel(&[]).is_empty());
    }
}
