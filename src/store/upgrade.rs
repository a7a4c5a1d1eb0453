//! What tables of earlier schema versions meant.

use polars::prelude::{Column, DataFrame};

use crate::error::{Error, Result};

/// The table as the present version would have written it. In version 1 the engine with kernels of our own was called
/// `candle`, as an engine of candle's own kernels is now, and the layers' column `device_time_s` was called `gpu_time_s`, also
/// where the processor was the device.
pub(super) fn upgrade(mut frame: DataFrame, version: u32) -> Result<DataFrame> {
    if version != 1 {
        return Ok(frame);
    }
    if frame.column("layer").is_ok() && frame.column("gpu_time_s").is_ok() {
        let rename = frame.rename("gpu_time_s", "device_time_s".into());
        rename.map_err(|e| Error::data(format!("the column `gpu_time_s` can't be used: {e}")))?;
    }
    if frame.column("engine").is_err() {
        return Ok(frame);
    }
    let wrap = |e: polars::prelude::PolarsError| Error::data(format!("the column `engine` can't be used: {e}"));
    let engines = frame.column("engine").map_err(wrap)?.str().map_err(wrap)?.clone();
    let renamed: Vec<Option<&str>> =
        engines.iter().map(|engine| if engine == Some("candle") { Some("cpu") } else { engine }).collect();
    frame.with_column(Column::new("engine".into(), renamed)).map_err(wrap)?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_version_1_have_their_times_under_the_present_name() {
        let column = |name: &str| Column::new(name.into(), vec![Some(0.5f64)]);
        let texts = |name: &str, text: &str| Column::new(name.into(), vec![text]);
        let frame = || DataFrame::new(1, vec![texts("layer", "fc"), texts("engine", "candle"), column("gpu_time_s")]);
        let earlier = upgrade(frame().expect("a frame"), 1).expect("upgraded");
        assert_eq!(earlier.column("device_time_s").expect("renamed").f64().expect("numbers").get(0), Some(0.5));
        assert_eq!(earlier.column("engine").expect("there").str().expect("texts").get(0), Some("cpu"));
        let present = upgrade(frame().expect("a frame"), 2).expect("as it is");
        assert_eq!(present.column("engine").expect("there").str().expect("texts").get(0), Some("candle"));
    }
}
