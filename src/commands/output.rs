//! What the program writes to its two streams. Nothing else writes there: a stream that cannot be written, such as a pipe whose
//! reader has gone (`| head`) or a full disk (`2>/dev/full`), must not end a run.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

use batchstep::error::{Error, Kind, Result};
use batchstep::foreign;
use batchstep::store::Sealed;

/// Why a result could not be written to stdout. That its reader has gone is no failure.
static UNWRITTEN: OnceLock<std::io::Error> = OnceLock::new();

/// Writes a result to stdout; control characters in quoted text are made harmless.
pub fn print(text: &str) {
    let mut stdout = std::io::stdout();
    let written = stdout.write_all(foreign::output(text).as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        // The first error is the cause.
        let _ = UNWRITTEN.set(error);
    }
}

/// Whether all of the result was written.
///
/// # Errors
/// [`Kind::Io`] where a part of it was not.
pub fn written() -> Result<()> {
    match UNWRITTEN.get() {
        None => Ok(()),
        Some(error) => Err(Error::new(Kind::Io, format!("the output could not be written: {error}"))
            .hint("see where stdout goes: free some space there, or choose another place")),
    }
}

/// Writes progress or a warning to stderr, likewise.
pub fn print_aside(text: &str) {
    let _ = std::io::stderr().write_all(foreign::output(text).as_bytes());
}

/// Writes a sentence of the program's own to stderr.
pub fn notice(what: impl Display) {
    print_aside(&format!("{}\n", foreign::message(&format!("batchstep: {what}"))));
}

/// An addition to the answer is left out, with a notice, if its table cannot be read.
pub fn or_said<T: Default>(lacking: &str, read: Result<T>) -> T {
    read.unwrap_or_else(|error| {
        notice(format!("{lacking}: {error}"));
        T::default()
    })
}

/// Says what sealing a run found; whether nothing is left to resume.
pub fn is_complete(sealed: Sealed) -> bool {
    sealed.notices.iter().for_each(notice);
    sealed.complete
}
