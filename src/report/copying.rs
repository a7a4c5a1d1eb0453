//! What the copies of the batch over the PCIe link have to do with the jumps, in words.

use serde_json::{Value, json};

use super::entries::position;
use crate::analysis::mechanisms::Intervention;
use crate::analysis::mechanisms::copying::{Copied, CopyTime, Copying, Link};
use crate::settings::DataPath;
use crate::units::human;

/// Jumps named.
const MOST: usize = 4;
/// Batch sizes on either side of a jump whose copies are named.
const SIDE: usize = 2;

/// The sentences, in the order of the argument: what crosses the link, whether the jumps come and go with it, whether their sizes fit, and
/// the period.
pub(super) fn sentences(copying: &Copying, interventions: &[Intervention]) -> Vec<String> {
    let mut lines = Vec::new();
    let of_an_example = match copying.link {
        Some(link) => of_an_example(copying.example_bytes, link),
        None => of_the_study(copying),
    };
    if copying.jumps.is_empty() {
        // Without jumps only the arithmetic is left, if there is anything to copy.
        return of_an_example.filter(|_| copying.data != DataPath::Resident).into_iter().collect();
    }
    match copying.data {
        DataPath::Resident if copying.jumps.iter().all(|jump| jump.longer_s.is_none()) => lines.push(
            "the batch stays in the device's memory, so nothing of it crosses the link in these steps: its lanes make none of \
             these jumps"
                .to_owned(),
        ),
        _ => {
            lines.extend(of_an_example);
            lines.push(come_and_go(interventions));
            lines.extend(copying.jumps.iter().take(MOST).filter_map(|jump| of_a_jump(copying, jump)));
            lines.extend(fit(copying));
        }
    }
    lines.extend(of_the_period(copying));
    lines
}

/// Whether the jumps are there without the copies.
fn come_and_go(interventions: &[Intervention]) -> String {
    let in_place = |made: &&Intervention| made.setting == "data" && made.value == DataPath::Resident.name();
    let Some(made) = interventions.iter().find(in_place) else {
        return "whether these jumps disappear without the copies is not known: no series of the run differs only in needing no copies (data = resident); `data = [\"resident\", \
                \"pageable\"]` in [train] asks for it"
            .to_owned();
    };
    let went = made.gone.len() + made.smaller.len();
    let (stay, open) = (made.stay.len() + made.larger.len(), made.unjudged.len());
    let verdict = match (went, stay) {
        (0, 0) => "so this is not decided",
        (0, _) => "the copies make none that can be judged",
        (_, 0) => "the copies make those that can be judged, or most of each",
        _ => "the copies are involved in some of them",
    };
    format!(
        "without the copies (data = resident): {went} of the jumps gone or smaller, {stay} unchanged or larger, {open} not judged; {verdict}"
    )
}

/// At how many jumps the sizes fit.
fn fit(copying: &Copying) -> Option<String> {
    let judged: Vec<bool> = copying.jumps.iter().filter_map(Copied::fits).collect();
    let fitting = judged.iter().filter(|fits| **fits).count();
    (!judged.is_empty()).then(|| {
        format!(
            "bytes over bandwidth fit {fitting} of {} (a copy that is longer there by half of the jump or more; where none was measured, a whole \
             batch that takes as long)",
            human::counted(judged.len() as u64, "jump")
        )
    })
}

