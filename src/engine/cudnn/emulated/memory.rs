//! The buffers of a test, and of a plan that runs without a GPU.

use super::numbers::encode;
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::plan::readback::floats;

/// Buffers by their index; bytes that were not written are 0xFF, which is NaN in every element type.
#[derive(Clone, Debug, Default)]
pub struct EmulatedMemory(Vec<Vec<u8>>);

impl EmulatedMemory {
    pub fn new() -> Self {
        Self::default()
    }

    /// Buffers of those sizes, in bytes.
    pub fn of(sizes: &[usize]) -> Self {
        Self(sizes.iter().map(|bytes| vec![0xFF; *bytes]).collect())
    }

    /// One more buffer, poisoned.
    pub fn reserve(&mut self, bytes: usize) -> Slice {
        self.0.push(vec![0xFF; bytes]);
        Slice::new(self.0.len() - 1, 0, bytes)
    }

    /// One more buffer, for `count` elements, poisoned.
    pub fn empty(&mut self, element: Element, count: usize) -> Slice {
        self.reserve(count * element.bytes())
    }

    /// One more buffer, with those values, rounded to the element type.
    pub fn tensor(&mut self, element: Element, values: &[f32]) -> Slice {
        let slice = self.empty(element, values.len());
        self.write(slice, element, values);
        slice
    }

    /// Overwrites a slice.
    ///
    /// # Panics
    /// Where its size differs.
    pub fn write(&mut self, slice: Slice, element: Element, values: &[f32]) {
        self.bytes_mut(slice).copy_from_slice(&encode(element, values));
    }

    pub fn read(&self, slice: Slice, element: Element) -> Vec<f32> {
        floats(self.bytes(slice), element)
    }

    pub fn read_u64(&self, slice: Slice) -> Vec<u64> {
        self.bytes(slice).chunks_exact(8).map(|word| u64::from_le_bytes(std::array::from_fn(|i| word[i]))).collect()
    }

    /// The bytes of a slice.
    ///
    /// # Panics
    /// Where it lies outside its buffer.
    pub fn bytes(&self, Slice { buffer, offset, bytes }: Slice) -> &[u8] {
        &self.0[buffer.0][offset..offset + bytes]
    }

    /// The bytes of a slice, for writing.
    pub fn bytes_mut(&mut self, Slice { buffer, offset, bytes }: Slice) -> &mut [u8] {
        &mut self.0[buffer.0][offset..offset + bytes]
    }
}
