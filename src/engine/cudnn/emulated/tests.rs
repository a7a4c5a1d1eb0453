use super::*;
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::source;

/// Kernels that keep the rules, and kernels that break one each.
const KERNELS: &str = r#"
KERNEL total(const T *x, float *y, int n) {
    __shared__ float scratch[32];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += to_float(x[i]);
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
KERNEL turned(const float *x, float *y) {
    extern __shared__ float tile[];
    int at = threadIdx.y * blockDim.x + threadIdx.x;
    tile[at] = x[at];
    __syncthreads();
    y[threadIdx.x * blockDim.y + threadIdx.y] = tile[at];
}
KERNEL backwards_in_a_warp(const float *x, float *y) {
    float value = __shfl_sync(~0u, x[threadIdx.x], 31 - threadIdx.x % 32);
    unsigned above = __ballot_sync(~0u, value > 0.0f);
    y[threadIdx.x] = above >> threadIdx.x % 32 & 1u ? value : -1.0f;
}
KERNEL no_barrier(float *y) {
    __shared__ float shared[64];
    shared[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = shared[(threadIdx.x + 1) % 64];
}
KERNEL half_a_barrier(float *y) {
    if (threadIdx.x < 32) __syncthreads();
    y[threadIdx.x] = 1.0f;
}
KERNEL leaves_a_gap(float *y) {
    if (threadIdx.x != 5) y[threadIdx.x] = 1.0f;
}
KERNEL reads_first(float *y) { y[threadIdx.x] += 1.0f; }
KERNEL too_far(float *y) { y[threadIdx.x + 1] = 1.0f; }
KERNEL reads_too_far(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x + 32]; }
KERNEL askew(const float *x, float *y) { store(y, load<PACK>(x + 1)); }
"#;

fn misuse() -> Option<Emulator> {
    let compiler = emulator().map(|_| Compiler::find())??;
    let source = source::assemble(KERNELS, Element::F32);
    let module = compiler.module("misuse", &source, &source::kernels(KERNELS));
    let modules = HashMap::from([(("misuse", Element::F32), Arc::new(OnceLock::from(module)))]);
    Some(Emulator { compiler, modules: Mutex::new(modules) })
}

fn launch(name: &'static str, grid: u32, block: [u32; 3], args: Vec<Arg>) -> Call {
    let kernel = Kernel { operator: "misuse", name, element: Element::F32 };
    let shared_bytes = block[0] * block[1] * 4;
    Call::Launch(Launch { kernel, grid: [grid, 1, 1], block, shared_bytes, args })
}

fn complaint(emulator: &Emulator, memory: &EmulatedMemory, call: &Call) -> String {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| emulator.check(&mut memory.clone(), call)));
    let complaint = caught.expect_err("it was let through");
    complaint.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn threads_wait_for_each_other_and_exchange_values() {
    let Some(emulator) = misuse() else { return };
    let mut memory = EmulatedMemory::new();
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let (x, y) = (memory.tensor(Element::F32, &values), memory.empty(Element::F32, 3));
    emulator.check(&mut memory, &launch("total", 3, [96, 1, 1], vec![Arg::Read(x), Arg::Write(y), Arg::I32(1000)]));
    let sums: Vec<f32> = (0..3).map(|block| values.iter().filter(|i| **i as usize / 96 % 3 == block).sum()).collect();
    assert_eq!(memory.read(y, Element::F32), sums);

    let (x, y) = (x.part(0, 24), memory.empty(Element::F32, 6));
    emulator.check(&mut memory, &launch("turned", 1, [3, 2, 1], vec![Arg::Read(x), Arg::Write(y)]));
    assert_eq!(memory.read(y, Element::F32), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);

    let (x, y) = (Slice { bytes: 256, ..x }, memory.empty(Element::F32, 64));
    emulator.check(&mut memory, &launch("backwards_in_a_warp", 1, [64, 1, 1], vec![Arg::Read(x), Arg::Write(y)]));
    let expected: Vec<f32> = (0..64).map(|i| if i == 31 { -1.0 } else { (i / 32 * 32 + 31 - i % 32) as f32 }).collect();
    assert_eq!(memory.read(y, Element::F32), expected);
}

#[test]
fn a_kernel_that_breaks_a_rule_is_caught() {
    let Some(emulator) = misuse() else { return };
    let mut memory = EmulatedMemory::new();
    let y = memory.reserve(1024).part(0, 256);
    let complain = |name, args| complaint(&emulator, &memory, &launch(name, 1, [64, 1, 1], args));
    for (name, expected) in [
        ("no_barrier", "a race"),
        ("half_a_barrier", "barrier"),
        ("leaves_a_gap", "byte 20 of 256"),
        ("reads_first", "one that is read before"),
        ("too_far", "it wrote outside of the 256 bytes"),
        ("absent", "no such kernel"),
    ] {
        let complaint = complain(name, vec![Arg::Write(y)]);
        assert!(complaint.contains(expected), "{name}: {complaint}");
    }
    assert!(complain("too_far", vec![Arg::Read(y)]).contains("of kind W"));
    assert!(complain("too_far", vec![]).contains("0 arguments for 1 parameters"));
    let overlapping = vec![Arg::Read(y), Arg::Write(y.part(128, 128))];
    assert!(complain("turned", overlapping).contains("overlaps"));
    assert!(complain("turned", vec![Arg::Read(y), Arg::Write(y)]).contains("in place it is Update in both"));
}

#[test]
fn a_caught_kernel_leaves_the_next_one_unharmed() {
    let Some(emulator) = misuse() else { return };
    let mut memory = EmulatedMemory::new();
    let y = memory.reserve(256);
    complaint(&emulator, &memory, &launch("half_a_barrier", 1, [64, 1, 1], vec![Arg::Write(y)]));
    let x = memory.tensor(Element::F32, &[1.0; 64]);
    emulator.check(&mut memory, &launch("turned", 1, [8, 8, 1], vec![Arg::Read(x), Arg::Write(y)]));
    assert_eq!(memory.read(y, Element::F32), [1.0; 64]);
}

/// Such a kernel ends its process, so it runs in another one.
#[test]
fn a_kernel_that_reads_too_far_or_askew_is_named() {
    const NAME: &str = "engine::cudnn::emulated::tests::a_kernel_that_reads_too_far_or_askew_is_named";
    const BREAK: &str = "BATCHSTEP_TEST_BREAKS";
    if let Ok(name) = std::env::var(BREAK) {
        let Some(emulator) = misuse() else { return };
        let kernel = ["reads_too_far", "askew"].into_iter().find(|known| *known == name).unwrap();
        let mut memory = EmulatedMemory::new();
        let (x, y) = (memory.tensor(Element::F32, &[1.0; 8]), memory.empty(Element::F32, 8));
        emulator.run(&mut memory, &launch(kernel, 1, [8, 1, 1], vec![Arg::Read(x), Arg::Write(y)]));
        panic!("it was let through");
    }
    if emulator().is_none() {
        return;
    }
    for kernel in ["reads_too_far", "askew"] {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args([NAME, "--exact", "--nocapture"]).env(BREAK, kernel).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(&format!("kernel {kernel} reads outside")), "{said}");
    }
}
