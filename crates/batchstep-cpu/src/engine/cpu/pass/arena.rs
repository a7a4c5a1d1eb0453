//! One allocation that is cut into many pieces. An allocator rounds each allocation up and keeps pages for every size;
//! for the two hundred buffers of a small network this is more than the buffers themselves. Pieces also share the
//! system's huge pages.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::engine::cpu::op::scratch::{CacheLine, zeros};
use crate::engine::placement::{Span, place};

/// The memory from which pieces are cut.
#[derive(Debug, Default)]
pub struct PassMemory {
    lines: Arc<Vec<CacheLine>>,
}

/// The span of a piece that may be used at any time.
pub const ALWAYS: Span = Span { first: 0, last: usize::MAX };

/// Counts pieces, or hands them out.
#[derive(Debug)]
pub struct Cutter {
    /// For each piece: its bytes in whole lines, and when it is used.
    asked: Vec<(usize, Option<Span>)>,
    /// `None`: pieces are only counted.
    from: Option<Placed>,
}

/// Memory with room for all pieces.
#[derive(Debug)]
struct Placed {
    memory: Arc<Vec<CacheLine>>,
    start: *mut CacheLine,
    /// The offset of each piece, in bytes.
    offsets: Vec<usize>,
}

/// A piece of a [`PassMemory`], which lives as long as its last piece: `len` values, or none by default.
#[derive(Debug)]
pub struct Piece<N> {
    held: Option<Arc<Vec<CacheLine>>>,
    start: *mut N,
    len: usize,
}

impl PassMemory {
    /// Calls `cut` twice: once to count its pieces, and once to hand them out. Reuses the memory of earlier pieces if
    /// they have been dropped and it is large enough.
    ///
    /// # Safety
    /// Pieces whose spans do not overlap may share memory. So no piece may be used outside its span. At the beginning
    /// of its span a piece holds what another piece left there, or zeros: any bits must be a value of its type.
    pub unsafe fn cut(&mut self, mut cut: impl FnMut(&mut Cutter)) {
        let mut cutter = Cutter { asked: Vec::new(), from: None };
        cut(&mut cutter);
        let (offsets, bytes) = place(&cutter.asked);
        let lines = bytes / size_of::<CacheLine>();
        if Arc::get_mut(&mut self.lines).is_none_or(|held| held.len() < lines) {
            // The old memory is freed first; its contents are not needed.
            self.lines = Arc::default();
            self.lines = Arc::new(zeros(lines));
        }
        let start = Arc::get_mut(&mut self.lines).map(|lines| lines.as_mut_ptr());
        let from = start.map(|start| Placed { memory: self.lines.clone(), start, offsets });
        cut(&mut Cutter { asked: Vec::new(), from });
    }

    pub fn bytes(&self) -> u64 {
        (self.lines.len() * size_of::<CacheLine>()) as u64
    }
}

impl Cutter {
    /// The next `len` values, in memory that has been written to.
    pub fn piece<N: Copy>(&mut self, len: usize, span: Span) -> Piece<N> {
        const { assert!(align_of::<N>() <= align_of::<CacheLine>()) };
        let bytes = (len * size_of::<N>()).next_multiple_of(size_of::<CacheLine>());
        let number = self.asked.len();
        self.asked.push((bytes, Some(span)));
        let Some(Placed { memory, start, offsets }) = &self.from else { return Piece::default() };
        let offset = offsets[number];
        assert!(offset + bytes <= memory.len() * size_of::<CacheLine>(), "another piece than was counted");
        // SAFETY: within the memory.
        let start = unsafe { start.byte_add(offset).cast() };
        Piece { held: Some(memory.clone()), start, len }
    }
}

// SAFETY: a piece is the only one that uses its values during its span, as a `Vec` is.
unsafe impl<N: Send> Send for Piece<N> {}
// SAFETY: as above.
unsafe impl<N: Sync> Sync for Piece<N> {}

impl<N> Default for Piece<N> {
    fn default() -> Self {
        Self { held: None, start: std::ptr::dangling_mut(), len: 0 }
    }
}

impl<N> Deref for Piece<N> {
    type Target = [N];

    fn deref(&self) -> &[N] {
        debug_assert!(self.len == 0 || self.held.is_some());
        // SAFETY: there are `len` values, which no other piece uses during the span, and `held` keeps the memory.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<N> DerefMut for Piece<N> {
    fn deref_mut(&mut self) -> &mut [N] {
        // SAFETY: as in `deref`, and not aliased, since `self` is not.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_share_memory_by_their_spans_and_stay_when_it_is_cut_again() {
        let mut memory = PassMemory::default();
        let cut = |memory: &mut PassMemory, len: usize| {
            let (mut a, mut b, mut c) = (Piece::<f32>::default(), Piece::<f64>::default(), Piece::<u32>::default());
            let [early, late] = [(0, 1), (2, 3)].map(|(first, last)| Span { first, last });
            // SAFETY: `a` and `c` are used one after the other here.
            unsafe {
                memory.cut(|cutter| {
                    (a, b, c) = (cutter.piece(len, early), cutter.piece(3, ALWAYS), cutter.piece(len, late));
                });
            }
            (a, b, c)
        };
        let (mut a, mut b, mut c) = cut(&mut memory, 17);
        assert_eq!(memory.bytes(), 3 * 64);
        a.fill(1.0);
        b.fill(2.0);
        assert!(a.len() == 17 && a.iter().all(|value| *value == 1.0) && *b == [2.0; 3]);
        c.fill(3);
        assert!(c.as_ptr().cast() == a.as_ptr() && *c == [3; 17] && *b == [2.0; 3]);

        // The first pieces are still alive, so new pieces get other memory.
        let again = cut(&mut memory, 17);
        assert!(again.0.as_ptr() != a.as_ptr() && *c == [3; 17]);
        let address = again.0.as_ptr();
        drop(again);
        assert_eq!(cut(&mut memory, 5).0.as_ptr(), address, "there is room for fewer in the same memory");
        assert_eq!(memory.bytes(), 3 * 64);
    }
}
