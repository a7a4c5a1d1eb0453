//! `batchstep doctor`: the hardware and libraries that this machine has.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use batchstep::check::doctor::{self, Evidence, Private};
use batchstep::check::precheck::{last_comparison, last_failure};
use batchstep::device::account::account;
use batchstep::device::root::FilesystemRoot;
use batchstep::engine::contact;
use batchstep::error::Result;
use batchstep::os::atomic;
use serde_json::Value;

use super::{Exit, notice, print};
use crate::cli::{DoctorArgs, Form};

/// The time that a bundle gives the GPU's engine to fail in.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same, including the time to open the engine, to compile its kernels, and for the check that runs when the time is over.
const DEADLINE: Duration = Duration::from_secs(240);

pub fn doctor(args: &DoctorArgs) -> Result<Exit> {
    if args.topology {
        let examined = doctor::examine_topology(&FilesystemRoot::system());
        match args.format {
            Form::Json => print(&format!("{:#}\n", serde_json::json!({"version": 1, "topology": examined}))),
            Form::Table => print(&doctor::render_topology(&examined)),
        }
        return Ok(Exit::Done);
    }
    if let Some(path) = &args.bundle {
        return bundle(path);
    }
    if args.try_engine {
        print(&format!("{}\n", doctor::try_here(PATIENCE)));
        return Ok(Exit::Done);
    }
    if let Some(ordinal) = args.first_contact {
        return contact::try_here(ordinal, &mut |part| print(&format!("{part}\n"))).map(|()| Exit::Done);
    }
    let findings = doctor::judge(&Evidence::gather());
    match args.format {
        _ if args.fix => print(&doctor::render_fix(&findings)),
        Form::Json => print(&format!("{:#}\n", serde_json::json!({"version": 1, "findings": findings}))),
        Form::Table => print(&doctor::render(&findings)),
    }
    Ok(Exit::Done)
}

/// Writes the bundle once before the checks and again with their results, so that a file exists even if a check crashes the machine.
fn bundle(path: &Path) -> Result<Exit> {
    let evidence = Evidence::gather();
    let read = |name: &str| std::env::var(name).ok();
    let host = FilesystemRoot::system().text("/proc/sys/kernel/hostname");
    let private = Private::of_system(host.as_deref(), account().as_ref(), &read);
    let cache = super::qualify::cache();
    let (failure, comparison) = (last_failure(&cache), last_comparison(&cache));
    let write = |tried: &Value| -> Result<usize> {
        let text = doctor::bundle(&evidence, tried, failure.as_deref(), comparison.as_deref(), &private, &read);
        atomic::write_text(path, &text)?;
        Ok(text.len())
    };
    write(&doctor::not_tried("batchstep was ended before the checks were"))?;
    notice(format!("checking the GPU's engine, where there is one, for at most {} minutes", DEADLINE.as_secs() / 60));
    let tried = match std::env::current_exe() {
        Ok(program) => {
            let mut command = Command::new(program);
            command.args(["doctor", "--try-engine"]);
            doctor::try_by(command, DEADLINE)
        }
        Err(error) => doctor::not_tried(&format!("this program's own file is not known: {error}")),
    };
    let bytes = write(&tried)?;
    print(&format!(
        "{}: {:.0} kB, without private paths and names; look through it, and attach it to a report\n",
        path.display(),
        (bytes as f64 / 1000.0).ceil()
    ));
    Ok(Exit::Done)
}
