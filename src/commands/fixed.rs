//! The algorithms of an earlier run.

use batchstep::engine::cudnn::fixed::FixedAlgorithms;
use batchstep::error::{Error, Result};
use batchstep::network::Direction;
use batchstep::spec::FixedFrom;
use batchstep::store::RunDirectory;

/// The algorithms of an earlier run's convolutions, at one of its batch sizes.
pub fn algorithms(from: &FixedFrom) -> Result<FixedAlgorithms> {
    let rows = RunDirectory::layers_of(&from.run)?;
    let rows: Vec<_> =
        rows.into_iter().filter(|row| row.engine == "cudnn" && row.operation.contains("conv2d")).collect();
    let wanted = from.batch_size.map(|size| size as i64).or_else(|| rows.iter().map(|row| row.batch_size).max());
    let mut fixed = FixedAlgorithms::default();
    for row in rows.iter().filter(|row| Some(row.batch_size) == wanted) {
        let direction = Direction::ALL.into_iter().find(|direction| direction.name() == row.direction);
        // A convolution is followed by kernels of our own, which have no choice: the first name is the library's.
        let library = row.algorithm.as_deref().and_then(|names| names.split(" + ").find(|name| is_of_a_library(name)));
        if let (Some(direction), Some(name)) = (direction, library) {
            fixed.insert(&row.model, &row.layer, direction, name);
        }
    }
    if fixed.is_empty() {
        let what = match from.batch_size {
            Some(size) => format!("no convolution of the engine `cudnn` at batch size {size}"),
            None => "no convolution of the engine `cudnn`".to_owned(),
        };
        return Err(Error::data(what).at(from.run.display().to_string()).hint("name a run on a GPU in `fixed_from`"));
    }
    Ok(fixed)
}

fn is_of_a_library(algorithm: &str) -> bool {
    algorithm.starts_with("graph:") || algorithm.starts_with("legacy:")
}
