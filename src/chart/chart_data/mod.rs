//! The charts of stored data: from series and findings to chart data and files.

mod copying;
mod crossover;
mod parallel;
mod prediction;
mod runs;
mod title;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::analysis::advice::{Advice, Silence};
use crate::analysis::slow::Speed;
use crate::analysis::{Analysed, BaseUnit, Series, TimeOrRate, again, control, link, slow};
use crate::chart::{self, Chart, Covariate, Paper, Quantity, StepRecord, StepTime, Timeline};
use crate::detect::{FactorPoint, Findings};
use crate::error::Result;
use crate::settings::EngineName;
use crate::stats::quantile::median;
use crate::units::human;
use crate::words;
pub use copying::copying;
pub use crossover::crossover;
pub use parallel::efficiency;
pub use prediction::prediction;
pub use runs::{AnalysedRun, Together, together};

/// The files that the charts of one source are written to.
pub struct Destination {
    pub folder: PathBuf,
    /// Prefix of the file names, so that the charts of several files in one folder do not collide.
    pub stem: Option<String>,
    pub extension: String,
    /// What is asked for a figure of a paper.
    pub paper: Paper,
}

impl Destination {
    /// The charts of a run in its folder.
    pub fn in_run(folder: PathBuf) -> Self {
        Self { folder, stem: None, extension: "png".to_owned(), paper: Paper::default() }
    }

    /// Writes a chart under its name. Returns the file written.
    ///
    /// # Errors
    /// As [`chart::write()`].
    pub fn write(&self, chart: &Chart, name: &str) -> Result<PathBuf> {
        let prefix = self.stem.as_ref().map(|stem| format!("{stem}-")).unwrap_or_default();
        let path = self.folder.join(format!("{prefix}{name}.{}", self.extension));
        chart::write(&self.paper, chart, &path)?;
        Ok(path)
    }
}

/// A chart of a run, before it is drawn.
pub struct Drawing {
    /// The name of its file.
    pub name: &'static str,
    /// The subject, printed above the chart on a page.
    pub title: &'static str,
    /// What the chart shows, for readers who cannot see it.
    pub summary: String,
    pub chart: Chart,
}

/// The charts of one source, before they are drawn.
pub struct SweepCharts {
    pub step_time: StepTime,
    /// Every step in the order of the run, where that is known.
    pub honesty: Option<Timeline>,
}

impl SweepCharts {
    /// With the sizes to avoid shaded, for each series in order. The A/A controls, where there are any, are looked for beside `source`.
    pub fn of(source: &Path, found: &[Analysed], advices: &[std::result::Result<Advice, Silence>]) -> Self {
        let mut step_time = step_time(source, found);
        for (series, advice) in step_time.series.iter_mut().zip(advices) {
            let avoided = advice.iter().flat_map(|advice| &advice.avoid);
            series.avoid = avoided.flat_map(|avoided| avoided.sizes.clone()).collect();
        }
        Self { step_time, honesty: honesty(source, found) }
    }

    /// Draws the charts. Returns the files written.
    ///
    /// # Errors
    /// As [`chart::write()`].
    pub fn draw(&self, destination: &Destination) -> Result<Vec<PathBuf>> {
        let mut drawn = vec![destination.write(&Chart::StepTime(self.step_time.clone()), "step_time")?];
        // A figure of a paper is the curve.
        if let Some(honesty) = self.honesty.as_ref().filter(|_| destination.paper == Paper::default()) {
            drawn.push(destination.write(&Chart::Timeline(honesty.clone()), "honesty")?);
        }
        Ok(drawn)
    }
}

