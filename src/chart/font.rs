//! The font: Noto Sans, compiled in, so that a figure looks the same on a machine without any font.
//!
//! Text is set here with ab_glyph, which plotters uses too, because plotters 0.3.7 drops each glyph's left side bearing:
//! its letters stand unevenly ("most1" for "most 1"), and its widths would not be those of any viewer of the SVG.

use std::sync::{LazyLock, OnceLock};

use ab_glyph::{Font, FontRef, Glyph, OutlineCurve, Point, PxScale, point};
use regex::Regex;

use super::geometry::Position;

/// Heights of Noto Sans in em, from its OS/2 table: capitals 714 of 1000 units; and how far letters go below the line.
pub const CAP_HEIGHT: f64 = 0.714;
pub const DESCENT: f64 = 0.24;

fn face(bold: bool) -> &'static FontRef<'static> {
    static FACES: [OnceLock<FontRef<'static>>; 2] = [const { OnceLock::new() }; 2];
    let bytes = if bold { notosans::BOLD_TTF } else { notosans::REGULAR_TTF };
    FACES[usize::from(bold)].get_or_init(|| FontRef::try_from_slice(bytes).expect("the compiled-in font is a font"))
}

/// The glyphs of `text` from `start` on its baseline, and the x where it ends; `size` is the em.
fn set(text: &str, size: f64, bold: bool, start: Position) -> (Vec<Glyph>, f64) {
    let font = face(bold);
    let em = font.units_per_em().unwrap_or(1000.0);
    let factor = size / f64::from(em);
    let scale = PxScale::from((factor * f64::from(font.height_unscaled())) as f32);
    let (mut x, mut last) = (start.0, None);
    let mut glyphs = Vec::with_capacity(text.len());
    for id in text.chars().map(|c| font.glyph_id(c)) {
        x += last.map_or(0.0, |before| factor * f64::from(font.kern_unscaled(before, id)));
        glyphs.push(id.with_scale_and_position(scale, point(x as f32, start.1 as f32)));
        x += factor * f64::from(font.h_advance_unscaled(id));
        last = Some(id);
    }
    (glyphs, x)
}

/// The width of `text` in the unit of `size`, the em.
pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    set(text, size, bold, (0.0, 0.0)).1
}

/// The pixels of `text`, written from `start` on its baseline, each with the share of it that is covered.
pub fn pixels(text: &str, size: f64, bold: bool, start: Position) -> Vec<((i32, i32), f64)> {
    let mut covered = Vec::new();
    let (glyphs, _) = set(text, size, bold, start);
    for outline in glyphs.into_iter().filter_map(|glyph| face(bold).outline_glyph(glyph)) {
        let corner = outline.px_bounds().min;
        let (left, top) = (corner.x as i32, corner.y as i32);
        outline.draw(|x, y, share| {
            if share > 0.0 {
                covered.push(((left + x as i32, top + y as i32), f64::from(share.min(1.0))));
            }
        });
    }
    covered
}

/// The outlines of `text`, written from `start` on its baseline, as cubic Bézier curves: two control points and the end, and where a new contour
/// begins, also the start.
pub fn outlines(text: &str, size: f64, bold: bool, start: Position) -> Vec<(Option<Position>, [Position; 3])> {
    let font = face(bold);
    let factor = size / f64::from(font.units_per_em().unwrap_or(1000.0));
    let mut strokes = Vec::new();
    for glyph in set(text, size, bold, start).0 {
        let Some(outline) = font.outline(glyph.id) else { continue };
        let origin = glyph.position;
        let place = |at: Point| -> Position {
            (f64::from(origin.x) + factor * f64::from(at.x), f64::from(origin.y) - factor * f64::from(at.y))
        };
        let mut end = None;
        for curve in &outline.curves {
            let (from, control) = match *curve {
                OutlineCurve::Line(a, b) => (a, [a, b, b]),
                // A quadratic curve as a cubic one: two thirds of the way to its control point.
                OutlineCurve::Quad(a, b, c) => {
                    let toward =
                        |end: Point| point(end.x + (b.x - end.x) * 2.0 / 3.0, end.y + (b.y - end.y) * 2.0 / 3.0);
                    (a, [toward(a), toward(c), c])
                }
                OutlineCurve::Cubic(a, b, c, d) => (a, [b, c, d]),
            };
            strokes.push(((end != Some(from)).then(|| place(from)), control.map(place)));
            end = Some(control[2]);
        }
    }
    strokes
}

