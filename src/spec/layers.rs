//! `[[model.layers]]`: a network of the spec's own. The keys are documented at [`crate::network::custom`].

use std::fmt::Write;

use super::decode::MAX_EXTENT;
use super::encode::{line, quoted};
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
    const KERNEL: &str = "kernel = 3, or kernel = [3, 3]";
    let extent = |field: &Field| field.count(1, MAX_EXTENT);
    let share = |field: &Field| field.number(0.0, 1.0);
    let bias = |section: &mut Section| given(section, "bias", true, |field| field.boolean());
    Ok(match kind {
        "conv2d" => OperationSpec::Conv2d {
            out_channels: needed(section, "out_channels", "out_channels = 64", extent)?,
            kernel: needed(section, "kernel", KERNEL, sides)?,
            stride: given(section, "stride", Extent::square(1), sides)?,
            padding: given(section, "padding", PaddingSpec::Valid, padding)?,
            groups: given(section, "groups", 1, extent)?,
            bias: bias(section)?,
        },
        "depthwise_conv2d" => OperationSpec::DepthwiseConv2d {
            kernel: needed(section, "kernel", KERNEL, sides)?,
            stride: given(section, "stride", Extent::square(1), sides)?,
            padding: given(section, "padding", PaddingSpec::Valid, padding)?,
            bias: bias(section)?,
        },
        "batch_norm" => OperationSpec::BatchNorm(BatchNorm {
            epsilon: given(section, "epsilon", 1e-5, share)?,
            momentum: given(section, "momentum", 0.9, share)?,
        }),
        "relu" => OperationSpec::Relu,
        "relu6" => OperationSpec::Relu6,
        "max_pool2d" => OperationSpec::MaxPool2d {
            kernel: needed(section, "kernel", KERNEL, sides)?,
            stride: given(section, "stride", None, |field| sides(field).map(Some))?,
            padding: given(section, "padding", PaddingSpec::Valid, padding)?,
        },
        "global_average_pool" => OperationSpec::GlobalAveragePool,
        "flatten" => OperationSpec::Flatten,
        "dense" => OperationSpec::Dense(Dense {
            out_features: needed(section, "out_features", "out_features = 64", extent)?,
            bias: bias(section)?,
        }),
        "dropout" => {
            let rate = needed(section, "rate", "rate = 0.5", |field| field.number(0.0, 0.999_999))?;
            OperationSpec::Dropout { rate }
        }
        _ => OperationSpec::Add,
    })
}

fn needed<T>(section: &mut Section, key: &'static str, example: &str, read: impl Fn(&Field) -> Result<T>) -> Result<T> {
    match section.get(key) {
        Some(field) => read(&field),
        None => Err(section.error(format!("the key `{key}` is missing")).hint(format!("add: {example}"))),
    }
}

fn given<T>(section: &mut Section, key: &'static str, usual: T, read: impl Fn(&Field) -> Result<T>) -> Result<T> {
    section.get(key).map_or(Ok(usual), |field| read(&field))
}

/// One number for both, or `[height, width]`.
fn sides(field: &Field) -> Result<Extent> {
    let extents = field.elements()?.iter().map(|f| f.count(1, 4096)).collect::<Result<Vec<_>>>()?;
    match extents[..] {
        [both] => Ok(Extent::square(both)),
        [height, width] => Ok(Extent { height, width }),
        _ => Err(field.error("expected one number, or [height, width]")),
    }
}

fn padding(field: &Field) -> Result<PaddingSpec> {
    if !field.is_text() {
        return field.count(0, 4096).map(PaddingSpec::Each);
    }
    field.choice(&["valid", "same"], |name| match name {
        "valid" => Some(PaddingSpec::Valid),
        "same" => Some(PaddingSpec::Same),
        _ => None,
    })
}

pub(super) fn write(out: &mut String, layers: &[LayerSpec]) {
    for layer in layers {
        let kind = layer.operation.type_name();
        let _ = write!(out, "\n[[model.layers]]\ntype = {kind:?}\n");
        if let Some(name) = &layer.name {
            line(out, "name", format!("{name:?}"));
        }
        if !layer.from.is_empty() {
            line(out, "from", format!("{:?}", layer.from));
        }
        let keys = OperationSpec::TYPES.iter().filter(|(name, _)| *name == kind).flat_map(|(_, keys)| *keys);
        for (key, text) in keys.filter_map(|key| Some((key, value(&layer.operation, key)?))) {
            line(out, key, text);
        }
    }
}

/// The value of a key; `None` where the operation has none.
fn value(operation: &OperationSpec, key: &str) -> Option<String> {
    use OperationSpec::{BatchNorm as Norm, Conv2d, Dense as Full, DepthwiseConv2d, Dropout, MaxPool2d};
    let both = |Extent { height, width }: Extent| format!("[{height}, {width}]");
    Some(match (key, *operation) {
        ("out_channels", Conv2d { out_channels, .. }) => out_channels.to_string(),
        ("kernel", Conv2d { kernel, .. } | DepthwiseConv2d { kernel, .. } | MaxPool2d { kernel, .. }) => both(kernel),
        ("stride", Conv2d { stride, .. } | DepthwiseConv2d { stride, .. } | MaxPool2d { stride: Some(stride), .. }) => {
            both(stride)
        }
        ("padding", Conv2d { padding, .. } | DepthwiseConv2d { padding, .. } | MaxPool2d { padding, .. }) => {
            match padding {
                PaddingSpec::Valid => quoted("valid"),
                PaddingSpec::Same => quoted("same"),
                PaddingSpec::Each(n) => n.to_string(),
            }
        }
        ("groups", Conv2d { groups, .. }) => groups.to_string(),
        ("bias", Conv2d { bias, .. } | DepthwiseConv2d { bias, .. } | Full(Dense { bias, .. })) => bias.to_string(),
        ("epsilon", Norm(BatchNorm { epsilon, .. })) => format!("{epsilon:?}"),
        ("momentum", Norm(BatchNorm { momentum, .. })) => format!("{momentum:?}"),
        ("out_features", Full(Dense { out_features, .. })) => out_features.to_string(),
        ("rate", Dropout { rate }) => format!("{rate:?}"),
        _ => return None,
    })
}
