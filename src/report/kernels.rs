//! What changes inside a step at its jumps.

use super::{Document, human};
use crate::analysis::kernels::{Change, Sides};

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
    let more = human::signed(change.more_s, "s");
    match (&change.before, &change.behind) {
        (Some(before), Some(behind)) if before == behind => format!("{behind} {more} of {total}"),
        (Some(before), Some(behind)) => format!("{before} \u{2192} {behind}, {more} of {total}"),
        (None, Some(behind)) => format!("{behind} is new, {more} of {total}"),
        (Some(before), None) => format!("{before} is gone, {more} of {total}"),
        (None, None) => String::new(),
    }
}
