//! A scene as one page of PDF. Texts are outlines, so that a figure looks the same in every viewer and embeds no font.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, TextStr};

use super::font;
use super::geometry::Position;
use super::palette::Color;
use super::scene::{Primitive, Scene};

/// The control points of a quarter of a circle of radius 1 (Riškus 2006).
const QUARTER: f64 = 0.552_284_75;

/// `scene` as a file.
pub fn bytes(scene: &Scene) -> Vec<u8> {
    // Points of 1/72 inch for a unit, which without a width on paper is a pixel; of these an inch has 96.
    let points = scene.points.map_or(72.0 / 96.0, |points| points / scene.width);
    let (width, height) = ((scene.width * points) as f32, (scene.height * points) as f32);
    let mut drawing = Drawing { content: Content::new(), opacities: BTreeMap::new() };
    // From units downwards to points upwards.
    drawing.content.transform([points as f32, 0.0, 0.0, -points as f32, 0.0, height]);
    scene.primitives.iter().for_each(|primitive| drawing.draw(primitive));
    let Drawing { content, opacities } = drawing;

    let [catalog, pages, page, contents, information] = [1, 2, 3, 4, 5].map(Ref::new);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let state = |number: usize| Ref::new(6 + number as i32);
    let mut written = pdf.page(page);
    written.parent(pages).media_box(Rect::new(0.0, 0.0, width, height)).contents(contents);
    let mut resources = written.resources();
    let mut states = resources.ext_g_states();
    for number in opacities.values() {
        states.pair(Name(name(*number).as_bytes()), state(*number));
    }
    states.finish();
    resources.finish();
    written.finish();
    for (share, number) in &opacities {
        let share = f32::from(*share) / 255.0;
        pdf.ext_graphics(state(*number)).non_stroking_alpha(share).stroking_alpha(share);
    }
    pdf.stream(contents, &deflated(&content.finish())).filter(Filter::FlateDecode);
    pdf.document_info(information).title(TextStr(&scene.title)).creator(TextStr("batchstep"));
    pdf.finish()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

fn name(number: usize) -> String {
    format!("o{number}")
}

struct Drawing {
    content: Content,
    /// The number of the graphics state of each opacity, in 255ths.
    opacities: BTreeMap<u8, usize>,
}

impl Drawing {
    fn draw(&mut self, primitive: &Primitive) {
        match primitive {
            Primitive::Line { points, width, color } => {
                self.stroke_with(*width, *color);
                self.path(points);
                self.content.stroke();
            }
            Primitive::Polygon { points, color } => {
                self.fill_with(*color);
                self.path(points);
                self.content.close_path().fill_nonzero();
            }
            Primitive::Disc { center, radius, color } => {
                self.fill_with(*color);
                self.circle(*center, *radius);
                self.content.fill_nonzero();
            }
            Primitive::Ring { center, radius, width, color } => {
                self.stroke_with(*width, *color);
                self.circle(*center, *radius);
                self.content.close_and_stroke();
            }
            Primitive::Text(text) => {
                self.fill_with(text.font.color);
                let at = (text.area().left, text.at.1);
                for (start, curve) in font::outlines(&text.text, text.font.size, text.font.bold, at) {
                    if let Some([x, y]) = start.map(pair) {
                        self.content.move_to(x, y);
                    }
                    self.curve(curve);
                }
                self.content.fill_nonzero();
            }
        }
    }

    fn curve(&mut self, points: [Position; 3]) {
        let [[ax, ay], [bx, by], [cx, cy]] = points.map(pair);
        self.content.cubic_to(ax, ay, bx, by, cx, cy);
    }

    fn path(&mut self, points: &[Position]) {
        for (at, point) in points.iter().enumerate() {
            let [x, y] = pair(*point);
            if at == 0 {
                self.content.move_to(x, y)
            } else {
                self.content.line_to(x, y)
            };
        }
    }

    fn circle(&mut self, (x, y): Position, radius: f64) {
        let at = |(right, down): (f64, f64)| (x + radius * right, y + radius * down);
        let [start_x, start_y] = pair(at((1.0, 0.0)));
        self.content.move_to(start_x, start_y);
        for curve in [
            [(1.0, QUARTER), (QUARTER, 1.0), (0.0, 1.0)],
            [(-QUARTER, 1.0), (-1.0, QUARTER), (-1.0, 0.0)],
            [(-1.0, -QUARTER), (-QUARTER, -1.0), (0.0, -1.0)],
            [(QUARTER, -1.0), (1.0, -QUARTER), (1.0, 0.0)],
        ] {
            self.curve(curve.map(at));
        }
    }

    fn fill_with(&mut self, color: Color) {
        let [red, green, blue] = self.ink(color);
        self.content.set_fill_rgb(red, green, blue);
    }

    fn stroke_with(&mut self, width: f64, color: Color) {
        let [red, green, blue] = self.ink(color);
        self.content.set_stroke_rgb(red, green, blue).set_line_width(width as f32);
    }

    /// Takes over the opacity; gives the shares of red, green and blue.
    fn ink(&mut self, color: Color) -> [f32; 3] {
        let next = self.opacities.len();
        let number = *self.opacities.entry((255.0 * color.opacity).round() as u8).or_insert(next);
        self.content.set_parameters(Name(name(number).as_bytes()));
        let (red, green, blue) = color.rgb;
        [red, green, blue].map(|channel| f32::from(channel) / 255.0)
    }
}

fn pair((x, y): Position) -> [f32; 2] {
    [x as f32, y as f32]
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::palette::INK;
    use super::super::scene::{Anchor, Font};
    use super::*;

    #[test]
    fn a_page_has_the_size_in_points_and_what_was_drawn() {
        let mut scene = Scene::new(100.0, 50.0, "a title");
        scene.line(vec![(0.0, 0.0), (100.0, 50.0)], 2.0, INK);
        scene.disc((50.0, 25.0), 3.0, INK.tint(0.5));
        scene.text("16", (10.0, 40.0), Anchor::Left, Font::regular(10.0, INK));
        scene.points = Some(50.0);
        let file = bytes(&scene);
        let text = String::from_utf8_lossy(&file);
        assert!(
            text.starts_with("%PDF-") && text.contains("/MediaBox [0 0 50 25]") && text.contains("a title"),
            "{text}"
        );
        let begin = file.windows(7).position(|window| window == b"stream\n").expect("a stream") + 7;
        let mut drawn = String::new();
        flate2::read::ZlibDecoder::new(&file[begin..]).read_to_string(&mut drawn).expect("deflated");
        // Units grow downwards, points upwards; a disc is four curves, and "16" has more.
        assert!(drawn.starts_with("0.5 0 0 -0.5 0 25 cm"), "{drawn}");
        assert!(drawn.contains("0 0 m\n100 50 l\nS"), "{drawn}");
        assert!(drawn.matches(" c\n").count() > 10, "{drawn}");
    }
}
