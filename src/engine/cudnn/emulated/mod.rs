//! A GPU for tests: the kernels that NVRTC compiles, compiled by a C++ compiler and run on the CPU with CUDA's model of
//! threads, and convolutions and matrix products by plain loops.
//!
//! [`Emulator::check`] checks a launch against what its arguments declare. It runs the grid twice, the second time with
//! blocks and threads in reverse order; memory that is to be written is filled before, each time with other bytes. The
//! results must agree bit for bit. This shows that no thread reads what another writes without a barrier between them,
//! that no result depends on an order that CUDA leaves open, and that every byte of an [`Arg::Write`] is written and
//! none is read before. A kernel that reads past the end of a slice, or at a misaligned address, ends the process with
//! the kernel's name.

mod compiler;
mod engine;
mod marshal;
mod memory;
mod numbers;
mod order;
mod pages;
mod product;
mod ptx;
mod sample;
mod selftest;
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::call::{Arg, Call, Kernel, Launch};
use super::element::Element;
use super::source::Operator;
use compiler::{Compiler, Module};
pub use engine::{EVERY_OPERATOR, EmulatedEngine, KernelFault};
pub use memory::EmulatedMemory;
pub use numbers::rounded;
pub use order::{array, from_nchw, to_nchw};
pub use sample::{RECTIFIERS, assert_close, assert_each, rounding, sample};

/// Modules by operator and element type. The first thread that needs a module compiles it, and the others wait.
type Modules = HashMap<(&'static str, Element), Arc<OnceLock<Module>>>;

/// Compiled kernels, one module for each operator and element type, compiled when it is first needed.
#[derive(Debug)]
pub struct Emulator {
    compiler: Compiler,
    modules: Mutex<Modules>,
}

/// The emulator of this process; `None`, and the test is recorded as skipped, where there is no C++ compiler.
pub fn emulator() -> Option<&'static Emulator> {
    static EMULATOR: OnceLock<Option<Emulator>> = OnceLock::new();
    let emulator = EMULATOR
        .get_or_init(|| Compiler::find().map(|compiler| Emulator { compiler, modules: Mutex::default() }))
        .as_ref();
    if emulator.is_none() {
        crate::needs::missing("cxx", "there is no C++ compiler ($CXX, c++, g++, clang++) to run the kernels with");
    }
    emulator
}

/// The bytes that memory to be written is filled with.
const POISON: [u8; 2] = [0xFF, 0x7F];

impl Emulator {
    /// Executes a call once.
    ///
    /// # Panics
    /// If it breaks a rule of CUDA, of the libraries, or of [`super::call`].
    pub fn run(&self, memory: &mut EmulatedMemory, call: &Call) {
        match call {
            Call::Launch(launch) => self.launch(memory, launch, false, POISON[0]),
            Call::Convolution(convolution, task) => product::convolution(memory, convolution, task),
            Call::Gemm(gemm) => product::gemm(memory, gemm),
            Call::Zero(slice) => memory.bytes_mut(*slice).fill(0),
        }
    }

    /// Executes a call; a launch runs twice, as described at the head of this module.
    ///
    /// # Panics
    /// As [`Emulator::run`], and where the two results differ.
    pub fn check(&self, memory: &mut EmulatedMemory, call: &Call) {
        let Call::Launch(launch) = call else { return self.run(memory, call) };
        let mut other = memory.clone();
        self.launch(memory, launch, false, POISON[0]);
        self.launch(&mut other, launch, true, POISON[1]);
        for (number, arg) in launch.args.iter().enumerate() {
            let (Arg::Write(slice) | Arg::Update(slice)) = *arg else { continue };
            let (a, b) = (memory.bytes(slice), other.bytes(slice));
            if let Some(at) = (0..a.len()).find(|&at| a[at] != b[at]) {
                let Kernel { operator, name, element } = launch.kernel;
                panic!(
                    "{operator}/{name} for {}: argument {number} differs at byte {at} of {} ({:#04x}, {:#04x}): a race, \
                     or a byte that is not written, or one that is read before",
                    element.name(),
                    a.len(),
                    a[at],
                    b[at]
                );
            }
        }
    }

    /// [`Emulator::check`] for each launch in turn.
    ///
    /// # Panics
    /// As [`Emulator::check`].
    pub fn check_all(&self, memory: &mut EmulatedMemory, launches: impl IntoIterator<Item = Launch>) {
        launches.into_iter().for_each(|launch| self.check(memory, &Call::Launch(launch)));
    }

    fn launch(&self, memory: &mut EmulatedMemory, launch: &Launch, reversed: bool, poison: u8) {
        let Kernel { operator, name, element } = launch.kernel;
        let module = {
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            modules.entry((operator, element)).or_default().clone()
        };
        let module = module.get_or_init(|| {
            let Some(found) = Operator::by_name(operator) else { panic!("no operator {operator}") };
            let name = format!("{operator}_{}", element.name());
            self.compiler.module(&name, &found.source(element), &found.kernels())
        });
        if let Err(why) = marshal::launch(module, memory, launch, reversed, poison) {
            panic!("{operator}/{name} for {}: {why}", element.name());
        }
    }
}
