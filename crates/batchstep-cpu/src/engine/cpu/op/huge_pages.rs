//! Pages of 2 MiB for large blocks of memory, where the system gives them on request: kernels that read many rows at
//! once then need fewer address look-ups. The allocator does not request them for all its memory: it keeps pages for
//! every size, and most of those would be huge and nearly empty.

use rustix::mm::{Advice, madvise};

/// The size of a huge page on x86-64, and on ARM with pages of 4 KiB.
const PAGE: usize = 2 << 20;

/// Requests huge pages where whole ones fit into this memory, which must not have been written to yet. Nothing depends
/// on the answer.
pub fn advise<N>(memory: &mut [N]) {
    let start = memory.as_mut_ptr() as usize;
    let first = start.next_multiple_of(PAGE);
    let end = (start + size_of_val(memory)) / PAGE * PAGE;
    if cfg!(target_os = "linux") && first < end {
        // SAFETY: the pages are within `memory`, and this advice changes no content.
        let _ = unsafe { madvise(first as *mut _, end - first, Advice::LinuxHugepage) };
    }
}
