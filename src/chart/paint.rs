//! From a scene to a file: the one place that knows plotters' backends.

use std::fs;
use std::path::Path;

use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Text as Label};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontDesc, FontFamily, FontStyle, RGBAColor, ShapeStyle, TextStyle};

use super::font;
use super::geometry::Position;
use super::indexed::Indexed;
use super::palette::Color;
use super::scene::{Anchor, Primitive, Scene, Text};
use crate::error::{Error, Kind, Result};
use crate::os::atomic;

/// Pixels of a PNG for each unit of the figure.
const PIXELS: u32 = 2;
/// A PNG is drawn this much larger and averaged, four pixels to one: plotters smooths text and slanted lines, but no thick shapes.
const OVERSAMPLING: u32 = 2;
/// plotters' coordinates are whole numbers: an SVG's are this much finer than a unit.
const SVG_FINENESS: u32 = 10;

/// What differs between the backends.
struct Medium {
    scale: f64,
    /// True where texts stay texts and lines stay lines. In a bitmap texts are set by us (see [`font`]), and a line with a
    /// width is drawn piece by piece, because plotters' outline of a whole one has spikes.
    vector: bool,
}

const BITMAP: Medium = Medium { scale: (PIXELS * OVERSAMPLING) as f64, vector: false };
const SVG: Medium = Medium { scale: SVG_FINENESS as f64, vector: true };

/// plotters-svg 0.3.7 writes the size divided by 1.24 as font-size, and puts `Top` 0.76 em above the baseline.
const SVG_SIZE_PER_EM: f64 = 1.24;
const SVG_TOP: f64 = 0.76;
const SVG_FAMILY: &str = "Noto Sans, Helvetica, Arial, sans-serif";

/// Writes `scene` to `path`, in the format of its extension. The file appears whole or not at all.
///
/// # Errors
/// [`Kind::Spec`] for another extension and [`Kind::Io`], both with the path.
pub fn write(scene: &Scene, path: &Path) -> Result<()> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let file = match extension.as_str() {
        "png" => png(scene),
        "svg" => svg(scene).map(String::into_bytes),
        "pdf" => Ok(super::pdf::bytes(scene)),
        _ => Err(Error::spec(format!("charts are not written as `.{extension}`")).hint("use `.png`, `.svg` or `.pdf`")),
    };
    let written = |file: Vec<u8>| atomic::replace(path, |part| fs::write(part, &file).map_err(|e| refused(&e)));
    file.and_then(written).map_err(|e| e.at(path.display().to_string()))
}

/// `scene` as PNG. Its `Description` contains the texts of the figure, for readers who cannot see it and for programs that compare it with its data.
fn png(scene: &Scene) -> Result<Vec<u8>> {
    let (width, height) = pixels(scene, PIXELS);
    let mut large = vec![255; (width * height * OVERSAMPLING * OVERSAMPLING * 3) as usize];
    let size = (width * OVERSAMPLING, height * OVERSAMPLING);
    paint(scene, BitMapBackend::with_buffer(&mut large, size), &BITMAP)?;
    let image = averaged(&large, width, height);
    let texts: Vec<&str> = scene.texts().map(|text| text.text.as_str()).collect();
    encoded(&image, (width, height), texts.join("\n")).map_err(|e| refused(&e))
}

/// `image`, three bytes for each pixel, as the contents of a PNG file.
fn encoded(image: &[u8], (width, height): (u32, u32), description: String) -> Result<Vec<u8>, ::png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut file, width, height);
    let Indexed { palette, pixels } = Indexed::of(image);
    encoder.set_color(::png::ColorType::Indexed);
    encoder.set_palette(palette);
    encoder.set_compression(::png::Compression::High);
    // Filters predict a value from its neighbours; places in a palette are no values, and take a fifth more with them.
    encoder.set_filter(::png::Filter::NoFilter);
    encoder.add_itxt_chunk("Description".to_owned(), description)?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(file)
}

/// `scene` as SVG; text stays text.
///
/// # Errors
/// [`Kind::Io`] where it cannot be drawn.
pub fn svg(scene: &Scene) -> Result<String> {
    let size = pixels(scene, SVG_FINENESS);
    let mut drawn = String::new();
    paint(scene, SVGBackend::with_string(&mut drawn, size), &SVG)?;
    let body = drawn.split_once('\n').map_or("", |(_, body)| body);
    let title = scene.title.replace('&', "&amp;").replace('<', "&lt;");
    let (width, height) = match scene.points {
        Some(points) => (format!("{points}pt"), format!("{:.2}pt", points * scene.height / scene.width)),
        None => (scene.width.to_string(), scene.height.to_string()),
    };
    Ok(format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\n\
         <title>{title}</title>\n{body}",
        size.0, size.1
    ))
}

fn pixels(scene: &Scene, per_unit: u32) -> (u32, u32) {
    (scene.width.ceil() as u32 * per_unit, scene.height.ceil() as u32 * per_unit)
}

fn refused(error: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::Io, format!("cannot draw the chart: {error}"))
        .hint("check that the folder exists, may be written to, and has space; or choose another with `--out DIR`")
}

