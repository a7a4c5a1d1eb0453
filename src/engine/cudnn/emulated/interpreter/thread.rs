//! The threads of a block.

use super::Operands;
use super::arithmetic::Type;
use super::program::{Does, Instruction, Operand, Program, Space, Special};
use crate::engine::cudnn::call::Launch;

/// The lanes of a warp.
const LANES: usize = 32;
/// Our kernels end long before this number.
const MOST_INSTRUCTIONS: u64 = 1 << 32;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Ready,
    AtBarrier,
    AtExchange,
    Ended,
}

/// A block of a launch: its registers and its shared memory, one block after another.
pub struct Block<'a> {
    program: &'a Program,
    parameters: Vec<u64>,
    sizes: [[u64; 3]; 2],
    place: [u64; 3],
    /// The registers of each thread, one thread after another.
    registers: Vec<u64>,
    next: Vec<usize>,
    states: Vec<ThreadState>,
    shared: Vec<u8>,
    executed: u64,
}

impl<'a> Block<'a> {
    pub fn new(program: &'a Program, launch: &Launch, parameters: Vec<u64>) -> Self {
        let threads = launch.block.iter().product::<u32>() as usize;
        Self {
            program,
            parameters,
            sizes: [launch.block, launch.grid].map(|sizes| sizes.map(u64::from)),
            place: [0; 3],
            registers: vec![0; threads * program.registers],
            next: vec![0; threads],
            states: vec![ThreadState::Ready; threads],
            shared: vec![0; program.shared_bytes + launch.shared_bytes as usize],
            executed: 0,
        }
    }

    /// Runs the block at `place` to its end.
    ///
    /// # Errors
    /// If it does something that is not allowed.
    pub fn run(&mut self, place: [u64; 3], memory: &mut Operands, poison: u8) -> Result<(), String> {
        self.place = place;
        self.next.fill(0);
        self.states.fill(ThreadState::Ready);
        self.shared.fill(poison);
        loop {
            for first in (0..self.states.len()).step_by(LANES) {
                self.run_warp(first, memory)?;
            }
            match self.states.iter().filter(|state| **state == ThreadState::AtBarrier).count() {
                0 => return Ok(()),
                waiting if waiting == self.states.len() => self.states.fill(ThreadState::Ready),
                waiting => {
                    return Err(format!(
                        "{waiting} of {} threads wait at a barrier, the others have ended",
                        self.states.len()
                    ));
                }
            }
        }
    }

    /// Runs a warp until each of its threads waits at a barrier or has ended.
    fn run_warp(&mut self, first: usize, memory: &mut Operands) -> Result<(), String> {
        let lanes = first..(first + LANES).min(self.states.len());
        loop {
            for thread in lanes.clone() {
                while self.states[thread] == ThreadState::Ready {
                    self.step(thread, memory)?;
                }
            }
            let exchanges = lanes.clone().filter(|thread| self.states[*thread] == ThreadState::AtExchange).count();
            if exchanges == 0 {
                return Ok(());
            }
            let together = lanes.clone().all(|thread| self.next[thread] == self.next[first]);
            if exchanges != lanes.len() || !together {
                return Err("some of a warp's threads exchange values, and others do not".to_owned());
            }
            self.exchange(first, lanes.len())?;
        }
    }

    /// Each lane gets the value of the lane whose number differs from its own by the bits of the mask; its own value if
    /// there is no such lane.
    fn exchange(&mut self, first: usize, lanes: usize) -> Result<(), String> {
        let Does::Exchange { to, value, mask } = self.program.code[self.next[first]].does else {
            return Err("no exchange".to_owned());
        };
        let values: Vec<u64> = (first..first + lanes).map(|thread| self.read(thread, value)).collect();
        for lane in 0..lanes {
            let from = lane ^ (self.read(first + lane, mask) as usize & (LANES - 1));
            let got = values.get(from).or(values.get(lane)).copied().unwrap_or_default();
            self.write(first + lane, to, got & 0xFFFF_FFFF);
            self.next[first + lane] += 1;
            self.states[first + lane] = ThreadState::Ready;
        }
        Ok(())
    }

    fn step(&mut self, thread: usize, memory: &mut Operands) -> Result<(), String> {
        let program = self.program;
        let Some(instruction) = program.code.get(self.next[thread]) else {
            self.states[thread] = ThreadState::Ended;
            return Ok(());
        };
        self.executed += 1;
        if self.executed > MOST_INSTRUCTIONS {
            return Err("it does not end".to_owned());
        }
        let runs = instruction.guard.is_none_or(|(register, wanted)| (self.register(thread, register) != 0) == wanted);
        if !runs {
            self.next[thread] += 1;
            return Ok(());
        }
        self.execute(thread, instruction, memory).map_err(|why| format!("{why}: `{}`", instruction.text))
    }

