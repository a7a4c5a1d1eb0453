//! Memory that ends where a protected page begins, so that reading past a slice is detected as well as writing there;
//! and a message with the name of the kernel that did it, or that broke another rule which the compiler's checks
//! enforce.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Once;

/// Above every page size in use.
const FORBIDDEN: usize = 64 << 10;

/// Bytes, followed by protected pages.
#[derive(Debug)]
pub struct Pages {
    base: *mut u8,
    bytes: usize,
}

impl Pages {
    /// At least `bytes`, all of them `fill`.
    pub fn new(bytes: usize, fill: u8) -> Self {
        let bytes = bytes.next_multiple_of(FORBIDDEN);
        // SAFETY: new memory, whose last pages are then protected.
        let base = unsafe {
            let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let base = libc::mmap(std::ptr::null_mut(), bytes + FORBIDDEN, access, kind, -1, 0);
            assert!(base != libc::MAP_FAILED, "no memory for {bytes} bytes");
            let behind = base.cast::<u8>().add(bytes).cast();
            assert_eq!(libc::mprotect(behind, FORBIDDEN, libc::PROT_NONE), 0, "pages that may not be touched");
            base.cast::<u8>()
        };
        let mut pages = Self { base, bytes };
        pages.as_mut().fill(fill);
        pages
    }

    /// Where they begin, for a kernel.
    pub fn address(&self) -> u64 {
        self.base as u64
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: that many bytes are there, and ours.
        unsafe { std::slice::from_raw_parts(self.base, self.bytes) }
    }
}

impl AsMut<[u8]> for Pages {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed as long as the result.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped once, with that length, and given back once.
        unsafe { libc::munmap(self.base.cast(), self.bytes + FORBIDDEN) };
    }
}

thread_local! {
    /// The kernel that this thread runs.
    static RUNNING: Cell<&'static str> = const { Cell::new("") };
}

/// Runs a kernel of that name. Where it breaks a rule, the name is printed and the process ends.
pub fn watched<R>(kernel: &'static str, run: impl FnOnce() -> R) -> R {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGTRAP] {
            // SAFETY: the handler calls what a handler may call.
            unsafe { libc::signal(signal, report as *const () as libc::sighandler_t) };
        }
    });
    RUNNING.set(kernel);
    let done = run();
    RUNNING.set("");
    done
}

const BROKEN: &str = " reads outside of its slices, or at an address that is not a multiple of the access, or computes what C++ \
                      leaves undefined\n";

extern "C" fn report(signal: c_int) {
    // SAFETY: a text and its length.
    let say = |text: &str| unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast::<c_void>(), text.len()) };
    let kernel = RUNNING.get();
    if !kernel.is_empty() {
        for text in ["\nkernel ", kernel, BROKEN] {
            say(text);
        }
    }
    // SAFETY: the signal comes again when this returns, and then ends the process as it would have.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}
