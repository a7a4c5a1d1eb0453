//! How often a series without a jump shows one, by what the series is.
//!
//! The counts are of simulations: `examples/null_p_values.rs rates` makes the table. Their series have no jump and no pattern of steps, but kinks, bends, disturbed points, and noise of
//! many kinds. Of measurements that are unlike all of them nothing is known.

/// How many values there are at each x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repetitions {
    Single,
    /// Two to four.
    Few,
    Many,
}

/// What a series is, as far as the rate depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    pub repetitions: Repetitions,
    /// Whether the order of the measurements is known.
    pub ordered: bool,
}

impl Class {
    /// The class of a series; `values`: the median number of values at one x.
    pub fn of(values: f64, ordered: bool) -> Self {
        let repetitions = match values {
            ..2.0 => Repetitions::Single,
            ..5.0 => Repetitions::Few,
            _ => Repetitions::Many,
        };
        Self { repetitions, ordered }
    }

    /// The rate of its series; `None` if too few were simulated.
    pub fn alarm_rate(self) -> Option<AlarmRate> {
        RATES.iter().find(|(class, _)| *class == self).map(|(_, rate)| *rate)
    }
}

/// Series without a jump, and those of them in which one was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlarmRate {
    pub alarms: u32,
    pub series: u32,
}

impl AlarmRate {
    pub fn share(self) -> f64 {
        f64::from(self.alarms) / f64::from(self.series)
    }

    /// The 95 % interval of Wilson (1927).
    pub fn interval(self) -> [f64; 2] {
        let (n, share, z) = (f64::from(self.series), self.share(), 1.96f64);
        let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + (z / (2.0 * n)).powi(2)).sqrt();
        [(middle - half).max(0.0), middle + half]
    }
}

const fn rate(repetitions: Repetitions, ordered: bool, alarms: u32, series: u32) -> (Class, AlarmRate) {
    (Class { repetitions, ordered }, AlarmRate { alarms, series })
}

/// Made by `cargo run --release --example null_p_values -- 490 rates`, of families for development and an earlier detector, but for single values: 31 of 2,397 series of the families that the
/// detector was not developed on had a jump (`null_p_values -- 160 held-out 10321`; `SPLIT.md`), the rate to expect of a new curve. Of repeated values these families have too few series to tell (0 of 163).
const RATES: [(Class, AlarmRate); 5] = [
    rate(Repetitions::Single, false, 31, 2397),
    rate(Repetitions::Few, false, 25, 7840),
    rate(Repetitions::Few, true, 25, 7840),
    rate(Repetitions::Many, false, 117, 16_235),
    rate(Repetitions::Many, true, 132, 19_600),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_classed_by_its_repetitions_and_their_order() {
        assert_eq!(Class::of(1.0, false), Class { repetitions: Repetitions::Single, ordered: false });
        assert_eq!(Class::of(4.0, true), Class { repetitions: Repetitions::Few, ordered: true });
        assert_eq!(Class::of(5.0, false).repetitions, Repetitions::Many);
        assert_eq!(Class::of(1.0, true).alarm_rate(), None);
    }

    /// Newcombe 1998, table I: 81 of 263 is 25.5 to 36.6 %.
    #[test]
    fn intervals_are_those_of_wilson() {
        let [low, high] = AlarmRate { alarms: 81, series: 263 }.interval();
        assert!((low - 0.2553).abs() < 1e-4 && (high - 0.3662).abs() < 1e-4, "{low} {high}");
        assert_eq!(AlarmRate { alarms: 0, series: 50 }.interval()[0], 0.0);
    }
}
