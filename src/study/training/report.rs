//! A training study in the terminal: the table of its cells, the comparison with the fastest, how many workers to use.

use crate::report::{Answer, Column, Document, Ground, Table};
use crate::stats::repetitions::Interval;
use crate::study::training::results::{
    CellEpochs, Results, WorkerCurve, engine_pairs, relative_to_fastest, worker_curves,
};
use crate::units::human;

/// Everything that a study says: its table, the comparison, the engines side by side, the advice. Empty without epochs.
pub fn document(study: &Results) -> Document {
    let mut document = Document::default();
    if study.cells.is_empty() {
        return document;
    }
    document.heading(format!("Epochs of {}", study.dataset));
    document.table(table(study));
    for part in [comparison(study), engines(study), counters(study), workers(study)] {
        document.append(part);
    }
    document
}

fn workers(study: &Results) -> Document {
    let mut document = Document::default();
    let advice = advice(study);
    if !advice.is_empty() {
        document.heading("How many workers (measured here)");
        advice.iter().for_each(|line| document.text(format!("  {line}")));
    }
    document
}

/// The columns that say which cell it is, with its texts there.
fn place(study: &Results) -> (Vec<Column>, impl Fn(&CellEpochs) -> Vec<String>) {
    let series = study.cells.iter().any(|cell| cell.series != study.cells[0].series);
    let columns = series.then(|| Column::left("series")).into_iter();
    let texts = move |cell: &CellEpochs| {
        let own = series.then(|| cell.series.clone()).into_iter();
        own.chain([cell.batch_size.to_string(), cell.workers.to_string()]).collect()
    };
    (columns.chain(["batch", "workers"].map(Column::right)).collect(), texts)
}

fn table(study: &Results) -> Table {
    let depths = study.cells.iter().any(|cell| cell.prefetch.is_some_and(|depth| depth != 2));
    let (mut columns, place) = place(study);
    columns.extend(depths.then(|| Column::right("prefetch")));
    let rest = ["mean ± sd", "min", "max", "runs", "user", "system", "images/s", "waiting", "accuracy"];
    columns.extend(rest.map(Column::right));
    let mut table = Table::new(columns);
    for cell in &study.cells {
        let mut row = place(cell);
        row.extend(depths.then(|| cell.prefetch.map_or_else(String::new, |depth| depth.to_string())));
        row.extend(numbers(cell));
        table.row(row);
    }
    table
}

fn numbers(cell: &CellEpochs) -> [String; 9] {
    let unknown = || "unknown".to_owned();
    let times = &cell.times;
    let mean = match times.sd {
        Some(sd) => human::with_error(times.mean, sd, "s").trim_start_matches('+').to_owned(),
        None => human::seconds(times.mean),
    };
    let seconds = |value: Option<f64>| value.map_or_else(unknown, human::seconds);
    [
        mean,
        human::seconds(times.min),
        human::seconds(times.max),
        times.runs.to_string(),
        seconds(cell.mean(|row| row.user_time_s)),
        seconds(cell.mean(|row| row.system_time_s)),
        human::count(cell.throughput().round() as u64),
        cell.waiting().map_or_else(unknown, human::percent),
        cell.test_accuracy().map_or_else(unknown, |share| format!("{:.2} %", 100.0 * share)),
    ]
}

/// In the words of hyperfine's summary, with an interval for each ratio.
fn comparison(study: &Results) -> Document {
    let mut document = Document::default();
    let Some(against) = relative_to_fastest(study).filter(|against| !against.rivals.is_empty()) else {
        return document;
    };
    document.heading("Summary");
    document.text(format!("  {} is", against.fastest.name()));
    for rival in &against.rivals {
        let ratio = match rival.ratio.sd {
            Some(sd) => format!("{:.2} ± {sd:.2}", rival.ratio.value),
            None => format!("{:.2}", rival.ratio.value),
        };
        let shown = if rival.is_slower() { "" } else { ": no difference shown" };
        document.text(format!("    {ratio} times faster than {}{}{shown}", rival.cell.name(), bracket(rival.interval)));
    }
    let among = match against.pairs {
        1 => String::new(),
        pairs => format!(", for all {} pairs of cells together", human::count(pairs as u64)),
    };
    let uneven = if against.is_uneven() {
        "; the cells do not train on equally many examples: a ratio is that of an example"
    } else {
        ""
    };
    document.text(format!(
        "  (±: one standard deviation of single epochs; in brackets: the 95 % interval of the ratio, from one value for each block{among}{uneven})"
    ));
    document
}

