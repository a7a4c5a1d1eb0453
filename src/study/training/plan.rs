//! The cells of a training.

use super::super::plan::Axes;
use super::super::{Cell, Plan};
use super::Training;
use crate::data::DataSet;
use crate::engine::open::Engines;
use crate::engine::{Settings, train};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::spec::plan::networks;
use crate::spec::{Model, Order};

/// What makes the batches of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loader {
    pub workers: usize,
    /// `None` without workers.
    pub prefetch: Option<usize>,
}

/// Multiplies out the axes of the spec; networks take the shape and the classes of the data. `engines` resolves `auto`.
///
/// # Errors
/// [`crate::error::Kind::Spec`] where a network can't be built, or does not fit the data.
pub(super) fn plan(spec: &Training, data: &DataSet, engines: &Engines) -> Result<Plan<Loader>> {
    let networks = networks(&fitted(&spec.subject.model, data)?)?;
    networks.iter().try_for_each(|(_, network)| check(network, data))?;
    let seed = spec.measure.seed;
    let axes = Axes {
        subject: &spec.subject,
        common: Settings { learning_rate: spec.subject.learning_rate, seed, ..Settings::default() },
        settle: &|_, engine, settings| train::fed(settings, engines.resolve(engine)),
    };
    let mut cells: Vec<Cell<Loader>> = Vec::with_capacity(spec.cell_count());
    axes.add(&mut cells, &networks, &loaders(spec))?;
    Ok(Plan::of(cells, seed, Order::Random))
}

fn loaders(spec: &Training) -> Vec<Loader> {
    let depths = |workers: usize| match workers {
        0 => vec![None],
        _ => spec.loader.prefetch.iter().copied().map(Some).collect(),
    };
    let of = |&workers: &usize| depths(workers).into_iter().map(move |prefetch| Loader { workers, prefetch });
    spec.loader.workers.iter().flat_map(of).collect()
}

/// The model, completed by the shape and the classes of the data.
fn fitted(model: &Model, data: &DataSet) -> Result<Model> {
    let differs = |what: &str, stated: String, own: String| {
        Error::spec(format!("the network's {what} is {stated}, and that of the data {own}")).at("[model]").hint(
            format!("leave `{}` out; it follows from the data", if what == "input" { "input" } else { "classes" }),
        )
    };
    if let Some(input) = model.input.filter(|input| *input != data.shape) {
        return Err(differs("input", format!("{input:?}"), format!("{:?}", data.shape)));
    }
    if let Some(classes) = model.classes.filter(|classes| *classes < data.classes) {
        return Err(differs("number of classes", classes.to_string(), data.classes.to_string()));
    }
    let classes = model.classes.unwrap_or(data.classes);
    // A network of the spec's own has the classes that its last layer has.
    let classes = if model.layers.is_some() { model.classes } else { Some(classes) };
    Ok(Model { input: Some(data.shape), classes, ..model.clone() })
}

fn check(network: &Network, data: &DataSet) -> Result<()> {
    let outputs = network.output().count();
    if outputs < data.classes {
        return Err(Error::spec(format!("the network has {outputs} outputs, and the data {} classes", data.classes))
            .at(&network.name));
    }
    Ok(())
}
