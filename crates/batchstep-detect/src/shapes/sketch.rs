//! A series in the making: the curve, what disturbs it, and its noise.

use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::Noise;

/// Everything that a series is drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    pub x: Vec<f64>,
    pub curve: Curve,
    /// Factors on single points: disturbances, never jumps.
    pub off: Vec<f64>,
    pub noise: Noise,
}

impl Sketch {
    pub fn new(x: Vec<f64>, curve: Curve, noise: Noise) -> Self {
        let off = vec![1.0; x.len()];
        Self { x, curve, off, noise }
    }

    /// Every whole number from 1 to `count`.
    pub fn whole(count: usize, curve: Curve, noise: Noise) -> Self {
        Self::new(spaced(count, 1.0), curve, noise)
    }

    /// Standard error at a point, in the unit of y.
    pub fn error(&self, i: usize) -> f64 {
        let level = self.curve.plain(self.x[i]).abs();
        level * self.noise.error(i, self.x.len(), level)
    }

    /// Adds a change by this share of the level, after a point.
    pub fn step(&mut self, at: usize, share: f64) {
        let size = self.curve.time_for(self.x[at + 1], share);
        self.curve.terms.push(Term::Step { after: self.x[at], size });
    }

    /// Adds a clear jump: `least` to 30 times the noise of a point, at least 1 % and at most 60 % up or 40 % down; one in three
    /// goes down. One in ten is half of that or less, so that it may be undetectable.
    pub(super) fn clear_step(&mut self, draw: &mut Draw, at: usize, least: f64) {
        let share = self.clear_share(draw, at, least);
        self.step(at, share);
    }

    pub(super) fn clear_share(&self, draw: &mut Draw, at: usize, least: f64) -> f64 {
        let noise = self.error(at + 1) / self.curve.plain(self.x[at + 1]).abs();
        let faint = if draw.chance(0.1) { draw.between(0.2, 0.5) } else { 1.0 };
        let share = (noise * draw.ratio(least, 30.0_f64.max(least))).max(draw.ratio(0.01, 0.03)) * faint;
        if draw.chance(0.35) { -share.min(0.4) } else { share.min(0.6) }
    }

    /// One to `most` clear jumps, at least `gap` points apart and from the ends.
    pub(super) fn clear_steps(&mut self, draw: &mut Draw, most: usize, gap: usize) {
        let count = draw.whole(1, most);
        self.clear_steps_at(draw.places(count, gap, self.x.len().saturating_sub(gap + 2), gap), 5.0, draw);
    }

    /// A clear jump after each of these points.
    pub(super) fn clear_steps_at(&mut self, places: Vec<usize>, least: f64, draw: &mut Draw) {
        places.into_iter().for_each(|at| self.clear_step(draw, at, least));
    }

    /// Whether no jump or ramp lies within `distance` points of this point.
    pub fn is_calm(&self, i: usize, distance: usize) -> bool {
        let low = self.x[i.saturating_sub(distance)];
        let high = self.x[(i + distance).min(self.x.len() - 1)];
        let far = |after: f64| after < low || after > high;
        self.curve.terms.iter().all(|term| match *term {
            Term::Step { after, .. } | Term::Ramp { after, .. } => far(after),
            _ => true,
        })
    }

    /// Multiplies `length` points, from `first` on, by about `factor`.
    pub(super) fn disturb(&mut self, draw: &mut Draw, first: usize, length: usize, factor: f64) {
        for off in self.off.iter_mut().skip(first).take(length) {
            *off *= 1.0 + (factor - 1.0) * draw.between(0.8, 1.2);
        }
    }

    /// Single slow points, each with this probability, away from jumps and from other disturbances.
    pub(super) fn spikes(&mut self, draw: &mut Draw, probability: f64, most: f64) {
        for i in 0..self.x.len() {
            let near = i.saturating_sub(3)..(i + 4).min(self.off.len());
            if draw.chance(probability) && self.is_calm(i, 5) && self.off[near].iter().all(|off| *off == 1.0) {
                self.off[i] *= 1.0 + draw.between(0.03, most);
            }
        }
    }

    /// The means of the values of every x.
    pub fn means(&self) -> Vec<f64> {
        self.x.iter().zip(&self.off).map(|(x, off)| off * self.curve.value(*x)).collect()
    }
}

/// `step`, `2 step`, ..., `count step`.
pub(super) fn spaced(count: usize, step: f64) -> Vec<f64> {
    (1..=count).map(|i| i as f64 * step).collect()
}

/// Whole numbers from `low` to `high`, `count` or fewer, each the same factor above the last.
pub(super) fn log_spaced(count: usize, low: f64, high: f64) -> Vec<f64> {
    let factor = (high / low).powf(1.0 / (count - 1) as f64);
    let mut x: Vec<f64> = (0..count).map(|i| (low * factor.powi(i as i32)).round()).collect();
    x.dedup();
    x
}