fn of_the_period(copying: &Copying) -> Option<String> {
    let lanes = copying.link?.lanes;
    Some(match copying.period {
        None => format!("the jumps have no proven period that could be the number of the link's lanes, {lanes}"),
        Some(period) if copying.period_is_lanes() => format!(
            "the period of {} is the number of the link's lanes, and no evidence: a link stripes every packet over all its lanes \
             (PCI Express specification), so that lanes do not take examples",
            human::batch_size(period)
        ),
        Some(period) => {
            format!("the period of {} is not the number of the link's lanes, {lanes}", human::batch_size(period))
        }
    })
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

/// The answer if no link was read, as on a CPU: how the link of the 2022 study would affect steps like these.
fn of_the_study(copying: &Copying) -> Option<String> {
    let link = Link::SIXTEEN_OF_GENERATION_3;
    let example = of_an_example(copying.example_bytes, link)?;
    let sizes = copying.jumps.iter().map(|jump| jump.size_s.abs());
    let largest = sizes.max_by(f64::total_cmp).map_or(String::new(), |size_s| {
        let examples = size_s * link.rate().unwrap_or_default() / copying.example_bytes as f64;
        format!(
            "; the largest jump here, {}, is as long as the copy of {} of them",
            human::seconds(size_s),
            human::digits(examples)
        )
    });
    Some(format!("on the PCIe link of the 2022 study {example}{largest}"))
}

fn of_a_jump(copying: &Copying, jump: &Copied) -> Option<String> {
    let (after, next) = (human::batch_size(jump.after), human::batch_size(jump.next));
    let size = human::signed(jump.size_s, "s");
    match (jump.longer_s, jump.batch_s) {
        (Some(longer), _) => Some(format!(
            "after {after} the step jumps by {size}, and its copy takes {} more (measured): {} of the jump; copied at {}",
            human::signed(longer, "s"),
            human::percent((longer / jump.size_s).max(0.0)),
            rates(copying.around(jump, SIDE))
        )),
        (None, Some(batch)) => Some(format!(
            "after {after} the step jumps by {size}; at that rate all {next} examples take {} (formula)",
            human::seconds(batch)
        )),
        (None, None) => None,
    }
}

/// `12.0 GB/s with 15, 12.1 GB/s with 16`.
fn rates(copies: &[CopyTime]) -> String {
    let rate = |copy: &CopyTime| {
        format!("{} with {}", human::quantity(copy.bytes_per_s, "B/s"), human::batch_size(copy.batch_size))
    };
    copies.iter().map(rate).collect::<Vec<_>>().join(", ")
}

/// Seconds and bytes; `batch_s` by formula, `longer_s` and `copies` measured.
pub(super) fn copying_json(copying: &Copying) -> Value {
    let jump = |jump: &Copied| json!({"after": position(jump.after), "size_s": jump.size_s, "batch_s": jump.batch_s, "longer_s": jump.longer_s, "fits": jump.fits()});
    let copy = |copy: &CopyTime| json!({"batch_size": position(copy.batch_size), "seconds": copy.seconds, "bytes_per_s": copy.bytes_per_s});
    json!({
        "data": copying.data.name(),
        "example_bytes": copying.example_bytes,
        "lanes": copying.link.map(|link| link.lanes),
        "generation": copying.link.map(|link| link.generation),
        "bytes_per_s": copying.link.and_then(Link::rate),
        "jumps": copying.jumps.iter().map(jump).collect::<Vec<_>>(),
        "copies": copying.copies.iter().map(copy).collect::<Vec<_>>(),
        "period": copying.period,
        "period_is_lanes": copying.period_is_lanes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copying(data: DataPath, longer_s: Option<f64>) -> Copying {
        let jump = Copied { after: 16.0, next: 17.0, size_s: 4e-3, batch_s: Some(0.65e-3), longer_s };
        let link = Some(Link::SIXTEEN_OF_GENERATION_3);
        let copy = |batch_size: f64| CopyTime { batch_size, seconds: batch_size * 50e-6, bytes_per_s: 12.04e9 };
        let copies = if longer_s.is_some() { (14..=19).map(f64::from).map(copy).collect() } else { Vec::new() };
        Copying { data, example_bytes: 602_112, link, jumps: vec![jump], period: Some(16.0), copies }
    }

    fn in_place(gone: &[f64], stay: &[f64]) -> Intervention {
        let (setting, value) = ("data".to_owned(), "resident".to_owned());
        Intervention { setting, value, gone: gone.to_vec(), stay: stay.to_vec(), ..Intervention::default() }
    }

    #[test]
    fn a_jump_is_held_against_the_copy_by_measurement_or_by_formula() {
        let by_formula = sentences(&copying(DataPath::Pageable, None), &[]);
        for (said, starts) in by_formula.iter().zip([
            "an example of 588 KiB takes 38.2 µs at 15.8 GB/s, the most that 16 lanes of generation 3 carry (formula)",
            "whether these jumps disappear without the copies is not known",
            "after 16 the step jumps by +4.00 ms; at that rate all 17 examples take 650 µs (formula)",
            "bytes over bandwidth fit 0 of 1 jump ",
            "the period of 16 is the number of the link's lanes, and no evidence",
        ]) {
            assert!(said.starts_with(starts), "{said}");
        }
        let measured = sentences(&copying(DataPath::Pageable, Some(60e-6)), &[]);
        let expected = "after 16 the step jumps by +4.00 ms, and its copy takes +60.0 µs more (measured): 1.5 % of the jump; copied at \
                        12.0 GB/s with 15, 12.0 GB/s with 16, 12.0 GB/s with 17, 12.0 GB/s with 18";
        assert_eq!(measured[2], expected);
        let resident = sentences(&copying(DataPath::Resident, None), &[]);
        assert!(resident[0].contains("nothing of it crosses the link") && resident.len() == 2, "{resident:?}");
    }

    /// 16 lanes of generation 3 carry 15.754 GB/s: 4 ms are 63.0 MB, 104.7 images of 602,112 bytes.
    #[test]
    fn without_a_link_the_jumps_are_compared_with_the_link_of_the_study() {
        let lines = sentences(&Copying { link: None, ..copying(DataPath::Pageable, Some(60e-6)) }, &[]);
        assert_eq!(
            lines[0],
            "on the PCIe link of the 2022 study an example of 588 KiB takes 38.2 µs at 15.8 GB/s, the \
             most that 16 lanes of generation 3 carry (formula); the largest jump here, 4.00 ms, is as long as the copy of 105 of them"
        );
    }

    #[test]
    fn without_jumps_only_steps_that_copy_report_the_arithmetic() {
        let none = |data| sentences(&Copying { jumps: Vec::new(), link: None, ..copying(data, None) }, &[]);
        let pageable = none(DataPath::Pageable);
        assert!(pageable.len() == 1 && pageable[0].contains("takes 38.2 µs at 15.8 GB/s"), "{pageable:?}");
        assert!(pageable[0].ends_with("(formula)") && none(DataPath::Resident).is_empty(), "{pageable:?}");
    }

    #[test]
    fn the_same_steps_without_copies_show_whether_copies_cause_the_jumps() {
        let verdict = |made: Intervention| sentences(&copying(DataPath::Pinned, Some(60e-6)), &[made])[1].clone();
        let stays = "without the copies (data = resident): 0 of the jumps gone or smaller, 1 unchanged or larger, 0 not judged; the copies make none that can be judged";
        assert_eq!(verdict(in_place(&[], &[16.0])), stays);
        assert!(verdict(in_place(&[16.0], &[])).ends_with(
            "1 of the jumps gone or smaller, 0 unchanged or larger, 0 not judged; the copies make those that can be judged, or most of each"
        ));
        // Another setting says nothing of the copies.
        let other = Intervention { setting: "launch".into(), ..in_place(&[16.0], &[]) };
        assert!(verdict(other).contains("is not known"));
    }

    #[test]
    fn a_period_is_held_against_the_lanes_either_way() {
        let last = |period: Option<f64>| {
            let lines = sentences(&Copying { period, ..copying(DataPath::Pageable, None) }, &[]);
            lines[lines.len() - 1].clone()
        };
        assert_eq!(last(Some(12.0)), "the period of 12 is not the number of the link's lanes, 16");
        assert!(last(None).starts_with("the jumps have no proven period"));
        let document = copying_json(&copying(DataPath::Pageable, Some(60e-6)));
        assert_eq!((&document["period_is_lanes"], &document["copies"][2]["batch_size"]), (&json!(true), &json!(16)));
        assert_eq!(document["jumps"][0]["fits"], false);
    }
}
