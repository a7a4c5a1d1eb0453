//! How the operators spread their work over the threads of the step.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::cpu::thread_team::share;
pub use crate::engine::cpu::thread_team::threads;

/// Fewer scalars than this are not worth waking another thread (about 10 us of memory traffic).
pub const GRAIN: usize = 1 << 15;

/// Runs `work(scratch, task)` for every task in `0..tasks`. Each thread makes one scratch and keeps taking the next
/// task, so a thread that is slowed down takes fewer tasks.
pub fn for_each_task<S>(tasks: usize, scratch: impl Fn() -> S + Sync, work: impl Fn(&mut S, usize) + Sync) {
    let workers = threads().min(tasks);
    if workers <= 1 {
        let mut own = scratch();
        return (0..tasks).for_each(|task| work(&mut own, task));
    }
    let next = AtomicUsize::new(0);
    share(workers, &|| {
        let mut own: Option<S> = None;
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            work(own.get_or_insert_with(&scratch), task);
        }
    });
}

/// [`for_each_task`] without scratch.
pub fn for_each(tasks: usize, work: impl Fn(usize) + Sync) {
    for_each_task(tasks, || (), |(), task| work(task));
}

/// Cuts `values` into pieces of `len`, the last of which may be shorter, and runs `work(number, piece)` for each.
pub fn for_each_piece<T: Send>(values: &mut [T], len: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let (count, shared) = (values.len(), Shared::new(values));
    for_each(count.div_ceil(len), |number| {
        let start = number * len;
        // SAFETY: every number has one task.
        work(number, unsafe { shared.slice(start, len.min(count - start)) });
    });
}

/// Piece `number` of `values`, cut into pieces of `len`.
pub fn part<T>(values: &[T], number: usize, len: usize) -> &[T] {
    &values[number * len..((number + 1) * len).min(values.len())]
}

/// The length of the pieces into which `count` items of `size` scalars each are cut for parallel work.
pub fn piece(count: usize, size: usize) -> usize {
    let tasks = 4 * threads();
    count.div_ceil(tasks).max(GRAIN.div_ceil(size.max(1))).max(1)
}

/// About how many scalars of a tensor are processed together: they fit in a part of the second-level cache, where a
/// second pass finds them.
const TOGETHER: usize = 1 << 16;
/// The most channels that are processed together: enough to read some consecutive kilobytes where planes are small.
pub const CHANNELS: usize = 64;

/// Runs `work` for all channels of a tensor, some neighbours at a time; a channel has `values` scalars.
pub fn for_each_channels(channels: usize, values: usize, work: impl Fn(Range<usize>) + Sync) {
    let (share, together) = (piece(channels, values), (TOGETHER / values.max(1)).clamp(1, CHANNELS));
    for_each(channels.div_ceil(share), |task| {
        let end = ((task + 1) * share).min(channels);
        (task * share..end).step_by(together).for_each(|start| work(start..(start + together).min(end)));
    });
}

/// The planes of some neighbouring channels, image by image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelPlanes {
    /// Channels of an image in this memory.
    pub all: usize,
    /// Which of these channels are meant.
    pub channels: Range<usize>,
}

impl ChannelPlanes {
    /// The place of the same channels in memory that holds only them.
    pub fn alone(&self) -> Self {
        let count = self.channels.len();
        Self { all: count, channels: 0..count }
    }

    /// The number of a channel's plane; `channel` counts from the first of the place's channels.
    #[inline(always)]
    pub fn plane(&self, image: usize, channel: usize) -> usize {
        image * self.all + self.channels.start + channel
    }
}

/// A mutable slice to which several tasks write at once, each at its own places.
pub struct Shared<'a, T> {
    pointer: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: the callers of the unsafe methods promise that no two tasks touch the same element.
unsafe impl<T: Send> Sync for Shared<'_, T> {}
// SAFETY: as for a mutable slice.
unsafe impl<T: Send> Send for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub fn new(slice: &'a mut [T]) -> Self {
        Self { pointer: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }

    /// A slice that is only read, by [`Shared::get`].
    pub fn reading(slice: &'a [T]) -> Self {
        Self { pointer: slice.as_ptr().cast_mut(), len: slice.len(), life: PhantomData }
    }

    /// The `len` elements from `start` on, to be read.
    ///
    /// # Safety
    /// No task may write to these elements while the slice lives.
    pub unsafe fn get(&self, start: usize, len: usize) -> &[T] {
        assert!(start <= self.len && len <= self.len - start, "a task reached outside of its tensor");
        // SAFETY: inside the slice, by the assertion; not written to, by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.pointer.add(start), len) }
    }

    /// The `len` elements from `start` on.
    ///
    /// # Safety
    /// No other task may use these elements while the slice lives, and they must not be those of [`Shared::reading`].
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.len && len <= self.len - start, "a task reached outside of its tensor");
        // SAFETY: inside the slice, by the assertion; not aliased, by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.add(start), len) }
    }

    /// The address of element `start`; `span` elements may be reached from there.
    pub fn address(&self, start: usize, span: usize) -> *mut T {
        assert!(start <= self.len && span <= self.len - start, "a task reached outside of its tensor");
        // SAFETY: inside the slice, by the assertion.
        unsafe { self.pointer.add(start) }
    }
}
