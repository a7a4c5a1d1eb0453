//! PNG and JPEG to bytes, channel by channel.

use std::fmt::Display;
use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::error::{Error, Result};
use crate::network::Shape;

/// The most pixels that one image may have; a damaged header can claim any number.
const MOST_PIXELS: usize = 1 << 28;

/// A decoded image: rows of pixels, with the channels of a pixel side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub width: usize,
    pub height: usize,
    /// 1: grey, 3: red, green, blue.
    pub channels: usize,
    pub bytes: Vec<u8>,
}

impl Image {
    /// Decodes a file's contents: PNG or JPEG, as their first bytes say. `name` is what a message calls the image.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`], with `name`.
    pub fn decode(contents: &[u8], name: impl Display) -> Result<Self> {
        let decoded = match contents {
            [0x89, b'P', b'N', b'G', ..] => png(contents),
            [0xff, 0xd8, ..] => jpeg(contents),
            [] => Err("the file is empty".to_owned()),
            _ => Err("neither PNG nor JPEG".to_owned()),
        };
        decoded.map_err(|what| {
            Error::data(format!("the image cannot be read: {what}"))
                .at(name.to_string())
                .hint("replace the image, or leave out what is damaged with `on_error = \"skip\"` in [loader]")
        })
    }

    /// The shape of the first image that can be decoded, among at most 100: damaged images may be left out, and the first may be damaged.
    ///
    /// # Errors
    /// The error of the first image, if none can be decoded.
    pub fn first_shape(images: impl Iterator<Item = Result<Self>>) -> Result<Shape> {
        let mut refused = Error::data("there are no images");
        for (at, image) in images.take(100).enumerate() {
            match image {
                Ok(image) => return Ok(image.shape()),
                Err(error) if at == 0 => refused = error,
                Err(_) => {}
            }
        }
        Err(refused)
    }

    /// The shape as a network's input.
    pub fn shape(&self) -> Shape {
        Shape::Maps { channels: self.channels, height: self.height, width: self.width }
    }

    /// Writes C x H x W bytes. A grey image fills all channels; a coloured one becomes grey with the weights of ITU-R BT.601.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`], with `name`, where the size is not that of `shape`.
    pub fn write(&self, shape: Shape, to: &mut [u8], name: impl Display) -> Result<()> {
        let Shape::Maps { channels, height, width } = shape else {
            return Err(Error::data("images need a network whose input is maps"));
        };
        if (self.width, self.height) != (width, height) {
            let what = format!("the image is {}x{}, and the others are {width}x{height}", self.width, self.height);
            return Err(Error::data(what)
                .at(name.to_string())
                .hint("scale the images to one size beforehand; batchstep does not resize"));
        }
        let plane = width * height;
        for (channel, to) in to.chunks_exact_mut(plane).enumerate().take(channels) {
            let pixels = self.bytes.chunks_exact(self.channels);
            match (self.channels, channels) {
                (3, 1) => to.iter_mut().zip(pixels).for_each(|(to, pixel)| *to = grey(pixel)),
                (1, _) => to.copy_from_slice(&self.bytes[..plane]),
                _ => to.iter_mut().zip(pixels).for_each(|(to, pixel)| *to = pixel[channel]),
            }
        }
        Ok(())
    }
}

fn grey(pixel: &[u8]) -> u8 {
    let weighted = 299 * u32::from(pixel[0]) + 587 * u32::from(pixel[1]) + 114 * u32::from(pixel[2]);
    ((weighted + 500) / 1000) as u8
}

fn png(contents: &[u8]) -> Result<Image, String> {
    let mut decoder = png::Decoder::new(Cursor::new(contents));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let size =
        reader.output_buffer_size().filter(|size| *size <= 4 * MOST_PIXELS).ok_or("it claims too many pixels")?;
    let mut bytes = vec![0; size];
    let frame = reader.next_frame(&mut bytes).map_err(|error| error.to_string())?;
    bytes.truncate(frame.buffer_size());
    let (stored, channels) = match frame.color_type {
        png::ColorType::Grayscale => (1, 1),
        png::ColorType::GrayscaleAlpha => (2, 1),
        png::ColorType::Rgba => (4, 3),
        _ => (3, 3),
    };
    if stored != channels {
        // The opacity is left out.
        bytes = bytes.chunks_exact(stored).flat_map(|pixel| &pixel[..channels]).copied().collect();
    }
    Ok(Image { width: frame.width as usize, height: frame.height as usize, channels, bytes })
}

