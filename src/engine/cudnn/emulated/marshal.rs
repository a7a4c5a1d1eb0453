//! A launch's arguments as a kernel takes them. Each slice is copied to its own memory between two guard zones. The
//! second zone ends at a protected page, so that a kernel that leaves its slice is caught even where the buffer
//! continues.

use super::compiler::Module;
use super::memory::EmulatedMemory;
use super::pages::{Pages, watched};
use crate::engine::cudnn::call::{Arg, Launch, Slice};
use crate::engine::cudnn::cuda::argument::Arguments;

/// Bytes before and after a slice that must not change: 0xFF, so that reading them gives NaN. Only a few follow the
/// slice before the protected page begins.
const BEFORE: usize = 1024;
const BEHIND: usize = 64;
const GUARD_BYTE: u8 = 0xFF;
/// The widest access.
const ALIGNMENT: usize = 16;

/// A slice's bytes, at an address that is as well aligned as the slice, between guards.
struct Guarded {
    slice: Slice,
    memory: Pages,
    start: usize,
    written: bool,
}

impl Guarded {
    fn new(slice: Slice) -> Self {
        let past = slice.offset % ALIGNMENT;
        let bytes = (past + slice.bytes).next_multiple_of(ALIGNMENT) + BEHIND;
        let memory = Pages::new(BEFORE + bytes, GUARD_BYTE);
        let start = memory.as_ref().len() - bytes + past;
        Self { slice, memory, start, written: false }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory.as_mut()[self.start..self.start + self.slice.bytes]
    }

    fn intact(&self) -> bool {
        let memory = self.memory.as_ref();
        let (before, after) = (&memory[..self.start], &memory[self.start + self.slice.bytes..]);
        let zone = [GUARD_BYTE; 256];
        before.chunks(zone.len()).chain(after.chunks(zone.len())).all(|bytes| *bytes == zone[..bytes.len()])
    }
}

/// Runs a launch and copies what it wrote back.
///
/// # Errors
/// The rule that it broke.
pub fn launch(
    module: &Module,
    memory: &mut EmulatedMemory,
    launch: &Launch,
    reversed: bool,
    poison: u8,
) -> Result<(), String> {
    let letters = module.letters(launch.kernel.name).ok_or("there is no such kernel")?;
    fits(&letters, &launch.args)?;
    let mut operands = operands(memory, &launch.args, poison)?;
    let address = |slice: Slice| {
        let operand = operands.iter().find(|operand| operand.slice == slice);
        Ok(operand.map_or(0, |operand| operand.memory.address() + operand.start as u64))
    };
    let arguments = Arguments::new(&launch.args, address).map_err(|error| error.to_string())?;
    let ([a, b, c], [d, e, f]) = (launch.grid, launch.block);
    let size = [a, b, c, d, e, f, launch.shared_bytes];
    // SAFETY: number and types of the arguments were compared with the kernel's own; the pointers are to memory that lives
    // until the end of this function.
    let run = || unsafe { module.launch(launch.kernel.name, size, arguments.pointers(), reversed) };
    watched(launch.kernel.name, run)?;
    for operand in &mut operands {
        let Slice { buffer, offset, bytes } = operand.slice;
        if !operand.intact() {
            return Err(format!("it wrote outside of the {bytes} bytes at {offset} of buffer {}", buffer.0));
        }
        if operand.written {
            memory.bytes_mut(operand.slice).copy_from_slice(operand.bytes());
        }
    }
    Ok(())
}

/// Compares the arguments with the parameters' letters.
fn fits(letters: &str, args: &[Arg]) -> Result<(), String> {
    let fits = |letter: char, arg: &Arg| match arg {
        Arg::Read(_) => letter == 'R',
        Arg::Write(_) => letter == 'W',
        // An operation in place has the same slice in two parameters, one of which may be constant.
        Arg::Update(_) | Arg::Null => letter == 'R' || letter == 'W',
        Arg::I32(_) => letter == 'i',
        Arg::I64(_) => letter == 'l',
        Arg::U64(_) => letter == 'U',
        Arg::F32(_) => letter == 'f',
    };
    if letters.len() != args.len() {
        return Err(format!("{} arguments for {} parameters", args.len(), letters.len()));
    }
    match letters.chars().zip(args).position(|(letter, arg)| !fits(letter, arg)) {
        None => Ok(()),
        Some(at) => Err(format!("argument {at} is {:?} for a parameter of kind {}", args[at], &letters[at..=at])),
    }
}

/// One piece of memory for each slice, with its content, or with poison where it is only written.
fn operands(memory: &EmulatedMemory, args: &[Arg], poison: u8) -> Result<Vec<Guarded>, String> {
    let mut operands: Vec<(Guarded, bool)> = Vec::new();
    for arg in args {
        let (slice, read, written) = match *arg {
            Arg::Read(slice) => (slice, true, false),
            Arg::Write(slice) => (slice, false, true),
            Arg::Update(slice) => (slice, true, true),
            _ => continue,
        };
        if let Some((other, was_read)) = operands.iter_mut().find(|(other, _)| other.slice == slice) {
            if (other.written || written) && (*was_read, other.written) != (read, written) {
                return Err(format!("{slice:?} is given as two different things; in place it is Update in both"));
            }
            continue;
        }
        let overlaps = |other: &Guarded| {
            let (a, b) = (slice, other.slice);
            a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
        };
        if operands.iter().any(|(other, _)| (written || other.written) && overlaps(other)) {
            return Err(format!("{slice:?} overlaps another operand, and one of them is written"));
        }
        let mut guarded = Guarded::new(slice);
        guarded.written = written;
        if read {
            guarded.bytes().copy_from_slice(memory.bytes(slice));
        } else {
            guarded.bytes().fill(poison);
        }
        operands.push((guarded, read));
    }
    Ok(operands.into_iter().map(|(guarded, _)| guarded).collect())
}
