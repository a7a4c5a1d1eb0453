//! A training step of the CPU engine takes no buffers: whatever is as large as a batch was there after the first steps, so that no step pays for pages of new memory.
//! What is left are lists of tasks and of channels.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use batchstep::engine::cpu::CpuEngine;
use batchstep::engine::{Engine, Workload};
use batchstep::network::{Network, Shape};
use batchstep::settings::{Optimizer, Settings};

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

static IS_ON: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Bytes of one allocation, at most, and of all in a step.
const SMALL: usize = 48 << 10;
const LITTLE: usize = 8 << 20;
/// Allocations in a step, at most: those of a list or two for each task.
const FEW: usize = 20_000;

thread_local! {
    /// Whether this thread is saying where an allocation comes from, which allocates.
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

/// `BATCHSTEP_TEST_ALLOCATIONS=1` says where each comes from.
fn count(bytes: usize) {
    if !IS_ON.load(Ordering::Relaxed) || SAYS.with(Cell::get) {
        return;
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    TOTAL.fetch_add(bytes, Ordering::Relaxed);
    LARGEST.fetch_max(bytes, Ordering::Relaxed);
    SAYS.with(|says| says.set(true));
    if std::env::var_os("BATCHSTEP_TEST_ALLOCATIONS").is_some() {
        eprintln!("{bytes} bytes at {}", std::backtrace::Backtrace::force_capture());
    }
    SAYS.with(|says| says.set(false));
}

/// What a step allocates.
#[derive(Debug)]
struct Allocated {
    count: usize,
    total: usize,
    largest: usize,
}

/// In each of some steps, after some that are not counted. One thread, since with several it depends on which of them takes which task.
fn allocated(name: &str, shape: Shape, batch_size: usize, optimizer: Optimizer) -> Vec<Allocated> {
    let network = Arc::new(Network::by_name(name, shape, 10).expect("a network"));
    let settings = Settings { optimizer, threads: Some(1), ..Settings::default() };
    let mut step = CpuEngine::cpu(Some(1)).prepare(&Workload { network, batch_size, settings }).expect("a step");
    let mut counted = || {
        let counters = [&COUNT, &TOTAL, &LARGEST];
        counters.iter().for_each(|counter| counter.store(0, Ordering::SeqCst));
        IS_ON.store(true, Ordering::SeqCst);
        let ran = step.run();
        IS_ON.store(false, Ordering::SeqCst);
        ran.expect("it runs");
        let [count, total, largest] = counters.map(|counter| counter.load(Ordering::SeqCst));
        Allocated { count, total, largest }
    };
    for _ in 0..4 {
        counted();
    }
    (0..4).map(|_| counted()).collect()
}

#[test]
fn a_step_allocates_no_buffers() {
    let image = |side: usize| Shape::Maps { channels: 3, height: side, width: side };
    let digits = Shape::Maps { channels: 1, height: 28, width: 28 };
    for (name, shape, batch_size, optimizer) in [
        ("mnist_cnn", digits, 5, Optimizer::Sgd),
        ("vgg16", image(32), 3, Optimizer::Momentum),
        ("mobilenet", image(64), 2, Optimizer::RmsProp),
        ("resnet50", image(64), 2, Optimizer::Adam),
    ] {
        let steps = allocated(name, shape, batch_size, optimizer);
        println!("{name}: {:?}", steps[0]);
        let is_little = |step: &Allocated| step.largest <= SMALL && step.total <= LITTLE && step.count <= FEW;
        assert!(steps.iter().all(is_little), "{name}: {steps:?}");
    }
}
