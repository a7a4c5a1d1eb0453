//! What changes inside a step at its jumps.

use super::Document;
use crate::analysis::kernels::{Change, Sides};
use crate::units::human;

/// Changes that are named at each jump.
const NAMED: usize = 3;

/// A remark for each jump at which a kernel takes longer or another runs.
pub fn kernels(all: &[Sides]) -> Document {
    let mut document = Document::default();
    let several = all.iter().any(|sides| sides.series != all[0].series);
    for sides in all {
        let changes = sides.changes();
        if changes.is_empty() {
            continue;
        }
        let of = if several { format!("{}, ", sides.series) } else { String::new() };
        let total = human::signed(sides.more_s(), "s");
        let said: Vec<String> = changes.iter().take(NAMED).map(|change| said(change, &total)).collect();
        document.remark("Inside", format!("{of}after {}: {} (profiled)", sides.after, said.join("; ")));
    }
    document
}

fn said(change: &Change, total: &str) -> String {
    let more = format!("{} of {total}", human::signed(change.more_s(), "s"));
    let family = change.behind.as_ref().or(change.before.as_ref()).and_then(|kernel| kernel.family);
    let family = family.map_or_else(String::new, |family| format!(" ({})", family.steps()));
    match (&change.before, &change.behind) {
        (Some(before), Some(behind)) => {
            let name = match before.name == behind.name {
                true => behind.name.clone(),
                false => format!("{} \u{2192} {}", before.name, behind.name),
            };
            let blocks = before.blocks.zip(behind.blocks).filter(|(before, behind)| before != behind);
            let blocks =
                blocks.map_or_else(String::new, |(before, behind)| format!(", {before} \u{2192} {behind} blocks"));
            format!("{name}{family}{blocks}, {more}")
        }
        (None, Some(behind)) => format!("{}{family} is new, {more}", behind.name),
        (Some(before), None) => format!("{}{family} is gone, {more}", before.name),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;
    use crate::engine::KernelTime;

    #[test]
    fn a_kernel_is_named_with_its_family_its_blocks_and_its_part_of_the_jump() {
        let sgemm = |blocks, seconds| KernelTime {
            name: "volta_sgemm_128x64_nn".into(),
            grid: Some([blocks, 1, 36]),
            block: Some([128, 1, 1]),
            shapes: None,
            count: 2,
            seconds,
        };
        let sides = Sides {
            series: "vgg".into(),
            after: 16,
            next: 17,
            before: vec![sgemm(8, 1e-3)],
            behind: vec![sgemm(16, 3e-3)],
        };
        let text = kernels(&[sides]).render(&Style { color: false, width: 300 });
        let expected = "after 16: volta_sgemm_128x64_nn (non-fused Winograd, which pads the batch to a multiple of 16), 576 \u{2192} 1152 blocks, +2.00 ms of +2.00 ms (profiled)";
        assert!(text.contains(expected), "{text}");
    }
}
