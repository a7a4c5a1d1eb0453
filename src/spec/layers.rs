//! `[[model.layers]]`: a network of the spec's own. The keys are documented at [`crate::network::custom`].

use std::fmt::Write;

use super::decode::MAX_EXTENT;
use super::encode::line;
use super::section::{Field, Section};
use crate::error::Result;
use crate::network::custom::{LayerSpec, OperationSpec, PaddingSpec};
use crate::network::{BatchNorm, Dense, Extent};

pub(super) fn read(field: &Field) -> Result<Vec<LayerSpec>> {
    if !field.is_list() {
        return Err(field.error("layers are written as [[model.layers]] tables, one for each"));
    }
    let elements = field.elements()?;
    if elements.len() > MOST_LAYERS {
        return Err(
            field.error(format!("a network has at most {MOST_LAYERS} layers, and these are {}", elements.len()))
        );
    }
    elements.iter().map(|element| layer(element.section()?)).collect()
}

/// The deepest networks that people train have some thousand.
const MOST_LAYERS: usize = 10_000;

fn layer(mut section: Section) -> Result<LayerSpec> {
    let types: Vec<&str> = OperationSpec::TYPES.iter().map(|(name, _)| *name).collect();
    let [kind, name, from] = ["type", "name", "from"].map(|key| section.get(key));
    let of = |name: &str| types.iter().find(|known| **known == name).copied();
    let kind = kind.map(|field| field.choice(&types, of)).transpose()?;
    // A misspelt key is refused before the needed one that it leaves missing.
    let tables = OperationSpec::TYPES.iter().filter(|(name, _)| kind.is_none_or(|kind| kind == *name));
    for key in tables.flat_map(|(_, keys)| keys.iter().copied()) {
        section.get(key);
    }
    let operation = match kind {
        Some(kind) => operation(kind, &mut section),
        None => Err(section.error("the key `type` is missing").hint(format!("one of: {}", types.join(", ")))),
    };
    section.finish()?;
    let name = name.map(|field| field.text()).transpose()?;
    let from = match from {
        Some(field) => field.elements()?.iter().map(Field::text).collect::<Result<_>>()?,
        None => Vec::new(),
    };
    Ok(LayerSpec { name, from, operation: operation? })
}

fn operation(kind: &str, section: &mut Section) -> Result<OperationSpec> {
    Ok(match kind {
        "conv2d" => OperationSpec::Conv2d {
            out_channels: extent(section, "out_channels")?,
            kernel: needed_sides(section, "kernel")?,
            stride: sides(section, "stride")?.unwrap_or(Extent::square(1)),
            padding: padding(section)?,
            groups: section.get("groups").map_or(Ok(1), |field| field.count(1, MAX_EXTENT))?,
            bias: bias(section)?,
        },
        "depthwise_conv2d" => OperationSpec::DepthwiseConv2d {
            kernel: needed_sides(section, "kernel")?,
            stride: sides(section, "stride")?.unwrap_or(Extent::square(1)),
            padding: padding(section)?,
            bias: bias(section)?,
        },
        "batch_norm" => OperationSpec::BatchNorm(BatchNorm {
            epsilon: section.get("epsilon").map_or(Ok(1e-5), |field| field.number(0.0, 1.0))?,
            momentum: section.get("momentum").map_or(Ok(0.9), |field| field.number(0.0, 1.0))?,
        }),
        "relu" => OperationSpec::Relu,
        "relu6" => OperationSpec::Relu6,
        "max_pool2d" => OperationSpec::MaxPool2d {
            kernel: needed_sides(section, "kernel")?,
            stride: sides(section, "stride")?,
            padding: padding(section)?,
        },
        "global_average_pool" => OperationSpec::GlobalAveragePool,
        "flatten" => OperationSpec::Flatten,
        "dense" => {
            let out_features = extent(section, "out_features")?;
            OperationSpec::Dense(Dense { out_features, bias: bias(section)? })
        }
        "dropout" => match section.get("rate") {
            Some(field) => OperationSpec::Dropout { rate: field.number(0.0, 0.999_999)? },
            None => return Err(section.error("the key `rate` is missing").hint("add: rate = 0.5")),
        },
        _ => OperationSpec::Add,
    })
}

