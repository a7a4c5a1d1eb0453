//! What the copies of the batch over the PCIe link have to do with the jumps, in words.

use serde_json::{Value, json};

use super::human;
use super::json::position;
use crate::analysis::mechanisms::copying::{Copied, Copying, Link};
use crate::settings::DataPath;

/// Jumps named.
const MOST: usize = 4;

/// The sentences, in the order of the argument.
pub(super) fn sentences(copying: &Copying) -> Vec<String> {
    let mut lines = Vec::new();
    match copying.data {
        DataPath::Resident if copying.jumps.iter().all(|jump| jump.longer_s.is_none()) => lines.push(
            "the batch stays in the device's memory, so nothing of it crosses the link in these steps: its lanes make none of \
             these jumps"
                .to_owned(),
        ),
        _ => {
            lines.extend(copying.link.and_then(|link| of_an_example(copying.example_bytes, link)));
            lines.extend(copying.jumps.iter().take(MOST).filter_map(of_a_jump));
        }
    }
    let stripes = |period: f64| {
        format!(
            "the period of {} is the number of the link's lanes, and no evidence: a link stripes every packet over all its lanes \
             (PCI Express specification), so that lanes do not take examples",
            human::batch_size(period)
        )
    };
    lines.extend(copying.period.map(stripes));
    lines
}

/// What one example costs on a link, at most of its rate.
pub(super) fn of_an_example(bytes: u64, link: Link) -> Option<String> {
    let rate = link.rate()?;
    Some(format!(
        "an example of {} takes {} at {}, the most that {} lanes of generation {} carry (formula)",
        human::bytes(bytes),
        human::seconds(bytes as f64 / rate),
        human::quantity(rate, "B/s"),
        link.lanes,
        link.generation
    ))
}

fn of_a_jump(jump: &Copied) -> Option<String> {
    let (after, next) = (human::batch_size(jump.after), human::batch_size(jump.next));
    let size = human::signed(jump.size_s, "s");
    match (jump.longer_s, jump.batch_s) {
        (Some(longer), _) => Some(format!(
            "after {after} the step jumps by {size}, and its copy takes {} more (measured): {} of the jump",
            human::signed(longer, "s"),
            human::percent((longer / jump.size_s).max(0.0))
        )),
        (None, Some(batch)) => Some(format!(
            "after {after} the step jumps by {size}; at that rate all {next} examples take {} (formula)",
            human::seconds(batch)
        )),
        (None, None) => None,
    }
}

/// Seconds and bytes; `batch_s` by formula, `longer_s` measured.
pub(super) fn copying_json(copying: &Copying) -> Value {
    let jump = |jump: &Copied| json!({"after": position(jump.after), "size_s": jump.size_s, "batch_s": jump.batch_s, "longer_s": jump.longer_s});
    json!({
        "data": copying.data.name(),
        "example_bytes": copying.example_bytes,
        "lanes": copying.link.map(|link| link.lanes),
        "generation": copying.link.map(|link| link.generation),
        "bytes_per_s": copying.link.and_then(Link::rate),
        "jumps": copying.jumps.iter().map(jump).collect::<Vec<_>>(),
        "period_is_lanes": copying.period.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copying(data: DataPath, longer_s: Option<f64>) -> Copying {
        let jump = Copied { after: 16.0, next: 17.0, size_s: 4e-3, batch_s: Some(0.65e-3), longer_s };
        let link = Some(Link::SIXTEEN_OF_GENERATION_3);
        Copying { data, example_bytes: 602_112, link, jumps: vec![jump], period: Some(16.0) }
    }

    #[test]
    fn a_jump_is_held_against_the_copy_by_measurement_or_by_formula() {
        let by_formula = sentences(&copying(DataPath::Pageable, None));
        assert_eq!(
            by_formula[0],
            "an example of 588 KiB takes 38.2 us at 15.8 GB/s, the most that 16 lanes of generation 3 carry (formula)"
        );
        assert_eq!(
            by_formula[1],
            "after 16 the step jumps by +4.00 ms; at that rate all 17 examples take 650 us (formula)"
        );
        assert!(by_formula[2].starts_with("the period of 16 is the number of the link's lanes, and no evidence"));
        let measured = sentences(&copying(DataPath::Pageable, Some(60e-6)));
        let expected =
            "after 16 the step jumps by +4.00 ms, and its copy takes +60.0 us more (measured): 1.5 % of the jump";
        assert_eq!(measured[1], expected);
        let resident = sentences(&copying(DataPath::Resident, None));
        assert!(resident[0].contains("nothing of it crosses the link") && resident.len() == 2, "{resident:?}");
    }
}
