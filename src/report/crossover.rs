//! Crossovers in the terminal: from which size on one series is the faster one.

use serde_json::{Value, json};

use super::style::Look;
use super::{Column, Style, Table, human};
use crate::analysis::crossover::{Crossover, Place};

/// The table of all pairs. Empty where no pair crosses.
pub fn crossover(found: &[Crossover], style: &Style) -> String {
    if found.iter().all(|pair| pair.at.is_none()) {
        return String::new();
    }
    let mut table = Table::new([
        Column::left("faster from there on"),
        Column::left("than"),
        Column::right("from size"),
        Column::right("95 % interval"),
        Column::right("ratio at smallest"),
        Column::right("ratio at largest"),
    ]);
    for pair in found {
        let faster = pair.faster_at_largest();
        let other = if faster == pair.first { &pair.second } else { &pair.first };
        let (from, interval) = match pair.at {
            Some(place) => (size(place.size), interval(&place)),
            None => ("all sizes".to_owned(), String::new()),
        };
        // Above 1: so many times faster than the other.
        let ratio = |ratio: f64| if faster == pair.second { ratio } else { 1.0 / ratio };
        let ratios = [pair.ratio_at_smallest, pair.ratio_at_largest].map(|value| format!("{:.2}", ratio(value)));
        table.row([faster.to_owned(), other.clone(), from, interval, ratios[0].clone(), ratios[1].clone()]);
    }
    let head = style.paint("Crossovers (measured here)", Look::Bold);
    let meaning = "ratio: how many times faster, at the smallest and at the largest size measured; below 1, slower. An open interval ends beyond \
                   the sizes measured. Step times only: preparing (parameters, memory, compilation) is in the column prepare_time_s.";
    format!("{head}\n{}{}\n", table.render(style), style.wrap(meaning, 0))
}

fn size(value: f64) -> String {
    human::count(value.round().max(0.0) as u64)
}

fn interval(place: &Place) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "open".to_owned(), size);
    let back = if place.crossings > 1 { format!(" ({} crossings)", place.crossings) } else { String::new() };
    format!("{} to {}{back}", end(place.low), end(place.high))
}

/// The same as a document, version 1: `crossover.json` of a run.
pub fn crossover_json(found: &[Crossover]) -> String {
    let pair = |pair: &Crossover| -> Value {
        json!({
            "first": pair.first, "second": pair.second, "faster_at_largest": pair.faster_at_largest(),
            "smallest": pair.smallest, "largest": pair.largest,
            "ratio_at_smallest": pair.ratio_at_smallest, "ratio_at_largest": pair.ratio_at_largest,
            "crossover": pair.at.map(|place| json!({
                "size": place.size, "low": place.low, "high": place.high, "crossings": place.crossings,
            })),
        })
    };
    format!("{:#}\n", json!({"version": 1, "pairs": found.iter().map(pair).collect::<Vec<Value>>()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_one_is_named_with_the_size_and_its_interval() {
        let place = Place { size: 8123.0, low: Some(7900.0), high: None, crossings: 1 };
        let pair = Crossover {
            first: "cpu".into(),
            second: "cuda".into(),
            ratio_at_smallest: 0.25,
            ratio_at_largest: 8.0,
            smallest: 25.0,
            largest: 40_000.0,
            at: Some(place),
        };
        let text = crossover(std::slice::from_ref(&pair), &Style::PLAIN);
        let tidy: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert!(tidy.iter().any(|line| line == "cuda cpu 8,123 7,900 to open 0.25 8.00"), "{text}");
        let document: Value = serde_json::from_str(&crossover_json(std::slice::from_ref(&pair))).expect("JSON");
        assert_eq!(document["pairs"][0]["crossover"]["size"], 8123.0);
        assert_eq!(crossover(&[Crossover { at: None, ..pair }], &Style::PLAIN), "");
    }
}
