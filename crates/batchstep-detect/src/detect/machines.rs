//! What each of the machines that measured a series adds to it, and which machines should be named.

use std::fmt;

/// What one machine adds to all x.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEffect {
    pub name: String,
    /// Its visits, or steps where visits are not known.
    pub visits: usize,
    /// The share by which it is slower than the middle of all machines; negative if it is faster.
    pub relative: f64,
    /// Two standard errors below and above.
    pub low: f64,
    pub high: f64,
}

/// A machine that is significantly slower or faster than the others, by more than machines of one kind usually differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub name: String,
    /// The machine with which it is compared; `None` for the middle of all machines.
    pub than: Option<String>,
    /// The share by which it is slower; negative if it is faster.
    pub relative: f64,
    /// Two standard errors below and above.
    pub low: f64,
    pub high: f64,
}

/// The least difference for which a machine is named: machines of one kind differ by a percent or two.
const WORTH: f64 = 0.02;

/// The machines that stand out, with their differences. If there are two, the slower one is compared with the other,
/// since neither is the middle.
pub fn differences(machines: &[NodeEffect]) -> Vec<Difference> {
    let mut found: Vec<Difference> = match machines {
        [one, two] => vec![if one.relative < two.relative { between(two, one) } else { between(one, two) }],
        all => all.iter().map(of_middle).collect(),
    };
    found.retain(|difference| difference.relative.abs() >= WORTH && difference.low * difference.high > 0.0);
    found.sort_by(|a, b| b.relative.abs().total_cmp(&a.relative.abs()));
    found
}

fn of_middle(machine: &NodeEffect) -> Difference {
    let NodeEffect { name, relative, low, high, .. } = machine;
    Difference { name: name.clone(), than: None, relative: *relative, low: *low, high: *high }
}

fn between(slower: &NodeEffect, faster: &NodeEffect) -> Difference {
    let log = |machine: &NodeEffect| machine.relative.ln_1p();
    let error = |machine: &NodeEffect| log(machine) - machine.low.ln_1p();
    let (middle, reach) = (log(slower) - log(faster), error(slower).hypot(error(faster)));
    let [relative, low, high] = [middle, middle - reach, middle + reach].map(f64::exp_m1);
    Difference { name: slower.name.clone(), than: Some(faster.name.clone()), relative, low, high }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.relative > 0.0 { "slower" } else { "faster" };
        let than = self.than.as_deref().unwrap_or("the middle of all");
        write!(f, "{} is {:.1} % {way} than {than}", self.name, 100.0 * self.relative.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, relative: f64) -> NodeEffect {
        let [low, high] = [-0.004f64, 0.004].map(|off| (relative.ln_1p() + off).exp_m1());
        NodeEffect { name: name.into(), visits: 100, relative, low, high }
    }

    #[test]
    fn of_two_machines_the_slower_one_is_compared_with_the_other() {
        // 1.015 / 0.985 = 1.03046, and 0.004 sqrt(2) = 0.00566 on each side of its logarithm
        let found = differences(&[machine("a", -0.015), machine("b", 0.015)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "b is 3.0 % slower than a");
        assert!((found[0].relative - 0.030_457).abs() < 1e-6 && (found[0].low - 0.024_645).abs() < 1e-6, "{found:?}");
        assert_eq!(differences(&[machine("a", -0.005), machine("b", 0.005)]), []);
    }

    #[test]
    fn of_more_each_is_compared_with_the_middle() {
        let machines = [machine("a", 0.0), machine("b", 0.031), machine("c", -0.05), machine("d", 0.004)];
        let texts: Vec<String> = differences(&machines).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["c is 5.0 % faster than the middle of all", "b is 3.1 % slower than the middle of all"]);
        let unsure = NodeEffect { low: -0.01, high: 0.07, ..machine("e", 0.03) };
        assert_eq!(differences(&[unsure, machine("a", 0.0), machine("d", 0.0)]), []);
    }
}
