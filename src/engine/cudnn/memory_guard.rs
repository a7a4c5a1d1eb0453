//! Memory that no call may write: after the buffers of a step and after each workspace. It is filled when a step begins
//! and checked whenever the step's results are read, which happens when an engine is qualified and in the selftest. A
//! convolution that uses more workspace than it asked for overwrites what lies after it, although its own result may be
//! correct.

use super::cuda::Range;
use crate::error::{Error, Result};

/// Bytes of each guard: what a block of 1024 threads writes with one float4 each, 16 KiB.
pub const BYTES: u64 = 16 << 10;

/// The byte with which all memory of a step is filled at first.
pub const FILL: u8 = 0xFF;

/// One guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// What lies before the guard.
    pub behind: &'static str,
    pub address: u64,
}

/// Where the workspaces and guards of a step lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The workspaces of the main stream and of the side stream.
    pub workspaces: [Range; 2],
    pub guards: [Guard; 3],
}

/// The bytes of memory for a step with `buffers` bytes of buffers, which come first.
pub fn bytes(buffers: u64, workspaces: [u64; 2]) -> u64 {
    buffers + workspaces[0] + workspaces[1] + 3 * BYTES
}

impl Guarded {
    /// In memory that begins at `start`: buffers, guard, workspace, guard, workspace, guard.
    pub fn new(start: u64, buffers: u64, workspaces: [u64; 2]) -> Self {
        let first = start + buffers;
        let main = Range { address: first + BYTES, bytes: workspaces[0] };
        let second = main.address + main.bytes;
        let side = Range { address: second + BYTES, bytes: workspaces[1] };
        let guard = |behind, address| Guard { behind, address };
        let guards = [
            guard("the buffers of the step", first),
            guard("the workspace of the main stream", second),
            guard("the workspace of the side stream", side.address + side.bytes),
        ];
        Self { workspaces: [main, side], guards }
    }

    /// Fails where a guard is not as it was filled; `read` gives the bytes at an address.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`]; what `read` fails with.
    pub fn check(&self, mut read: impl FnMut(u64, usize) -> Result<Vec<u8>>) -> Result<()> {
        for Guard { behind, address } in self.guards {
            let content = read(address, BYTES as usize)?;
            let written: Vec<usize> = (0..content.len()).filter(|&at| content[at] != FILL).collect();
            let Some(first) = written.first() else { continue };
            let what = format!(
                "a call wrote past the end of its memory: {} bytes behind {behind}, the first of them {first} bytes behind its end",
                written.len()
            );
            return Err(Error::device(what)
                .hint("report it with `batchstep doctor --bundle`; PyTorch measures the same network"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_parts_overlap_and_all_of_them_fit() {
        let guarded = Guarded::new(1 << 20, 4096, [512, 0]);
        let [main, side] = guarded.workspaces;
        let mut parts = vec![(1 << 20, 4096), (main.address, main.bytes), (side.address, side.bytes)];
        parts.extend(guarded.guards.map(|guard| (guard.address, BYTES)));
        parts.sort_unstable();
        assert!(parts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{parts:?}");
        let (address, length) = parts[parts.len() - 1];
        assert_eq!(address + length - (1 << 20), bytes(4096, [512, 0]));
        assert!(guarded.workspaces.iter().all(|range| range.address.is_multiple_of(256)));
    }

    #[test]
    fn one_byte_behind_a_workspace_is_found_and_named() {
        let guarded = Guarded::new(0, 4096, [512, 256]);
        let whole = |_: u64, length: usize| Ok(vec![FILL; length]);
        guarded.check(whole).unwrap();
        let spoiled = |address: u64, length: usize| {
            let mut content = vec![FILL; length];
            if address == guarded.guards[2].address {
                content[7] = 0;
            }
            Ok(content)
        };
        let error = guarded.check(spoiled).unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::Device);
        let error = error.to_string();
        assert!(error.contains("1 bytes behind the workspace of the side stream"), "{error}");
        assert!(error.contains("the first of them 7 bytes behind its end"), "{error}");
    }
}
