//! Executes the code that NVRTC makes of our kernels, instruction by instruction: a second way to run them without a
//! GPU, which shares only the kernels' text with the first ([`super::compiler`]). It covers NVRTC's front end and
//! optimiser, but not the driver's assembler.
//!
//! Memory is only the operands of a launch: an access elsewhere, or at an address that is not a multiple of its size,
//! is an error. Threads run one after another up to a barrier or an exchange within a warp; if some of a warp's threads
//! do not reach it, the launch is in error.
//!
//! The definitions are those of NVIDIA's "Parallel Thread Execution ISA"; only `ex2.approx` is more exact here than on
//! a GPU.

mod arithmetic;
mod program;
mod thread;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::memory::EmulatedMemory;
use super::ptx;
use crate::engine::cudnn::call::{Arg, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::source::Operator;
use program::Program;
use thread::Block;

/// The architectures of the code that is run: the oldest that the engine supports, and for bfloat16 the newest of the
/// study, which has instructions for it.
const ARCHITECTURES: [&str; 2] = ["compute_75", "compute_90"];

type Kernels = HashMap<String, Program>;
/// The compiled modules by operator, element type and architecture.
type Modules = HashMap<(&'static str, Element, &'static str), Arc<OnceLock<Kernels>>>;

/// Runs a launch.
///
/// # Errors
/// If the code does something that is not allowed or not known here.
pub fn launch(memory: &mut EmulatedMemory, launch: &Launch, poison: u8) -> Result<(), String> {
    static MODULES: OnceLock<Mutex<Modules>> = OnceLock::new();
    let kernel = launch.kernel;
    let operator = Operator::by_name(kernel.operator).ok_or("no such operator")?;
    if !ptx::nvrtc() {
        return Err("NVRTC is not there".to_owned());
    }
    let architecture = ARCHITECTURES[usize::from(kernel.element == Element::Bf16)];
    let module = {
        let mut modules = MODULES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        modules.entry((kernel.operator, kernel.element, architecture)).or_default().clone()
    };
    let kernels = module.get_or_init(|| {
        let made = ptx::compile(operator, kernel.element, architecture).and_then(|text| program::parse(&text));
        made.unwrap_or_else(|why| panic!("{}: {why}", operator.name))
    });
    let program = kernels.get(kernel.name).ok_or("no such kernel")?;
    if program.parameters != launch.args.len() {
        return Err(format!("{} arguments for {} parameters", launch.args.len(), program.parameters));
    }
    let mut operands = Operands::of(memory, &launch.args, poison);
    let parameters: Vec<u64> = launch.args.iter().map(|arg| operands.value(arg)).collect();
    let [across, down, deep] = launch.grid;
    let mut block = Block::new(program, launch, parameters);
    for at in 0..u64::from(across) * u64::from(down) * u64::from(deep) {
        let place = [at % u64::from(across), at / u64::from(across) % u64::from(down), at / u64::from(across * down)];
        block.run(place, &mut operands, poison)?;
    }
    operands.store(memory);
    Ok(())
}

/// The memory of a launch: each slice has its own 2^40 addresses.
struct Operands(Vec<Operand>);

struct Operand {
    slice: Slice,
    bytes: Vec<u8>,
    is_written: bool,
}

const EACH: u32 = 40;

impl Operands {
    fn of(memory: &EmulatedMemory, args: &[Arg], poison: u8) -> Self {
        let mut operands: Vec<Operand> = Vec::new();
        for arg in args {
            let (slice, is_read, is_written) = match *arg {
                Arg::Read(slice) => (slice, true, false),
                Arg::Write(slice) => (slice, false, true),
                Arg::Update(slice) => (slice, true, true),
                _ => continue,
            };
            if let Some(known) = operands.iter_mut().find(|operand| operand.slice == slice) {
                known.is_written |= is_written;
                continue;
            }
            let bytes = if is_read { memory.bytes(slice).to_vec() } else { vec![poison; slice.bytes] };
            operands.push(Operand { slice, bytes, is_written });
        }
        Self(operands)
    }

    /// The argument's value, as a kernel takes it.
    fn value(&self, arg: &Arg) -> u64 {
        match *arg {
            Arg::Read(slice) | Arg::Write(slice) | Arg::Update(slice) => {
                let at = self.0.iter().position(|operand| operand.slice == slice).unwrap_or_default() as u64;
                ((at + 1) << EACH) + Self::skew(slice)
            }
            Arg::Null => 0,
            Arg::I32(value) => u64::from(value as u32),
            Arg::I64(value) => value as u64,
            Arg::U64(value) => value,
            Arg::F32(value) => value.to_bits().into(),
        }
    }

    /// The skew that makes an address as well aligned as the slice.
    fn skew(slice: Slice) -> u64 {
        slice.offset as u64 % 256
    }

    /// The bytes at an address.
    fn at(&mut self, address: u64, bytes: usize, writes: bool) -> Result<&mut [u8], String> {
        let outside = || format!("{bytes} bytes at address {address:#x} are no operand's");
        let operand =
            (address >> EACH).checked_sub(1).and_then(|at| self.0.get_mut(at as usize)).ok_or_else(outside)?;
        let place = (address & ((1 << EACH) - 1)).checked_sub(Self::skew(operand.slice)).ok_or_else(outside)? as usize;
        if writes && !operand.is_written {
            return Err(format!("it writes to an operand that is only read, {:?}", operand.slice));
        }
        let of = operand.bytes.len();
        operand
            .bytes
            .get_mut(place..place.saturating_add(bytes))
            .ok_or_else(|| format!("it reaches {bytes} bytes at {place} of an operand of {of}"))
    }

    fn store(&self, memory: &mut EmulatedMemory) {
        for Operand { slice, bytes, .. } in self.0.iter().filter(|operand| operand.is_written) {
            memory.bytes_mut(*slice).copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::engine::cudnn::emulated::{KERNELS_BY, emulator, ptx};

    /// Runs the tests of every operator once more, on the code that NVRTC makes. This needs a separate process, because
    /// the way in which kernels run is chosen once for each process.
    #[test]
    fn every_operators_tests_pass_on_the_code_that_nvrtc_makes() {
        if std::env::var_os(KERNELS_BY).is_some() || emulator().is_none() || !ptx::nvrtc() {
            return;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.arg("engine::cudnn::op::").env(KERNELS_BY, "ptx").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        // The number of tests is checked, since an empty selection would pass as well.
        let ran: usize =
            said.split(" passed;").next().and_then(|text| text.rsplit(' ').next()?.parse().ok()).unwrap_or(0);
        assert!(ran > 30, "{said}");
    }
}
