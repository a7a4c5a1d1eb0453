//! The fastest of some algorithms, measured on the GPU.
//!
//! Each runs once unmeasured, then once measured. One that takes more than [`HOPELESS`] times the best so far is
//! excluded; the others run [`REPETITIONS`] times in all, and the median counts. Before every measured run the L2 cache
//! is filled with other data, because in a step hundreds of megabytes are read and written between two uses of the same
//! weights. The fill also keeps the GPU busy while the run is put on the stream, so that the CPU time of a launch is
//! not measured.
//!
//! The memory holds random numbers of magnitude 0.5 to 1, since a GPU draws more power on these than on zeros, and
//! clocks lower.

use std::sync::OnceLock;

use super::operands::{self, Operands};
use super::{Choice, Executable, Problem};
use crate::engine::cudnn::cuda::device::{Gpu, StreamId};
use crate::engine::cudnn::cuda::event::Event;
use crate::engine::cudnn::cuda::memory::Memory;
use crate::engine::cudnn::element::Element;
use crate::error::{Error, Result};
use crate::stats::quantile::median;

/// Measured runs of each algorithm that is not hopeless.
const REPETITIONS: usize = 5;

/// Slower than the best by this factor in its first run.
const HOPELESS: f64 = 1.5;

/// What measures a convolution: its memory and the events around it.
struct Stopwatch<'a> {
    gpu: &'a Gpu,
    operands: Operands,
    workspace: Memory,
    flush: Memory,
    start: Event,
    end: Event,
    _memory: Vec<Memory>,
}

impl Gpu {
    /// The fastest candidate, with its seconds; where there is no memory to measure in, the first candidate with a
    /// remark.
    pub(super) fn fastest(&self, problem: Problem, candidates: Vec<Choice>) -> Result<Choice> {
        let most = candidates.iter().map(Choice::workspace_bytes).max().unwrap_or(0);
        let stopwatch = match Stopwatch::new(self, problem, most) {
            Ok(stopwatch) => stopwatch,
            Err(error) if error.is_out_of_memory() => {
                let first = candidates.into_iter().next().ok_or_else(|| Error::engine("no candidates"))?;
                return Ok(Choice { remark: Some("not measured: there was no memory to measure in".into()), ..first });
            }
            Err(error) => return Err(error),
        };
        let mut best: Result<Choice> = Err(Error::engine("no algorithm was measured"));
        for candidate in candidates {
            let least = best.as_ref().ok().and_then(|best| best.seconds).unwrap_or(f64::INFINITY);
            match stopwatch.seconds(&candidate.executable, least * HOPELESS) {
                Ok(seconds) if seconds < least => best = Ok(Choice { seconds: Some(seconds), ..candidate }),
                // An algorithm that fails to run is not a candidate; if the GPU itself failed, the next call fails too.
                Err(error) if best.is_err() => best = Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        best
    }
}

impl<'a> Stopwatch<'a> {
    fn new(gpu: &'a Gpu, problem: Problem, workspace: u64) -> Result<Self> {
        let sizes = operands::sizes(problem.convolution, problem.kind);
        let memory: Vec<Memory> = sizes.iter().map(|bytes| gpu.allocate(*bytes)).collect::<Result<_>>()?;
        let flush = gpu.allocate((2 * gpu.properties().l2_bytes).max(64 << 20))?;
        let stopwatch = Self {
            gpu,
            operands: Operands {
                x: memory[0].address(),
                w: memory[1].address(),
                y: memory[2].address(),
                bias: (sizes[3] > 0).then(|| memory[3].address()),
            },
            workspace: gpu.allocate(workspace)?,
            flush,
            start: gpu.event()?,
            end: gpu.event()?,
            _memory: memory,
        };
        let noise = noise(problem.convolution.element);
        for memory in &stopwatch._memory {
            stopwatch.fill(memory, noise)?;
        }
        gpu.synchronize(StreamId::Compute)?;
        Ok(stopwatch)
    }

    /// Fills memory with repetitions of a block of noise: one copy from the host, then copies on the device of doubling
    /// size.
    fn fill(&self, memory: &Memory, noise: &[u8]) -> Result<()> {
        let (address, total) = (memory.address(), memory.bytes());
        let mut done = total.min(noise.len() as u64);
        if total == 0 {
            return Ok(());
        }
        self.gpu.copy_to_device(address, &noise[..done as usize])?;
        while done < total {
            let bytes = done.min(total - done);
            self.gpu.enqueue_within_device(address + done, address, bytes as usize)?;
            done += bytes;
        }
        Ok(())
    }

    /// The median of the runs; if the first run is above `limit`, only that one.
    fn seconds(&self, executable: &Executable, limit: f64) -> Result<f64> {
        let bound = executable.bind(self.operands, self.workspace.address())?;
        bound.enqueue(self.gpu, StreamId::Compute)?;
        let run = || {
            self.gpu.enqueue_fill(StreamId::Compute, self.flush.address(), 0, self.flush.bytes())?;
            self.start.record(StreamId::Compute)?;
            bound.enqueue(self.gpu, StreamId::Compute)?;
            self.end.record(StreamId::Compute)?;
            self.end.wait()?;
            self.end.seconds_since(&self.start)
        };
        let first = run()?;
        if first > limit {
            return Ok(first);
        }
        let mut all = vec![first];
        for _ in 1..REPETITIONS {
            all.push(run()?);
        }
        Ok(median(&mut all))
    }
}

/// 4 MiB of random numbers of magnitude 0.5 to 1 and either sign, made bit by bit: a random sign, one exponent, a random
/// mantissa. Made once in a process, for all convolutions.
fn noise(element: Element) -> &'static [u8] {
    static MADE: [OnceLock<Vec<u8>>; Element::ALL.len()] = [const { OnceLock::new() }; Element::ALL.len()];
    MADE[element as usize].get_or_init(|| made(element))
}

fn made(element: Element) -> Vec<u8> {
    // The first leaves sign and mantissa free, the second is the exponent of 0.5; of 16 bits there are two in a word.
    let (free, half): (u32, u32) = match element {
        Element::F32 => (0x807F_FFFF, 0x3F00_0000),
        Element::F16 => (0x83FF_83FF, 0x3800_3800),
        Element::Bf16 => (0x807F_807F, 0x3F00_3F00),
    };
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(4 << 20);
    while bytes.len() < 4 << 20 {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(((state >> 32) as u32 & free | half).to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noise_has_either_sign_and_no_infinity() {
        let floats: Vec<f32> =
            noise(Element::F32).chunks_exact(4).map(|four| f32::from_ne_bytes(four.try_into().unwrap())).collect();
        assert_eq!(floats.len(), 1 << 20);
        assert!(floats.iter().all(|x| (0.5..1.0).contains(&x.abs())));
        let negative = floats.iter().filter(|x| **x < 0.0).count();
        // A binomial of 2^20 tosses has a standard deviation of 512.
        assert!(negative.abs_diff(1 << 19) < 3000, "{negative}");
    }

    // float16 has 5 bits of exponent with a bias of 15, bfloat16 8 with 127: 0.5 is 2^-1.
    #[test]
    fn sixteen_bits_have_the_exponent_of_one_half() {
        let halves = |element| {
            noise(element).chunks_exact(2).map(|two| u16::from_ne_bytes([two[0], two[1]])).collect::<Vec<_>>()
        };
        assert!(halves(Element::F16).iter().all(|bits| bits >> 10 & 0x1F == 14));
        assert!(halves(Element::Bf16).iter().all(|bits| bits >> 7 & 0xFF == 126));
    }
}
