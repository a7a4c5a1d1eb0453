//! `batchstep doctor`: the hardware and libraries that this machine has.

use std::path::Path;
use std::time::{Duration, Instant};

use batchstep::atomic;
use batchstep::device::root::FilesystemRoot;
use batchstep::doctor::{self, Bundle, Checked, Evidence, Private, Roots};
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::error::Result;
use batchstep::selftest::{self, Choice};
use batchstep::settings::EngineName;

use super::{Exit, print};
use crate::cli::{DoctorArgs, Form};

/// The time that a bundle gives the GPU's engine to fail in.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn doctor(args: &DoctorArgs) -> Result<Exit> {
    if args.topology {
        let examined = doctor::examine_topology(&FilesystemRoot::system(), true);
        match args.format {
            Form::Json => print(&format!("{:#}\n", serde_json::json!({"version": 1, "topology": examined}))),
            Form::Table => print(&doctor::render_topology(&examined)),
        }
        return Ok(Exit::Done);
    }
    if let Some(path) = &args.bundle {
        return bundle(path);
    }
    let findings = doctor::examine(&Roots::system());
    match args.format {
        _ if args.fix => print(&doctor::render_fix(&findings)),
        Form::Json => print(&format!("{:#}\n", serde_json::json!({"version": 1, "findings": findings}))),
        Form::Table => print(&doctor::render(&findings)),
    }
    Ok(Exit::Done)
}

fn bundle(path: &Path) -> Result<Exit> {
    let evidence = Evidence::gather(&Roots::system());
    let findings = doctor::judge(&evidence);
    let (engine, checked) = match Engines::open(&[EngineName::Cudnn], DeviceChoice::Cuda(0), None) {
        Ok(mut engines) => {
            eprintln!("batchstep: checking the GPU's engine for at most a minute");
            let engine = engines.get(EngineName::Cudnn)?;
            let (software, started) = (engine.version().unwrap_or_default(), Instant::now());
            let mut is_over = || started.elapsed() > PATIENCE;
            let reference = &mut Engines::reference();
            let found = selftest::first_failure(engine, reference.as_mut(), &Choice::default(), &mut is_over);
            (Ok(software), checked(found))
        }
        Err(error) => (Err(error.to_string()), Checked::Not("the GPU's engine cannot be opened".to_owned())),
    };
    let read = |name: &str| std::env::var(name).ok();
    let host = FilesystemRoot::system().text("/proc/sys/kernel/hostname");
    let private = Private::of_system(host.as_deref(), &read);
    let text = Bundle { evidence: &evidence, findings: &findings, engine, checked }.to_json(&private, &read);
    atomic::write_text(path, &text)?;
    print(&format!(
        "{}: {:.0} kB, without private paths and names; look through it, and attach it to a report\n",
        path.display(),
        (text.len() as f64 / 1000.0).ceil()
    ));
    Ok(Exit::Done)
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
