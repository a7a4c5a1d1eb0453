//! The command line: parse, dispatch, print the error once, exit code.

mod cli;
mod commands;

use std::process::ExitCode;

use clap::Parser;

/// A training step frees and allocates the same large buffers over and over; see Cargo.toml.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tell_panics();
    match commands::dispatch(cli::Cli::parse()) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("batchstep: {error}");
            commands::Exit::Failed.into()
        }
    }
}

/// Panics that the library expects and turns into errors stay off the screen; all others are told as ever.
fn tell_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !batchstep::store::is_expected(panic) {
            tell(panic);
        }
    }));
}
