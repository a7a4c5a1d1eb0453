//! Axes: where a value lies, and which ticks a reader expects.

use crate::units::human;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
}

/// A range of values on a scale. `low < high`, and both above zero on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub scale: Scale,
    pub low: f64,
    pub high: f64,
}

impl Axis {
    /// An axis over the finite ones of `values`, widened by `margin` (a share of the range) at both ends; a single value
    /// gets a range around itself, and no value at all 0 to 1.
    pub fn around(values: impl IntoIterator<Item = f64>, scale: Scale, margin: f64) -> Self {
        let usable = |v: &f64| v.is_finite() && (scale == Scale::Linear || *v > 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(usable) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            return Self { scale, low: if scale == Scale::Log { 0.1 } else { 0.0 }, high: 1.0 };
        }
        match scale {
            Scale::Log => {
                let room = if low == high { 0.5 } else { (high / low).ln() * margin };
                Self { scale, low: low * (-room).exp(), high: high * room.exp() }
            }
            Scale::Linear => {
                let room = match (low == high, low == 0.0) {
                    (true, true) => 1.0,
                    (true, false) => low.abs() * 0.1,
                    (false, _) => (high - low) * margin,
                };
                Self { scale, low: low - room, high: high + room }
            }
        }
    }

    /// The place of `value`: 0 at the low end, 1 at the high end.
    pub fn position(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// True where `value` lies within, ends included.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values within the axis, at most about `most` but at least two: multiples of 1, 2 or 5 times a power of ten; on a logarithmic
    /// axis 1, 2 and 5 of every decade, or only 1 where that is enough.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let at_most = |most: usize| self.multiples(round_step((self.high - self.low) / most as f64));
                let enough = (most.max(1)..most + 6).map(at_most).find(|ticks| ticks.len() > 1);
                enough.unwrap_or_default()
            }
            Scale::Log => {
                let decades = (self.high / self.low).log10();
                let every = (decades / most.max(1) as f64).ceil().max(1.0) as i32;
                let exponents = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
                let of = |leads: &[f64]| -> Vec<f64> {
                    let exponents = exponents.clone().filter(|e| e.rem_euclid(every) == 0);
                    let all = exponents.flat_map(|e| leads.iter().map(move |lead| lead * 10f64.powi(e)));
                    all.filter(|&t| self.holds(t)).collect()
                };
                let has_room = decades * 3.0 <= most as f64 + 1.0;
                let tries: [&[f64]; 2] = [&[1.0], &[1.0, 2.0, 5.0]];
                // An axis of less than a decade may contain at most one such value; it always contains multiples of a round step.
                let enough = tries.into_iter().skip(has_room.into()).map(of).find(|ticks| ticks.len() > 1);
                enough.unwrap_or_else(|| Self { scale: Scale::Linear, ..*self }.ticks(most))
            }
        }
    }

    /// Ticks for batch sizes: powers of two on a logarithmic axis, else multiples of one, as GPUs and people count them.
    /// `period`, where one is proven, sets the grid.
    pub fn batch_ticks(&self, most: usize, period: Option<f64>) -> Vec<f64> {
        let most = most.max(1) as f64;
        match self.scale {
            Scale::Log => {
                let (low, high) = (self.low.log2().ceil() as i32, self.high.log2().floor() as i32);
                let every = (f64::from(high - low + 1) / most).ceil().max(1.0) as usize;
                (low..=high).step_by(every).map(|e| 2f64.powi(e)).collect()
            }
            Scale::Linear => {
                let range = self.high - self.low;
                let mut step = match period {
                    Some(p) if p > 0.0 && range / p >= 2.0 => p,
                    _ if !(2.0..=5000.0).contains(&range) => return self.ticks(most as usize),
                    _ => 1.0,
                };
                while range / step > most {
                    step *= 2.0;
                }
                self.multiples(step)
            }
        }
    }

    fn multiples(&self, step: f64) -> Vec<f64> {
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        // Dividing by the inverse keeps 0.3 from becoming 0.30000000000000004.
        let value = |k: i64| if step < 1.0 { k as f64 / (1.0 / step).round() } else { k as f64 * step };
        (first..=last).map(value).collect()
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `rough`.
fn round_step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let power = 10f64.powi(rough.log10().floor() as i32);
    let lead = [1.0, 2.0, 5.0, 10.0].into_iter().find(|lead| lead * power >= rough * 0.999_999);
    lead.unwrap_or(10.0) * power
}

/// What the numbers of an axis are counted in: a factor, and the unit with its prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisUnit {
    pub factor: f64,
    pub name: String,
}

