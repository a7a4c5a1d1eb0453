//! Which size to use, in three lines, and as JSON.

use std::path::Path;

use serde_json::{Value, json};

use super::entries::{group, how_read, position, positions};
use super::warning::{Warning, warning_entries};
use super::{Block, Document};
use crate::analysis::advice::{Advice, Avoided, BestSizeMemory, Fits, MARGIN, Rated, Silence};
use crate::analysis::{Analysed, Series};
use crate::units::human;

/// Ranges of sizes that a line lists.
const MOST_RANGES: usize = 8;

/// The advice for one series: a heading and up to four remarks.
fn size_advice(series: &Series, advice: &Advice) -> Document {
    let mut document = Document::from(Block::Heading(heading(series)));
    document.remark("Use", usage(advice));
    if !advice.avoid.is_empty() {
        document.remark("Avoid", avoid(advice));
    }
    document.remark("Memory", advice.memory.as_ref().map(memory));
    document.remark("Note", note(advice));
    document
}

/// The advice for `most` series that have any, those with jumps first if there are more, and a sentence that holds for all of it. A series without has
/// a reason where more visits would bring it, and with `all` every one.
pub fn size_advices(found: &[Analysed], advices: &[Result<Advice, Silence>], most: usize, all: bool) -> Vec<Document> {
    let pairs = || found.iter().zip(advices);
    let mut known: Vec<(&Analysed, &Advice)> =
        pairs().filter_map(|(found, advice)| Some((found, advice.as_ref().ok()?))).collect();
    if known.len() > most {
        known.sort_by_key(|(found, _)| found.rank());
    }
    let mut documents: Vec<Document> =
        known.iter().take(most).map(|(found, advice)| size_advice(&found.series, advice)).collect();
    let mut sentences = Vec::new();
    if known.len() > most {
        let number = human::count((known.len() - most) as u64);
        sentences.push(format!("{number} more series have advice: `batchstep advise PATH` prints all of it."));
    }
    let silent = pairs().filter_map(|(found, advice)| Some((&found.series, advice.as_ref().err()?)));
    let silent: Vec<_> = silent.filter(|(_, silence)| all || **silence == Silence::Visits).collect();
    match silent[..] {
        [_, (_, silence), ..] if !all => {
            sentences.push(format!("No advice for {} series, as {silence}.", silent.len()))
        }
        _ => sentences
            .extend(silent.iter().map(|(series, silence)| format!("{}: no advice, as {silence}.", series.label()))),
    }
    if known.iter().any(|(found, _)| found.series.size.is_batch()) {
        sentences
            .push("Another batch size is another training: its learning rate and its result may differ.".to_owned());
    }
    documents.extend(sentences.into_iter().map(|sentence| Block::Text(sentence).into()));
    documents
}

fn heading(series: &Series) -> String {
    let (label, which) = (series.label(), format!("which {} to use", series.size.title.to_lowercase()));
    // A table without groups is called by its file already.
    if series.values().is_empty() {
        format!("{label}: {which}")
    } else {
        format!("{label}: {which} ({})", series.origin())
    }
}

fn usage(advice: &Advice) -> String {
    let Advice { best, options, unit, .. } = advice;
    let best_x = human::batch_size(best.x);
    let mut text = format!("{best_x} ({})", rate(best.rate, unit));
    if let Some(limit) = options.latency_s {
        let limit = human::seconds(limit);
        text.push_str(&format!(", the best of the sizes whose step is shown to take {limit} at most"));
    }
    let within = human::limit(options.within);
    match advice.enough {
        Some(enough) if enough.x == best.x => {
            text.push_str(&format!("; no smaller one is shown to be within {within} of it"))
        }
        Some(enough) => {
            let comma = if options.latency_s.is_some() { "," } else { "" };
            let (x, rate) = (human::batch_size(enough.x), rate_alone(enough.rate));
            text.push_str(&format!("{comma} or {x} ({rate}), the smallest within {within} of it"))
        }
        None => text.push_str(&format!("; no size is shown to be within {within} of the best: more blocks would tell")),
    }
    let others: Vec<f64> = advice.not_worse.iter().copied().filter(|x| *x != best.x).collect();
    let are = if others.len() == 1 { "is" } else { "are" };
    match others.len() {
        0 => {}
        _ if advice.not_worse.len() == advice.sizes.len() && options.latency_s.is_none() => {
            text.push_str("; no size is shown to be better than another");
        }
        _ => text.push_str(&format!("; {} {are} not shown to be slower than {best_x}", listed(&others, &advice.sizes))),
    }
    if advice.rising {
        let last = human::batch_size(advice.sizes.last().copied().unwrap_or_default());
        let jumps = if advice.avoid.is_empty() { "" } else { ", unless another jump comes first" };
        text.push_str(&format!(
            "; the rate still rises where the sweep ends, so more than {last} may be better{jumps}"
        ));
    }
    text
}

