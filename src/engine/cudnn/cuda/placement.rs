//! The addresses of a plan's buffers on the device.

use crate::engine::cudnn::call::{BufferId, Slice};
use crate::error::{Error, Result};

/// The address and size of every buffer, by [`BufferId`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    buffers: Vec<Range>,
}

/// The memory of one buffer, or of a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub address: u64,
    pub bytes: u64,
}

impl Placement {
    /// Buffers in one arena that begins at `base`: their offsets there and their sizes, in bytes.
    pub fn in_arena(base: u64, offsets_and_sizes: &[(u64, u64)]) -> Self {
        let range = |&(offset, bytes): &(u64, u64)| Range { address: base + offset, bytes };
        Self { buffers: offsets_and_sizes.iter().map(range).collect() }
    }

    /// The address of an operand that has `bytes` bytes.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where its slice is smaller; as [`Placement::resolve`].
    pub fn operand(&self, slice: Slice, bytes: usize, what: &str) -> Result<u64> {
        match slice.bytes >= bytes {
            true => self.resolve(slice),
            false => Err(Error::engine(format!("{what} has {} bytes where {bytes} are needed", slice.bytes))),
        }
    }

    /// The address of a slice.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the buffer does not exist or is smaller than the slice.
    pub fn resolve(&self, slice: Slice) -> Result<u64> {
        let BufferId(index) = slice.buffer;
        let Some(range) = self.buffers.get(index) else {
            return Err(Error::engine(format!("the plan refers to buffer {index}; there are {}", self.buffers.len())));
        };
        let end = slice.offset as u64 + slice.bytes as u64;
        if end > range.bytes {
            let what = format!("the plan refers to byte {end} of buffer {index}, which has {}", range.bytes);
            return Err(Error::engine(what));
        }
        Ok(range.address + slice.offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_lies_in_its_buffer_or_is_refused() {
        let placement = Placement::in_arena(0x7000_0000, &[(0, 512), (512, 256)]);
        let at = |slice| placement.resolve(slice).map_err(|error| error.to_string());
        assert_eq!(at(Slice::new(0, 256, 256)).unwrap(), 0x7000_0100);
        assert_eq!(at(Slice::new(1, 16, 240)).unwrap(), 0x7000_0210);
        assert!(at(Slice::new(0, 256, 257)).unwrap_err().contains("byte 513 of buffer 0"));
        assert!(at(Slice::new(2, 0, 1)).unwrap_err().contains("buffer 2; there are 2"));
    }
}
