//! Labelled series in the shapes that curves have in the world: exact truth, seeds 0, 1, 2, ...
//!
//! A [`Family`] draws a curve without noise as a function of real x ([`curve`]), disturbs single points and adds noise
//! ([`noise`]). Its jumps are the discontinuities of that function, so the truth ([`truth`]) is known exactly. Only the ratio of a jump's size to the
//! noise decides whether it can be seen. A jump is **required** if
//!
//! - it is at least 8 standard errors of the gap between two lines of up to sixteen points, the known noise given;
//! - it is at least 0.5 % of the level and three units of the last digit;
//! - two lines through up to eight noise-free points on each side show 0.6 to 1.4 times its size;
//! - it has three points on each side, and no other within four points takes it back.
//!
//! A jump of less than 6 times the noise `s` of one point can end up at a neighbouring boundary. It is right anywhere within d boundaries, the
//! smallest d at which `size sqrt(d + 1) / 2 >= 3 s`. Two jumps with one point between them are one jump with two possible places; so is a ramp
//! over a point or two.
//!
//! Half of the series of most families have no jump at all ([`Labelled::quiet`]).

mod close;
pub mod curve;
mod draw;
mod late;
mod long;
mod mixed;
pub mod noise;
mod rates;
pub mod sketch;
mod smooth;
mod staircases;
mod starts;
pub mod tally;
pub mod truth;

use crate::detect::Observation;
use crate::random::{GOLDEN, mix};
use draw::Draw;
use sketch::Sketch;
use truth::Change;

/// A kind of series.
#[derive(Clone, Copy)]
pub struct Family {
    pub name: &'static str,
    /// Every second seed gives a series without a jump.
    pub with_quiet: bool,
    draw: fn(&mut Draw, bool) -> Sketch,
}

/// The families that only judge the detector, ascending.
const HELD_OUT: &[&str] = &[
    "cubic",
    "few digits",
    "heavy tails",
    "kernel times",
    "late in a zigzag",
    "log-spaced",
    "long, single values",
    "many layers",
    "missing members",
    "near an end",
    "overshoot",
    "ramps",
    "short blocks",
    "spiky head",
    "steep start",
    "throughput",
    "two close changes",
    "two states",
    "wandering",
];

/// A series with its truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    pub family: String,
    /// Ascending, distinct.
    pub x: Vec<f64>,
    pub observations: Vec<Observation>,
    /// Ascending.
    pub changes: Vec<Change>,
    /// Whether it has no jumps, or only the jumps of a pattern that does not count.
    pub quiet: bool,
}

impl Family {
    /// All of them.
    pub const ALL: &'static [&'static [Self]] = &[
        starts::FAMILIES,
        smooth::FAMILIES,
        close::FAMILIES,
        staircases::FAMILIES,
        late::FAMILIES,
        long::FAMILIES,
        rates::FAMILIES,
        mixed::FAMILIES,
    ];

    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().flatten().copied()
    }

    /// Whether the detector is developed on it; the other families only judge it (`SPLIT.md`).
    pub fn for_development(&self) -> bool {
        HELD_OUT.binary_search(&self.name).is_err()
    }

    /// Whether this seed gives a series without a jump.
    pub fn is_quiet(&self, seed: u64) -> bool {
        self.with_quiet && seed % 2 == 1
    }

    /// What the series of this seed is drawn from.
    pub fn sketch(&self, seed: u64) -> Sketch {
        (self.draw)(&mut Draw::new(self.key(seed)), self.is_quiet(seed))
    }

    /// The series of this seed.
    pub fn series(&self, seed: u64) -> Labelled {
        let sketch = self.sketch(seed);
        let values = sketch.noise.values(&sketch.means(), &mut Draw::new(mix(self.key(seed))));
        let observation = |(x, y): (&f64, &f64)| Observation::new(*x, *y);
        let at = |(x, values): (&f64, &Vec<f64>)| values.iter().map(|y| observation((x, y))).collect::<Vec<_>>();
        Labelled {
            family: self.name.to_string(),
            observations: sketch.x.iter().zip(&values).flat_map(at).collect(),
            changes: truth::changes(&sketch),
            x: sketch.x,
            quiet: self.is_quiet(seed),
        }
    }

    /// A seed that no other family has.
    fn key(&self, seed: u64) -> u64 {
        let name = self.name.bytes().fold(0, |key, byte| mix(key ^ u64::from(byte)));
        mix(name.wrapping_add(seed.wrapping_mul(GOLDEN)))
    }
}

#[cfg(test)]
mod tests;