/// `text` broken into lines no wider than `limit`: at spaces, and a word that is wider by itself behind a `_`, `-` or `/`, or where it must be.
pub fn wrap(text: &str, (size, bold): (f64, bool), limit: f64) -> Vec<String> {
    let fits = |text: &str| width(text, size, bold) <= limit;
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if fits(&longer) {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        let mut rest = word;
        while !fits(rest) {
            let (part, other) = rest.split_at(end_of_part(rest, fits));
            if other.is_empty() {
                break;
            }
            lines.push(part.to_owned());
            rest = other;
        }
        rest.clone_into(&mut line);
    }
    lines.push(line);
    lines
}

/// Where the first line of a `word` that is too wide ends: at least one letter is on it.
fn end_of_part(word: &str, fits: impl Fn(&str) -> bool) -> usize {
    let mut ends = word.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let first = ends.next().unwrap_or(word.len());
    let most = ends.take_while(|&end| fits(&word[..end])).last().unwrap_or(first);
    // Not so early that most of the line is empty.
    word[..most].rfind(['_', '-', '/']).map(|at| at + 1).filter(|end| 2 * end > most).unwrap_or(most)
}

/// ASCII as [`crate::units::human`] writes it, to print: a minus before a number, a micro before its unit. A name such as `us-east-1` stays what
/// it is: microseconds are behind a number, or alone in brackets.
pub fn typeset(text: &str) -> String {
    static RULES: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
        let rule = |pattern, with| (Regex::new(pattern).expect("a pattern"), with);
        let ends = r"(?<end>$|[ )\];,:/]|\.$|\. )";
        [
            rule(r"(?<before>^|[ (])-(?<digit>[0-9])", "${before}\u{2212}${digit}"),
            rule(r"\(us\)", "(\u{b5}s)"),
            rule(&format!("(?<digit>[0-9] )us{ends}"), "${digit}\u{b5}s${end}"),
        ]
    });
    RULES.iter().fold(text.to_owned(), |text, (rule, with)| rule.replace_all(&text, *with).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_a_width() {
        // Noto Sans' digits are 0.572 em wide, in bold too.
        assert!((width("0123456789", 10.0, false) - 57.2).abs() < 0.1);
        assert!((width("0123456789", 10.0, true) - 57.2).abs() < 0.1);
        assert!(width("WWW", 10.0, true) > width("WWW", 10.0, false));
        assert_eq!(width("", 10.0, false), 0.0);
    }

    #[test]
    fn text_stands_on_its_baseline() {
        // A capital reaches from the baseline, y = 100, 71.4 up.
        let rows: Vec<i32> = pixels("H", 100.0, false, (10.0, 100.0)).iter().map(|(at, _)| at.1).collect();
        assert_eq!((rows.iter().min(), rows.iter().max()), (Some(&28), Some(&99)));
        // Its stem begins 9.8 right of where it was put: the side bearing of Noto Sans' H, 98 units.
        let columns = pixels("H", 100.0, false, (10.0, 100.0)).iter().map(|(at, _)| at.0).min();
        assert_eq!(columns, Some(19));
    }

    #[test]
    fn wrapped_lines_keep_every_word_within_the_limit() {
        let text = "NVIDIA H200 and a rather long line about how it was measured";
        let lines = wrap(text, (10.0, false), 120.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 10.0, false) <= 120.0), "{lines:?}");
        assert_eq!(lines.join(" "), text);
        // A name without spaces is broken behind its marks or anywhere.
        // Noto Sans' digits are 0.572 em wide, its hyphen 0.322: six digits and a hyphen are 37.54 wide.
        assert_eq!(wrap("123456-123456-12", (10.0, false), 40.0), ["123456-", "123456-", "12"]);
        assert_eq!(wrap("a 12345678901", (10.0, false), 40.0), ["a", "123456", "78901"]);
        assert_eq!(wrap("-1234567", (10.0, false), 40.0), ["-123456", "7"], "no line of a mark alone");
        assert_eq!(wrap("12", (10.0, false), 1.0), ["1", "2"]);
        assert_eq!(wrap("", (10.0, false), 1.0), [""]);
    }

    #[test]
    fn numbers_get_their_minus_and_micro() {
        assert_eq!(typeset("after 16: -12.1 us (-8.3 %)"), "after 16: \u{2212}12.1 \u{b5}s (\u{2212}8.3 %)");
        assert_eq!(typeset("batchstep plot --out a-1 status"), "batchstep plot --out a-1 status");
        assert_eq!(typeset("Step time (us)"), "Step time (\u{b5}s)");
        assert_eq!(typeset("1 to 2 us; 3 us, 4 us."), "1 to 2 \u{b5}s; 3 \u{b5}s, 4 \u{b5}s.");
        for name in
            ["us-east-1", "region us-east-1, (us-west)", "us.csv", "batchstep plot us.csv", "2 us-east", "2 us.csv"]
        {
            assert_eq!(typeset(name), name);
        }
    }
}
