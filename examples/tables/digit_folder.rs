//! Writes the drawn digits as a folder of PNG images, `train/<class>/<number>.png` and `test/...`, to train from files.
//!
//! ```text
//! cargo run --release --example tables -- digit_folder data/digits                 # 60,000 + 10,000 images, for mnist_folder.toml
//! cargo run --release --example tables -- digit_folder data/digits 1000 200 7      # 1000 + 200 images, seed 7
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::arguments;
use batchstep::data::digits::{CLASSES, TrainOrTest, draw};
use batchstep::network::Shape;
use rayon::prelude::*;

pub fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = arguments().collect();
    let folder = arguments.first().ok_or("name the folder")?;
    if Path::new(folder).exists() {
        return Err(format!("{folder} is there already: remove it, or name another folder").into());
    }
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>());
    let (train, test, seed) = (number(1, 60_000)?, number(2, 10_000)?, number(3, 1)? as u64);
    write(&Path::new(folder).join("train"), TrainOrTest::Train, train, seed)?;
    write(&Path::new(folder).join("test"), TrainOrTest::Test, test, seed)?;
    println!("{train} + {test} images in {folder}");
    Ok(())
}

fn write(folder: &Path, part: TrainOrTest, count: usize, seed: u64) -> Result<(), Box<dyn Error>> {
    for class in 0..CLASSES {
        fs::create_dir_all(folder.join(class.to_string()))?;
    }
    let Shape::Maps { width, height, .. } = batchstep::data::digits::SHAPE else { return Err("no maps".into()) };
    let digits = draw(seed, part, count);
    let images = digits.pixels.par_chunks(width * height).zip(&digits.labels).enumerate();
    images
        .try_for_each(|(index, (pixels, label))| {
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
            encoder.set_color(png::ColorType::Grayscale);
            encoder.write_header()?.write_image_data(pixels)?;
            fs::write(folder.join(format!("{label}/{index:05}.png")), bytes)?;
            Ok(())
        })
        .map_err(|error: Box<dyn Error + Send + Sync>| error.to_string().into())
}
