//! The fast GPU engine.

pub mod call;
pub mod cuda;
pub mod driver;
pub mod element;
#[cfg(test)]
pub mod emulated;
pub mod libraries;
pub mod maps;
pub mod op;
pub mod python;
pub mod source;

use crate::error::Result;
use libraries::Libraries;

/// Says whether the GPU engine can run here, and leaves everything it needs loaded: the driver with a GPU, then cuBLASLt,
/// cuBLAS, NVRTC and cuDNN. Nothing of cudarc may be called before, since it panics where a library is missing.
///
/// # Errors
/// [`crate::error::Kind::Device`] with one sentence: what is missing, and the command that brings it.
pub fn available() -> Result<&'static Libraries> {
    driver::devices()?;
    let libraries = libraries::load();
    libraries.complete()?;
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn the_answer_is_everything_or_one_reason_with_a_remedy() {
        match available() {
            Ok(libraries) => assert!(libraries.found().iter().all(|found| found.problem.is_none())),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Device);
                assert!(error.to_string().contains("help: "), "{error}");
            }
        }
    }
}