fn step_time(source: &Path, found: &[Analysed]) -> StepTime {
    // Charts choose the SI prefix themselves, so values go in without one wherever the unit is known.
    let first = found.first().map(|found| &found.series);
    let unit = first.map_or(BaseUnit { name: String::new(), factor: 1.0 }, Series::base_unit);
    let series = found.iter().map(|Analysed { series, findings }| {
        let slow = slow::sizes(findings, series.kind, Speed::Slow);
        // Columns of one table may be in different units of one kind.
        let own = Some(series.base_unit()).filter(|own| own.name == unit.name).unwrap_or(unit.clone());
        let mut findings = scaled(findings, own.factor);
        // They are drawn like other sizes off the line.
        let is_slow = |x: f64| slow.iter().flat_map(|slow| &slow.sizes).any(|size| size.x == x);
        findings.points.iter_mut().for_each(|point| point.off |= is_slow(point.x));
        let slow = slow.as_ref().map(words::slow);
        chart::ChartSeries { name: series.label(), findings, slow, avoid: Vec::new() }
    });
    let rate = first.is_some_and(|series| series.kind == TimeOrRate::Rate);
    let forecast = is_forecast(found);
    StepTime {
        title: title::of("Step time", source, found),
        x: Quantity::new(first.map_or("Batch size", |series| &series.size.title), ""),
        y: Quantity::new(
            match (rate, forecast) {
                (true, _) => rate_of(&unit.name),
                (false, true) => "Forecast step time",
                (false, false) => "Step time",
            },
            &unit.name,
        ),
        // In an A/A run the batch size is only a label, so time per image means nothing.
        item: (executed(found).is_none() && !rate).then(|| item(found)).flatten(),
        series: series.collect(),
        forecast,
        caption: caption(source, found, None),
    }
}

/// The batch size that every cell of an A/A run executes.
fn executed(found: &[Analysed]) -> Option<String> {
    let several = found.first().is_some_and(|found| found.findings.points.len() > 1);
    shared(found, "executed_batch_size").filter(|_| several)
}

/// What an axis of rates is called.
fn rate_of(unit: &str) -> &'static str {
    match unit {
        "B/s" | "bit/s" => "Bandwidth",
        "FLOP/s" => "Performance",
        _ => "Rate",
    }
}

/// What x counts: the items of a batch, or tokens. `None` if a time per unit of x means nothing, such as per element of a matrix's side.
fn item(found: &[Analysed]) -> Option<String> {
    let images = ["vgg", "mobilenet", "resnet", "mnist", "inception", "densenet", "cnn"];
    let named = |series: &Series| series.group.iter().any(|(_, value)| images.iter().any(|i| value.contains(i)));
    let item = found.first().map_or("example", |found| &found.series.size.item);
    let counted = ["example", "token"].contains(&item);
    let image = item == "example" && found.iter().all(|found| named(&found.series));
    counted.then(|| if image { "image".to_string() } else { item.to_string() })
}

fn scaled(findings: &Findings, scale: f64) -> Findings {
    let mut scaled = findings.clone();
    // Between sizes far apart the line of such a curve may be anywhere.
    if scaled.jumps.is_empty() && words::is_too_steep(findings) {
        scaled.points.iter_mut().for_each(|point| point.fit = f64::NAN);
        scaled.kinks.clear();
        scaled.rejected.clear();
    }
    let points = scaled.points.iter_mut().flat_map(|p| [&mut p.center, &mut p.low, &mut p.high, &mut p.fit]);
    let jumps = scaled.jumps.iter_mut().flat_map(|jump| [&mut jump.size, &mut jump.low, &mut jump.high]);
    let kinks = scaled.kinks.iter_mut().flat_map(|kink| [&mut kink.slope_before, &mut kink.slope_after]);
    let rejected = scaled.rejected.iter_mut().map(|candidate| &mut candidate.size);
    points.chain(jumps).chain(kinks).chain(rejected).for_each(|value| *value *= scale);
    scaled
}

fn shared(found: &[Analysed], name: &str) -> Option<String> {
    let first = found.first()?.series.facts.get(name)?;
    found.iter().all(|found| found.series.facts.get(name) == Some(first)).then(|| first.clone())
}

/// What was measured on, for a caption.
fn device(found: &[Analysed]) -> String {
    shared(found, "device_name").unwrap_or_else(|| "several devices".to_owned())
}

/// Whether the values come from a model and were not measured.
fn is_forecast(found: &[Analysed]) -> bool {
    !found.is_empty() && found.iter().all(|found| found.series.is_forecast())
}

