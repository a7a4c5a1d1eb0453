//! The machines that measured series together, in a sentence.

use std::collections::BTreeMap;

use crate::analysis::Analysed;
use crate::detect::{Difference, NodeEffect, differences};
use crate::stats::quantile::median;
use crate::units::human;

/// A sentence on how many machines measured the series together, by how much they differ, and which stand out; `None` for a single machine.
///
/// With several series, the value of a machine is the median of what it adds to each series.
pub fn machines(found: &[Analysed]) -> Option<String> {
    let all = pooled(found);
    let relative = || all.iter().map(|machine| machine.relative.ln_1p());
    let span = relative().fold(f64::NEG_INFINITY, f64::max) - relative().fold(f64::INFINITY, f64::min);
    let apart: Vec<String> = differences(&all).iter().map(Difference::to_string).collect();
    let apart = match apart.len() {
        0 => "none of them stands out".to_owned(),
        1..=NAMED => human::listed(&apart),
        count => format!("{count} of them stand out, {} the most", human::listed(&apart[..NAMED])),
    };
    (all.len() > 1).then(|| {
        let (count, span) = (human::counted(all.len() as u64, "machine"), 100.0 * span.exp_m1());
        format!("Measured on {count} that differ by {span:.1} % at most, which is subtracted; {apart}.")
    })
}

/// Machines that a sentence names.
const NAMED: usize = 2;

fn pooled(found: &[Analysed]) -> Vec<NodeEffect> {
    let mut series: BTreeMap<&str, Vec<&NodeEffect>> = BTreeMap::new();
    for node in found.iter().flat_map(|found| &found.findings.nodes) {
        series.entry(&node.name).or_default().push(node);
    }
    let one = |(name, own): (&str, Vec<&NodeEffect>)| {
        let middle =
            |value: fn(&NodeEffect) -> f64| median(&mut own.iter().map(|node| value(node)).collect::<Vec<_>>());
        NodeEffect {
            name: name.to_owned(),
            visits: own.iter().map(|node| node.visits).sum(),
            relative: middle(|node| node.relative),
            low: middle(|node| node.low),
            high: middle(|node| node.high),
        }
    };
    series.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Series;
    use crate::detect::Findings;

    fn found(machines: &[(&str, f64)]) -> Analysed {
        let node = |&(name, relative): &(&str, f64)| {
            let (low, high) = (relative - 0.005, relative + 0.005);
            NodeEffect { name: name.to_owned(), visits: 100, relative, low, high }
        };
        let findings = Findings { nodes: machines.iter().map(node).collect(), ..Findings::default() };
        Analysed { series: Series::planted(Vec::new(), Vec::new()), findings }
    }

    #[test]
    fn a_sentence_says_how_many_machines_and_which_is_slow() {
        let three = found(&[("gpu-1", 0.0), ("gpu-2", 0.052), ("gpu-3", -0.01)]);
        // 1.052 / 0.99 = 1.0626
        assert_eq!(
            machines(std::slice::from_ref(&three)).as_deref(),
            Some(
                "Measured on 3 machines that differ by 6.3 % at most, which is subtracted; gpu-2 is 5.2 % slower than the middle of all."
            )
        );
        // The middle over series: of 0.052 and 0.032, 0.042.
        let other = found(&[("gpu-1", 0.0), ("gpu-2", 0.032), ("gpu-3", -0.01)]);
        let sentence = machines(&[three, other]).expect("a sentence");
        assert!(sentence.contains("gpu-2 is 4.2 % slower"), "{sentence}");
        let two = machines(&[found(&[("a", 0.004), ("b", -0.004)])]).expect("a sentence");
        assert_eq!(
            two,
            "Measured on 2 machines that differ by 0.8 % at most, which is subtracted; none of them stands out."
        );
        assert_eq!(machines(&[found(&[])]), None);
    }
}
