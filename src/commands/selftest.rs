//! `batchstep selftest`: does this machine compute what it should?

use batchstep::check::selftest::{self, Check, CheckFilter};
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::error::Result;

use super::{Exit, notice, print};
use crate::cli::SelftestArgs;

pub fn selftest(args: &SelftestArgs) -> Result<Exit> {
    let name = selftest::engine(&args.engine)?;
    let mut engines = Engines::open(&[name], DeviceChoice::parse(&args.device)?, None)?;
    engines.notices.iter().for_each(notice);
    let engine = engines.get(name)?;
    print(&format!(
        "{} ({}) against the reference in double precision; errors, with the largest that passes in brackets\n",
        engine.device().name,
        engine.device().id
    ));
    let choice = CheckFilter { only: args.only.clone(), skip: args.skip.clone() };
    let checks = selftest::run(engine, Engines::reference().as_mut(), &choice, |check| print(&line(check)))?;
    let failed = checks.iter().filter(|check| !check.passed()).count();
    print(&format!("\n{} passed, {failed} failed\n", checks.len() - failed));
    Ok(if failed == 0 { Exit::Done } else { Exit::Failed })
}

fn line(check: &Check) -> String {
    let word = if check.passed() { "ok    " } else { "FAILED" };
    let Check { name, way, batch_size, .. } = check;
    let part = |(what, (_, error, most)): (&str, (&str, f64, f64))| match most.is_finite() {
        true => format!("  {what} {error:.0e} ({most:.0e})"),
        false => format!("  {what} {error:.0e} (any)"),
    };
    let names = ["output", "gradients", "update", "first loss", "losses"];
    let errors: String = names.into_iter().zip(check.parts()).map(part).collect();
    format!("{word}  {name:<42} {way:<28} batch {batch_size:>2} {}\n", errors)
}
