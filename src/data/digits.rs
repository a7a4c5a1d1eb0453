//! Handwriting-like digits that are drawn here, so that a training needs no download: strokes of ten skeletons, bent, turned,
//! sheared, scaled and moved, in pens of various widths, on a noisy ground.
//!
//! Image `n` of a part depends only on the seed, not on the number of images.

use rayon::prelude::*;

use super::Labelled;
use crate::network::Shape;
use crate::random::{Purpose, Rng, Stream};

/// Pixels of a side.
const SIDE: usize = 28;
pub const CLASSES: usize = 10;
pub const SHAPE: Shape = Shape::Maps { channels: 1, height: SIDE, width: SIDE };

/// The training images, or those that test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainOrTest {
    Train = 0,
    Test = 1,
}

/// Draws the first `count` images of a part.
///
/// ```
/// use batchstep::data::digits::{draw, TrainOrTest};
/// let digits = draw(1, TrainOrTest::Train, 20);
/// assert_eq!((digits.pixels.len(), digits.labels.len()), (20 * 28 * 28, 20));
/// assert_eq!(draw(1, TrainOrTest::Train, 10).pixels, digits.pixels[..10 * 28 * 28]);
/// ```
pub fn draw(seed: u64, part: TrainOrTest, count: usize) -> Labelled {
    let mut set =
        Labelled { name: "drawn digits".to_owned(), pixels: vec![0; count * SIDE * SIDE], labels: vec![0; count] };
    let images = set.pixels.par_chunks_mut(SIDE * SIDE).zip(&mut set.labels).enumerate();
    images.for_each(|(index, (pixels, label))| {
        let mut random = Rng::new(Stream::new(seed, Purpose::Digits, [part as u64, index as u64]).key());
        *label = random.below(CLASSES) as u8;
        Drawing::new(*label, &mut random).paint(pixels, &mut random);
    });
    set
}

/// A point of the unit square, y downwards.
#[derive(Clone, Copy, Debug)]
struct Point {
    x: f64,
    y: f64,
}

/// A line through points.
type Stroke = Vec<Point>;

fn line(points: &[[f64; 2]]) -> Stroke {
    points.iter().map(|&[x, y]| Point { x, y }).collect()
}

/// A piece of an ellipse; degrees, 0 to the right, 90 downwards.
fn arc(center: [f64; 2], radii: [f64; 2], degrees: [f64; 2]) -> Stroke {
    let pieces = ((degrees[1] - degrees[0]).abs() / 20.0).ceil().max(1.0) as usize;
    let at = |piece: usize| {
        let angle = (degrees[0] + (degrees[1] - degrees[0]) * piece as f64 / pieces as f64).to_radians();
        Point { x: center[0] + radii[0] * angle.cos(), y: center[1] + radii[1] * angle.sin() }
    };
    (0..=pieces).map(at).collect()
}

fn joined(mut first: Stroke, second: Stroke) -> Stroke {
    first.extend(second);
    first
}

/// The strokes of a digit; where people write it in several ways, one of them.
fn skeleton(digit: u8, random: &mut Rng) -> Vec<Stroke> {
    let mut variant = |count: usize| random.below(count);
    match digit {
        0 => vec![arc([0.5, 0.5], [0.2, 0.33], [0.0, 360.0])],
        1 => match variant(3) {
            0 => vec![line(&[[0.5, 0.17], [0.5, 0.83]])],
            1 => vec![line(&[[0.38, 0.32], [0.52, 0.17], [0.52, 0.83]])],
            _ => vec![line(&[[0.38, 0.32], [0.52, 0.17], [0.52, 0.83]]), line(&[[0.37, 0.83], [0.66, 0.83]])],
        },
        2 => {
            let top = arc([0.5, 0.36], [0.19, 0.19], [190.0, 395.0]);
            vec![joined(top, line(&[[0.3, 0.83], [0.72, 0.83]]))]
        }
        3 => vec![arc([0.48, 0.33], [0.18, 0.16], [200.0, 450.0]), arc([0.48, 0.66], [0.21, 0.17], [270.0, 520.0])],
        4 => match variant(2) {
            0 => vec![line(&[[0.58, 0.17], [0.27, 0.62], [0.76, 0.62]]), line(&[[0.6, 0.36], [0.6, 0.85]])],
            _ => vec![line(&[[0.33, 0.18], [0.3, 0.53], [0.72, 0.53]]), line(&[[0.67, 0.18], [0.65, 0.85]])],
        },
        5 => {
            let belly = arc([0.48, 0.63], [0.2, 0.2], [225.0, 500.0]);
            vec![joined(line(&[[0.68, 0.18], [0.37, 0.18], [0.34, 0.48]]), belly)]
        }
        6 => vec![
            line(&[[0.62, 0.16], [0.45, 0.33], [0.35, 0.52], [0.32, 0.66]]),
            arc([0.5, 0.65], [0.18, 0.18], [0.0, 360.0]),
        ],
        7 => {
            let mut strokes = vec![line(&[[0.28, 0.2], [0.71, 0.2], [0.45, 0.83]])];
            if variant(3) == 0 {
                strokes.push(line(&[[0.38, 0.52], [0.68, 0.52]]));
            }
            strokes
        }
        8 => vec![arc([0.5, 0.34], [0.16, 0.15], [0.0, 360.0]), arc([0.5, 0.66], [0.19, 0.18], [0.0, 360.0])],
        _ => vec![arc([0.5, 0.36], [0.18, 0.18], [0.0, 360.0]), line(&[[0.68, 0.36], [0.66, 0.58], [0.56, 0.84]])],
    }
}

