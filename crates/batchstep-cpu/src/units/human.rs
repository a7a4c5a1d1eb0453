//! Numbers as people read them: three significant digits, an SI prefix, a sign where it matters.
//!
//! Everything inside batchstep is f64 in SI units; this is the one place that turns them into words, for the terminal and
//! for the charts alike.

/// SI prefixes of the units that take one, smallest first.
const PREFIXES: [(f64, &str); 9] =
    [(1e-12, "p"), (1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];

/// The SI prefix, as (factor, sign), in which the absolute value of `value` reads as 1 to 999.
pub fn prefix(value: f64) -> (f64, &'static str) {
    let size = value.abs();
    if size == 0.0 || !size.is_finite() {
        return (1.0, "");
    }
    // 999.6 would be rounded to 1000 by `digits`: it belongs to the next prefix.
    let fits = |&&(factor, _): &&(f64, &str)| size / factor >= 0.9995;
    *PREFIXES.iter().rev().find(fits).unwrap_or(&PREFIXES[0])
}

/// The prefix of `value` where `unit` takes one: seconds (never above 1 s), hertz, watts, joules, bytes per second.
pub fn prefix_of_unit(value: f64, unit: &str) -> (f64, &'static str) {
    match unit {
        "s" if value.abs() >= 0.9995 => (1.0, ""),
        "s" | "Hz" | "W" | "J" | "B/s" | "bit/s" | "FLOP/s" => prefix(value),
        _ => (1.0, ""),
    }
}

/// Three significant digits, without an exponent for anything a step can last.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_string()
    } else if !value.is_finite() {
        "unknown".to_string()
    } else if !(1e-4..1e7).contains(&size) {
        format!("{value:.2e}")
    } else {
        let rounded = format!("{value:.2e}").parse::<f64>().unwrap_or(value);
        let decimals = (2 - rounded.abs().log10().floor() as i32).max(0) as usize;
        format!("{rounded:.decimals$}")
    }
}

/// A value with its unit and prefix: `12.1 ms`, `1.98 GHz`, `31.0 C`.
pub fn quantity(value: f64, unit: &str) -> String {
    let (factor, sign) = prefix_of_unit(value, unit);
    format!("{} {sign}{unit}", digits(value / factor)).trim_end().to_string()
}

/// As [`quantity`], with a sign in front of both directions.
pub fn signed(value: f64, unit: &str) -> String {
    let plus = if value > 0.0 { "+" } else { "" };
    format!("{plus}{}", quantity(value, unit))
}

/// A signed value with its error, both in the prefix of the larger: `+0.88 ± 0.03 ms`; without an error that three decimals do not
/// show.
pub fn with_error(value: f64, error: f64, unit: &str) -> String {
    let (factor, sign) = prefix_of_unit(if value.abs() > error.abs() { value } else { error }, unit);
    if (error / factor).abs() < 5e-4 {
        return signed(value, unit);
    }
    let plus = if value > 0.0 { "+" } else { "" };
    // More than two digits of an error are never significant.
    let decimals = (1 - (error / factor).abs().log10().floor() as i32).clamp(0, 3) as usize;
    format!("{plus}{:.decimals$} ± {:.decimals$} {sign}{unit}", value / factor, error / factor).trim_end().to_string()
}

/// An interval, both ends in the prefix of the larger: `11.7 to 12.6 ms`.
pub fn range(low: f64, high: f64, unit: &str) -> String {
    let (factor, sign) = prefix_of_unit(if low.abs() > high.abs() { low } else { high }, unit);
    format!("{} to {} {sign}{unit}", digits(low / factor), digits(high / factor)).trim_end().to_string()
}

/// A step time: `12.1 ms`, `850 µs`, `1.23 s`.
pub fn seconds(value: f64) -> String {
    quantity(value, "s")
}

