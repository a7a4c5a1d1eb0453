//! A C++ compiler, and the modules that it compiles.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

const FIBER: &str = include_str!("fiber.h");
const CUDA: &str = include_str!("cuda.h");
const TABLE: &str = include_str!("table.h");

/// Compiling takes longer than running, so little is optimised. Operations that a GPU forbids and a CPU tolerates trap: misaligned accesses, and arithmetic that C++ leaves
/// undefined. No contraction, since an FMA would make results depend on the machine. No type-based aliasing, since
/// CUDA's compiler has none, and a `Pack` is read where `T` were written. Hidden visibility, so that no module uses
/// another's static memory.
const OPTIONS: &[&str] = &[
    "-std=gnu++17",
    "-O1",
    "-w",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-U_FORTIFY_SOURCE",
    "-fsanitize=alignment,bounds,shift,signed-integer-overflow,integer-divide-by-zero",
    "-fsanitize-undefined-trap-on-error",
];

/// The command that starts it.
#[derive(Debug)]
pub struct Compiler(Vec<String>);

impl Compiler {
    /// `$CXX`, or the first of the usual names that answers.
    pub fn find() -> Option<Self> {
        let named = std::env::var("CXX").ok().into_iter();
        let mut names = named.chain(["c++", "g++", "clang++"].map(String::from));
        names.find_map(|name| {
            let words: Vec<String> = name.split_whitespace().map(String::from).collect();
            let (program, rest) = words.split_first()?;
            let mut probe = Command::new(program);
            probe.args(rest).arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success()).then_some(Self(words))
        })
    }

    /// Compiles a source after the emulator's definitions of CUDA's names, and loads it.
    pub fn module(&self, name: &str, source: &str, kernels: &[&str]) -> Module {
        let folder = tempfile::tempdir().expect("a folder for the compiler");
        let (input, output) = (folder.path().join(format!("{name}.cpp")), folder.path().join(format!("{name}.so")));
        let entries: String = kernels.iter().map(|kernel| format!("EMULATED_KERNEL({kernel}), ")).collect();
        let source = shared_memory(source);
        let text = format!("{FIBER}\n{CUDA}\n{source}\n#define EMULATED_ENTRIES {entries}\n{TABLE}");
        fs::write(&input, text).expect("writing the source");
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]).args(OPTIONS).arg(&input).arg("-o").arg(&output);
        let result = command.output().expect("starting the C++ compiler");
        assert!(result.status.success(), "{name}: {}", String::from_utf8_lossy(&result.stderr));
        // SAFETY: it was compiled from our own source just now, and nothing in it runs at loading. The file may be
        // deleted once it is mapped.
        Module(Mutex::new(unsafe { libloading::Library::new(&output) }.expect("loading the module")))
    }
}

/// `extern __shared__ V name[];` cannot be expressed by macros: it becomes a pointer.
fn shared_memory(source: &str) -> String {
    let line = |line: &str| {
        let Some((indent, rest)) = line.split_once("extern __shared__ ") else { return line.to_string() };
        let rest = rest.trim_end().trim_end_matches("[];");
        let rest = rest.trim_start_matches("__align__(16) ").trim_start_matches("alignas(16) ");
        match rest.rsplit_once(' ') {
            Some((kind, name)) => format!("{indent}{kind} *{name} = emulated_shared<{kind}>();"),
            None => line.to_string(),
        }
    };
    source.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A compiled module; its threads' state is static, so one launch at a time.
#[derive(Debug)]
pub struct Module(Mutex<libloading::Library>);

type Letters = unsafe extern "C" fn(*const c_char) -> *const c_char;
type Launch = unsafe extern "C" fn(*const c_char, *const c_uint, *mut *mut c_void, c_int) -> *const c_char;

impl Module {
    /// The letters of a kernel's parameters, as cuda.h has them.
    pub fn letters(&self, kernel: &str) -> Option<String> {
        let library = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = CString::new(kernel).ok()?;
        // SAFETY: the signature is that of table.h; the text is static.
        let letters =
            unsafe { library.get::<Letters>(b"emulated_letters\0").expect("emulated_letters")(kernel.as_ptr()) };
        // SAFETY: null, or a string that lives as long as the library.
        (!letters.is_null()).then(|| unsafe { CStr::from_ptr(letters) }.to_string_lossy().into_owned())
    }

    /// Runs a grid.
    ///
    /// # Safety
    /// The arguments must point to values of the kernel's parameter types, and only the kernel may use the memory to
    /// which these point.
    pub unsafe fn launch(
        &self,
        kernel: &str,
        size: [u32; 7],
        args: *mut *mut c_void,
        reversed: bool,
    ) -> Result<(), String> {
        let library = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = CString::new(kernel).map_err(|_| "a name with a zero")?;
        // SAFETY: the signature is that of table.h, and the caller answers for the arguments.
        let error = unsafe {
            let launch = library.get::<Launch>(b"emulated_launch\0").expect("emulated_launch");
            launch(kernel.as_ptr(), size.as_ptr(), args, c_int::from(reversed))
        };
        // SAFETY: null, or a static string.
        if error.is_null() { Ok(()) } else { Err(unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned()) }
    }
}
