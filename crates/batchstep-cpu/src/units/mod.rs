//! Quantities as people write them in a spec: `30min`, `12.5ms`, `1%`, `2GiB`. Inside, everything is f64 in SI units.

pub mod human;

use std::fmt;

/// Units that are powers of ten of a second; longer names first, since `s` ends all of them.
const TENS: &[(&str, i32)] = &[("ns", -9), ("us", -6), ("µs", -6), ("ms", -3), ("s", 0)];
const LONG: &[(&str, f64)] = &[("min", 60.0), ("m", 60.0), ("h", 3600.0)];

/// `text` times 10^`exponent`, correctly rounded: the exponent is put into the text before the conversion.
fn decimal(text: &str, exponent: i32) -> Option<f64> {
    let (mantissa, own) = text.trim().split_once(['e', 'E']).unwrap_or((text.trim(), "0"));
    let value: f64 = format!("{mantissa}e{}", own.parse::<i32>().ok()?.checked_add(exponent)?).parse().ok()?;
    value.is_finite().then_some(value)
}

/// The shortest text whose [`decimal`] with -`exponent` is `value` again.
fn shifted(value: f64, exponent: i32) -> f64 {
    decimal(&format!("{value:e}"), exponent).unwrap_or(f64::NAN)
}

/// A time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Seconds {
    /// Reads `250us`, `12.5ms`, `90s`, `30min`, `2h`; a number without a unit is refused as ambiguous.
    ///
    /// ```
    /// use batchstep_cpu::units::Seconds;
    /// assert_eq!(Seconds::parse("30min"), Some(Seconds(1800.0)));
    /// assert_eq!(Seconds::parse("12.5 ms"), Some(Seconds(0.0125)));
    /// assert_eq!(Seconds::parse("30"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((number, seconds)) =
            LONG.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        {
            return Some(Self(decimal(number, 0)? * seconds));
        }
        let (number, exponent) = TENS.iter().find_map(|(unit, exponent)| Some((text.strip_suffix(unit)?, exponent)))?;
        decimal(number, *exponent).map(Self)
    }
}

/// Writes the largest unit in which the number is at least 1, so that [`Seconds::parse`] reads the same value again.
impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        let (unit, exponent) = match size {
            _ if size >= 3600.0 && self.0 % 3600.0 == 0.0 => return write!(f, "{}h", self.0 / 3600.0),
            _ if size >= 60.0 && self.0 % 60.0 == 0.0 => return write!(f, "{}min", self.0 / 60.0),
            _ if size >= 1.0 || size == 0.0 => ("s", 0),
            _ if size >= 1e-3 => ("ms", 3),
            _ if size >= 1e-6 => ("us", 6),
            _ => ("ns", 9),
        };
        write!(f, "{}{unit}", shifted(self.0, exponent))
    }
}

/// A share of something; 0.01 is written `1%`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl Share {
    /// Reads `1%` or `0.5 %`.
    ///
    /// ```
    /// use batchstep_cpu::units::Share;
    /// assert_eq!(Share::parse("0.5%"), Some(Share(0.005)));
    /// assert_eq!(Share::parse("0.5"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        decimal(text.trim().strip_suffix('%')?, -2).map(Self)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", shifted(self.0, 2))
    }
}

/// An amount of memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Powers of 1024, the largest first, since `B` ends all of them.
const BINARY: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl Bytes {
    /// Reads `1GiB`, `256 MiB`, `0B`: whole numbers of a unit.
    ///
    /// ```
    /// use batchstep_cpu::units::Bytes;
    /// assert_eq!(Bytes::parse("1GiB"), Some(Bytes(1 << 30)));
    /// assert_eq!(Bytes::parse("1GB"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (number, size) = BINARY.iter().find_map(|(unit, size)| Some((text.trim().strip_suffix(unit)?, size)))?;
        number.trim().parse::<u64>().ok()?.checked_mul(*size).map(Self)
    }
}

/// Writes the largest unit of which it is a whole number, so that [`Bytes::parse`] reads the same value again.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = BINARY.iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size));
        let (unit, size) = whole.copied().unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_the_same() {
        for seconds in [
            0.0,
            1e-9,
            2.5e-7,
            0.0125,
            0.0007,
            0.000_123_456_789,
            1.0 / 3.0,
            0.9,
            1.0,
            59.5,
            90.0,
            100.0,
            1800.0,
            5400.0,
            7200.0,
        ] {
            let text = Seconds(seconds).to_string();
            let back = Seconds::parse(&text).unwrap_or_else(|| panic!("{text} does not read back"));
            assert_eq!(back.0, seconds, "{text}");
        }
        for share in [0.0, 0.01, 0.003, 1.0, 0.125, 0.07, 2.0 / 3.0] {
            let back = Share::parse(&Share(share).to_string()).expect("reads back");
            assert_eq!(back.0, share);
        }
    }

    #[test]
    fn an_amount_of_memory_reads_back_the_same() {
        for (bytes, text) in [(0, "0B"), (1000, "1000B"), (1 << 10, "1KiB"), (3 << 19, "1536KiB"), (5 << 30, "5GiB")] {
            assert_eq!(Bytes(bytes).to_string(), text);
            assert_eq!(Bytes::parse(text), Some(Bytes(bytes)));
        }
        assert_eq!(Bytes::parse("99999999999GiB"), None);
        assert_eq!(Bytes::parse("1.5GiB"), None);
    }

    #[test]
    fn a_number_without_a_unit_is_refused() {
        assert_eq!(Seconds::parse("30"), None);
        assert_eq!(Seconds::parse("min"), None);
        assert_eq!(Seconds::parse("NaN s"), None);
        assert_eq!(Share::parse("%"), None);
    }
}
