//! Many pieces of one allocation. An allocator rounds each allocation up and keeps pages for every size, which for the two hundred buffers of a small
//! network is more than the network has; pieces also share the system's huge pages.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::engine::cpu::op::huge_pages::advise;
use crate::engine::cpu::op::scratch::Line;

type Lines = Vec<MaybeUninit<Line>>;

/// The memory that pieces are cut from.
#[derive(Debug, Default)]
pub struct Memory {
    lines: Arc<Lines>,
}

/// Cuts pieces, one after the other.
#[derive(Debug)]
pub struct Cutter {
    /// `None`: it only counts.
    from: Option<(Arc<Lines>, *mut MaybeUninit<Line>)>,
    /// Of what is cut.
    lines: usize,
}

/// A piece of a [`Memory`], which lives as long as its last piece: `len` values, or none by default.
#[derive(Debug)]
pub struct Piece<N> {
    held: Option<Arc<Lines>>,
    start: *mut N,
    len: usize,
}

impl Memory {
    /// Lets `cut` take its pieces, once to count them and once to have them, in the memory of earlier pieces where they have been dropped and it is large
    /// enough. `cut` has to ask for the same pieces both times.
    pub fn cut(&mut self, mut cut: impl FnMut(&mut Cutter)) {
        let mut cutter = Cutter { from: None, lines: 0 };
        cut(&mut cutter);
        if Arc::get_mut(&mut self.lines).is_none_or(|lines| lines.len() < cutter.lines) {
            // The old memory is freed first; its contents are not needed.
            self.lines = Arc::default();
            let mut lines = Box::new_uninit_slice(cutter.lines).into_vec();
            advise(&mut lines);
            self.lines = Arc::new(lines);
        }
        let start = Arc::get_mut(&mut self.lines).map(|lines| lines.as_mut_ptr());
        cut(&mut Cutter { from: start.map(|start| (self.lines.clone(), start)), lines: 0 });
    }

    pub fn bytes(&self) -> u64 {
        (self.lines.len() * size_of::<Line>()) as u64
    }
}

impl Cutter {
    /// The next `len` values, all of them written to, so that the first step has no page faults.
    pub fn piece<N: Copy + Default>(&mut self, len: usize) -> Piece<N> {
        const { assert!(align_of::<N>() <= align_of::<Line>()) };
        let first = self.lines;
        self.lines += (len * size_of::<N>()).div_ceil(size_of::<Line>());
        let Some((memory, start)) = &self.from else { return Piece::default() };
        assert!(self.lines <= memory.len(), "more pieces than were counted");
        // SAFETY: the lines from `first` to `self.lines` are within the memory, and belong to this piece alone.
        let start = unsafe {
            let start = start.add(first).cast::<N>();
            (0..len).for_each(|at| start.add(at).write(N::default()));
            start
        };
        Piece { held: Some(memory.clone()), start, len }
    }
}

// SAFETY: a piece is the only one that uses its values, as a `Vec` is.
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
        // SAFETY: so many values were written there, which nobody else uses while `held` keeps the memory.
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
    fn pieces_do_not_overlap_and_stay_when_the_memory_is_cut_again() {
        let mut memory = Memory::default();
        let cut = |memory: &mut Memory, len: usize| {
            let (mut a, mut b) = (Piece::<f32>::default(), Piece::<f64>::default());
            memory.cut(|cutter| (a, b) = (cutter.piece(len), cutter.piece(3)));
            (a, b)
        };
        let (mut a, mut b) = cut(&mut memory, 17);
        assert_eq!(memory.bytes(), 3 * 64);
        a.fill(1.0);
        b.fill(2.0);
        assert!(a.len() == 17 && a.iter().all(|value| *value == 1.0) && *b == [2.0; 3]);

        // The first pieces still live, so that others get other memory.
        let (c, d) = cut(&mut memory, 17);
        assert!(c.as_ptr() != a.as_ptr() && a.iter().all(|value| *value == 1.0));
        let address = c.as_ptr();
        drop((c, d));
        assert_eq!(cut(&mut memory, 5).0.as_ptr(), address, "there is room for fewer in the same memory");
        assert_eq!(memory.bytes(), 3 * 64);
    }
}
