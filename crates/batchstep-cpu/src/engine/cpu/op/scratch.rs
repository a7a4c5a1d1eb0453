//! Memory for intermediate values that each thread keeps from step to step. A new allocation of a megabyte costs a page
//! fault for every 4 KiB, and fills it with zeros that are never read; both would add noise to the step time.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::huge_pages::advise;
use super::scalar::Scalar;

/// A cache line, so that vectors never straddle two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct CacheLine([u8; 64]);

const EMPTY: CacheLine = CacheLine([0; 64]);

thread_local! {
    static FREE: RefCell<Vec<Vec<CacheLine>>> = const { RefCell::new(Vec::new()) };
}

/// Takes the smallest free buffer of at least `bytes` bytes, or else enlarges the largest one.
fn take(bytes: usize) -> Vec<CacheLine> {
    let wanted = bytes.div_ceil(size_of::<CacheLine>());
    let lines = FREE.with_borrow_mut(|free| {
        let fitting = (0..free.len()).filter(|&at| free[at].len() >= wanted).min_by_key(|&at| free[at].len());
        let at = fitting.or_else(|| (0..free.len()).max_by_key(|&at| free[at].len()));
        at.map_or_else(Vec::new, |at| free.swap_remove(at))
    });
    if lines.len() >= wanted {
        return lines;
    }
    drop(lines);
    zeros(wanted)
}

/// Memory that has been written to, so that the next step has no page faults.
pub fn zeros(lines: usize) -> Vec<CacheLine> {
    let mut memory = Vec::with_capacity(lines);
    advise(memory.spare_capacity_mut());
    memory.resize(lines, EMPTY);
    memory
}

fn give_back(lines: &mut Vec<CacheLine>) {
    let lines = std::mem::take(lines);
    // At the end of a thread the list may be gone already; then the memory is freed.
    let _ = FREE.try_with(|free| free.borrow_mut().push(lines));
}

/// A list in scratch memory that is made anew in each step: pieces of work, sums of channels. The memory goes to the thread that drops it.
pub struct List<T> {
    lines: Vec<CacheLine>,
    len: usize,
    items: PhantomData<T>,
}

/// A list of scalars: intermediate values.
pub type Scratch<T> = List<T>;

impl<T: Scalar> Scratch<T> {
    /// `len` scalars of arbitrary value.
    pub fn new(len: usize) -> Self {
        // The lines are initialised, and for a floating-point number every bit pattern is a value.
        Self { lines: take(len * size_of::<T>()), len, items: PhantomData }
    }

    /// The same, all zero.
    pub fn zeros(len: usize) -> Self {
        let mut room = Self::new(len);
        room.fill(T::ZERO);
        room
    }
}

impl<T> List<T> {
    /// An empty list with room for `items` items.
    pub fn with_capacity(items: usize) -> Self {
        const { assert!(align_of::<T>() <= align_of::<CacheLine>() && size_of::<T>() > 0) };
        Self { lines: take(items * size_of::<T>()), len: 0, items: PhantomData }
    }

    /// A list of `len` copies of `item`.
    pub fn repeat(item: T, len: usize) -> Self
    where
        T: Clone,
    {
        std::iter::repeat_n(item, len).collect()
    }

    pub fn push(&mut self, item: T) {
        let capacity = self.lines.len() * size_of::<CacheLine>() / size_of::<T>();
        if self.len == capacity {
            let mut longer = take((2 * capacity).max(8) * size_of::<T>());
            let used = (self.len * size_of::<T>()).div_ceil(size_of::<CacheLine>());
            longer[..used].copy_from_slice(&self.lines[..used]);
            give_back(&mut std::mem::replace(&mut self.lines, longer));
        }
        // SAFETY: there is room for one more item, aligned as the lines are.
        unsafe { self.lines.as_mut_ptr().cast::<T>().add(self.len).write(item) };
        self.len += 1;
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items = items.into_iter();
        let mut list = Self::with_capacity(items.size_hint().0);
        items.for_each(|item| list.push(item));
        list
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        // SAFETY: all these items were pushed, and they are no longer used.
        unsafe { std::ptr::drop_in_place(&mut **self) };
        give_back(&mut self.lines);
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: all these items were pushed, or are scalars of any value.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and not aliased, since `self` is not.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_items_as_it_grows_and_the_next_one_gets_its_room() {
        let list: List<(usize, f32)> = (0..1000).filter(|i| i % 3 == 0).map(|i| (i, i as f32)).collect();
        assert!(list.len() == 334 && list.iter().enumerate().all(|(at, item)| *item == (3 * at, 3.0 * at as f32)));
        drop(list);
        let address = || List::repeat(1.5f64, 300).as_ptr() as usize;
        assert_eq!(address(), address());
        assert!(List::<u8>::with_capacity(0).is_empty());
    }

    #[test]
    fn two_users_at_once_get_two_rooms_and_the_next_one_gets_one_of_them() {
        let (mut a, mut b) = (Scratch::<f32>::new(640), Scratch::<f32>::new(64));
        a.fill(1.0);
        b.fill(2.0);
        assert!(a.iter().all(|value| *value == 1.0) && a.as_ptr().cast::<u8>().align_offset(64) == 0);
        let address = a.as_ptr() as usize;
        drop(a);
        let again = Scratch::<f64>::zeros(300);
        assert_eq!(again.as_ptr() as usize, address);
        assert!(again.len() == 300 && again.iter().all(|value| *value == 0.0));
    }
}
