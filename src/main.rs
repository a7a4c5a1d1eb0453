//! The command line: parse, dispatch, print the error once, exit code.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod cli;
mod commands;

use std::process::ExitCode;

use clap::Parser;

/// A training step frees and allocates the same large buffers over and over; see Cargo.toml.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hide_expected_panics();
    match commands::dispatch(cli::Cli::parse()) {
        Ok(code) => code.into(),
        Err(error) => {
            commands::notice(error);
            commands::Exit::Failed.into()
        }
    }
}

/// Panics that the library turns into errors are not printed; all others are printed as usual.
fn hide_expected_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !batchstep::store::is_expected(panic) {
            print(panic);
        }
    }));
}
