//! A curve without noise, as a function of real x: continuous terms and terms that jump.

/// One term of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    /// `scale x^exponent`; a constant has exponent 0.
    Power { scale: f64, exponent: f64 },
    /// `scale x ln x`.
    Linearithmic { scale: f64 },
    /// `scale 2^(-(x - from) / half)`: falls by half over every `half`.
    Decay { scale: f64, from: f64, half: f64 },
    /// `slope max(0, x - at)`.
    Hinge { at: f64, slope: f64 },
    /// The same with its corner rounded over `width`.
    Soft { at: f64, width: f64, slope: f64 },
    /// 0 up to `after`, `size` from `until` on, straight in between.
    Ramp { after: f64, until: f64, size: f64 },
    /// `size` beyond `after`.
    Step { after: f64, size: f64 },
    /// 0 up to `after`, and from there to `-size`, half of the way over every `half`: what a step overshoots by it loses again.
    Settling { after: f64, size: f64, half: f64 },
    /// `height ceil((x - phase) / period)`: whole tiles, waves, rounds.
    Tiles { period: f64, phase: f64, height: f64 },
    /// The same, as a pattern that does not count.
    Pattern { period: f64, phase: f64, height: f64 },
    /// `height` at every other whole x, beginning with the first: a pattern too.
    Alternation { height: f64 },
}

/// The sums of the terms of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    smooth: f64,
    steps: f64,
    pattern: f64,
}

impl Parts {
    fn total(self) -> f64 {
        self.smooth + self.steps + self.pattern
    }
}

/// Work that grows as `scale x^exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    pub scale: f64,
    pub exponent: f64,
}

/// A time, the sum of its terms, or where `work` is given a rate: the work over that time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    pub terms: Vec<Term>,
    pub work: Option<Work>,
}

impl Curve {
    pub fn new(terms: &[Term]) -> Self {
        Self { terms: terms.to_vec(), work: None }
    }

    /// `level + slope x`.
    pub fn line(level: f64, slope: f64) -> Self {
        Self::new(&[Term::Power { scale: level, exponent: 0.0 }, Term::Power { scale: slope, exponent: 1.0 }])
    }

    pub fn with(mut self, term: Term) -> Self {
        self.terms.push(term);
        self
    }

    pub fn value(&self, x: f64) -> f64 {
        self.measured(x, self.parts(x).total())
    }

    /// What the curve would be at `x` if nothing had jumped since `since`.
    pub fn held(&self, x: f64, since: f64) -> f64 {
        let (now, then) = (self.parts(x), self.parts(since));
        self.measured(x, now.smooth + then.steps + then.pattern)
    }

    /// The same if only the patterns had jumped.
    pub fn held_but_patterns(&self, x: f64, since: f64) -> f64 {
        let (now, then) = (self.parts(x), self.parts(since));
        self.measured(x, now.smooth + then.steps + now.pattern)
    }

    /// The curve without its patterns.
    pub fn plain(&self, x: f64) -> f64 {
        let parts = self.parts(x);
        self.measured(x, parts.smooth + parts.steps)
    }

    /// The change of time that makes the measured quantity change by `share` at `x`.
    pub fn time_for(&self, x: f64, share: f64) -> f64 {
        let time = self.parts(x).total();
        if self.work.is_some() { time / (1.0 + share) - time } else { time * share }
    }

    fn measured(&self, x: f64, time: f64) -> f64 {
        self.work.map_or(time, |work| work.scale * x.powf(work.exponent) / time)
    }

    fn parts(&self, x: f64) -> Parts {
        let mut parts = Parts::default();
        for term in &self.terms {
            match *term {
                Term::Power { scale, exponent } => parts.smooth += scale * x.powf(exponent),
                Term::Linearithmic { scale } => parts.smooth += scale * x * x.max(1e-300).ln(),
                Term::Decay { scale, from, half } => parts.smooth += scale * (-(x - from) / half).exp2(),
                Term::Hinge { at, slope } => parts.smooth += slope * (x - at).max(0.0),
                Term::Soft { at, width, slope } => parts.smooth += slope * width * softplus((x - at) / width),
                Term::Ramp { after, until, size } => {
                    parts.smooth += size * ((x - after) / (until - after)).clamp(0.0, 1.0);
                }
                Term::Settling { after, size, half } => {
                    parts.smooth += size * ((-(x - after).max(0.0) / half).exp2() - 1.0);
                }
                Term::Step { after, size } => parts.steps += if x > after { size } else { 0.0 },
                Term::Tiles { period, phase, height } => parts.steps += height * ((x - phase) / period).ceil(),
                Term::Pattern { period, phase, height } => parts.pattern += height * ((x - phase) / period).ceil(),
                Term::Alternation { height } => {
                    parts.pattern += if x.ceil().rem_euclid(2.0) == 1.0 { height } else { 0.0 };
                }
            }
        }
        parts
    }
}

fn softplus(z: f64) -> f64 {
    if z > 30.0 { z } else { z.exp().ln_1p() }
}
