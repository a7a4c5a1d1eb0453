//! Memory for intermediate values that each thread keeps from step to step. A new allocation of a megabyte costs a page
//! fault for every 4 KiB, and zeros that are never read; both would add noise to the step time.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::scalar::Scalar;

/// A cache line, so that vectors never straddle two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

const EMPTY: Line = Line([0; 64]);

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// `len` scalars of arbitrary value; they go back to the thread that drops them.
pub struct Scratch<T> {
    lines: Vec<Line>,
    len: usize,
    scalars: PhantomData<T>,
}

impl<T: Scalar> Scratch<T> {
    /// Takes the smallest free buffer that is large enough, or else enlarges the largest one.
    pub fn new(len: usize) -> Self {
        let wanted = (len * size_of::<T>()).div_ceil(size_of::<Line>());
        let mut lines = FREE.with_borrow_mut(|free| {
            let fitting = (0..free.len()).filter(|&at| free[at].len() >= wanted).min_by_key(|&at| free[at].len());
            let at = fitting.or_else(|| (0..free.len()).max_by_key(|&at| free[at].len()));
            at.map_or_else(Vec::new, |at| free.swap_remove(at))
        });
        if lines.len() < wanted {
            lines = vec![EMPTY; wanted];
        }
        Self { lines, len, scalars: PhantomData }
    }

    /// The same, all zero.
    pub fn zeros(len: usize) -> Self {
        let mut room = Self::new(len);
        room.fill(T::ZERO);
        room
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        // At the end of a thread the list may be gone already; then the room goes too.
        let _ = FREE.try_with(|free| free.borrow_mut().push(lines));
    }
}

impl<T: Scalar> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold at least `len` scalars, are initialised, and aligned for any of them; a `Scalar` is a
        // floating-point number, for which every bit pattern is a value.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Scalar> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and not aliased, since `self` is not.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_user_gets_the_same_room() {
        let address = Scratch::<f32>::new(1000).as_ptr() as usize;
        let again = Scratch::<f64>::zeros(300);
        assert_eq!(again.as_ptr() as usize, address);
        assert!(again.len() == 300 && again.iter().all(|value| *value == 0.0));
    }

    #[test]
    fn two_users_at_once_get_two_rooms() {
        let (mut a, mut b) = (Scratch::<f32>::new(64), Scratch::<f32>::new(64));
        a.fill(1.0);
        b.fill(2.0);
        assert!(a.iter().all(|value| *value == 1.0) && a.as_ptr().cast::<u8>().align_offset(64) == 0);
    }
}