fn jpeg(contents: &[u8]) -> Result<Image, String> {
    let mut decoder = JpegDecoder::new(ZCursor::new(contents));
    decoder.decode_headers().map_err(|error| error.to_string())?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let (channels, space) = if grey { (1, ColorSpace::Luma) } else { (3, ColorSpace::RGB) };
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    if width.saturating_mul(height) > MOST_PIXELS {
        return Err("it claims too many pixels".to_owned());
    }
    let options = DecoderOptions::default().jpeg_set_out_colorspace(space).set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(contents), options);
    let bytes = decoder.decode().map_err(|error| error.to_string())?;
    Ok(Image { width, height, channels, bytes })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A PNG of a test's own, by the crate that reads it.
    pub fn encoded(width: u32, height: u32, color: png::ColorType, bytes: &[u8]) -> Vec<u8> {
        let mut contents = Vec::new();
        let mut encoder = png::Encoder::new(&mut contents, width, height);
        encoder.set_color(color);
        encoder.write_header().expect("a header").write_image_data(bytes).expect("written");
        contents
    }

    #[test]
    fn a_png_becomes_planes_and_grey_by_the_weights_of_bt_601() {
        let contents = encoded(2, 1, png::ColorType::Rgba, &[255, 0, 0, 9, 10, 20, 30, 200]);
        let image = Image::decode(&contents, "a.png").expect("decoded");
        let mut planes = [0; 6];
        image.write(Shape::Maps { channels: 3, height: 1, width: 2 }, &mut planes, "a.png").expect("written");
        assert_eq!(planes, [255, 10, 0, 20, 0, 30]);
        let mut plane = [0; 2];
        image.write(Shape::Maps { channels: 1, height: 1, width: 2 }, &mut plane, "a.png").expect("written");
        // By hand: 0.299 * 255 = 76.2; 0.299 * 10 + 0.587 * 20 + 0.114 * 30 = 18.15.
        assert_eq!(plane, [76, 18]);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_file() {
        let contents = encoded(2, 2, png::ColorType::Grayscale, &[1, 2, 3, 4]);
        let path = "train/cat/7.png";
        let say = |contents: &[u8]| Image::decode(contents, path).expect_err("refused").to_string();
        assert!(say(&contents[..contents.len() - 20]).starts_with("train/cat/7.png: the image cannot be read"));
        assert!(say(b"GIF89a").contains("neither PNG nor JPEG") && say(b"").contains("empty"));
        assert!(say(&[0xff, 0xd8, 0xff]).contains("the image cannot be read"));
        let image = Image::decode(&contents, path).expect("decoded");
        let other = Shape::Maps { channels: 1, height: 3, width: 2 };
        let error = image.write(other, &mut [0; 6], path).expect_err("refused").to_string();
        assert!(error.contains("the image is 2x2, and the others are 2x3"), "{error}");
    }

    /// The files and Pillow's pixels are made by tests/fixtures/images/make.py. PNG is exact. Of JPEG the standard leaves open how
    /// the transform is rounded, and how colour of half the resolution is enlarged: libjpeg-turbo, which Pillow uses, and zune-jpeg differ by
    /// a few levels.
    #[test]
    fn images_decode_to_the_pixels_of_pillow() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/images");
        let text = std::fs::read_to_string(folder.join("pixels.json")).expect("the pixels");
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let size = |name: &str| document[name].as_u64().expect("a number") as usize;
        let (width, height) = (size("width"), size("height"));
        let images = document["images"].as_object().expect("images");
        assert_eq!(images.len(), 9);
        for (name, pixels) in images {
            let digits = pixels.as_str().expect("digits").as_bytes().chunks_exact(2);
            let digits = digits.map(|pair| std::str::from_utf8(pair).expect("digits"));
            let expected: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect();
            let image = Image::decode(&std::fs::read(folder.join(name)).expect("a file"), name).expect("decoded");
            let channels = expected.len() / (width * height);
            assert_eq!((image.width, image.height, image.channels), (width, height, channels), "{name}");
            let mut planes = vec![0; expected.len()];
            image.write(Shape::Maps { channels, height, width }, &mut planes, name).expect("written");
            let apart = planes.iter().zip(&expected).map(|(own, theirs)| own.abs_diff(*theirs)).max();
            let allowed = match name.as_str() {
                "420.jpg" => 6,
                jpeg if jpeg.ends_with(".jpg") => 2,
                _ => 0,
            };
            assert!(apart <= Some(allowed), "{name}: {apart:?} levels apart");
        }
    }
}
