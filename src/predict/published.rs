//! Devices without measured steps: from their rates and from kernels that others measured.

use std::collections::BTreeMap;

use super::known::Measured;
use super::unseen::{PlannedLayer, layers_of};
use super::{Basis, Reported, Row, Series, called};
use crate::error::{Error, Result};
use crate::network::Cost;
use crate::predict::database::Database;
use crate::predict::model::Estimate;
use crate::predict::model::rates::{MeasuredKernel, RateModel, Rates, left_out};
use crate::settings::Precision;
use crate::spec::plan::Cell;
use crate::store::CollectedStep;

/// The published kernels, and what was fitted to them; the GPUs that others measured, by kernels or by whole steps.
pub(super) struct PublishedDevices {
    devices: Vec<PublishedGpu>,
    /// By operation.
    models: BTreeMap<String, Fitted>,
    steps: Vec<CollectedStep>,
}

/// A GPU that others measured.
pub struct PublishedGpu {
    pub name: String,
    rates: Rates,
}

struct Fitted {
    model: RateModel,
    /// The radius of each device when it is left out.
    radii: BTreeMap<usize, f64>,
}

/// The published kernels, by their operation, `conv2d` or `dense`.
pub struct PublishedKernels {
    /// By their numbers in the kernels.
    pub devices: Vec<PublishedGpu>,
    pub kernels: BTreeMap<String, Vec<MeasuredKernel>>,
}

/// Reads the published kernels.
///
/// # Errors
/// [`crate::error::Kind::Data`] where the database cannot be read.
pub fn published_kernels(database: &Database) -> Result<PublishedKernels> {
    let mut devices = Vec::new();
    let mut kernels: BTreeMap<String, Vec<MeasuredKernel>> = BTreeMap::new();
    for name in database.published_devices()? {
        let rows = database.kernels(&name)?;
        let Some(first) = rows.first() else { continue };
        let rates = Rates { flops_per_s: first.flops_per_s, bytes_per_s: first.bytes_per_s };
        let device = devices.len();
        devices.push(PublishedGpu { name, rates });
        for row in rows {
            let of = |value: i64| value as f64;
            let pixels = of(row.batch_size) * of(row.height) * of(row.width);
            let weights = of(row.in_channels) * of(row.out_channels) * of(row.kernel_size) * of(row.kernel_size);
            let moved = pixels * (of(row.in_channels) + of(row.out_channels)) + weights;
            let work = Cost { flops: 2.0 * pixels * weights, bytes: 4.0 * moved };
            let kernel = MeasuredKernel { device, rates, work, seconds: row.time_s };
            kernels.entry(row.operation).or_default().push(kernel);
        }
    }
    Ok(PublishedKernels { devices, kernels })
}

impl PublishedDevices {
    /// Reads the published kernels; without any, it has no estimates.
    pub fn read(database: &Database) -> Result<Self> {
        let PublishedKernels { mut devices, kernels } = published_kernels(database)?;
        let steps = database.published_steps()?;
        for step in &steps {
            let is_known = devices.iter().any(|gpu| gpu.name == step.device_name);
            // The models are of float32.
            if step.precision == Precision::Fp32.name() && !is_known {
                let rates = Rates { flops_per_s: step.flops_per_s, bytes_per_s: step.bytes_per_s };
                devices.push(PublishedGpu { name: step.device_name.clone(), rates });
            }
        }
        let fitted = |kernels: Vec<MeasuredKernel>| Fitted {
            model: RateModel::fit(kernels.iter().copied()),
            radii: left_out(&kernels).into_iter().map(|errors| (errors.device, errors.radius)).collect(),
        };
        Ok(Self { devices, models: kernels.into_iter().map(|(of, kernels)| (of, fitted(kernels))).collect(), steps })
    }

    pub fn names(&self) -> Vec<String> {
        self.devices.iter().map(|gpu| gpu.name.clone()).collect()
    }

