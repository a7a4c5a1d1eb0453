//! `batchstep completions` and `batchstep man`: from the command line's own definition.

use batchstep::error::{Error, Result};
use clap::CommandFactory;

use super::{Exit, print};
use crate::cli::{Cli, CompletionsArgs, ManArgs};

pub fn completions(args: &CompletionsArgs) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "batchstep", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}

/// A page for the program and one for each command.
pub fn man(args: &ManArgs) -> Result<Exit> {
    let failed = |e: std::io::Error| Error::io("write the manual pages", &args.folder, &e);
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.folder).map_err(failed)?;
    print(&format!("{}\n", args.folder.display()));
    Ok(Exit::Done)
}
