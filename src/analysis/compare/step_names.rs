//! The names of the user's own steps: two versions of a step may lie in files of different names.

use crate::analysis::Series;
use crate::settings::EngineName;

const NAME: &str = "model";

/// What the sides' steps are called, if each side is of one step of the user's own and these names differ. They then name the versions, and do not
/// distinguish cells.
pub fn step_names<'a, S: IntoIterator<Item = &'a Series>>(sides: impl IntoIterator<Item = S>) -> Option<Vec<&'a str>> {
    let names: Vec<&str> = sides.into_iter().map(step_name).collect::<Option<_>>()?;
    names.iter().any(|name| *name != names[0]).then_some(names)
}

/// The column that does not distinguish cells of these sides, if there is one.
pub(super) fn left_out<'a, S: IntoIterator<Item = &'a Series>>(
    sides: impl IntoIterator<Item = S>,
) -> Option<&'static str> {
    step_names(sides).map(|_| NAME)
}

fn step_name<'a, S: IntoIterator<Item = &'a Series>>(side: S) -> Option<&'a str> {
    let mut names = side.into_iter().map(own_name);
    let first = names.next()??;
    names.all(|name| name == Some(first)).then_some(first)
}

/// What the step of a series is called; `None` if it is not the user's own.
fn own_name(series: &Series) -> Option<&str> {
    let engine = series.facts.get("engine").and_then(|name| EngineName::from_name(name));
    series.value(NAME).filter(|_| engine.is_some_and(EngineName::is_own))
}
