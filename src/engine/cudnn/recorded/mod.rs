//! A GPU for tests that computes nothing: every call of the driver, cuDNN, cuBLASLt and NVRTC that the engine makes is
//! recorded and answered with success, or, if a test asks for it, with a fault. It is used to test what the engine does
//! when a call fails ([`crate::run`]'s tests).
//!
//! The calls end here, in this process: no NVIDIA library is loaded or replaced. Numbers that are read back from the
//! device are those with which its memory was last filled; no kernel runs.
//!
//! A recording covers the whole process, since NVRTC's calls come from other threads; so a test records in a separate
//! process.

pub mod cublaslt;
pub mod cudnn;
mod descriptors;
mod device;
pub mod driver;
pub mod nvrtc;

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use device::Device;

/// The library to which a call belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Library {
    Driver,
    CublasLt,
    Cudnn,
    Nvrtc,
}

/// A call of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Called {
    pub library: Library,
    pub name: &'static str,
    /// What the run was doing: a word of [`during`].
    pub when: &'static str,
    /// While a graph was captured.
    pub captured: bool,
}

/// A call that fails, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub call: Called,
    /// Which of those calls, from 0.
    pub occurrence: usize,
    pub code: u32,
    /// The GPU no longer works in this process, as after a kernel's fault: every later call fails as well.
    pub lasts: bool,
}

/// How a recorded call is answered.
enum Meets {
    /// By the library, because nothing is recorded.
    Library,
    Code(u32),
    Answer,
}

#[derive(Default)]
struct Recording {
    counts: HashMap<Called, usize>,
    fault: Option<Fault>,
    failed: bool,
    when: &'static str,
    /// Work was queued since the device was last waited for.
    at_work: bool,
    device: Device,
}

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Begins a recording, with a new device.
pub fn begin(fault: Option<Fault>) {
    *RECORDING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Recording { fault, ..Recording::default() });
    IS_ON.store(true, Ordering::SeqCst);
}

/// Runs the test of that name in its own process, with a cache of its own, in which alone this is true.
pub fn is_apart(test: &str) -> bool {
    const CHILD: &str = "BATCHSTEP_TEST_RECORDED";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let cache = tempfile::tempdir().unwrap();
    command.args([test, "--exact", "--nocapture"]).env(CHILD, "1").env("XDG_CACHE_HOME", cache.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    false
}

/// What was called since [`begin`], and how often.
pub fn called() -> HashMap<Called, usize> {
    with(|recording| recording.counts.clone())
}

/// Lets the first configurations that cuDNN proposes be compiled when they are chosen.
pub fn compile_when_chosen(first: i64) {
    device(|device| device.compiled = first);
}

pub fn has_failed() -> bool {
    with(|recording| recording.failed)
}

/// Bytes of the device and page-locked bytes of the host that nothing has freed.
pub fn held_bytes() -> u64 {
    device(|device| device.held_bytes())
}

/// Whether it would be computing now: work was queued since it was last waited for.
pub fn is_at_work() -> bool {
    with(|recording| recording.at_work)
}

/// The stream that cuDNN was set to, at each of its executions.
pub fn cudnn_streams() -> Vec<usize> {
    device(|device| device.cudnn_streams.clone())
}

/// Sets the name of the run's present phase; returns the name of the previous phase.
pub fn during(when: &'static str) -> &'static str {
    with(|recording| std::mem::replace(&mut recording.when, when))
}

fn recording() -> bool {
    IS_ON.load(Ordering::SeqCst)
}

fn with<T>(act: impl FnOnce(&mut Recording) -> T) -> T {
    let mut recording = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    act(recording.as_mut().expect("a recording was begun"))
}

fn device<T>(act: impl FnOnce(&mut Device) -> T) -> T {
    with(|recording| act(&mut recording.device))
}

fn meets(library: Library, name: &'static str) -> Meets {
    if !recording() {
        return Meets::Library;
    }
    with(|recording| {
        let call = Called { library, name, when: recording.when, captured: recording.device.is_capturing() };
        let count = recording.counts.entry(call.clone()).or_default();
        *count += 1;
        let occurrence = *count - 1;
        recording.at_work = match name {
            "cuLaunchKernel" | "cuLaunchKernelEx" | "cuGraphLaunch" => true,
            "cuStreamSynchronize" => false,
            _ => recording.at_work,
        };
        let is_due = |fault: &&Fault| fault.call == call && fault.occurrence == occurrence;
        if let Some(Fault { code, lasts, .. }) = recording.fault.as_ref().filter(is_due).cloned() {
            recording.failed = true;
            recording.device.fails(name, code, lasts);
            return Meets::Code(code);
        }
        recording.device.refusal(library, name).map_or(Meets::Answer, Meets::Code)
    })
}

/// Defines functions with the signatures of a library: with a recording each gives `answer`, whose value is the code, or a
/// fault's code; else it calls the library.
macro_rules! calls {
    ($library:expr, $sys:ident, $status:ty: $($name:ident($($argument:ident: $kind:ty),*) => $answer:expr;)*) => {
        $(
            pub unsafe fn $name($($argument: $kind),*) -> $status {
                let code: u32 = match super::meets($library, stringify!($name)) {
                    // SAFETY: as the caller says.
                    super::Meets::Library => return unsafe { $sys::$name($($argument),*) },
                    super::Meets::Code(code) => code,
                    // SAFETY: as the caller says.
                    #[allow(unused_unsafe)]
                    super::Meets::Answer => unsafe { $answer },
                };
                // SAFETY: the codes of faults and answers are the library's; its enumeration has 32 bits.
                unsafe { std::mem::transmute::<u32, $status>(code) }
            }
        )*
    };
}
use calls;

/// Success, with a value.
unsafe fn put<T>(out: *mut T, value: T) -> u32 {
    // SAFETY: as the caller says.
    unsafe { out.write(value) };
    0
}

/// Success, with a new handle.
unsafe fn handle<T>(out: *mut *mut T) -> u32 {
    let number = device(Device::number);
    // SAFETY: as the caller says.
    unsafe { put(out, number as *mut T) }
}

/// Success, with text of at most `length` bytes that ends with a zero.
unsafe fn text(out: *mut c_char, length: c_int, text: &str) -> u32 {
    assert!(text.ends_with('\0') && text.len() <= length as usize);
    // SAFETY: as the caller says.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast(), text.len()) };
    0
}

/// A library's text for one of the codes that faults have.
fn words(known: &[(u32, &'static str)], code: u32) -> *const c_char {
    let found = known.iter().find(|(known, _)| *known == code);
    let (_, text) = found.unwrap_or_else(|| panic!("no fault has the code {code}"));
    CStr::from_bytes_with_nul(text.as_bytes()).expect("it ends with a zero").as_ptr()
}
