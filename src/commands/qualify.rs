//! What is looked at before anything is timed: whether anything here executes the settings ([`batchstep::run::left_out`]), and whether the engines
//! compute what they should ([`batchstep::check::precheck`]).

use batchstep::check::precheck::{self, Asked};
use batchstep::engine::open::Engines;
use batchstep::error::Result;
use batchstep::os::cache::Cache;
use batchstep::report::Warning;
use batchstep::run::left_out::{self, LeftOut};
use batchstep::settings::{EngineName, Grid};
use batchstep::spec::plan::Plan;

use super::notice;

/// Which engines are checked where the user says so.
pub fn asked(qualify: &str) -> Asked {
    match qualify {
        "always" => Asked::Every,
        "never" => Asked::None,
        _ => Asked::Gpu,
    }
}

/// What passed, and what failed last.
pub fn cache() -> Cache {
    Cache::of_user("qualified", &|name| std::env::var_os(name))
}

/// Checks the engines; the user's cache knows which checks they passed before.
pub fn qualify(plan: &Plan, engines: &mut Engines, asked: Asked) -> Result<Vec<Option<bool>>> {
    precheck::qualify(plan, engines, asked, &cache(), &mut |what| notice(what))
}

/// Leaves settings that nothing here executes out of the axes, says each, and gives the warning for the end.
pub fn drop_unsupported(grid: &mut Grid, names: &[EngineName], engines: &mut Engines) -> Result<Option<Warning>> {
    let LeftOut { of_all, of_some } = left_out::drop_unsupported(grid, names, engines)?;
    of_some.iter().for_each(notice);
    of_all.iter().for_each(|what| notice(format!("left out: {what}")));
    Ok((!of_all.is_empty()).then_some(Warning::LeftOut { what: of_all }))
}