/// Whether another program measured.
fn is_foreign(found: &[Analysed]) -> bool {
    !found.iter().any(|found| found.series.facts.contains_key("device"))
}

/// What ran on what, how often, and how far it can be trusted; and the machines, where several measured it.
fn provenance(source: &Path, found: &[Analysed]) -> Vec<String> {
    let number = |name: &str| shared(found, name).and_then(|value| value.parse::<u32>().ok());
    let link = match (number("pcie_link_generation"), number("pcie_link_width")) {
        (Some(generation), Some(width)) => Some(format!("PCIe {generation}.0 x{width}")),
        // Only a GPU is behind a link: not the CPU, nor a simulated device.
        _ if shared(found, "device").is_some_and(|device| !device.starts_with("cuda")) => None,
        _ => (!is_foreign(found)).then(|| "PCIe link not read".to_owned()),
    };
    let engine = shared(found, "engine").filter(|name| name != EngineName::Python.name());
    // Beside measured series, the values of a forecast are not counted as steps.
    let forecast = is_forecast(found);
    let shown = found.iter().filter(|found| forecast || !found.series.is_forecast());
    let counted: Vec<_> = shown.flat_map(|found| found.series.observations()).collect();
    let blocks: std::collections::BTreeSet<u32> = counted.iter().filter_map(|seen| seen.block).collect();
    // Too early, some of the blocks are not whole, and the headline counts those that are.
    let reported = found.iter().all(|found| found.findings.early.is_none());
    let steps = human::counted(counted.len() as u64, if forecast { "value" } else { "step" });
    let ran = match blocks.len() as u64 {
        _ if forecast => format!("{steps}, forecast and not measured"),
        blocks if blocks > 0 && reported => format!("{steps} in {}", human::counted(blocks, "block")),
        _ => steps,
    };
    let controls = control::near(source);
    let alarms = found.iter().map(|found| found.findings.alarm_rate.map(|rate| rate.share()));
    let of_controls = found.iter().map(|found| control::rate(&controls, &found.series));
    let limit = |rate: Option<f64>| rate.filter(|_| reported && !forecast).map(human::limit);
    let parts = [
        shared(found, "device_name"),
        engine.map(|engine| format!("{engine} engine")),
        shared(found, "precision"),
        link,
        Some(ran),
        limit(largest(alarms)).map(|rate| format!("{rate} false alarms (simulated)")),
        limit(largest(of_controls)).map(|rate| format!("A/A runs: {rate} false alarms")),
    ];
    let caption = parts.into_iter().flatten().collect::<Vec<_>>().join(" \u{b7} ");
    std::iter::once(caption).chain(words::machines(found)).collect()
}

/// The caption of a chart, with what has to be remarked.
fn caption(source: &Path, found: &[Analysed], remark: Option<&str>) -> Vec<String> {
    let said = provenance(source, found).into_iter().chain(remark.map(str::to_owned));
    said.chain([made_by(source, found)]).collect()
}

/// The largest of some rates, so that a figure does not claim more than its worst series supports; `None` if one is not known.
fn largest(mut rates: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let first = rates.next()?;
    rates.fold(first, |most, rate| Some(most?.max(rate?)))
}

pub(crate) fn made_by(source: &Path, found: &[Analysed]) -> String {
    format!("Made by: {}", again("plot", &[source], found))
}

/// The median of each batch size as measured: what all batch sizes share is subtracted from the findings' own centres, and this chart shows it.
fn medians(series: &Series) -> BTreeMap<u64, f64> {
    let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for seen in series.observations() {
        all.entry(seen.x.to_bits()).or_default().push(seen.y);
    }
    all.into_iter().map(|(x, mut values)| (x, median(&mut values))).collect()
}