fn extent(section: &mut Section, key: &'static str) -> Result<usize> {
    match section.get(key) {
        Some(field) => field.count(1, MAX_EXTENT),
        None => Err(section.error(format!("the key `{key}` is missing")).hint(format!("add: {key} = 64"))),
    }
}

fn bias(section: &mut Section) -> Result<bool> {
    section.get("bias").map_or(Ok(true), |field| field.boolean())
}

fn needed_sides(section: &mut Section, key: &'static str) -> Result<Extent> {
    let error = section.error(format!("the key `{key}` is missing"));
    sides(section, key)?.ok_or_else(|| error.hint(format!("add: {key} = 3, or {key} = [3, 3]")))
}

/// One number for both, or `[height, width]`.
fn sides(section: &mut Section, key: &'static str) -> Result<Option<Extent>> {
    let Some(field) = section.get(key) else { return Ok(None) };
    let extents = field.elements()?.iter().map(|f| f.count(1, 4096)).collect::<Result<Vec<_>>>()?;
    match extents[..] {
        [both] => Ok(Some(Extent::square(both))),
        [height, width] => Ok(Some(Extent { height, width })),
        _ => Err(field.error("expected one number, or [height, width]")),
    }
}

fn padding(section: &mut Section) -> Result<PaddingSpec> {
    match section.get("padding") {
        None => Ok(PaddingSpec::Valid),
        Some(field) if field.is_text() => field.choice(&["valid", "same"], |name| match name {
            "valid" => Some(PaddingSpec::Valid),
            "same" => Some(PaddingSpec::Same),
            _ => None,
        }),
        Some(field) => Ok(PaddingSpec::Each(field.count(0, 4096)?)),
    }
}

pub(super) fn write(out: &mut String, layers: &[LayerSpec]) {
    for layer in layers {
        let _ = write!(out, "\n[[model.layers]]\ntype = {:?}\n", layer.operation.type_name());
        if let Some(name) = &layer.name {
            line(out, "name", format!("{name:?}"));
        }
        if !layer.from.is_empty() {
            line(out, "from", format!("{:?}", layer.from));
        }
        write_keys(out, &layer.operation);
    }
}

fn write_keys(out: &mut String, operation: &OperationSpec) {
    let both = |Extent { height, width }: Extent| format!("[{height}, {width}]");
    match *operation {
        OperationSpec::Conv2d { out_channels, kernel, stride, padding, groups, bias } => {
            line(out, "out_channels", out_channels);
            line(out, "kernel", both(kernel));
            line(out, "stride", both(stride));
            line(out, "padding", padding_text(padding));
            line(out, "groups", groups);
            line(out, "bias", bias);
        }
        OperationSpec::DepthwiseConv2d { kernel, stride, padding, bias } => {
            line(out, "kernel", both(kernel));
            line(out, "stride", both(stride));
            line(out, "padding", padding_text(padding));
            line(out, "bias", bias);
        }
        OperationSpec::BatchNorm(BatchNorm { epsilon, momentum }) => {
            line(out, "epsilon", format!("{epsilon:?}"));
            line(out, "momentum", format!("{momentum:?}"));
        }
        OperationSpec::MaxPool2d { kernel, stride, padding } => {
            line(out, "kernel", both(kernel));
            if let Some(stride) = stride {
                line(out, "stride", both(stride));
            }
            line(out, "padding", padding_text(padding));
        }
        OperationSpec::Dense(Dense { out_features, bias }) => {
            line(out, "out_features", out_features);
            line(out, "bias", bias);
        }
        OperationSpec::Dropout { rate } => line(out, "rate", format!("{rate:?}")),
        OperationSpec::Relu
        | OperationSpec::Relu6
        | OperationSpec::GlobalAveragePool
        | OperationSpec::Flatten
        | OperationSpec::Add => {}
    }
}

fn padding_text(padding: PaddingSpec) -> String {
    match padding {
        PaddingSpec::Valid => "\"valid\"".to_string(),
        PaddingSpec::Same => "\"same\"".to_string(),
        PaddingSpec::Each(n) => n.to_string(),
    }
}
