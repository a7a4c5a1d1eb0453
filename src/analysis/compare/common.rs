//! What runs have in common: why that may be nothing, and what helps.

use std::collections::BTreeSet;
use std::path::Path;

use super::Design;
use super::cells::Key;
use crate::error::{Error, Result};
use crate::foreign;
use crate::spec::Experiment;
use crate::units::human;

/// Names or sizes that a message lists.
const LISTED: usize = 3;

/// The error of two runs whose cells have these keys and share none of them, or in turns none in the same round.
pub(super) fn nothing_in_common<'a>(message: &str, runs: [impl Iterator<Item = &'a Key>; 2], design: Design) -> Error {
    let [a, b] = runs.map(|keys| keys.collect::<BTreeSet<&Key>>());
    let (of_a, of_b) = (groups(&a), groups(&b));
    if of_a.is_disjoint(&of_b) {
        return Error::data(format!("{message}: {} against {}", named(&of_a), named(&of_b))).hint(
            "give the series the same names on both sides, or name them by other columns with `--group`; a step of your own is called after its file",
        );
    }
    if design == Design::InTurns && !a.is_disjoint(&b) {
        return Error::data(format!("{message} in the same round")).hint(
            "the column `block` numbers the rounds, with the same numbers on both sides; without it, leave `--in-turns` out",
        );
    }
    let both: BTreeSet<&str> = of_a.intersection(&of_b).copied().collect();
    let (of_a, of_b) = (sizes(&a, &both), sizes(&b, &both));
    Error::data(format!("{message}: sizes {of_a} against {of_b}")).hint("measure the same sizes on both sides")
}

fn groups<'a>(keys: &BTreeSet<&'a Key>) -> BTreeSet<&'a str> {
    keys.iter().map(|key| key.group.as_str()).collect()
}

fn named(groups: &BTreeSet<&str>) -> String {
    let name = |group: &&str| match *group {
        "" => "a series without a name".to_owned(),
        name => format!("`{name}`"),
    };
    first_few(groups.iter().map(name))
}

/// Those of the series `groups`, ascending.
fn sizes(keys: &BTreeSet<&Key>, groups: &BTreeSet<&str>) -> String {
    let sizes: BTreeSet<u64> = keys.iter().filter(|key| groups.contains(key.group.as_str())).map(|key| key.x).collect();
    first_few(sizes.into_iter().map(|x| human::batch_size(f64::from_bits(x))))
}

fn first_few(all: impl Iterator<Item = String>) -> String {
    let mut listed: Vec<String> = all.take(LISTED + 1).collect();
    if listed.len() > LISTED {
        listed[LISTED] = "...".to_owned();
    }
    listed.join(", ")
}

/// Refuses specs of which one will have no cell in common with the first, before hours are spent on them. What varies beside the networks and
/// the sizes is seen only in what is measured.
///
/// # Errors
/// [`crate::error::Kind::Data`], at the path of that spec.
pub fn foreseen(specs: &[(&Path, Experiment)]) -> Result<()> {
    let [(_, first), others @ ..] = specs else { return Ok(()) };
    // As in [`super::step_names`].
    let by_name = !specs.iter().all(|(_, one)| one.own.is_some() && one.model.names.len() == 1);
    let keys = |one: &Experiment| {
        let mut keys = BTreeSet::new();
        for name in &one.model.names {
            let group = if by_name { foreign::name(name) } else { String::new() };
            keys.extend(one.batch_sizes.iter().map(|size| Key { group: group.clone(), x: (*size as f64).to_bits() }));
        }
        keys
    };
    let known = keys(first);
    for (path, other) in others {
        let own = keys(other);
        if known.is_disjoint(&own) {
            let message = "this spec has no cell in common with the first";
            let error = nothing_in_common(message, [known.iter(), own.iter()], Design::Separate);
            return Err(error.at(path.display().to_string()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two versions of one step, in files of any names, have their sizes in common; of several steps, the names say what is compared with what.
    #[test]
    fn several_steps_of_ones_own_need_the_same_names() {
        let step = |file: &str| {
            let text = format!("version = 1\nname = \"own\"\n[engine]\nstep = {file}\n[sweep]\nbatch_size = [1, 2]\n");
            (Path::new("b.toml"), Experiment::parse(&text, "a.toml").expect("a spec"))
        };
        assert!(foreseen(&[step("\"before.py\""), step("\"after.py\"")]).is_ok());
        let specs = [step("[\"one.py\", \"two.py\"]"), step("\"after.py\"")];
        let error = foreseen(&specs).expect_err("refused").to_string();
        assert!(error.contains("`one`, `two` against `after`"), "{error}");
    }
}
