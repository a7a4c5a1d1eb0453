//! A training step of the CPU engine allocates nothing: all its memory exists after the first steps, so that later
//! steps neither touch new pages nor wait for an allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use batchstep::engine::cpu::CpuEngine;
use batchstep::engine::{Engine, Workload};
use batchstep::network::{Network, Shape};
use batchstep::settings::{Optimizer, Settings};

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Whether the allocations of this thread count. A step of one thread runs on the thread that calls it; the harness has others.
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread is reporting where an allocation comes from, which itself allocates.
    static SAYS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as the caller says.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// `BATCHSTEP_TEST_ALLOCATIONS=1` reports where each comes from.
fn count(bytes: usize) {
    if !IS_ON.get() || SAYS.get() {
        return;
    }
    COUNT.set(COUNT.get() + 1);
    SAYS.set(true);
    if std::env::var_os("BATCHSTEP_TEST_ALLOCATIONS").is_some() {
        eprintln!("{bytes} bytes at {}", std::backtrace::Backtrace::force_capture());
    }
    SAYS.set(false);
}

/// The allocations of each of some steps, after some that are not counted. One thread is used, since with several the
/// scratch memory of each depends on which tasks it takes.
fn allocations(name: &str, shape: Shape, batch_size: usize, optimizer: Optimizer) -> Vec<usize> {
    let network = Arc::new(Network::by_name(name, shape, 10).expect("a network"));
    let settings = Settings { optimizer, threads: Some(1), ..Settings::default() };
    let workload = Workload { network, batch_size, settings };
    let (step, of_preparing) = counted(|| CpuEngine::cpu(Some(1)).prepare(&workload));
    assert!(of_preparing > 0, "nothing is counted");
    let mut step = step.expect("a step");
    let mut one = || {
        let (ran, count) = counted(|| step.run());
        ran.expect("it runs");
        count
    };
    for _ in 0..4 {
        one();
    }
    (0..4).map(|_| one()).collect()
}

/// What `work` gives, and how often it allocates on this thread.
fn counted<R>(work: impl FnOnce() -> R) -> (R, usize) {
    COUNT.set(0);
    IS_ON.set(true);
    let result = work();
    IS_ON.set(false);
    (result, COUNT.get())
}

#[test]
fn a_step_allocates_nothing() {
    let _alone = crate::alone();
    let image = |side: usize| Shape::Maps { channels: 3, height: side, width: side };
    let digits = Shape::Maps { channels: 1, height: 28, width: 28 };
    for (name, shape, batch_size, optimizer) in [
        ("mnist_cnn", digits, 5, Optimizer::Sgd),
        ("vgg16", image(32), 3, Optimizer::Momentum),
        ("mobilenet", image(64), 2, Optimizer::RmsProp),
        ("resnet50", image(64), 2, Optimizer::Adam),
    ] {
        assert_eq!(allocations(name, shape, batch_size, optimizer), [0; 4], "{name}");
    }
    // Losses, rectifiers and layers of other kinds, and blocks of examples.
    for (name, shape, batch_size) in [("mlp", Shape::Flat(2), 600), ("mlp", Shape::Flat(2), 3)] {
        assert_eq!(allocations(name, shape, batch_size, Optimizer::AdamW), [0; 4], "{name}");
    }
}
