//! Settings that nothing here executes; see [`batchstep::run::left_out`].

use batchstep::engine::open::Engines;
use batchstep::error::Result;
use batchstep::report::Warning;
use batchstep::run::left_out::{self, LeftOut};
use batchstep::settings::{EngineName, Grid};

use super::notice;

/// Leaves them out of the axes, says each, and gives the warning for the end.
///
/// # Errors
/// As [`left_out::drop_unsupported`].
pub fn drop_unsupported(grid: &mut Grid, names: &[EngineName], engines: &mut Engines) -> Result<Option<Warning>> {
    let LeftOut { of_all, of_some } = left_out::drop_unsupported(grid, names, engines)?;
    of_some.iter().for_each(notice);
    of_all.iter().for_each(|what| notice(format!("left out: {what}")));
    Ok((!of_all.is_empty()).then_some(Warning::LeftOut { what: of_all }))
}
