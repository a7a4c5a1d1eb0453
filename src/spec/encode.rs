//! From an [`Experiment`] back to TOML, with every value written out.

use std::fmt::{Display, Write};
use std::path::Path;

use super::batch_sizes::range_text;
use super::decode::has_fixed;
use super::keys::Table;
use super::{Engines, Experiment, FixedFrom, Model, layers, own};
use crate::network::Shape;
use crate::settings::{AXES, Axis, Domain, EngineName, Grid, Value};

pub(super) fn toml(experiment: &Experiment, folder: Option<&Path>) -> String {
    let mut out = format!("version = 1\nname = {:?}\n", experiment.name);
    match &experiment.own {
        Some(steps) => {
            sweep(&mut out, experiment);
            own::write_engine(&mut out, steps, folder);
        }
        None => {
            // The synthetic engine needs no network; its model name is not one that could be read back.
            if experiment.synthetic.is_none() || experiment.model.names != ["synthetic"] {
                network(&mut out, &experiment.model);
            }
            sweep(&mut out, experiment);
            train(&mut out, &experiment.grid, &experiment.engine.name, experiment.learning_rate);
            line(&mut out, "examples", quoted(experiment.examples));
            engine(&mut out, &experiment.engine, &experiment.grid);
        }
    }
    experiment.measure.write(&mut out);
    if let Some(shard) = experiment.measure.shard {
        line(&mut out, "shard_by", quoted(shard.by));
    }
    if let Some(synthetic) = &experiment.synthetic {
        synthetic.write(&mut out);
    }
    out
}

pub(super) fn train(out: &mut String, grid: &Grid, engines: &[EngineName], learning_rate: f64) {
    section(out, "train");
    axes(out, grid, engines, "train");
    line(out, "learning_rate", format!("{learning_rate:?}"));
}

pub(super) fn engine(out: &mut String, engine: &Engines, grid: &Grid) {
    section(out, "engine");
    line(out, "name", list(engine.name.iter().map(quoted)));
    if !engine.optional.is_empty() {
        line(out, "optional", list(engine.optional.iter().map(quoted)));
    }
    axes(out, grid, &engine.name, "engine");
    // Where `algorithms = "fixed"` was left out, nothing takes them, and `fixed_from` alone would be refused.
    if let Some(FixedFrom { run, batch_size }) = engine.fixed_from.as_ref().filter(|_| has_fixed(grid)) {
        let run = format!("{:?}", run.display().to_string());
        let text = batch_size.map_or(run.clone(), |size| format!("{{ run = {run}, batch_size = {size} }}"));
        line(out, "fixed_from", text);
    }
}

pub(super) fn network(out: &mut String, model: &Model) {
    section(out, "model");
    match model.layers {
        Some(_) => line(out, "name", format!("{:?}", model.names[0])),
        None => line(out, "name", list(model.names.iter().map(quoted))),
    }
    match model.input {
        Some(Shape::Maps { channels, height, width }) => line(out, "input", format!("[{channels}, {height}, {width}]")),
        Some(Shape::Flat(features)) => line(out, "input", format!("[{features}]")),
        None => {}
    }
    if let Some(classes) = model.classes {
        line(out, "classes", classes);
    }
    if let Some(specs) = &model.layers {
        layers::write(out, specs);
    }
}

fn sweep(out: &mut String, experiment: &Experiment) {
    section(out, "sweep");
    if let Some(steps) = &experiment.own {
        own::write_arguments(out, steps);
    }
    sizes(out, experiment.x(), &experiment.batch_sizes);
    if let Some(executes) = experiment.executes {
        line(out, "executes", executes);
    }
}

pub(super) fn sizes(out: &mut String, name: &str, sizes: &[usize]) {
    line(out, name, range_text(sizes).map_or_else(|| format!("{sizes:?}"), |range| format!("{range:?}")));
}

pub(crate) fn section(out: &mut String, name: &str) {
    let _ = write!(out, "\n[{name}]\n");
}

pub(crate) fn line(out: &mut String, key: &str, value: impl Display) {
    let _ = writeln!(out, "{key} = {value}");
}

pub(super) fn quoted(value: impl Display) -> String {
    format!("\"{value}\"")
}

/// The axes of one table; one without a value of its own is left to the engine.
fn axes(out: &mut String, grid: &Grid, engines: &[EngineName], table: &str) {
    let of_networks = |axis: &&Axis| axis.domain != Domain::Text;
    for axis in AXES.iter().filter(|axis| axis.table == table).filter(of_networks) {
        let default = [axis.default_value()];
        // An axis that only an engine had that was left out varies no more: a spec that says otherwise is refused.
        let varies = engines.iter().any(|&engine| axis.is_of(engine));
        let values = if varies { grid.values(axis) } else { &default[..] };
        let texts = values.iter().filter(|value| **value != Value::Unset).map(|value| match value {
            Value::Count(count) => count.to_string(),
            other => quoted(other),
        });
        let texts: Vec<String> = texts.collect();
        if !texts.is_empty() {
            line(out, axis.key, list(texts));
        }
    }
}

/// A list of values; a single value is written without brackets.
pub(super) fn list(values: impl IntoIterator<Item = String>) -> String {
    match &values.into_iter().collect::<Vec<_>>()[..] {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
