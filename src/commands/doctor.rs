//! `batchstep doctor`: the hardware and libraries that this machine has.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use batchstep::check::doctor::{self, Bundle, Checked, Evidence, Private, Tried};
use batchstep::check::precheck::{last_comparison, last_failure};
use batchstep::check::selftest::{self, CheckFilter};
use batchstep::device::account::account;
use batchstep::device::root::FilesystemRoot;
use batchstep::engine::contact;
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::error::Result;
use batchstep::os::atomic;
use batchstep::settings::EngineName;

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
        print(&format!("{}\n", serde_json::json!(try_engine())));
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
    let findings = doctor::judge(&evidence);
    let read = |name: &str| std::env::var(name).ok();
    let host = FilesystemRoot::system().text("/proc/sys/kernel/hostname");
    let private = Private::of_system(host.as_deref(), account().as_ref(), &read);
    let cache = super::qualify::cache();
    let (last_failure, last_comparison) = (last_failure(&cache), last_comparison(&cache));
    let write = |tried: &Tried| -> Result<usize> {
        let (last_failure, last_comparison) = (last_failure.clone(), last_comparison.clone());
        let bundle = Bundle { evidence: &evidence, findings: &findings, tried, last_failure, last_comparison };
        let text = bundle.to_json(&private, &read);
        atomic::write_text(path, &text)?;
        Ok(text.len())
    };
    write(&Tried::not("batchstep was ended before the checks were"))?;
    notice(format!("checking the GPU's engine, where there is one, for at most {} minutes", DEADLINE.as_secs() / 60));
    let tried = match std::env::current_exe() {
        Ok(program) => {
            let mut command = Command::new(program);
            command.args(["doctor", "--try-engine"]);
            Tried::by(command, DEADLINE)
        }
        Err(error) => Tried::not(&format!("this program's own file is not known: {error}")),
    };
    let bytes = write(&tried)?;
    print(&format!(
        "{}: {:.0} kB, without private paths and names; look through it, and attach it to a report\n",
        path.display(),
        (bytes as f64 / 1000.0).ceil()
    ));
    Ok(Exit::Done)
}

fn try_engine() -> Tried {
    let mut engines = match Engines::open(&[EngineName::Cudnn], DeviceChoice::Cuda(0), None) {
        Ok(engines) => engines,
        Err(error) => {
            let checked = Checked::Not("the GPU's engine cannot be opened".to_owned());
            return Tried { engine: Err(error.to_string()), checked, refusals: Vec::new() };
        }
    };
    match engines.get(EngineName::Cudnn) {
        Ok(engine) => {
            let (software, started) = (engine.version().unwrap_or_default(), Instant::now());
            let mut is_over = || started.elapsed() > PATIENCE;
            let reference = &mut Engines::reference();
            let found = selftest::first_failure(engine, reference.as_mut(), &CheckFilter::default(), &mut is_over);
            Tried { engine: Ok(software), checked: checked(found), refusals: engine.refusals() }
        }
        Err(error) => Tried::not(&error.to_string()),
    }
}

fn checked(found: Result<(usize, Option<selftest::Failure>)>) -> Checked {
    match found {
        Ok((passed, None)) => Checked::Passed(passed),
        Ok((after, Some(failure))) => {
            let check = serde_json::to_value(&failure).unwrap_or_default();
            Checked::Failed { after, check }
        }
        Err(error) => Checked::Not(error.to_string()),
    }
}