/// A digit after all distortions, in pixels.
struct Drawing {
    strokes: Vec<Stroke>,
    /// Half the width of the pen.
    pen: f64,
    ink: f64,
    noise: f64,
}

impl Drawing {
    fn new(digit: u8, random: &mut Rng) -> Self {
        let strokes = skeleton(digit, random);
        let (turn, shear) = (0.2 * random.normal(), 0.18 * random.normal());
        let size = [0.72 + 0.4 * random.uniform(), 0.72 + 0.36 * random.uniform()];
        let shift = [0.14 * (random.uniform() - 0.5), 0.14 * (random.uniform() - 0.5)];
        // A slow wave across the digit bends all its strokes together.
        let waves: Vec<[f64; 3]> =
            (0..2).map(|_| [0.035 * random.normal(), 3.0 + 5.0 * random.uniform(), 6.3 * random.uniform()]).collect();
        let mut place = |Point { x, y }: Point| {
            let (x, y) = (x - 0.5 + 0.012 * random.normal(), y - 0.5 + 0.012 * random.normal());
            let bent = [
                x + waves[0][0] * (waves[0][1] * y + waves[0][2]).sin(),
                y + waves[1][0] * (waves[1][1] * x + waves[1][2]).sin(),
            ];
            let (x, y) = (size[0] * (bent[0] - shear * bent[1]), size[1] * bent[1]);
            let (sin, cos) = turn.sin_cos();
            Point {
                x: (0.5 + cos * x - sin * y + shift[0]) * SIDE as f64,
                y: (0.5 + sin * x + cos * y + shift[1]) * SIDE as f64,
            }
        };
        let strokes = strokes.into_iter().map(|stroke| stroke.into_iter().map(&mut place).collect()).collect();
        Self {
            strokes,
            pen: 0.7 + 1.1 * random.uniform(),
            ink: 0.6 + 0.4 * random.uniform(),
            noise: 0.12 * random.uniform(),
        }
    }

    fn paint(&self, pixels: &mut [u8], random: &mut Rng) {
        let mut ink = [0.0f64; SIDE * SIDE];
        for pair in self.strokes.iter().flat_map(|stroke| stroke.windows(2)) {
            self.segment(pair[0], pair[1], &mut ink);
        }
        for (pixel, ink) in pixels.iter_mut().zip(ink) {
            let value = ink * self.ink + self.noise * (random.uniform() + random.uniform() - 1.0).abs();
            *pixel = (value.clamp(0.0, 1.0) * 255.0).round() as u8;
        }
    }

    /// The pen's coverage of the pixels near a straight piece, from the distance of their centres.
    fn segment(&self, a: Point, b: Point, ink: &mut [f64; SIDE * SIDE]) {
        let reach = self.pen + 1.0;
        let range = |low: f64, high: f64| {
            let clamp = |value: f64| value.clamp(0.0, SIDE as f64) as usize;
            clamp((low - reach).floor())..clamp((high + reach).ceil())
        };
        let (along_x, along_y) = (b.x - a.x, b.y - a.y);
        let square = (along_x * along_x + along_y * along_y).max(1e-12);
        for row in range(a.y.min(b.y), a.y.max(b.y)) {
            for column in range(a.x.min(b.x), a.x.max(b.x)) {
                let (x, y) = (column as f64 + 0.5 - a.x, row as f64 + 0.5 - a.y);
                let share = ((x * along_x + y * along_y) / square).clamp(0.0, 1.0);
                let distance = (x - share * along_x).hypot(y - share * along_y);
                let covered = (self.pen + 0.5 - distance).clamp(0.0, 1.0);
                let pixel = &mut ink[row * SIDE + column];
                *pixel = pixel.max(covered);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_are_equally_likely_and_the_digits_are_on_the_paper() {
        let set = draw(3, TrainOrTest::Train, 4000);
        let mut counts = [0; CLASSES];
        set.labels.iter().for_each(|&label| counts[label as usize] += 1);
        // Binomial(4000, 1/10): mean 400, standard deviation 19.0; five of them either way.
        assert!(counts.iter().all(|count| (305..=495).contains(count)), "{counts:?}");
        for image in set.pixels.chunks(SIDE * SIDE) {
            let dark = image.iter().filter(|&&pixel| pixel > 100).count();
            assert!((15..=320).contains(&dark), "{dark} pixels of ink");
        }
    }

    #[test]
    fn an_image_follows_from_seed_part_and_number() {
        let set = draw(7, TrainOrTest::Train, 50);
        assert_eq!(draw(7, TrainOrTest::Train, 20).pixels, set.pixels[..20 * SIDE * SIDE]);
        assert_ne!(draw(8, TrainOrTest::Train, 50).pixels, set.pixels);
        assert_ne!(draw(7, TrainOrTest::Test, 50).pixels, set.pixels);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| draw(7, TrainOrTest::Train, 50)), set);
    }
}
