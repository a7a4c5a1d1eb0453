//! The command line: parse, dispatch, print the error once, exit code.

mod cli;
mod commands;

use std::process::ExitCode;

use clap::Parser;

/// A training step frees and allocates the same large buffers over and over; see Cargo.toml.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::dispatch(cli::Cli::parse()) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("batchstep: {error}");
            commands::Exit::Failed.into()
        }
    }
}