/// Each pixel of the small image is the mean of its pixels in the large one.
fn averaged(large: &[u8], width: u32, height: u32) -> Vec<u8> {
    const { assert!(OVERSAMPLING == 2) };
    let (width, height) = (width as usize, height as usize);
    let mut small = vec![255; 3 * width * height];
    for (rows, row) in large.chunks_exact(12 * width).zip(small.chunks_exact_mut(3 * width)) {
        let (above, below) = rows.as_chunks::<6>().0.split_at(width);
        for ((above, below), pixel) in above.iter().zip(below).zip(row.as_chunks_mut::<3>().0) {
            // Most of a chart is white.
            if *above == [255; 6] && *below == [255; 6] {
                continue;
            }
            for (channel, value) in pixel.iter_mut().enumerate() {
                let pixels = [above[channel], above[channel + 3], below[channel], below[channel + 3]].map(u32::from);
                *value = ((pixels[0] + pixels[1] + pixels[2] + pixels[3]) / 4) as u8;
            }
        }
    }
    small
}

/// Draws the primitives on any backend.
fn paint<B: DrawingBackend>(scene: &Scene, backend: B, medium: &Medium) -> Result<()> {
    let area = backend.into_drawing_area();
    area.fill(&plotters::style::WHITE).map_err(|e| refused(&e))?;
    for primitive in &scene.primitives {
        draw(primitive, &area, medium)?;
    }
    area.present().map_err(|e| refused(&e))
}

fn draw<B: DrawingBackend>(primitive: &Primitive, area: &DrawingArea<B, Shift>, medium: &Medium) -> Result<()> {
    let at = |spot: &Position| ((spot.0 * medium.scale).round() as i32, (spot.1 * medium.scale).round() as i32);
    let px = |units: f64| (units * medium.scale).round().max(1.0) as u32;
    let stroke = |width: f64, color: Color| ShapeStyle { color: rgba(color), filled: false, stroke_width: px(width) };
    let filled = |color: Color| ShapeStyle { color: rgba(color), filled: true, stroke_width: 0 };
    let drawn = match primitive {
        Primitive::Line { points, width, color } if medium.vector || px(*width) == 1 => {
            area.draw(&PathElement::new(points.iter().map(at).collect::<Vec<_>>(), stroke(*width, *color)))
        }
        Primitive::Line { points, width, color } => return pieces(points, *width, *color, area, medium),
        Primitive::Polygon { points, color } => {
            area.draw(&Polygon::new(points.iter().map(at).collect::<Vec<_>>(), filled(*color)))
        }
        Primitive::Disc { center, radius, color } => area.draw(&Circle::new(at(center), px(*radius), filled(*color))),
        Primitive::Ring { center, radius, width, color } => {
            area.draw(&Circle::new(at(center), px(*radius), stroke(*width, *color)))
        }
        Primitive::Text(text) if medium.vector => area.draw(&label(text, medium)),
        Primitive::Text(text) => return glyphs(text, area, medium),
    };
    drawn.map_err(|e| refused(&e))
}

/// A polyline as one rectangle for each piece, with round joints.
fn pieces<B: DrawingBackend>(
    points: &[Position],
    width: f64,
    color: Color,
    area: &DrawingArea<B, Shift>,
    medium: &Medium,
) -> Result<()> {
    let half = width / 2.0;
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0);
        if length > 0.0 {
            let (nx, ny) = (-(y1 - y0) / length * half, (x1 - x0) / length * half);
            let corners = vec![(x0 + nx, y0 + ny), (x1 + nx, y1 + ny), (x1 - nx, y1 - ny), (x0 - nx, y0 - ny)];
            draw(&Primitive::Polygon { points: corners, color }, area, medium)?;
        }
    }
    let inner = points.get(1..points.len().saturating_sub(1)).unwrap_or_default();
    if half * medium.scale >= 2.0 {
        for &center in inner {
            draw(&Primitive::Disc { center, radius: half, color }, area, medium)?;
        }
    }
    Ok(())
}

/// A text, pixel by pixel.
fn glyphs<B: DrawingBackend>(text: &Text, area: &DrawingArea<B, Shift>, medium: &Medium) -> Result<()> {
    let start = (text.area().left * medium.scale, text.at.1 * medium.scale);
    for (at, share) in font::pixels(&text.text, text.font.size * medium.scale, text.font.bold, start) {
        area.draw_pixel(at, &rgba(text.font.color).mix(share)).map_err(|e| refused(&e))?;
    }
    Ok(())
}

/// A text as a text.
fn label(text: &Text, medium: &Medium) -> Label<'static, (i32, i32), String> {
    let em = text.font.size * medium.scale;
    let style = if text.font.bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = FontDesc::new(FontFamily::Name(SVG_FAMILY), em * SVG_SIZE_PER_EM, style);
    let side = match text.anchor {
        Anchor::Left => HPos::Left,
        Anchor::Center => HPos::Center,
        Anchor::Right => HPos::Right,
    };
    let mut look = TextStyle::from(font).pos(Pos::new(side, VPos::Top));
    look.color = rgba(text.font.color).to_backend_color();
    let top = text.at.1 * medium.scale - em * SVG_TOP;
    Label::new(text.text.clone(), ((text.at.0 * medium.scale).round() as i32, top.round() as i32), look)
}

fn rgba(color: Color) -> RGBAColor {
    RGBAColor(color.rgb.0, color.rgb.1, color.rgb.2, color.opacity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averaging_takes_the_mean_of_four() {
        // Two pixels wide, one high; red of the left one (255 + 255 + 0 + 0) / 4 = 127, all else 0 or 255.
        let row = |a: u8, b: u8| [a, 0, 0, a, 0, 0, b, b, b, b, b, b];
        let large: Vec<u8> = [row(255, 255), row(0, 255)].concat();
        assert_eq!(averaged(&large, 2, 1), [127, 0, 0, 255, 255, 255]);
    }
}
