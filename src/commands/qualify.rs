//! What the engines compute is checked before anything is timed; see [`batchstep::qualification`].

use batchstep::cache::Cache;
use batchstep::engine::Replacement;
use batchstep::engine::open::Engines;
use batchstep::error::Result;
use batchstep::plan::Plan;
use batchstep::qualification::{self, Asked, Qualified, Witness};
use batchstep::report::Warning;
use batchstep::run;
use batchstep::settings::EngineName;

use super::notice;
use crate::cli::Qualify;

/// Writes what a check of the engines says.
struct Said;

impl Witness for Said {
    fn begins(&mut self, what: &str) {
        notice(what);
    }

    fn notes(&mut self, what: &str) {
        notice(what);
    }
}

/// Which engines are checked where the user says so.
pub fn asked(qualify: Qualify) -> Asked {
    match qualify {
        Qualify::Auto => Asked::Gpu,
        Qualify::Always => Asked::Every,
        Qualify::Never => Asked::None,
    }
}

/// What passed, and what failed last.
pub fn cache() -> Cache {
    Cache::of_user("qualified", &|name| std::env::var_os(name))
}

/// Checks the engines; the user's cache knows which checks they passed before.
///
/// # Errors
/// As [`qualification::settle`], and as [`run::check`] if `auto` selects another engine after the check.
pub fn qualify(plan: &Plan, engines: &mut Engines, asked: Asked) -> Result<Qualified> {
    let cache = cache();
    let taken = engines.resolve(EngineName::Auto);
    let qualified = qualification::settle(plan, engines, asked, &cache, &mut Said)?;
    if engines.resolve(EngineName::Auto) != taken {
        run::check(plan, engines)?;
    }
    Ok(qualified)
}

/// What a library computes in a study that stores no layers.
pub fn warning(replaced: &[Replacement]) -> Option<Warning> {
    let what = replaced.iter().map(|Replacement { operator, why }| format!("{operator}: {why}")).collect();
    (!replaced.is_empty()).then_some(Warning::Replaced { what })
}