fn bracket(interval: Option<Interval>) -> String {
    // Two blocks leave almost any ratio open.
    let end = |end: f64| if end < 1000.0 { format!("{end:.2}") } else { "over 1,000".to_owned() };
    interval.map_or_else(String::new, |Interval { low, high }| format!(" [{} to {}]", end(low), end(high)))
}

fn engines(study: &Results) -> Document {
    let pairs = engine_pairs(study);
    let mut document = Document::default();
    let mut others: Vec<&str> = Vec::new();
    for pair in &pairs {
        if !others.contains(&pair.second.engine.as_str()) {
            others.push(&pair.second.engine);
        }
    }
    for other in others {
        let pairs: Vec<_> = pairs.iter().filter(|pair| pair.second.engine == other).collect();
        let first = pairs[0].first.engine.as_str();
        let heading = format!("Side by side: {other} against {first}");
        let mut table = Table::new(["batch", "workers", first, other, "ratio", "95 % interval"].map(Column::right));
        for pair in &pairs {
            let interval = pair.interval.map_or("unknown".to_owned(), |i| format!("{:.2} to {:.2}", i.low, i.high));
            table.row([
                pair.first.batch_size.to_string(),
                pair.first.workers.to_string(),
                human::seconds(pair.first.times.mean),
                human::seconds(pair.second.times.mean),
                format!("{:.2}", pair.ratio),
                interval,
            ]);
        }
        let logs: f64 = pairs.iter().map(|pair| pair.ratio.ln()).sum();
        let smallest = pairs.iter().map(|pair| pair.ratio).fold(f64::INFINITY, f64::min);
        let mean = (logs / pairs.len() as f64).exp();
        document.heading(heading);
        document.table(table);
        document
            .text(format!("  geometric mean {mean:.2}, smallest {smallest:.2}; above 1, {first} is the faster one"));
    }
    document
}

/// The counters of an epoch that any cell has, and that are not zero everywhere.
fn counters(study: &Results) -> Document {
    let mut document = Document::default();
    let value = |cell: &CellEpochs, name: &str| cell.mean(|row| row.counters.get(name));
    let names: Vec<&str> = crate::store::CounterValues::names()
        .into_iter()
        .filter(|name| study.cells.iter().any(|cell| value(cell, name).is_some_and(|value| value > 0.0)))
        .collect();
    if names.is_empty() {
        return document;
    }
    let (mut columns, place) = place(study);
    columns.extend(names.iter().map(|name| Column::right(&name.trim_end_matches("_s").replace('_', " "))));
    let mut table = Table::new(columns);
    for cell in study.cells.iter().filter(|cell| names.iter().any(|name| value(cell, name).is_some())) {
        let mut row = place(cell);
        row.extend(names.iter().map(|&name| match value(cell, name) {
            Some(value) if name.ends_with("_s") => human::seconds(value),
            Some(value) => human::quantity(value, ""),
            None => "unknown".to_owned(),
        }));
        table.row(row);
    }
    document.heading("Counters, the mean of an epoch");
    document.table(table);
    document
}

/// The fastest cell, where any is shown to be faster than another, and how many workers to use; `None` without epochs.
pub fn answer(study: &Results) -> Option<Answer> {
    let against = relative_to_fastest(study)?;
    let (fastest, alike) = (against.fastest, against.not_distinguished());
    let takes = match against.is_uneven() {
        true => format!("An example takes {}", human::seconds(fastest.example_s())),
        false => format!("An epoch takes {}", human::seconds(fastest.times.mean)),
    };
    let cell = fastest.name();
    let sentence = match (alike, against.rivals.len()) {
        (0, _) => format!("{takes} at best: {cell}."),
        (some, all) if some < all => {
            let others = human::counted(some as u64, "other cell");
            format!("{takes} at best: {cell}. No difference from {others} is shown.")
        }
        (_, others) => {
            let cells = human::count(others as u64 + 1);
            format!("No difference between the {cells} cells is shown. {takes} with the fastest of them: {cell}.")
        }
    };
    let ground = |text| Ground { grade: "measured here".to_owned(), text };
    Some(Answer { sentence, grounds: advice(study).into_iter().map(ground).collect() })
}

/// For each curve over workers, how many to use.
pub fn advice(study: &Results) -> Vec<String> {
    let alike = |a: &WorkerCurve, b: &WorkerCurve| {
        let who = |curve: &WorkerCurve| (curve.prefetch, curve.advice.workers, is_of_the_fewest(curve));
        a.series == b.series && who(a) == who(b) && is_idle(a) && is_idle(b) && is_of_the_fewest(a)
    };
    worker_curves(study).chunk_by(alike).map(sentence).collect()
}

