//! What published kernel times predict for a network.

use serde_json::{Value, json};

use super::copying::of_an_example;
use super::style::Look;
use super::{Column, Style, Table};
use crate::analysis::distinct;
use crate::analysis::mechanisms::copying::Link;
use crate::predict::published_kernels::forecast::{Forecast, ForecastStep, LayerStep};
use crate::predict::published_kernels::validation::Errors;
use crate::units::human;
use crate::words::shortened;

const VERSION: u32 = 1;

/// Smaller steps than this part of the time before them are not listed.
const LEAST: f64 = 0.02;

/// Steps in the table, the largest; the JSON has all.
const MOST_STEPS: usize = 8;

/// Layers named in a line.
const MOST_LAYERS: usize = 4;

/// A forecast beside those of models that leave something out, and the error of its model.
pub struct Forecasts<'a> {
    pub full: &'a Forecast,
    pub without_padding: &'a Forecast,
    pub without_rounds: &'a Forecast,
    pub image_bytes: u64,
    /// By cross-validation on the same GPU, over layers left out.
    pub errors: Errors,
}

/// The largest steps with their layers, what is left out, and how far to trust it.
pub fn forecast(forecasts: &Forecasts, style: &Style) -> String {
    let Forecast { network, gpu, layers, left_out, share, smallest_batch, largest_batch } = forecasts.full;
    let head = format!(
        "Forecast of the forward convolutions of {network} on a {}, from published kernel times: batch size {smallest_batch} to {}",
        gpu.name,
        forecasts.full.largest()
    );
    let steps = largest(forecasts.full);
    let mut text = format!("{}\n", style.paint(&style.wrap(&head, 2), Look::Bold));
    if steps.is_empty() {
        text.push_str(&format!("No step of {} or more.\n", human::limit(LEAST)));
    } else {
        text.push_str(&table(&steps, style));
    }
    let beside = |name: &str, other: &Forecast| {
        let steps = other.steps(0.0);
        let largest = steps.iter().max_by(|a, b| a.relative.total_cmp(&b.relative));
        largest.map(|step| format!("{name} its largest step is {} after {}", human::percent(step.relative), step.after))
    };
    let models = [("without padding", forecasts.without_padding), ("without rounds", forecasts.without_rounds)];
    let models: Vec<String> = models.into_iter().filter_map(|(name, other)| beside(name, other)).collect();
    let Errors { count, median, percentile_90 } = forecasts.errors;
    let mut lines = vec![
        ("Models", format!("the same model {}", models.join("; "))),
        (
            "Error",
            format!(
                "of a convolution's time {} (median), {} (90th percentile): cross-validation over layers left out, {} on this GPU",
                human::percent(median),
                human::percent(percentile_90),
                human::counted(count as u64, "time")
            ),
        ),
        (
            "Covers",
            format!(
                "{} with {} of the forward multiply-adds; relative sizes are shares of only their time",
                human::counted(layers.len() as u64, "layer"),
                human::percent(*share)
            ),
        ),
    ];
    if !left_out.is_empty() {
        lines.push(("Left out", format!("{}; gradients, loss, update and transfers", listed(left_out))));
    }
    lines.extend(pcie(forecasts.image_bytes, &steps).map(|sentence| ("PCIe", sentence)));
    if forecasts.full.largest() > *largest_batch {
        lines.push(("Beyond", format!("batch sizes above {largest_batch} are extrapolated")));
    }
    lines.push((
        "Evidence",
        "times measured by others, positions by formula: such steps suffice for jumps there, and do not prove them; a run on the GPU does".to_owned(),
    ));
    text.extend(lines.into_iter().map(|(name, line)| format!("{}\n", style.wrap(&format!("  {name:<8} {line}"), 11))));
    text
}

/// What the link of the 2022 study could have to do with the steps.
fn pcie(image_bytes: u64, steps: &[ForecastStep]) -> Option<String> {
    let link = Link::SIXTEEN_OF_GENERATION_3;
    let largest = steps.iter().map(|step| step.size_s).max_by(f64::total_cmp)?;
    let images = largest * link.rate()? / image_bytes as f64;
    let example = of_an_example(image_bytes, link)?;
    let largest = human::signed(largest, "s");
    Some(format!("{example}; the largest step, {largest}, is as long as the copy of {images:.0} of them"))
}

/// In the order of the batch size.
fn largest(forecast: &Forecast) -> Vec<ForecastStep> {
    let mut steps = forecast.steps(LEAST);
    steps.sort_by(|a, b| b.relative.total_cmp(&a.relative));
    steps.truncate(MOST_STEPS);
    steps.sort_by_key(|step| step.after);
    steps
}

fn table(steps: &[ForecastStep], style: &Style) -> String {
    let numbers = ["after", "step", "relative"].map(Column::right);
    let mut table = Table::new(numbers.into_iter().chain(["reason", "layers"].map(Column::left)));
    for step in steps {
        let reasons = distinct(step.layers.iter().map(|layer| layer.reason));
        let one = |layer: &LayerStep| format!("{} {}", layer.layer, human::signed(layer.size_s, "s"));
        let layers = shortened(step.layers.iter().map(one), MOST_LAYERS);
        table.row([
            step.after.to_string(),
            human::signed(step.size_s, "s"),
            human::signed_percent(step.relative),
            reasons.join(", "),
            layers.join(", "),
        ]);
    }
    table.render(style)
}

fn listed(names: &[String]) -> String {
    const MOST: usize = 5;
    match names.len().saturating_sub(MOST) {
        0 => human::listed(names),
        more => format!("{} and {}", names[..MOST].join(", "), human::counted(more as u64, "more layer")),
    }
}

/// The document of `batchstep explain --published`, version 1: times in seconds, all steps of 2 % or more.
pub fn forecast_json(forecasts: &Forecasts) -> Value {
    let Forecast { network, gpu, layers, left_out, share, smallest_batch, largest_batch } = forecasts.full;
    let curve =
        |forecast: &Forecast| -> Vec<f64> { (1..=forecast.largest()).map(|batch| forecast.total(batch)).collect() };
    let layer = |step: &LayerStep| {
        json!({"layer": step.layer, "size_s": step.size_s, "reason": step.reason,
            "before": format!("{:?}", step.before), "after": format!("{:?}", step.behind)})
    };
    let step = |step: &ForecastStep| {
        json!({"after": step.after, "size_s": step.size_s, "relative": step.relative,
            "layers": step.layers.iter().map(layer).collect::<Vec<_>>()})
    };
    json!({
        "version": VERSION,
        "network": network,
        "device_name": gpu.name,
        "steps": forecasts.full.steps(LEAST).iter().map(step).collect::<Vec<_>>(),
        "time_s": curve(forecasts.full),
        "time_without_padding_s": curve(forecasts.without_padding),
        "time_without_rounds_s": curve(forecasts.without_rounds),
        "layers": layers.iter().map(|layer| layer.name.as_str()).collect::<Vec<_>>(),
        "left_out": left_out,
        "share_of_multiply_adds": share,
        "smallest_published_batch_size": smallest_batch,
        "largest_published_batch_size": largest_batch,
        "error": {"median": forecasts.errors.median, "percentile_90": forecasts.errors.percentile_90, "count": forecasts.errors.count},
    })
}
