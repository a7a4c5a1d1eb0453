//! What changes inside a step at its jumps, and which variable of the environment would show the cause.

use super::Document;
use crate::analysis::kernels::{Change, KernelCalls, Sides};
use crate::analysis::switches::Switch;
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
    let kind = change.behind.as_ref().or(change.before.as_ref()).and_then(|kernel| kernel.kind);
    let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    match (&change.before, &change.behind) {
        (Some(before), Some(behind)) => {
            let name = match before.name == behind.name {
                true => behind.name.clone(),
                false => format!("{} \u{2192} {}", before.name, behind.name),
            };
            format!("{name}{kind}{}, {more}", work(before, behind))
        }
        (None, Some(behind)) => format!("{}{kind} is new, {more}", behind.name),
        (Some(before), None) => format!("{}{kind} is gone, {more}", before.name),
        (None, None) => String::new(),
    }
}

/// Launches that have become many or few, else blocks that have become more or fewer.
fn work(before: &KernelCalls, behind: &KernelCalls) -> String {
    let changed =
        |before: Option<u64>, behind: Option<u64>| before.zip(behind).filter(|(before, behind)| before != behind);
    let (counts, what) = match changed(before.launches, behind.launches) {
        Some((some, more)) if some.max(more) >= 4 * some.min(more) => (Some((some, more)), "launches"),
        _ => (changed(before.blocks, behind.blocks), "blocks"),
    };
    counts.map_or_else(String::new, |(some, more)| {
        format!(", {} \u{2192} {} {what}", human::count(some), human::count(more))
    })
}

/// A remark for each, with the series that it is about where there are several. `run`: the folder of the run, to name it in the command.
pub fn switches(run: &str, series: &[(String, Vec<Switch>)]) -> Document {
    let mut document = Document::default();
    for (label, switches) in series {
        let of = if series.len() > 1 { format!("{label}: ") } else { String::new() };
        for Switch { after, sign, is_seen, env } in switches {
            let place = after.map_or_else(String::new, |after| format!("after {}, ", human::batch_size(after)));
            let (subject, grade) = if *is_seen { ("Likely", "consistent") } else { ("Try", "hypothesis") };
            document.remark(
                subject,
                format!(
                    "{of}{place}{sign} ({grade}; `batchstep explain {run} --intervene` tries it with `--env '{env}'`)"
                ),
            );
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;
    use crate::engine::KernelTime;

    /// What is said of a kernel before a jump after 16, and of one behind it.
    fn text(before: KernelTime, behind: KernelTime) -> String {
        let (before, behind) = (vec![before], vec![behind]);
        let sides = Sides { series: "conv".into(), after: 16, next: 17, before, behind };
        kernels(&[sides]).render(&Style { color: false, width: 300 })
    }

    fn kernel(name: &str, grid: [u32; 3], count: u64, seconds: f64) -> KernelTime {
        let (name, grid, block) = (name.into(), Some(grid), Some([32, 1, 1]));
        KernelTime { name, grid, block, shapes: None, count, seconds }
    }

    #[test]
    fn a_kernel_is_named_with_its_family_its_blocks_and_its_part_of_the_jump() {
        let sgemm = |blocks, seconds| kernel("volta_sgemm_128x64_nn", [blocks, 1, 36], 2, seconds);
        let text = text(sgemm(8, 1e-3), sgemm(16, 3e-3));
        let expected = "after 16: volta_sgemm_128x64_nn (non-fused Winograd, which pads the batch to a multiple of 16), 576 \u{2192} 1,152 blocks, +2.00 ms of +2.00 ms (profiled)";
        assert!(text.contains(expected), "{text}");
    }

    /// As PyTorch's profiler saw a convolution of VGG16 in float32 on an H100: experiments/runs/2026-11-27-h100-conv-fp32.
    #[test]
    fn a_product_that_comes_in_thousands_of_launches_says_so() {
        let text = text(
            kernel("void pointwise_mult_and_sum_complex<float2, 8, 4>(float2*)", [64, 66, 1], 1, 1.0e-3),
            kernel("sm80_xmma_gemm_cf32cf32_f32f32_cf32_tn_n", [1, 8, 1], 2112, 33.7e-3),
        );
        let expected = "pointwise_mult_and_sum_complex \u{2192} sm80_xmma_gemm_cf32cf32_f32f32_cf32_tn_n (an FFT convolution: a product for \
                        each of its frequencies), 1 \u{2192} 2,112 launches, +32.7 ms of +32.7 ms (profiled)";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn an_observed_sign_is_likely_and_a_known_property_of_a_library_is_worth_a_try() {
        let one = |after, is_seen| Switch { after, sign: "it".into(), is_seen, env: "A=1,0" };
        let text = |series: &[(String, Vec<Switch>)]| {
            switches("results/mine", series).render(&Style { color: false, width: 300 })
        };
        let alone = [("mlp".to_owned(), vec![one(Some(35.0), true)])];
        assert_eq!(
            text(&alone),
            "  Likely   after 35, it (consistent; `batchstep explain results/mine --intervene` tries it with `--env 'A=1,0'`)\n"
        );
        let two = [alone[0].clone(), ("cnn".to_owned(), vec![one(None, false)])];
        assert!(
            text(&two).ends_with("Try      cnn: it (hypothesis; `batchstep explain results/mine --intervene` tries it with `--env 'A=1,0'`)\n"),
            "{}",
            text(&two)
        );
    }
}
