//! Quantities as people write them in a spec: `30min`, `12.5ms`, `1%`, `2GiB`. Inside, everything is f64 in SI units.

use std::fmt;

const TIMES: &[(&str, f64)] =
    &[("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("min", 60.0), ("s", 1.0), ("h", 3600.0)];

/// A time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Seconds {
    /// Reads `250us`, `12.5ms`, `90s`, `30min`, `2h`; a number without a unit is refused, since it could be anything.
    ///
    /// ```
    /// use batchstep::units::Seconds;
    /// assert_eq!(Seconds::parse("30min"), Some(Seconds(1800.0)));
    /// assert_eq!(Seconds::parse("12.5 ms"), Some(Seconds(0.0125)));
    /// assert_eq!(Seconds::parse("30"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (number, unit) = TIMES.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
        let value = number.trim().parse::<f64>().ok()?;
        (value.is_finite()).then_some(Self(value * unit))
    }
}

/// Writes the largest unit in which the number is at least 1, so that [`Seconds::parse`] reads the same value again.
impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        let (unit, scale) = match size {
            _ if size >= 3600.0 && self.0 % 3600.0 == 0.0 => ("h", 3600.0),
            _ if size >= 60.0 && self.0 % 60.0 == 0.0 => ("min", 60.0),
            _ if size >= 1.0 || size == 0.0 => ("s", 1.0),
            _ if size >= 1e-3 => ("ms", 1e-3),
            _ if size >= 1e-6 => ("us", 1e-6),
            _ => ("ns", 1e-9),
        };
        // Rounding to 12 digits removes what the division by a power of ten adds.
        let rounded: f64 = format!("{:.12e}", self.0 / scale).parse().unwrap_or(self.0 / scale);
        write!(f, "{rounded}{unit}")
    }
}

/// A share of something; 0.01 is written `1%`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl Share {
    /// Reads `1%` or `0.5 %`.
    ///
    /// ```
    /// use batchstep::units::Share;
    /// assert_eq!(Share::parse("0.5%"), Some(Share(0.005)));
    /// assert_eq!(Share::parse("0.5"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let value = text.trim().strip_suffix('%')?.trim().parse::<f64>().ok()?;
        value.is_finite().then_some(Self(value / 100.0))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent: f64 = format!("{:.12e}", self.0 * 100.0).parse().unwrap_or(self.0 * 100.0);
        write!(f, "{percent}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_the_same() {
        for seconds in [0.0, 1e-9, 2.5e-7, 0.0125, 0.0007, 0.9, 1.0, 59.5, 90.0, 100.0, 1800.0, 5400.0, 7200.0] {
            let text = Seconds(seconds).to_string();
            let back = Seconds::parse(&text).unwrap_or_else(|| panic!("{text} does not read back"));
            assert!((back.0 - seconds).abs() <= 1e-12 * seconds, "{seconds} -> {text} -> {}", back.0);
        }
        for share in [0.0, 0.01, 0.003, 1.0, 0.125] {
            let back = Share::parse(&Share(share).to_string()).expect("reads back");
            assert!((back.0 - share).abs() <= 1e-12 * share);
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused() {
        assert_eq!(Seconds::parse("30"), None);
        assert_eq!(Seconds::parse("min"), None);
        assert_eq!(Seconds::parse("NaN s"), None);
        assert_eq!(Share::parse("%"), None);
    }
}