    fn execute(&mut self, thread: usize, instruction: &Instruction, memory: &mut Operands) -> Result<(), String> {
        match &instruction.does {
            Does::Return => {
                self.states[thread] = ThreadState::Ended;
                return Ok(());
            }
            Does::Exchange { .. } => {
                self.states[thread] = ThreadState::AtExchange;
                return Ok(());
            }
            Does::Branch(to) => {
                self.next[thread] = *to;
                return Ok(());
            }
            Does::Barrier => self.states[thread] = ThreadState::AtBarrier,
            Does::Compute { operation, to, from } => {
                let result = operation.apply(from.map(|operand| self.read(thread, operand)))?;
                self.write(thread, *to, result);
            }
            Does::Compare { comparison, kind, to, from } => {
                let [a, b] = from.map(|operand| self.read(thread, operand));
                self.write(thread, *to, comparison.holds(*kind, a, b).into());
            }
            Does::Select { to, from, by } => {
                let chosen = from[usize::from(self.read(thread, *by) == 0)];
                let value = self.read(thread, chosen);
                self.write(thread, *to, value);
            }
            Does::Pack { to, from, bits } => {
                let mask = (1_u64 << bits) - 1;
                let words = from.iter().enumerate();
                let whole =
                    words.fold(0, |whole, (at, word)| whole | (self.read(thread, *word) & mask) << (at as u32 * bits));
                self.write(thread, *to, whole);
            }
            Does::Unpack { to, from, bits } => {
                let whole = self.read(thread, *from);
                for (at, to) in to.iter().enumerate() {
                    self.write(thread, *to, whole >> (at as u32 * bits) & ((1_u64 << bits) - 1));
                }
            }
            Does::Parameter { kind, to, number } => {
                let value = *self.parameters.get(*number).ok_or("no such parameter")?;
                self.write(thread, *to, kind.widened(value));
            }
            Does::Load { space, kind, to, at, offset } => {
                let address = self.address(thread, *at, *offset, *kind, to.len())?;
                for (number, to) in to.iter().enumerate() {
                    let bytes =
                        self.bytes(*space, address + (number * kind.bytes()) as u64, kind.bytes(), memory, false)?;
                    let mut word = [0; 8];
                    word[..bytes.len()].copy_from_slice(bytes);
                    self.write(thread, *to, kind.widened(u64::from_le_bytes(word)));
                }
            }
            Does::Store { space, kind, from, at, offset } => {
                let address = self.address(thread, *at, *offset, *kind, from.len())?;
                for (number, from) in from.iter().enumerate() {
                    let word = self.read(thread, *from).to_le_bytes();
                    let size = kind.bytes();
                    let bytes = self.bytes(*space, address + (number * size) as u64, size, memory, true)?;
                    bytes.copy_from_slice(&word[..size]);
                }
            }
        }
        self.next[thread] += 1;
        Ok(())
    }

    /// The address of an access to `values` values, which lie one after another.
    fn address(&self, thread: usize, at: Operand, offset: i64, kind: Type, values: usize) -> Result<u64, String> {
        let address = self.read(thread, at).wrapping_add(offset as u64);
        let size = (kind.bytes() * values) as u64;
        match address.is_multiple_of(size) {
            true => Ok(address),
            false => Err(format!("{size} bytes at address {address:#x}, which is not a multiple of that")),
        }
    }

    fn bytes<'m>(
        &'m mut self,
        space: Space,
        address: u64,
        bytes: usize,
        memory: &'m mut Operands,
        writes: bool,
    ) -> Result<&'m mut [u8], String> {
        if space == Space::Global {
            return memory.at(address, bytes, writes);
        }
        let (at, of) = (address as u32 as usize, self.shared.len());
        self.shared.get_mut(at..at + bytes).ok_or_else(|| format!("{bytes} bytes at {at} of {of} of shared memory"))
    }

    fn register(&self, thread: usize, register: usize) -> u64 {
        self.registers[thread * self.program.registers + register]
    }

    fn write(&mut self, thread: usize, register: usize, value: u64) {
        self.registers[thread * self.program.registers + register] = value;
    }

    fn read(&self, thread: usize, operand: Operand) -> u64 {
        let [across, down, _] = self.sizes[0];
        let number = thread as u64;
        match operand {
            Operand::Register(register) => self.register(thread, register),
            Operand::Value(value) => value,
            Operand::Special(Special::Thread(0)) => number % across,
            Operand::Special(Special::Thread(1)) => number / across % down,
            Operand::Special(Special::Thread(_)) => number / (across * down),
            Operand::Special(Special::ThreadCount(axis)) => self.sizes[0][axis],
            Operand::Special(Special::Block(axis)) => self.place[axis],
            Operand::Special(Special::BlockCount(axis)) => self.sizes[1][axis],
        }
    }
}