/// Whether the training hardly waits for the loader, so that more workers than measured are out of the question.
fn is_idle(curve: &WorkerCurve) -> bool {
    curve.advice.waiting.is_some_and(|share| share < 0.01) && curve.advice.next.is_some()
}

/// Whether the advice is the smallest number of workers that was measured.
fn is_of_the_fewest(curve: &WorkerCurve) -> bool {
    curve.points.first().is_some_and(|point| point.workers == curve.advice.workers)
}

/// `2 workers; 4 bring less than 1 %`, with the batch size and the gain. Several curves of one series that have the same advice and hardly
/// wait share one sentence.
fn sentence(curves: &[WorkerCurve]) -> String {
    let Some(curve) = curves.first() else { return String::new() };
    let advice = curve.advice;
    let depth = curve.prefetch.map(|depth| format!(", prefetch {depth}")).unwrap_or_default();
    let sizes: Vec<String> = curves.iter().map(|curve| curve.batch_size.to_string()).collect();
    let place = format!("{}, batch size {}{depth}", curve.series, human::listed(&sizes));
    let workers = match advice.workers {
        0 => "no workers".to_owned(),
        number => human::counted(number as u64, "worker"),
    };
    let fewest = curve.points.first().map_or(0, |point| point.workers);
    let gain = if is_of_the_fewest(curve) {
        String::new()
    } else {
        let than = if fewest == 0 { "without".to_owned() } else { format!("with {fewest}") };
        format!(", an epoch {} shorter than {than}", human::percent(advice.gain))
    };
    let more = match advice.next {
        _ if is_idle(curve) => {
            let shares = || curves.iter().filter_map(|curve| curve.advice.waiting);
            let (low, high) =
                shares().fold((f64::INFINITY, 0.0), |(low, high), share| (share.min(low), share.max(high)));
            let share = match human::percent(low) == human::percent(high) {
                true => human::percent(high),
                false => human::range(100.0 * low, 100.0 * high, "%"),
            };
            format!("; the training waits for the loader {share} of the time, all that more workers could save")
        }
        Some(next) if next.interval.is_some() && !next.is_proven() => {
            format!("; no difference from {} is proven ({})", next.workers, than(next.gain))
        }
        Some(next) if advice.exceeds_waiting() => {
            let share = human::percent(advice.waiting.unwrap_or(0.0));
            format!(
                "; with {} an epoch is {}, which is not the loader's: the training waits for it only {share} of the time",
                next.workers,
                than(next.gain)
            )
        }
        Some(next) => format!("; with {} an epoch is {}", next.workers, than(next.gain)),
        None => "; more were not measured".to_owned(),
    };
    format!("{place}: {workers}{gain}{more}")
}

