//! What the engines compute is checked before anything is timed; see [`batchstep::check::precheck`].

use batchstep::check::precheck::{self, Asked, Qualified, Witness};
use batchstep::engine::open::Engines;
use batchstep::error::Result;
use batchstep::os::cache::Cache;
use batchstep::spec::plan::Plan;

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
/// As [`qualification::qualify`].
pub fn qualify(plan: &Plan, engines: &mut Engines, asked: Asked) -> Result<Qualified> {
    precheck::qualify(plan, engines, asked, &cache(), &mut Said)
}
