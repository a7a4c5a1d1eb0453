//! What more threads bring, as a table.

use super::{Document, Table};
use crate::analysis::scaling::Scaling;
use crate::units::human;

/// Threads for which the speed-up is modelled, where fewer were measured.
const MODELLED: [u32; 3] = [4, 16, 64];

/// Every cell, then the geometric means. Empty for nothing.
pub fn scaling(found: &[Scaling]) -> Document {
    let Some(first) = found.first() else { return Document::default() };
    let numbers = ["batch size", "threads", "time", "speed-up", "95 % interval", "efficiency"];
    let mut table = Table::of(&["series"], &numbers);
    for (scaling, gain) in found.iter().flat_map(|scaling| scaling.cells.iter().map(move |gain| (scaling, gain))) {
        table.row([
            scaling.name.clone(),
            human::batch_size(gain.x),
            scaling.threads.to_string(),
            human::quantity(gain.together, &scaling.unit),
            format!("{:.2}", gain.speed_up),
            // One block proves nothing.
            if gain.low > 0.0 { format!("{:.2} to {:.2}", gain.low, gain.high) } else { "unknown".to_owned() },
            percent(scaling.efficiency(gain.speed_up)),
        ]);
    }
    let mut document = Document::of_table("Scaling: more threads against the fewest", table);
    document.text(format!(
        "speed-up: the time on {} over the time on more; efficiency: its share of what as many threads could bring",
        human::counted(u64::from(first.fewest), "thread")
    ));
    document.append(means(found));
    document
}

fn means(found: &[Scaling]) -> Document {
    let on = format!("on {}", MODELLED.map(|threads| threads.to_string()).join(", "));
    let mut table = Table::of(&["series"], &["threads", "cells", "speed-up", "efficiency", "serial share", &on]);
    for scaling in found {
        let Some(mean) = scaling.mean_speed_up() else { continue };
        let modelled = |threads: u32| match threads > scaling.threads {
            true => format!("{:.1}", scaling.modelled(mean, threads)),
            false => "-".to_owned(),
        };
        table.row([
            scaling.name.clone(),
            scaling.threads.to_string(),
            human::count(scaling.cells.len() as u64),
            format!("{mean:.2}"),
            percent(scaling.efficiency(mean)),
            format!("{:.1} %", 100.0 * scaling.serial_share(mean)),
            MODELLED.map(modelled).join(", "),
        ]);
    }
    let mut document = Document::of_table("Scaling: geometric means", table);
    document.text(
        "serial share: of the time, what more threads did not shorten (Karp and Flatt 1990); on more threads: the speed-up if that share stays (formula: Amdahl's law)",
    );
    document
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scaling::Gain;
    use crate::report::{Style, assert_lines};

    #[test]
    fn cells_and_means_are_listed() {
        let gain = |x, together, speed_up, low| Gain { x, together, speed_up, low, high: 4.0 };
        let cells = vec![gain(1.0, 0.010, 1.0, 0.9), gain(2.0, 0.020, 4.0, 0.0)];
        let found = [Scaling { name: "vgg16".into(), unit: "s".into(), fewest: 1, threads: 4, cells }];
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
}
