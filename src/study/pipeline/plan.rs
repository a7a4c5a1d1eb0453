//! The cells of a study of the input pipeline.

use super::super::Plan;
use super::super::plan::Axes;
use super::Pipeline;
use super::images::CHANNELS;
use super::spec::{Cache, Format};
use crate::engine::open::Engines;
use crate::engine::{Settings, train};
use crate::error::Result;
use crate::network::Shape;
use crate::spec::plan::networks;
use crate::spec::{Model, Order};

/// Classes of the images, where the network does not say how many it distinguishes.
const CLASSES: usize = 10;

/// Where the examples of a cell come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    pub format: Format,
    /// Pixels of a side.
    pub size: usize,
    pub cache: Cache,
    pub workers: usize,
}

/// Multiplies out the axes of the spec; networks take the shape of the images. `engines` resolves `auto`.
///
/// # Errors
/// [`crate::error::Kind::Spec`] if a network can't be built for images of that size, or an engine does not have that data path.
pub(super) fn plan(spec: &Pipeline, engines: &Engines) -> Result<Plan<Source>> {
    let (subject, seed) = (&spec.subject, spec.measure.seed);
    let axes = Axes {
        subject,
        common: Settings { learning_rate: subject.learning_rate, seed, ..Settings::default() },
        settle: &|_, engine, settings| train::fed(settings, engines.resolve(engine)),
    };
    let mut cells = Vec::with_capacity(spec.cell_count());
    // A network of the spec's own has the classes that its last layer has.
    let own = subject.model.layers.is_some();
    let classes = subject.model.classes.or((!own).then_some(CLASSES));
    for &size in &spec.data.sizes {
        let input = Some(Shape::Maps { channels: CHANNELS, height: size, width: size });
        let networks = networks(&Model { input, classes, ..subject.model.clone() })?;
        axes.add(&mut cells, &networks, &sources(spec, size))?;
    }
    Ok(Plan::of(cells, seed, Order::Random))
}

fn sources(spec: &Pipeline, size: usize) -> Vec<Source> {
    let mut sources = Vec::new();
    for &format in &spec.data.formats {
        for &cache in &spec.data.caches {
            sources.extend(spec.loader.workers.iter().map(|&workers| Source { format, size, cache, workers }));
        }
    }
    sources
}
