//! `batchstep doctor`: the hardware and libraries that this machine has.

use batchstep::device::root::FilesystemRoot;
use batchstep::doctor;
use batchstep::error::Result;

use super::{Exit, print};
use crate::cli::{DoctorArgs, Form};

pub fn doctor(args: &DoctorArgs) -> Result<Exit> {
    if args.topology {
        let examined = doctor::examine_topology(&FilesystemRoot::system(), true);
        match args.format {
            Form::Json => print(&format!("{:#}\n", serde_json::json!({"version": 1, "topology": examined}))),
            Form::Table => print(&doctor::render_topology(&examined)),
        }
        return Ok(Exit::Done);
    }
    let findings = doctor::examine(&doctor::Roots::system());
    match args.format {
        Form::Json => print(&format!("{:#}\n", serde_json::json!({"version": 1, "findings": findings}))),
        Form::Table => print(&doctor::render(&findings)),
    }
    Ok(Exit::Done)
}