/// `0.98 % longer`.
fn than(gain: f64) -> String {
    format!("{} {}", human::percent(gain.abs()), if gain < 0.0 { "longer" } else { "shorter" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Style;
    use crate::study::training::TrainingRow;
    use crate::study::training::results::tests::row;

    fn study() -> Results {
        let mut rows = vec![row(64, 0, 0, 19.0), row(64, 0, 1, 19.4)];
        rows.extend([row(512, 2, 0, 7.1), row(512, 2, 1, 7.3), row(512, 0, 0, 10.5), row(512, 0, 1, 10.7)]);
        Results::of(&rows)
    }

    #[test]
    fn the_table_has_hyperfines_numbers_and_the_summary_its_words() {
        let text = document(&study()).render(&Style { width: 160, ..Style::PLAIN });
        let tidy: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        // By hand: 60,000 / 19.2 = 3125; sd of 19.0, 19.4 is 0.2828; ratios by block 19.0 / 7.1 and 19.4 / 7.3: logs of mean 0.98087 and sd
        // 0.004911, times 38.188 / sqrt 2 = 0.1326, with the t of one degree of freedom at 0.05 / 3, for three pairs.
        for line in [
            "64 0 19.20 ± 0.28 s 19.0 s 19.4 s 2 unknown unknown 3,125 25 % 90.00 %",
            "cpu, batch size 512, 2 workers is",
            "2.67 ± 0.07 times faster than cpu, batch size 64, no workers [2.34 to 3.04]",
            "cpu, batch size 512: 2 workers, an epoch 32 % shorter than without; more were not measured",
        ] {
            assert!(tidy.iter().any(|found| found == line), "{text}\nlacks: {line}");
        }
        assert!(document(&Results::of(&[])).is_empty());
    }

    #[test]
    fn the_fastest_cell_is_the_headline_only_where_a_difference_is_shown() {
        let headline = |rows: &[_]| answer(&Results::of(rows)).expect("an answer").sentence;
        let apart = [row(64, 0, 0, 19.0), row(64, 0, 1, 19.4), row(512, 0, 0, 7.1), row(512, 0, 1, 7.3)];
        assert_eq!(headline(&apart), "An epoch takes 7.20 s at best: cpu, batch size 512, no workers.");
        // In one block 64 takes longer, in the other 512: the interval of the ratio holds 1.
        let alike = [row(64, 0, 0, 7.0), row(64, 0, 1, 7.5), row(512, 0, 0, 7.1), row(512, 0, 1, 7.3)];
        assert_eq!(
            headline(&alike),
            "No difference between the 2 cells is shown. An epoch takes 7.20 s with the fastest of them: cpu, batch size 512, no workers."
        );
        let text = document(&Results::of(&alike)).render(&Style { width: 160, ..Style::PLAIN });
        assert!(text.contains("]: no difference shown"), "{text}");
        let some = [alike.to_vec(), vec![row(128, 0, 0, 19.0), row(128, 0, 1, 19.4)]].concat();
        assert!(
            headline(&some).ends_with("no workers. No difference from 1 other cell is shown."),
            "{}",
            headline(&some)
        );
        // One block shows nothing.
        assert!(headline(&[row(64, 0, 0, 19.0), row(512, 0, 0, 7.1)]).starts_with("No difference between the 2 cells"));
        assert!(headline(&[row(64, 0, 0, 19.0)]).starts_with("An epoch takes 19.0 s at best"));
    }

    #[test]
    fn epochs_of_unequal_length_are_compared_by_their_examples() {
        // 9 ms and 10 ms for an example.
        let of = |batch, block, examples, seconds| TrainingRow { examples, ..row(batch, 0, block, seconds) };
        let rows = [of(50, 0, 200, 1.8), of(50, 1, 200, 1.8), of(120, 0, 120, 1.2), of(120, 1, 120, 1.2)];
        let study = Results::of(&rows);
        assert_eq!(
            answer(&study).expect("cells").sentence,
            "An example takes 9.00 ms at best: cpu, batch size 50, no workers."
        );
        let text = document(&study).render(&Style { width: 300, ..Style::PLAIN });
        assert!(text.contains("1.11 ± 0.00 times faster than cpu, batch size 120"), "{text}");
        assert!(text.contains("a ratio is that of an example"), "{text}");
    }

    #[test]
    fn a_gain_beyond_the_waiting_is_not_the_loaders() {
        let waits = |workers, block, seconds| TrainingRow {
            wait_time_s: Some(0.017 * seconds),
            ..row(64, workers, block, seconds)
        };
        let advised = |[without, with]: [f64; 2]| {
            let rows = [0, 1].map(|block| [waits(0, block, without), waits(2, block, with)]).concat();
            advice(&Results::of(&rows)).concat()
        };
        // 18 % shorter, with 1.7 % of waiting; 1.5 % shorter can be the loader's.
        assert_eq!(
            advised([10.0, 8.2]),
            "cpu, batch size 64: no workers; with 2 an epoch is 18 % shorter, which is not the loader's: the training waits for it only 1.7 % of the time"
        );
        assert!(
            advised([10.0, 9.85]).starts_with("cpu, batch size 64: 2 workers, an epoch 1.5 % shorter than without")
        );
    }

    #[test]
    fn batch_sizes_with_one_advice_share_a_sentence() {
        // A gain of a third is not the loader's where it takes 0.2 %.
        let waits = |batch, workers, share: f64| {
            let seconds = if workers == 0 { 15.0 } else { 10.0 };
            TrainingRow { wait_time_s: Some(seconds * share), ..row(batch, workers, 0, seconds) }
        };
        let hardly = |batch, share| [waits(batch, 0, share), waits(batch, 2, share)];
        let said = |rows: Vec<_>| advice(&Results::of(&rows));
        let two = [hardly(64, 0.002), hardly(128, 0.003)].concat();
        let end = "; the training waits for the loader 0.200 to 0.300 % of the time, all that more workers could save";
        assert_eq!(said(two.clone()), [format!("cpu, batch size 64 and 128: no workers{end}")]);
        // A curve that waits has its own sentence.
        let three = said([two, hardly(256, 0.5).to_vec()].concat());
        assert!(three.len() == 2 && three[1].starts_with("cpu, batch size 256: 2 workers"), "{three:?}");
    }
}
