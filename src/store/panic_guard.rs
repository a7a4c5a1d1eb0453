//! Panics that are expected: polars panics over some damaged files, which is an error like any other here.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// How many guards this thread is within.
    static WITHIN: Cell<usize> = const { Cell::new(0) };
}

/// The same for all threads: polars hands part of its work to its own threads.
static ANYWHERE: AtomicUsize = AtomicUsize::new(0);

/// Does the work; `None` where it panicked.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    WITHIN.set(WITHIN.get() + 1);
    ANYWHERE.fetch_add(1, Ordering::SeqCst);
    let done = std::panic::catch_unwind(AssertUnwindSafe(work)).ok();
    WITHIN.set(WITHIN.get() - 1);
    ANYWHERE.fetch_sub(1, Ordering::SeqCst);
    done
}

/// Whether a panic is one that the store turns into an error of its own, so that a program's panic hook need not report it: it
/// comes from another crate's code, while a file is read. Panics of this crate's own code never are.
#[must_use]
pub fn is_expected(panic: &PanicHookInfo) -> bool {
    let within = WITHIN.try_with(Cell::get).unwrap_or(0) > 0;
    let of_polars = || {
        let thread = std::thread::current();
        ANYWHERE.load(Ordering::SeqCst) > 0 && thread.name().is_some_and(|name| name.starts_with("polars-"))
    };
    (within || of_polars()) && !panic.location().is_some_and(|place| is_ours(place.file()))
}

/// Whether a source file is one of this crate.
fn is_ours(file: &str) -> bool {
    let root = file!().strip_suffix("store/panic_guard.rs");
    root.is_some_and(|root| file.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_the_guard_ends_with_it() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u8 { std::panic::panic_any("polars says so") }), None);
        assert_eq!(WITHIN.get(), 0);
        assert_eq!(guarded(|| WITHIN.get()), Some(1));
    }

    #[test]
    fn this_crates_files_are_distinguished_from_those_of_others() {
        assert!(is_ours(file!()));
        assert!(is_ours(&file!().replace("guard.rs", "table.rs")));
        assert!(!is_ours("/registry/src/polars-parquet-0.55.2/src/lib.rs"));
        assert!(!is_ours("/rustc/library/alloc/src/raw_vec.rs"));
    }
}
