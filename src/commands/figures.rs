//! From series and findings to charts on the disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use batchstep::analysis::Series;
use batchstep::analysis::control;
use batchstep::chart::{self, Chart, Covariate, Honesty, Link, Provenance, Quantity, StepRecord, StepTime};
use batchstep::detect::Findings;
use batchstep::error::Result;
use batchstep::stats::quantile::median;

/// Where the charts of one source go.
pub struct Target {
    pub folder: PathBuf,
    /// Put before the chart's name, so that the charts of several files in one folder don't collide.
    pub stem: Option<String>,
    pub extension: &'static str,
}

impl Target {
    fn path(&self, name: &str) -> PathBuf {
        let prefix = self.stem.as_ref().map(|stem| format!("{stem}-")).unwrap_or_default();
        self.folder.join(format!("{prefix}{name}.{}", self.extension))
    }
}

/// Draws the step-time chart and, where the order of the run is known, the honesty chart. Returns the files written.
///
/// The controls of the machine, where there are any, lie beside `source`.
pub fn draw(source: &Path, found: &[(Series, Findings)], target: &Target) -> Result<Vec<PathBuf>> {
    let mut drawn = vec![target.path("step_time")];
    chart::write(&Chart::StepTime(step_time(source, found)), &drawn[0])?;
    if let Some(honesty) = honesty(source, found) {
        let path = target.path("honesty");
        chart::write(&Chart::Honesty(honesty), &path)?;
        drawn.push(path);
    }
    Ok(drawn)
}

fn step_time(source: &Path, found: &[(Series, Findings)]) -> StepTime {
    // Charts choose the SI prefix themselves, so times go in as seconds wherever the unit is known.
    let scale = found.first().and_then(|(series, _)| series.seconds_per_unit());
    let series = found.iter().map(|(series, findings)| chart::ChartSeries {
        name: series.label(),
        findings: scaled(findings, scale.unwrap_or(1.0)),
        smallest: findings.detectable,
    });
    StepTime {
        title: title(source, found),
        x: Quantity::new("Batch size", ""),
        y: Quantity::new("Step time", if scale.is_some() { "s" } else { "" }),
        // In an A/A run the batch size is but a name, and time per image says nothing.
        item: executed(found).is_none().then(|| item(found).to_string()),
        series: series.collect(),
        confidence: 0.95,
        provenance: provenance(source, found),
    }
}

/// The batch size that every cell of an A/A run executes.
fn executed(found: &[(Series, Findings)]) -> Option<String> {
    let several = found.first().is_some_and(|(_, findings)| findings.points.len() > 1);
    shared(found, "executed_batch_size").filter(|_| several)
}

fn title(source: &Path, found: &[(Series, Findings)]) -> String {
    let name = source.file_stem().map_or_else(|| source.display().to_string(), |n| n.to_string_lossy().into_owned());
    match executed(found) {
        Some(executed) => format!("{name} (A/A control: every cell runs batch size {executed})"),
        None => name,
    }
}

/// What a batch consists of.
fn item(found: &[(Series, Findings)]) -> &'static str {
    let images = ["vgg", "mobilenet", "resnet", "mnist", "inception", "densenet", "cnn"];
    let named = |series: &Series| series.group.iter().any(|(_, value)| images.iter().any(|i| value.contains(i)));
    if found.iter().all(|(series, _)| named(series)) { "image" } else { "example" }
}

fn scaled(findings: &Findings, scale: f64) -> Findings {
    let mut scaled = findings.clone();
    for point in &mut scaled.points {
        point.center *= scale;
        point.low *= scale;
        point.high *= scale;
        point.fit *= scale;
    }
    for jump in &mut scaled.jumps {
        jump.size *= scale;
        jump.low *= scale;
        jump.high *= scale;
    }
    for kink in &mut scaled.kinks {
        kink.slope_before *= scale;
        kink.slope_after *= scale;
    }
    for candidate in &mut scaled.rejected {
        candidate.size *= scale;
    }
    scaled
}

/// The fact, where it is the same in all series.
fn shared(found: &[(Series, Findings)], name: &str) -> Option<String> {
    let first = found.first()?.0.facts.get(name)?;
    found.iter().all(|(series, _)| series.facts.get(name) == Some(first)).then(|| first.clone())
}

fn provenance(source: &Path, found: &[(Series, Findings)]) -> Provenance {
    let number = |name: &str| shared(found, name).and_then(|value| value.parse::<u32>().ok());
    let link = match (number("pcie_link_generation"), number("pcie_link_width")) {
        (Some(generation), Some(width)) => Link::Pcie { generation, width },
        // Only a GPU stands behind a link; the CPU does not, nor does a device that is a formula.
        _ if shared(found, "device").is_some_and(|device| !device.starts_with("cuda")) => Link::None,
        _ => Link::Unknown,
    };
    let counted = found.iter().flat_map(|(series, _)| &series.measurements).filter(|m| !m.warmup);
    let blocks: std::collections::BTreeSet<u32> = counted.clone().filter_map(|m| m.observation.block).collect();
    Provenance {
        device: shared(found, "device_name"),
        engine: shared(found, "engine").map(|engine| format!("{engine} engine")),
        precision: shared(found, "precision"),
        link,
        steps: counted.count() as u64,
        blocks: blocks.len() as u64,
        false_positive_rate: found.first().map_or(0.0, |(_, findings)| findings.false_positive_rate),
        aa_rate: aa_rate(source, found),
        command: format!("batchstep plot {}", source.display()),
    }
}

/// The largest rate of any series: a figure must not promise more than its worst part.
fn aa_rate(source: &Path, found: &[(Series, Findings)]) -> Option<f64> {
    let controls = control::near(source);
    let rates: Option<Vec<f64>> = found.iter().map(|(series, _)| control::rate(&controls, series)).collect();
    rates?.into_iter().reduce(f64::max)
}

/// The median of each batch size, as it was measured: the findings' own centers are without drift, which this chart shows.
fn medians(series: &Series) -> BTreeMap<u64, f64> {
    let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for measurement in series.measurements.iter().filter(|measurement| !measurement.warmup) {
        all.entry(measurement.observation.x.to_bits()).or_default().push(measurement.observation.y);
    }
    all.into_iter().map(|(x, mut values)| (x, median(&mut values))).collect()
}

/// Every step in the order of the run against the median of its batch size.
fn honesty(source: &Path, found: &[(Series, Findings)]) -> Option<Honesty> {
    let mut steps = Vec::new();
    for (series, _) in found {
        let centers = medians(series);
        for measurement in &series.measurements {
            let seen = &measurement.observation;
            let center = centers.get(&seen.x.to_bits()).copied().filter(|center| *center > 0.0);
            let (Some(order), Some(center)) = (seen.order, center) else { continue };
            let (warmup, outlier, block) = (measurement.warmup, measurement.outlier, seen.block);
            let record = StepRecord { block, residual: seen.y / center - 1.0, warmup, outlier };
            steps.push((order, record, measurement.clock_hz, measurement.temperature_c));
        }
    }
    if steps.is_empty() {
        return None;
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let clock = Covariate { quantity: Quantity::new("Clock", "Hz"), values: steps.iter().map(|s| s.2).collect() };
    let temperature =
        Covariate { quantity: Quantity::new("Temperature", "\u{b0}C"), values: steps.iter().map(|s| s.3).collect() };
    Some(Honesty {
        title: title(source, found),
        steps: steps.iter().map(|step| step.1).collect(),
        covariates: vec![clock, temperature],
        provenance: provenance(source, found),
    })
}
