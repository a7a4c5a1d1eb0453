//! The convolution algorithms of an earlier run, to use again.

use crate::engine::fixed::FixedAlgorithms;
use crate::error::{Error, Result};
use crate::network::Direction;
use crate::spec::FixedFrom;
use crate::store::{LayerRow, files, sealed};

/// The algorithms that the run named in `fixed_from` used, at one of its batch sizes.
///
/// # Errors
/// [`crate::error::Kind::Data`] where that run has no convolution of the engine `cudnn` at that batch size; as
/// [`sealed`] where its layers cannot be read.
pub fn fixed_algorithms(from: &FixedFrom) -> Result<FixedAlgorithms> {
    let fixed = from_layers(&sealed(&from.run.join(files::LAYERS))?, from.batch_size.map(|size| size as i64));
    if fixed.is_empty() {
        let what = match from.batch_size {
            Some(size) => format!("no convolution of the engine `cudnn` at batch size {size}"),
            None => "no convolution of the engine `cudnn`".to_owned(),
        };
        return Err(Error::data(what).at(from.run.display().to_string()).hint("name a run on a GPU in `fixed_from`"));
    }
    Ok(fixed)
}

/// The algorithms at `batch_size`; at the largest one where it is `None`.
fn from_layers(rows: &[LayerRow], batch_size: Option<i64>) -> FixedAlgorithms {
    let rows = rows.iter().filter(|row| row.engine == "cudnn" && row.operation.contains("conv2d"));
    let batch_size = batch_size.or_else(|| rows.clone().map(|row| row.batch_size).max());
    let mut fixed = FixedAlgorithms::default();
    for row in rows.filter(|row| Some(row.batch_size) == batch_size) {
        let direction = Direction::from_name(&row.direction);
        // The library's kernel comes first; kernels of our own may follow it, and they offer no choice.
        let is_of_a_library = |name: &&str| name.starts_with("graph:") || name.starts_with("legacy:");
        let library = row.algorithm.as_deref().and_then(|names| names.split(" + ").find(is_of_a_library));
        if let (Some(direction), Some(name)) = (direction, library) {
            fixed.insert(&row.model, &row.layer, direction, name);
        }
    }
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(batch_size: i64, algorithm: &str) -> LayerRow {
        LayerRow {
            engine: "cudnn".into(),
            model: "vgg16".into(),
            layer: "conv1".into(),
            operation: "conv2d".into(),
            direction: Direction::Forward.name().into(),
            batch_size,
            algorithm: Some(algorithm.into()),
            ..LayerRow::default()
        }
    }

    #[test]
    fn the_librarys_algorithm_at_the_batch_size_is_taken() {
        let rows = [
            row(16, "graph:eng28 + bias"),
            row(17, "legacy:1"),
            LayerRow { engine: "torch".into(), ..row(64, "graph:x") },
        ];
        let at = |batch_size| from_layers(&rows, batch_size).get("vgg16", "conv1", Direction::Forward).unwrap();
        assert_eq!((at(Some(16)), at(Some(17))), ("graph:eng28".to_string(), "legacy:1".to_string()));
        assert_eq!(at(None), "legacy:1", "the largest batch size of the engine cudnn");
        assert!(from_layers(&rows, Some(18)).is_empty());
        assert!(from_layers(&[row(16, "wave")], None).is_empty(), "a kernel of our own is no choice of the library");
    }
}