    /// The device that `asked` names: by its whole name, or by a part that only one has.
    pub fn find(&self, asked: &str) -> Option<String> {
        let names: Vec<&str> = self.devices.iter().map(|gpu| gpu.name.as_str()).collect();
        if let [one] = called(&names, asked)[..] { Some(names[one].to_owned()) } else { None }
    }

    pub fn rows(&self, database: &Database, device: &str, series: &Series) -> Result<Vec<Row>> {
        let Some(place) = self.devices.iter().position(|gpu| gpu.name == device) else {
            return Err(Error::spec(format!("there are no published kernels of `{device}`")));
        };
        let rates = self.devices[place].rates;
        let elsewhere = self.elsewhere(database, series)?;
        let radii = |of: &dyn Fn(usize) -> bool| {
            let all = self.models.values().flat_map(|fitted| &fitted.radii);
            all.filter(|(device, _)| of(**device)).map(|(_, radius)| *radius).reduce(f64::max)
        };
        let own = radii(&|device| device == place);
        // These are errors of single kernels. The errors of a sum would be smaller if the kernels' errors were independent, which is not known.
        let radius = own.or_else(|| radii(&|_| true)).unwrap_or(f64::INFINITY);
        let devices = self.models.values().map(|fitted| fitted.radii.len()).max().unwrap_or(0);
        let row = |(at, cell): (usize, &&Cell)| {
            let layers = layers_of(&cell.workload.network, cell.batch_size, cell.workload.settings.precision);
            let here = self.seconds(&layers, rates);
            let seconds = match &elsewhere {
                Some(other) => other.rows[at].step.seconds * here / self.seconds(&layers, other.rates),
                None => here,
            };
            let scaled_from = elsewhere.as_ref().map(|other| other.device.clone());
            let basis = Basis::Rates { devices, kernels_on_it: own.is_some(), scaled_from };
            // Whatever engine the spec names: PyTorch with cuDNN made these kernels.
            let row = Row::new(device, "published kernels", series, cell, Estimate::around(seconds, radius), basis);
            Row { reported: self.reported(device, cell), ..row }
        };
        Ok(series.cells.iter().enumerate().map(row).collect())
    }

    /// The same step, if somebody has published it.
    fn reported(&self, device: &str, cell: &Cell) -> Option<Reported> {
        let precision = cell.workload.settings.precision.name();
        let is_it = |step: &&CollectedStep| {
            let of = (step.device_name.as_str(), step.model.as_str(), step.precision.as_str(), step.batch_size);
            of == (device, cell.model.as_str(), precision, cell.batch_size as i64)
        };
        let step = self.steps.iter().find(is_it)?;
        Some(Reported { seconds: step.step_time_s, by: format!("{}, {}", step.framework, step.source) })
    }

    /// The sum over the layers. Operations without a published kernel count by the formula.
    fn seconds(&self, layers: &[PlannedLayer], rates: Rates) -> f64 {
        let of = |layer: &PlannedLayer| {
            let model = self.models.get(layer.operation).map_or(RateModel::FORMULA, |fitted| fitted.model);
            model.seconds(layer.work, rates)
        };
        layers.iter().map(of).sum()
    }

    /// A device of the same engine on which these cells were measured, and whose rates are known.
    fn elsewhere(&self, database: &Database, series: &Series) -> Result<Option<Elsewhere>> {
        for device in &database.devices {
            let known = Measured::new(database, device)?;
            // A processor's step, scaled by rates, would bring along what a GPU does not do.
            if known.engine(crate::settings::EngineName::Auto) != crate::settings::EngineName::Cudnn {
                continue;
            }
            let mut peaks = database.runs(device)?.into_iter().filter_map(|run| {
                Some(Rates { flops_per_s: run.peak_flops_per_s?, bytes_per_s: run.peak_bytes_per_s? })
            });
            if let (Some(rates), Some(rows)) = (peaks.next_back(), known.rows(series)?) {
                return Ok(Some(Elsewhere { device: device.clone(), rates, rows }));
            }
        }
        Ok(None)
    }
}

/// The same cells on another device.
struct Elsewhere {
    device: String,
    rates: Rates,
    rows: Vec<Row>,
}
