//! What the program writes to its two streams. Nothing else writes there: a stream that cannot be written, such as a pipe whose
//! reader has gone (`| head`) or a full disk (`2>/dev/full`), must not end a run.

use std::fmt::Display;
use std::io::Write;

use batchstep::foreign;
use batchstep::store::Sealed;

/// Writes a result to stdout; control characters in quoted text are made harmless.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(foreign::output(text).as_bytes());
}

/// Writes progress or a warning to stderr, likewise.
pub fn print_aside(text: &str) {
    let _ = std::io::stderr().write_all(foreign::output(text).as_bytes());
}

/// Writes a sentence of the program's own to stderr.
pub fn notice(what: impl Display) {
    print_aside(&format!("{}\n", foreign::message(&format!("batchstep: {what}"))));
}

/// Says what sealing a run found; whether nothing is left to resume.
pub fn is_complete(sealed: Sealed) -> bool {
    sealed.notices.iter().for_each(notice);
    sealed.complete
}