/// Every step in the order of the run against the median of its batch size.
fn honesty(source: &Path, found: &[Analysed]) -> Option<Timeline> {
    let mut steps = Vec::new();
    for Analysed { series, .. } in found {
        let centers = medians(series);
        for measurement in &series.measurements {
            let seen = &measurement.observation;
            let center = centers.get(&seen.x.to_bits()).copied().filter(|center| *center > 0.0);
            let (Some(order), Some(center)) = (seen.order, center) else { continue };
            let (warmup, outlier, block) = (measurement.warmup, measurement.outlier, seen.block);
            let record = StepRecord { block, residual: seen.y / center - 1.0, warmup, outlier };
            steps.push((order, record, measurement));
        }
    }
    if steps.is_empty() {
        return None;
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let orders: Vec<f64> = steps.iter().map(|step| step.0).collect();
    let placed = |point: &FactorPoint| FactorPoint {
        order: orders.partition_point(|order| *order < point.order) as f64,
        ..*point
    };
    let with_factor = found.iter().filter(|found| !found.findings.factor.is_empty());
    let readings = link::widths(source);
    let covariates = [
        ("Clock", "Hz", steps.iter().map(|step| step.2.clock_hz).collect()),
        ("Temperature", "\u{b0}C", steps.iter().map(|step| step.2.temperature_c).collect()),
        ("PCIe link width", "lanes", steps.iter().map(|step| link::width_at(&readings, step.0)).collect()),
    ];
    let is_unread = |(_, _, values): &(&str, &str, Vec<Option<f64>>)| values.iter().all(Option::is_none);
    let none = if is_foreign(found) { "The table has no clock." } else { "No clock was readable." };
    let remark = covariates.iter().all(is_unread).then_some(none);
    let covariate = |(name, unit, values)| Covariate { quantity: Quantity::new(name, unit), values };
    Some(Timeline {
        title: title::of("Every step", source, found),
        steps: steps.iter().map(|step| step.1).collect(),
        factors: with_factor.map(|found| found.findings.factor.iter().map(placed).collect()).collect(),
        covariates: covariates.map(covariate).to_vec(),
        caption: caption(source, found, remark),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Measurement;
    use crate::detect::{AlarmRate, Early, Jump, Observation, Point};

    /// A series of such a group, measured on a GPU.
    pub fn on_device(group: &[(&str, &str)], device: &str) -> Series {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let facts = [("device", "cuda:0"), ("device_name", device)].iter().map(owned).collect();
        Series { facts, ..Series::planted(group.iter().map(owned).collect(), Vec::new()) }
    }

    fn measurement(x: f64, y: f64, order: usize) -> Measurement {
        Observation { order: Some(order as f64), block: Some(order as u32 / 2), ..Observation::new(x, y) }.into()
    }

    fn planted(measurements: Vec<Measurement>) -> Series {
        Series::planted(vec![("model".to_string(), "vgg16".to_string())], measurements)
    }

    #[test]
    fn residuals_are_relative_to_the_median_of_the_batch_size_in_the_order_of_the_run() {
        // Medians without warm-up: 10 at batch size 1, 20 at 2.
        let mut steps = vec![measurement(2.0, 20.0, 3), measurement(1.0, 10.0, 0), measurement(1.0, 10.0, 1)];
        steps.push(measurement(1.0, 11.0, 2));
        steps.push(Measurement { warmup: true, clock_hz: Some(1e9), ..measurement(2.0, 30.0, 4) });
        let chart =
            honesty(Path::new("run"), &[Analysed { series: planted(steps), findings: Findings::default() }]).unwrap();
        let residuals: Vec<f64> = chart.steps.iter().map(|step| step.residual).collect();
        assert_eq!(residuals, [0.0, 0.0, 11.0 / 10.0 - 1.0, 0.0, 0.5]);
        assert_eq!(chart.covariates[0].values, [None, None, None, None, Some(1e9)]);
        // Warm-up does not count.
        assert_eq!(chart.caption[0], "4 steps in 2 blocks");
    }

    #[test]
    fn the_caption_says_what_ran_and_how_reliable_it_is() {
        let series = planted((0..4).map(|order| measurement(1.0, 10.0, order)).collect());
        let alarm_rate = Some(AlarmRate { alarms: 10, series: 1000 });
        let mut found = [Analysed { series, findings: Findings { alarm_rate, ..Findings::default() } }];
        let said = |found: &[Analysed]| honesty(Path::new("nowhere/run"), found).expect("steps").caption;
        assert_eq!(
            said(&found)[..2],
            ["4 steps in 2 blocks \u{b7} 1 % false alarms (simulated)", "The table has no clock."]
        );
        let facts = [
            ("device", "cuda:0"),
            ("device_name", "NVIDIA H200"),
            ("engine", "cudnn"),
            ("precision", "tf32"),
            ("pcie_link_generation", "5"),
            ("pcie_link_width", "16"),
        ];
        found[0].series.facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        found[0].findings.early = Some(Early { blocks: 1, of: 4 });
        let ran = "NVIDIA H200 \u{b7} cudnn engine \u{b7} tf32 \u{b7} PCIe 5.0 x16 \u{b7} 4 steps";
        assert_eq!(said(&found)[..2], [ran, "No clock was readable."]);
        found[0].series.facts.remove("pcie_link_width");
        assert!(said(&found)[0].contains("PCIe link not read"));
        found[0].series.facts.insert("device".to_owned(), "cpu".to_owned());
        assert!(!said(&found)[0].contains("PCIe"));
    }

    #[test]
    fn the_factor_of_a_visit_begins_at_its_first_step() {
        let steps = (0..6).map(|order| measurement(f64::from(order / 2), 10.0, order as usize)).collect();
        let factor = [0.0, 2.0, 4.0].map(|order| FactorPoint { order, relative: 0.01 * order, sd: 0.002 });
        let findings = Findings { factor: factor.to_vec(), ..Findings::default() };
        let chart = honesty(Path::new("run"), &[Analysed { series: planted(steps), findings }]).unwrap();
        let placed: Vec<(f64, f64)> = chart.factors[0].iter().map(|f| (f.order, f.relative)).collect();
        assert_eq!(placed, [(0.0, 0.0), (2.0, 0.02), (4.0, 0.04)]);
    }

    #[test]
    fn without_the_order_of_the_run_there_is_no_honesty_chart() {
        let series = planted(vec![Observation::new(1.0, 10.0).into()]);
        assert_eq!(honesty(Path::new("a.csv"), &[Analysed { series, findings: Findings::default() }]), None);
    }

    /// Only a jump of 400 % would have been seen; where one was, its ends are drawn.
    #[test]
    fn the_line_of_a_curve_that_is_too_steep_for_its_sizes_is_not_drawn() {
        let point = Point { x: 1.0, count: 3, center: 10.0, low: 9.0, high: 11.0, fit: 70_000.0, off: false };
        let drawn = |detectable: f64, jumps: Vec<Jump>| {
            let findings =
                Findings { points: vec![point.clone()], jumps, detectable: Some(detectable), ..Findings::default() };
            let chart = step_time(Path::new("a.csv"), &[Analysed { series: planted(Vec::new()), findings }]);
            chart.series[0].findings.points[0].fit
        };
        assert_eq!(drawn(0.05, Vec::new()), 70_000.0);
        assert!(drawn(4.0, Vec::new()).is_nan());
        assert_eq!(drawn(4.0, vec![Jump::planted(1.0, 90.0, 9.0)]), 70_000.0);
    }

    #[test]
    fn times_in_milliseconds_are_drawn_in_seconds() {
        let series = Series { unit: "ms".into(), ..planted(Vec::new()) };
        let point = Point { x: 1.0, count: 3, center: 10.0, low: 9.0, high: 11.0, fit: 10.0, off: false };
        let jump = Jump::planted(16.0, 2.0, 0.2);
        let findings = Findings { points: vec![point], jumps: vec![jump], ..Findings::default() };
        let chart = step_time(Path::new("a.csv"), &[Analysed { series, findings }]);
        let found = &chart.series[0].findings;
        assert!((found.points[0].center - 0.010).abs() < 1e-15 && (found.points[0].low - 0.009).abs() < 1e-15);
        assert!((found.jumps[0].size - 0.002).abs() < 1e-15 && found.jumps[0].relative == 0.2);
        assert_eq!((chart.y.unit.as_str(), chart.item.as_deref()), ("s", Some("image")));
    }
}