/// Jumps that have a part of their own in the line of what to avoid.
const JUMPS: usize = 2;

fn avoid(advice: &Advice) -> String {
    if advice.avoid.len() <= JUMPS {
        let part = |(at, avoided): (usize, &Avoided)| {
            let unit = if at == 0 { format!(" {}", per_second(&advice.unit)) } else { String::new() };
            format!("{}: fewer{unit} than {}", listed(&avoided.sizes, &advice.sizes), human::batch_size(avoided.after))
        };
        return advice.avoid.iter().enumerate().map(part).collect::<Vec<_>>().join("; ");
    }
    let sizes: Vec<f64> = advice.avoid.iter().flat_map(|avoided| avoided.sizes.iter().copied()).collect();
    format!("{}: fewer {} than the size before the jump", listed(&sizes, &advice.sizes), per_second(&advice.unit))
}

/// `examples a second`.
fn per_second(unit: &str) -> String {
    unit.strip_suffix("/s").map_or_else(|| unit.to_owned(), |counted| format!("{counted} a second"))
}

fn memory(memory: &BestSizeMemory) -> String {
    let (x, peak) = (human::batch_size(memory.x), human::bytes(memory.peak as u64));
    let takes = match memory.total.map(human::bytes) {
        None => format!("{x} takes {peak}"),
        Some(total) => {
            // One unit for both, where it is one.
            let unit = total.rsplit_once(' ').map_or("", |(_, unit)| unit);
            let peak = peak.strip_suffix(unit).map_or(peak.as_str(), str::trim_end);
            format!("{x} takes {peak} of {total}")
        }
    };
    let takes = match memory.smaller {
        Some((x, peak)) => format!("{takes}, {} takes {}", human::batch_size(x), human::bytes(peak as u64)),
        None => takes,
    };
    let (most, about) = match memory.fits {
        Some(Fits::About(most)) => (most, "about"),
        Some(Fits::MoreThan(most)) => (most, "more than"),
        None => return takes,
    };
    let (most, margin) = (human::batch_size(most), human::limit(MARGIN));
    format!("{takes}; by a line through the peaks {about} {most} would fit with {margin} to spare")
}