/// A waiting time: `850 ms`, `42 s`, `2 min 30 s`, `1 h 05 min`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".to_string();
    }
    if seconds < 10.0 {
        return self::seconds(seconds);
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// An amount of memory, in the powers of 1024 that memory is sold in: `1.50 GiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut size = value as f64;
    let mut unit = "B";
    for next in UNITS {
        // 1023.5 would be rounded to 1024 of this unit.
        if size < 1023.5 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    let number = if unit == "B" || size >= 999.5 { format!("{size:.0}") } else { digits(size) };
    format!("{number} {unit}")
}

/// A count with separators: `10,500`.
pub fn count(value: u64) -> String {
    let plain = value.to_string();
    let groups = plain.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

/// A count with its noun: `1 jump`, `4 jumps`.
pub fn counted(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// A share with two significant digits: 0.083 is `8.3 %`, 0.0031 is `0.31 %`, 1.2 is `120 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0 %".to_string() } else { "unknown".to_string() };
    }
    let rounded = format!("{value:.1e}").parse::<f64>().unwrap_or(value);
    let decimals = (1 - rounded.abs().log10().floor() as i32).clamp(0, 6) as usize;
    if decimals == 0 { format!("{value:.0} %") } else { format!("{rounded:.decimals$} %") }
}

/// As [`percent`], with a sign in front of both directions.
pub fn signed_percent(share: f64) -> String {
    let plus = if share > 0.0 { "+" } else { "" };
    format!("{plus}{}", percent(share))
}

/// A limit that someone chose, as they would write it: 0.01 is `1 %`, 0.005 is `0.5 %`.
pub fn limit(share: f64) -> String {
    let text = percent(share);
    match text.strip_suffix(" %") {
        Some(number) if number.contains('.') => format!("{} %", number.trim_end_matches('0').trim_end_matches('.')),
        _ => text,
    }
}

/// A p-value: `0.0004`; below what resampling can resolve, `< 0.0001`.
pub fn p_value(p: f64) -> String {
    match p {
        _ if !p.is_finite() => "unknown".to_string(),
        _ if p < 1e-4 => "< 0.0001".to_string(),
        _ if p < 0.001 => format!("{p:.4}"),
        _ => format!("{p:.3}"),
    }
}

/// A p-value in a sentence: `p = 0.0004`, `p < 0.0001`.
pub fn p_equals(p: f64) -> String {
    let text = p_value(p);
    if text.starts_with('<') { format!("p {text}") } else { format!("p = {text}") }
}

/// An enumeration: `16, 32 and 48`.
pub fn listed(items: &[String]) -> String {
    match items {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => items.concat(),
    }
}

/// The same with a capital at its beginning.
pub fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// The longest size that is written out, so that it can be found again in the data.
const MOST_DIGITS: usize = 15;

/// A batch size, or another size, without superfluous decimals.
pub fn batch_size(x: f64) -> String {
    let whole = format!("{x}");
    if whole.len() <= MOST_DIGITS { whole } else { digits(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every expected text here is a hand calculation.
    #[test]
    fn numbers_read_as_people_write_them() {
        let list = |n: usize| listed(&["16", "32", "48"].map(String::from)[..n]);
        let texts = [
            // Errors have two digits and the value's prefix.
            (with_error(8.8e-4, 3.1e-5, "s"), "+880 ± 31 µs"),
            (with_error(-4.5e-3, 1e-4, "s"), "-4.50 ± 0.10 ms"),
            (with_error(1e-5, 3e-4, "s"), "+10 ± 300 µs"),
            (with_error(4e-3, 1e-18, "s"), "+4.00 ms"),
            (with_error(0.0, 0.0, "s"), "0 s"),
            // Three digits and a prefix.
            (seconds(0.0), "0 s"),
            (seconds(0.0121), "12.1 ms"),
            (seconds(0.001_234), "1.23 ms"),
            (seconds(0.123_4), "123 ms"),
            (seconds(0.000_85), "850 µs"),
            (seconds(1.5e-7), "150 ns"),
            (seconds(1.234), "1.23 s"),
            (seconds(42.0), "42.0 s"),
            (seconds(1234.5), "1230 s"),
            (seconds(-0.0121), "-12.1 ms"),
            // What is rounded up to a thousand moves to the next prefix.
            (seconds(0.000_999_6), "1.00 ms"),
            (seconds(0.999_6), "1.00 s"),
            (seconds(0.000_999_4), "999 µs"),
            (seconds(0.009_999), "10.0 ms"),
            // What is not a number.
            (seconds(f64::NAN), "unknown s"),
            (percent(f64::INFINITY), "unknown"),
            (p_value(f64::NAN), "unknown"),
            (duration(f64::NAN), "unknown"),
            // Units without prefixes.
            (quantity(31.0, "C"), "31.0 C"),
            (quantity(12_345.0, "iterations"), "12300 iterations"),
            (quantity(2.0, ""), "2.00"),
            // Signs in both directions.
            (signed(0.0121, "s"), "+12.1 ms"),
            (signed(-0.0121, "s"), "-12.1 ms"),
            (signed_percent(0.083), "+8.3 %"),
            (signed_percent(-0.25), "-25 %"),
            // Percentages keep two digits.
            (percent(0.083), "8.3 %"),
            (percent(0.0031), "0.31 %"),
            (percent(0.000_55), "0.055 %"),
            (percent(1.2), "120 %"),
            (percent(0.0), "0 %"),
            (percent(0.0996), "10 %"),
            (limit(0.01), "1 %"),
            (limit(0.005), "0.5 %"),
            (limit(0.1), "10 %"),
            (duration(0.85), "850 ms"),
            (duration(42.4), "42 s"),
            (duration(59.7), "1 min 00 s"),
            (duration(150.0), "2 min 30 s"),
            (duration(3600.0), "1 h 00 min"),
            (duration(3900.0), "1 h 05 min"),
            (counted(1, "jump"), "1 jump"),
            (counted(4000, "jump"), "4,000 jumps"),
            (range(0.0117, 0.0126, "s"), "11.7 to 12.6 ms"),
            (range(-0.0002, 0.0126, "s"), "-0.200 to 12.6 ms"),
            (range(1.0, 2.0, ""), "1.00 to 2.00"),
            (p_equals(0.0004), "p = 0.0004"),
            (p_equals(0.0), "p < 0.0001"),
            (batch_size(16.0), "16"),
            (batch_size(16.5), "16.5"),
            (batch_size(29077.6), "29077.6"),
            (batch_size(1.0 / 3.0), "0.333"),
        ];
        for (text, expected) in texts {
            assert_eq!(text, expected);
        }
        assert_eq!(
            [0, 512, 1536, 1_610_612_736, 1_048_575, 1_047_000].map(bytes),
            ["0 B", "512 B", "1.50 KiB", "1.50 GiB", "1.00 MiB", "1022 KiB"]
        );
        assert_eq!([0, 999, 1000, 10_500, 1_234_567].map(count), ["0", "999", "1,000", "10,500", "1,234,567"]);
        assert_eq!([0, 1, 2, 3].map(list), ["", "16", "16 and 32", "16, 32 and 48"]);
        assert_eq!([0.0, 0.0004, 0.0123, 1.0].map(p_value), ["< 0.0001", "0.0004", "0.012", "1.000"]);
    }
}