impl AxisUnit {
    /// The prefix in which the largest value of the axis reads well: 0.85 s is counted in ms.
    pub fn of(largest: f64, unit: &str) -> Self {
        let (factor, sign) = human::prefix_of_unit(largest, unit);
        Self { factor, name: format!("{sign}{unit}") }
    }

    /// Sizes are counted as they are.
    pub fn none() -> Self {
        Self { factor: 1.0, name: String::new() }
    }

    /// With a power of ten where numbers up to `largest` would have many digits: `10\u{2076} tokens/s`.
    pub fn in_powers(self, largest: f64) -> Self {
        let size = largest.abs() / self.factor;
        if !size.is_finite() || size == 0.0 || (1e-4..1e5).contains(&size) {
            return self;
        }
        let exponent = 3 * (size.log10() / 3.0).floor() as i32;
        let name = format!("{} {}", power_of_ten(exponent), self.name);
        Self { factor: self.factor * 10f64.powi(exponent), name: name.trim_end().to_owned() }
    }

    /// `label (unit)`.
    pub fn title(&self, label: &str) -> String {
        if self.name.is_empty() { label.to_string() } else { format!("{label} ({})", self.name) }
    }
}

/// The font has no raised minus.
fn power_of_ten(exponent: i32) -> String {
    const RAISED: &str = "\u{2070}\u{b9}\u{b2}\u{b3}\u{2074}\u{2075}\u{2076}\u{2077}\u{2078}\u{2079}";
    if exponent < 0 {
        return format!("1e{exponent}");
    }
    let digits = exponent.to_string();
    let raised = digits.chars().filter_map(|digit| RAISED.chars().nth(digit.to_digit(10)? as usize));
    format!("10{}", raised.collect::<String>())
}

/// The longest label beside an axis of values, in letters.
const LONGEST: usize = 8;

/// As [`tick_labels`], beside an axis: what is longer there than its room has a power of ten.
pub fn value_labels(ticks: &[f64], factor: f64, scale: Scale) -> Vec<String> {
    let labels = tick_labels(ticks, factor, scale).into_iter().zip(ticks);
    let is_long = |label: &str| scale == Scale::Log && label.chars().count() > LONGEST;
    labels.map(|(label, tick)| if is_long(label.as_str()) { scientific(tick / factor) } else { label }).collect()
}

/// The labels of `ticks`: all with the same number of decimals, as few as keep them distinct.
pub fn tick_labels(ticks: &[f64], factor: f64, scale: Scale) -> Vec<String> {
    let values: Vec<f64> = ticks.iter().map(|t| t / factor).collect();
    if scale == Scale::Log {
        return values.iter().map(|v| short(*v)).collect();
    }
    let exact = |decimals: usize| {
        values.iter().all(|v| {
            let power = 10f64.powi(decimals as i32);
            ((v * power).round() / power - v).abs() <= 1e-9 * v.abs().max(1e-3)
        })
    };
    let decimals = (0..10).find(|&d| exact(d)).unwrap_or(10);
    values.iter().map(|v| if *v == 0.0 { "0".to_string() } else { format!("{v:.decimals$}") }).collect()
}

