//! What measures time or memory, or counts allocations: nothing else may run meanwhile. `cargo test` runs one binary after the other, and in this
//! one each test holds [`alone`].

mod allocations;
mod measured_twice;
#[path = "../needs/mod.rs"]
mod needs;
mod scale;
mod stairs;
#[allow(dead_code)]
#[path = "../program/support.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

/// While it is held, the other tests of this binary wait. A test that fails with it leaves nothing behind that another would meet.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