/// What a reader must know of these numbers.
fn note(advice: &Advice) -> Option<String> {
    let mut notes = Vec::new();
    if !advice.too_few.is_empty() {
        let mut measured = [advice.sizes.as_slice(), &advice.too_few].concat();
        measured.sort_by(f64::total_cmp);
        measured.dedup();
        notes.push(format!("measured too few times to be compared: {}", listed(&advice.too_few, &measured)));
    }
    if !advice.blocks {
        notes
            .push("nothing says in which order the sizes were measured, so heat or other programs may have slowed some of them; a column `block` with the number of the pass over all sizes would tell".into());
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// A rate with three digits and separators: `25,700 examples/s`.
fn rate(value: f64, unit: &str) -> String {
    format!("{} {unit}", rate_alone(value))
}

fn rate_alone(value: f64) -> String {
    if (1000.0..1e15).contains(&value) {
        let step = 10f64.powi(value.log10().floor() as i32 - 2);
        human::count(((value / step).round() * step).round() as u64)
    } else {
        human::digits(value)
    }
}

/// Sizes in ranges of neighbours among all that were measured: `17, 21-22, 26-28`.
fn listed(sizes: &[f64], measured: &[f64]) -> String {
    let place = |x: f64| measured.partition_point(|other| *other < x);
    let range = |run: &[f64]| match run {
        [one] => human::batch_size(*one),
        [first, .., last] => format!("{}-{}", human::batch_size(*first), human::batch_size(*last)),
        [] => String::new(),
    };
    let ranges: Vec<String> = sizes.chunk_by(|a, b| place(*b) == place(*a) + 1).map(range).collect();
    if ranges.len() <= MOST_RANGES {
        return ranges.join(", ");
    }
    let ends = [sizes[0], sizes[sizes.len() - 1]].map(human::batch_size);
    format!("{} sizes from {} to {}", sizes.len(), ends[0], ends[1])
}

/// The entry `advice` of a series in `jumps.json`; null without advice.
pub(super) fn entry(advice: Option<&Result<Advice, Silence>>) -> Value {
    let Some(Ok(advice)) = advice else { return Value::Null };
    let rated = |rated: Rated| json!({"size": position(rated.x), "rate": rated.rate});
    let avoid = advice
        .avoid
        .iter()
        .map(|avoided| json!({"after": position(avoided.after), "sizes": positions(&avoided.sizes)}));
    json!({
        "unit": advice.unit,
        "work": advice.counted,
        "best": rated(advice.best),
        "not_worse": positions(&advice.not_worse),
        "within": advice.options.within,
        "latency_s": advice.options.latency_s,
        "smallest_within": advice.enough.map(rated),
        "avoid": avoid.collect::<Vec<_>>(),
        "still_rises": advice.rising,
        "in_blocks": advice.blocks,
        "not_judged": positions(&advice.too_few),
        "memory": advice.memory.as_ref().map(memory_entry),
    })
}

fn memory_entry(memory: &BestSizeMemory) -> Value {
    let (about, more_than) = match memory.fits {
        Some(Fits::About(most)) => (Some(position(most)), None),
        Some(Fits::MoreThan(most)) => (None, Some(position(most))),
        None => (None, None),
    };
    json!({
        "size": position(memory.x),
        "peak_bytes": memory.peak,
        "total_bytes": memory.total,
        "fits_about": about,
        "fits_more_than": more_than,
        "spare": MARGIN,
    })
}

/// The document of `batchstep advise --format json`: for each series of `path`, its advice or the reason why there is none, and how it was read.
pub fn size_advice_json(
    path: &Path,
    found: &[Analysed],
    advices: &[Result<Advice, Silence>],
    warnings: &[Warning],
) -> Value {
    let series = found.iter().zip(advices).map(|(found, advice)| {
        let mut said = json!({
            "source": found.series.source,
            "group": group(&found.series),
            "x": found.series.size.column,
            "y": found.series.y,
            "y_kind": found.series.kind.name(),
            "advice": entry(Some(advice)),
            "no_advice": advice.as_ref().err().map(ToString::to_string),
        });
        how_read(&found.series, &mut said);
        said
    });
    let warnings: Vec<Value> = warning_entries(path, warnings).collect();
    json!({"version": 1, "series": series.collect::<Vec<_>>(), "warnings": warnings})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::advice::Options;
    use crate::detect::{Findings, Jump};
    use crate::report::Style;

    fn planted() -> Advice {
        let sizes: Vec<f64> = (1..=70).map(f64::from).collect();
        let avoid = vec![
            Avoided { after: 16.0, sizes: vec![17.0] },
            Avoided { after: 20.0, sizes: vec![21.0, 22.0] },
            Avoided { after: 25.0, sizes: vec![26.0, 27.0, 28.0] },
        ];
        let gib = 1_073_741_824.0;
        let memory = BestSizeMemory {
            x: 50.0,
            peak: 3.1 * gib,
            smaller: None,
            total: Some((15.8 * gib) as u64),
            fits: Some(Fits::About(340.0)),
        };
        Advice {
            counted: "examples".into(),
            unit: "examples/s".into(),
            options: Options::default(),
            sizes,
            too_few: vec![],
            best: Rated { x: 50.0, rate: 25_732.0 },
            not_worse: vec![45.0, 50.0],
            enough: Some(Rated { x: 35.0, rate: 24_800.0 }),
            avoid,
            rising: false,
            blocks: true,
            memory: Some(memory),
        }
    }

    fn jax() -> Series {
        Series::planted(vec![("model".into(), "jax".into())], Vec::new())
    }

    fn rendered(documents: &[Document], width: usize) -> String {
        documents.iter().map(|document| document.render(&Style { color: false, width })).collect()
    }

    fn analysed() -> Analysed {
        let series = jax();
        Analysed { findings: series.find(&crate::detect::Settings::default()), series }
    }

    #[test]
    fn the_advice_is_three_lines_and_a_sentence() {
        assert_eq!(
            rendered(&size_advices(&[analysed()], &[Ok(planted())], 1, false), 300),
            "jax: which batch size to use (from run)\n  \
             Use      50 (25,700 examples/s) or 35 (24,800), the smallest within 5 % of it; 45 is not shown to be slower than 50\n  \
             Avoid    17, 21-22, 26-28: fewer examples a second than the size before the jump\n  \
             Memory   50 takes 3.10 of 15.8 GiB; by a line through the peaks about 340 would fit with 5 % to spare\n\
             Another batch size is another training: its learning rate and its result may differ.\n"
        );
    }

    /// Each with what it says, and what it does not.
    #[test]
    fn what_is_not_shown_is_not_said() {
        let memory = BestSizeMemory { x: 70.0, peak: 512.0, smaller: None, total: None, fits: None };
        let options = Options { latency_s: Some(0.012), ..Options::default() };
        let fast = Advice { options, not_worse: vec![50.0], ..planted() };
        let of_latency = "50 (25,700 examples/s), the best of the sizes whose step is shown to take 12.0 ms at most";
        for (advice, wanted, unwanted) in [
            // Ranges are among all sizes.
            (
                Advice { sizes: vec![1.0, 2.0, 4.0, 5.0, 8.0], too_few: vec![3.0, 6.0, 7.0], ..planted() },
                vec!["measured too few times to be compared: 3, 6-7\n"],
                "still rises",
            ),
            (
                Advice {
                    best: Rated { x: 70.0, rate: 0.5 },
                    not_worse: (1..=70).map(f64::from).collect(),
                    enough: None,
                    avoid: vec![],
                    rising: true,
                    memory: Some(memory),
                    ..planted()
                },
                vec![
                    "no size is shown to be within 5 % of the best: more blocks would tell; no size is shown to be better",
                    "; the rate still rises where the sweep ends, so more than 70 may be better\n",
                    "70 takes 512 B\n",
                ],
                "Avoid",
            ),
            (
                fast.clone(),
                vec![&*format!("{of_latency}, or 35 (24,800), the smallest within 5 % of it\n")],
                "not shown to be slower",
            ),
            (
                Advice { enough: Some(fast.best), ..fast },
                vec![&*format!("{of_latency}; no smaller one is shown to be within 5 % of it\n")],
                " or ",
            ),
        ] {
            let said = rendered(&[size_advice(&jax(), &advice)], 300);
            wanted.iter().for_each(|text| assert!(said.contains(text), "{said}"));
            assert!(!said.contains(unwanted), "{said}");
        }
    }

    #[test]
    fn of_many_series_some_are_shown_and_the_rest_are_counted() {
        let found: Vec<Analysed> = (0..11).map(|_| analysed()).collect();
        let silences = [Silence::Visits, Silence::Visits, Silence::Because("it is a forecast".to_owned())].map(Err);
        let advices: Vec<_> = (0..8).map(|_| Ok(planted())).chain(silences).collect();
        let few = rendered(&size_advices(&found, &advices, 6, false), 300);
        assert_eq!(few.matches("  Use ").count(), 6);
        assert!(
            few.contains(
                "2 more series have advice: `batchstep advise PATH` prints all of it.\nNo advice for 2 series, as fewer"
            ),
            "{few}"
        );
        assert_eq!(few.matches("Another batch size is another training").count(), 1);
        assert!(!few.contains("forecast"), "{few}");
        let all = rendered(&size_advices(&found, &advices, 8, true), 300);
        assert_eq!((all.matches("  Use ").count(), all.matches("jax: no advice, as ").count()), (8, 3));
    }

    #[test]
    fn of_many_series_those_with_jumps_come_first() {
        let named = |name: &str, jumps: Vec<Jump>| {
            let series = Series::planted(vec![("model".into(), name.into())], Vec::new());
            Analysed { series, findings: Findings { jumps, ..Findings::default() } }
        };
        let found = [named("flat", vec![]), named("stairs", vec![Jump::planted(16.0, 0.004, 0.2)])];
        let advices = [Ok(planted()), Ok(planted())];
        let first = |most| rendered(&size_advices(&found, &advices, most, false)[..1], 300);
        assert!(first(1).starts_with("stairs: ") && first(2).starts_with("flat: "), "{}{}", first(1), first(2));
    }

    #[test]
    fn rates_have_three_digits() {
        let rates = [0.1234, 999.0, 25_732.0, 1_234_567.0].map(|value| rate(value, "x/s"));
        assert_eq!(rates, ["0.123 x/s", "999 x/s", "25,700 x/s", "1,230,000 x/s"]);
    }

    #[test]
    fn the_entry_of_the_document_holds_the_same() {
        let entry = entry(Some(&Ok(planted())));
        assert_eq!(entry["best"], json!({"size": 50, "rate": 25_732.0}));
        assert_eq!((&entry["smallest_within"]["size"], &entry["memory"]["fits_about"]), (&json!(35), &json!(340)));
        assert_eq!(entry["avoid"][1], json!({"after": 20, "sizes": [21, 22]}));
        assert_eq!(super::entry(Some(&Err(Silence::Visits))), Value::Null);
    }
}