/// As few digits as say the value, with separators from ten thousand on.
fn short(value: f64) -> String {
    if value >= 1e15 || (value > 0.0 && value < 0.999e-6) {
        return scientific(value);
    }
    if value >= 10_000.0 && value.fract() == 0.0 {
        return human::count(value as u64);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// `2.5e-8`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.3e}");
    let (lead, exponent) = text.split_once('e').unwrap_or((text.as_str(), "0"));
    format!("{}e{exponent}", lead.trim_end_matches('0').trim_end_matches('.'))
}

/// These values in their order, each once.
pub fn ascending(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Logarithmic where positive `x` are spread by factors rather than by differences (64, 128, 256, 512).
pub fn scale_of(x: &[f64]) -> Scale {
    let spread = |steps: Vec<f64>| {
        let (low, high) = steps.iter().fold((f64::INFINITY, 0f64), |(l, h), &s| (l.min(s), h.max(s)));
        high / low
    };
    let positive = x.first().is_some_and(|&first| first > 0.0);
    if x.len() < 3 || !positive || x[x.len() - 1] / x[0] < 8.0 {
        return Scale::Linear;
    }
    let ratios = spread(x.windows(2).map(|w| (w[1] / w[0]).ln()).collect());
    let differences = spread(x.windows(2).map(|w| w[1] - w[0]).collect());
    if ratios * 1.5 < differences { Scale::Log } else { Scale::Linear }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn linear(low: f64, high: f64) -> Axis {
        Axis { scale: Scale::Linear, low, high }
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(linear(0.0, 0.9).ticks(5), [0.0, 0.2, 0.4, 0.6, 0.8]);
        assert_eq!(linear(0.43, 0.58).ticks(2), [0.45, 0.5, 0.55], "one tick alone says nothing");
        assert_eq!(linear(-3.0, 7.0).ticks(5), [-2.0, 0.0, 2.0, 4.0, 6.0]);
        assert_eq!(linear(0.101, 0.149).ticks(5), [0.11, 0.12, 0.13, 0.14]);
        assert_eq!(Axis { scale: Scale::Log, low: 0.05, high: 30.0 }.ticks(5), [0.1, 1.0, 10.0]);
        assert_eq!(Axis { scale: Scale::Log, low: 0.9, high: 12.0 }.ticks(5), [1.0, 2.0, 5.0, 10.0]);
        // Batch sizes are counted in powers of two or in the period.
        assert_eq!(linear(0.5, 70.5).batch_ticks(10, None), [8.0, 16.0, 24.0, 32.0, 40.0, 48.0, 56.0, 64.0]);
        assert_eq!(linear(0.5, 70.5).batch_ticks(6, Some(12.0)), [12.0, 24.0, 36.0, 48.0, 60.0]);
        let log = Axis { scale: Scale::Log, low: 60.0, high: 520.0 };
        assert_eq!(log.batch_ticks(8, None), [64.0, 128.0, 256.0, 512.0]);
    }

    #[test]
    fn an_axis_holds_its_values_whatever_they_are() {
        assert_eq!(Axis::around([f64::NAN], Scale::Linear, 0.1), linear(0.0, 1.0));
        let single = Axis::around([5.0], Scale::Linear, 0.1);
        assert!(single.low < 5.0 && 5.0 < single.high);
        let flat = Axis::around([0.0, 0.0], Scale::Linear, 0.1);
        assert!(flat.low < flat.high);
        let log = Axis::around([-1.0, 0.0, 2.0, 8.0], Scale::Log, 0.0);
        assert_eq!((log.low, log.high), (2.0, 8.0));
        assert!((log.position(4.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn tick_labels_share_their_decimals_and_are_short() {
        assert_eq!(tick_labels(&[0.0, 0.25, 0.5], 1.0, Scale::Linear), ["0", "0.25", "0.50"]);
        assert_eq!(tick_labels(&[0.2, 0.4], 1e-3, Scale::Linear), ["200", "400"]);
        assert_eq!(tick_labels(&[0.1, 1.0, 100.0], 1.0, Scale::Log), ["0.1", "1", "100"]);
        // None is wrong or long, however large or small its value is.
        let ticks = [1e-8, 1e-7, 1e-6, 1e5, 1e6, 1e9];
        let labels = ["1e-8", "1e-7", "0.000001", "100,000", "1e6", "1e9"];
        assert_eq!(value_labels(&ticks, 1.0, Scale::Log), labels);
        assert_eq!(tick_labels(&[1e6, 2.5e-8], 1.0, Scale::Log), ["1,000,000", "2.5e-8"], "a size is written out");
        assert_eq!(value_labels(&[0.0, 5e8, 1e9, 1.5e9], 1e9, Scale::Linear), ["0", "0.5", "1.0", "1.5"]);
    }

    #[test]
    fn units_take_the_prefix_of_the_largest_value_or_a_power_of_ten() {
        let powers: [(f64, &str, &str); 8] = [
            (0.85, "s", "Axis (ms)"),
            (1.98e9, "Hz", "Axis (GHz)"),
            (70.0, "\u{b0}C", "Axis (\u{b0}C)"),
            (3.0, "", "Axis"),
            (1.5e9, "tokens/s", "Axis (10\u{2079} tokens/s)"),
            (3e5, "", "Axis (10\u{b3})"),
            (2e-8, "", "Axis (1e-9)"),
            (99_999.0, "samples/s", "Axis (samples/s)"),
        ];
        for (largest, unit, title) in powers {
            assert_eq!(AxisUnit::of(largest, unit).in_powers(largest).title("Axis"), title);
        }
        assert_eq!(AxisUnit::of(1.5e9, "tokens/s").in_powers(1.5e9).factor, 1e9);
    }

    #[test]
    fn doubling_batch_sizes_are_logarithmic_and_counted_ones_are_not() {
        assert_eq!(scale_of(&[64.0, 128.0, 256.0, 512.0]), Scale::Log);
        assert_eq!(scale_of(&(1..=70).map(f64::from).collect::<Vec<_>>()), Scale::Linear);
        assert_eq!(scale_of(&[1.0, 9.0, 17.0, 25.0]), Scale::Linear);
        assert_eq!(scale_of(&[]), Scale::Linear);
    }
}
