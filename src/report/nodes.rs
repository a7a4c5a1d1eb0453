//! The machines that measured a series together.

use super::{Document, Table};
use crate::analysis::Analysed;
use crate::units::human;

/// More machines than that are listed by the slowest and the fastest.
const MOST: usize = 12;

/// A table of the machines, for each series that several machines measured: what each adds to all batch sizes. Empty if there is no such series.
pub fn nodes(found: &[Analysed]) -> Document {
    let mut document = Document::default();
    for Analysed { series, findings } in found.iter().filter(|found| !found.findings.nodes.is_empty()) {
        let mut nodes: Vec<_> = findings.nodes.iter().collect();
        nodes.sort_by(|a, b| b.relative.total_cmp(&a.relative));
        let count = nodes.len();
        let mut table = Table::of(&["machine"], &["slower by", "interval", "visits"]);
        let shown = |place: usize| count <= MOST || place < MOST / 2 || place >= count - MOST / 2;
        for (_, node) in nodes.iter().enumerate().filter(|(place, _)| shown(*place)) {
            table.row([
                node.name.clone(),
                format!("{:+.2} %", 100.0 * node.relative),
                format!("{:+.2} to {:+.2} %", 100.0 * node.low, 100.0 * node.high),
                human::count(node.visits as u64),
            ]);
        }
        let rest = if count > MOST { format!("; the {} slowest and fastest of them", MOST / 2) } else { String::new() };
        document.heading(format!("{}: {}{rest}", series.label(), human::counted(count as u64, "machine")));
        document.table(table);
    }
    document
}
