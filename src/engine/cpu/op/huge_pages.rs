//! Pages of 2 MiB for large memory, where the system gives them when asked: kernels that go through many rows at once look up fewer addresses. The
//! allocator is built not to ask for all that it has, since it keeps pages for every size, and of huge ones mostly empty ones.

use rustix::mm::{Advice, madvise};

/// Of x86-64, and of ARM with pages of 4 KiB.
const PAGE: usize = 2 << 20;

/// Asks for huge pages where whole ones fit into this memory, which has not been written to yet. Nothing depends on the answer.
pub fn advise<N>(memory: &mut [N]) {
    let start = memory.as_mut_ptr() as usize;
    let first = start.next_multiple_of(PAGE);
    let end = (start + size_of_val(memory)) / PAGE * PAGE;
    if cfg!(target_os = "linux") && first < end {
        // SAFETY: the pages are within `memory`, and this advice changes no content.
        let _ = unsafe { madvise(first as *mut _, end - first, Advice::LinuxHugepage) };
    }
}
