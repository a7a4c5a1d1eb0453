//! The resources of a multiprocessor that a launch takes, read from NVRTC's machine code, which is an ELF file;
//! `.nv.info` has the registers of each kernel (entries of the kind 0x2F: the kernel's symbol, and the number), and
//! `.nv.shared.NAME` is as large as a kernel's own shared memory.

use std::collections::HashMap;

use super::compiler::{CompileTarget, compile};
use crate::device::cuda::libraries::{self, Library};
use crate::engine::cudnn::call::{Call, Kernel, Launch};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::plan::StepPlan;
use crate::engine::cudnn::plan::tests::{settings, workload};
use crate::engine::cudnn::source::Operator;
use crate::settings::{Layout, Precision, Settings};

/// Limits of compute capability 9.0, from the CUDA programming guide's table of technical specifications. Registers are
/// allocated to warps in units of 256; each block takes 1 KiB of shared memory in addition to its own.
const REGISTERS: u32 = 65_536;
const WARPS: u32 = 64;
const BLOCKS: u32 = 32;
const SHARED_BYTES: u32 = 228 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Resources {
    registers: u32,
    shared_bytes: u32,
}

impl Resources {
    /// Warps of such a launch that a multiprocessor holds at once.
    fn warps(self, launch: &Launch) -> u32 {
        let warps = launch.block.iter().product::<u32>().div_ceil(32);
        let registers = (self.registers * 32).next_multiple_of(256) * warps;
        let shared = self.shared_bytes + launch.shared_bytes + 1024;
        warps * BLOCKS.min(WARPS / warps).min(REGISTERS / registers).min(SHARED_BYTES / shared)
    }
}

/// A little-endian number.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The string that begins there and ends with a zero.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// The sections of an ELF file of 64 bits, by name.
fn sections(image: &[u8]) -> HashMap<String, &[u8]> {
    let (table, size, count) = (number(&image[0x28..0x30]), number(&image[0x3A..0x3C]), number(&image[0x3C..0x3E]));
    let header = |index: usize| &image[table + index * size..][..size];
    let content = |header: &[u8]| {
        // A section without bits has a size but no data in the file.
        let at = number(&header[0x18..0x20]).min(image.len());
        &image[at..image.len().min(at + number(&header[0x20..0x28]))]
    };
    let names = content(header(number(&image[0x3E..0x40])));
    (0..count).map(|index| (text(&names[number(&header(index)[..4])..]), content(header(index)))).collect()
}

/// The resources of each kernel, by its name.
fn resources(image: &[u8]) -> HashMap<String, Resources> {
    let sections = sections(image);
    let (symbols, strings) = (sections[".symtab"], sections[".strtab"]);
    let mut found = HashMap::new();
    let mut rest = sections[".nv.info"];
    while let [form, kind, ..] = *rest {
        // Form 4 is followed by the number of its bytes and the bytes; the other forms have a value there instead.
        let bytes = if form == 4 { number(&rest[2..4]) } else { 0 };
        if kind == 0x2F {
            let symbol = number(&rest[4..8]);
            let name = text(&strings[number(&symbols[24 * symbol..][..4])..]);
            let shared_bytes = sections.get(&format!(".nv.shared.{name}")).map_or(0, |shared| shared.len() as u32);
            found.insert(name, Resources { registers: number(&rest[8..12]) as u32, shared_bytes });
        }
        rest = &rest[4 + bytes..];
    }
    found
}

fn module(operator: &str, element: Element) -> HashMap<String, Resources> {
    let Some(source) = Operator::by_name(operator).map(|operator| operator.source(element)) else {
        panic!("no operator {operator}")
    };
    let target = CompileTarget { architecture: 90, native: true };
    let image = compile(operator, &source, element, target);
    resources(&image.unwrap_or_else(|error| panic!("{operator}: {error}")))
}

/// By hand: 64 registers for each of 512 threads are half of a multiprocessor's; with 72 a block takes 36,864, and only
/// one fits.
#[test]
fn registers_and_shared_memory_say_how_many_warps_fit() {
    let kernel = Kernel { operator: "test", name: "test", element: Element::F32 };
    let launch =
        |threads, shared_bytes| Launch { kernel, grid: [1; 3], block: [threads, 1, 1], shared_bytes, args: Vec::new() };
    let of = |registers| Resources { registers, shared_bytes: 0 };
    assert_eq!([32, 64, 65, 72].map(|registers| of(registers).warps(&launch(512, 0))), [64, 32, 16, 16]);
    assert_eq!(of(16).warps(&launch(32, 0)), 32, "no more than 32 blocks");
    assert_eq!(of(16).warps(&launch(128, 113 << 10)), 8, "two blocks of 114 KiB");
}

/// Memory is read at its full rate only where enough loads are in flight: by Little's law, 3 TB/s with a latency of 700
/// ns are 16 KiB for each of 132 multiprocessors, or 16 bytes for every thread of 32 warps. Kernels that keep a channel
/// in registers or compute a tile of outputs load many bundles before they wait, and need fewer warps.
#[test]
#[ignore = "slow"]
fn launches_leave_room_for_the_warps_that_hide_the_memorys_latency() {
    if !libraries::is_loaded(Library::Nvrtc) {
        return;
    }
    let mut modules = HashMap::new();
    let elements = [Precision::Tf32, Precision::Bf16, Precision::Fp16];
    let cases = elements.into_iter().flat_map(|precision| Layout::ALL.iter().map(move |&layout| (precision, layout)));
    for (precision, layout) in cases {
        for name in ["vgg16", "mobilenet", "resnet50"] {
            let workload = workload(name, 64, Settings { precision, layout, ..settings() });
            let plan = StepPlan::new(&workload, &mut |_, _| false).unwrap();
            for planned in &plan.calls {
                let Call::Launch(launch) = &planned.call else { continue };
                let Kernel { operator, name: kernel, element } = launch.kernel;
                let module = modules.entry((operator, element)).or_insert_with(|| module(operator, element));
                let many =
                    ["_held", "_cells"].iter().any(|end| kernel.ends_with(end)) || operator == "depthwise_conv2d";
                let least = if many { 12 } else { 32 };
                let (found, warps) = (module[kernel], module[kernel].warps(launch));
                assert!(warps >= least, "{name} {precision} {layout}: {operator}/{kernel}, {found:?}, {warps} warps");
            }
        }
    }
}
