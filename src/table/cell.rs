//! The cells of a column as numbers: units, scatter behind a `±`, thousands, powers.

use super::comma::Comma;
use super::names::{Reading, Unit, unit};

/// How the numbers of a column are written, from some of its cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notation {
    comma: Comma,
    /// The unit that values are given in, where it is known.
    unit: Option<&'static Unit>,
    /// The common ending of all cells, which is added to the name.
    shared: Option<String>,
}

/// A number and the text after it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NumberAndRest<'a> {
    number: &'a str,
    rest: &'a str,
}

impl Notation {
    /// The notation of the column of that `name`.
    pub fn of<'a>(name: &str, mut cells: impl Iterator<Item = &'a str> + Clone, semicolons: bool) -> Self {
        let parts = cells.clone().filter_map(NumberAndRest::of);
        let comma = Comma::of(parts.clone().map(|parts| parts.number), semicolons);
        let in_name = unit(&Reading::of(name).unit);
        let mut rests = parts.map(|parts| parts.rest);
        let first =
            rests.next().filter(|rest| is_short(rest) && !rest.contains(|letter: char| letter.is_ascii_digit()));
        let shared = first.filter(|first| in_name.is_none() && rests.all(|rest| rest == *first)).map(str::to_string);
        let in_cells = move || {
            cells.find_map(|cell| duration(cell).and(unit("s")).or_else(|| unit_of(NumberAndRest::of(cell)?.rest)))
        };
        Self { comma, unit: in_name.or_else(in_cells), shared }
    }

    /// If other numbers in the table have decimal points, commas are not decimal.
    pub fn beside_points(mut self, points: bool) -> Self {
        if points && self.comma == Comma::Unknown {
            self.comma = Comma::Thousands;
        }
        self
    }

    /// The addition to the column's name: what the cells say and the name does not.
    pub fn addition(&self, name: &str) -> Option<String> {
        if unit(&Reading::of(name).unit).is_some() {
            return None;
        }
        self.unit.map(|unit| unit.name.to_string()).or(self.shared.clone())
    }

    /// Whether a comma may be decimal or divide thousands.
    pub fn is_unclear(&self, text: &str) -> bool {
        self.comma == Comma::Unknown && NumberAndRest::of(text).is_some_and(|parts| parts.number.contains(','))
    }

    /// The number, in the unit of the column; `None` if the cell contains none.
    pub fn number(&self, text: &str) -> Option<f64> {
        // The usual case first.
        if let Ok(number) = text.trim().parse::<f64>() {
            return Some(number).filter(|number| number.is_finite());
        }
        let NumberAndRest { number, rest } = NumberAndRest::of(text)?;
        if let Some(seconds) = duration(text) {
            return Some(seconds / self.unit.filter(|unit| unit.base == "s").map_or(1.0, |unit| unit.factor));
        }
        let plain = number.replace('_', "");
        let value = match plain.contains(',') {
            true => self.comma.read(&plain),
            false => plain.parse().ok(),
        };
        let value = value.filter(|value: &f64| value.is_finite())?;
        if rest.is_empty() || self.shared.as_deref() == Some(rest) {
            return Some(value);
        }
        if let Some(power) = power(value, rest) {
            return Some(power);
        }
        match (unit_of(rest), self.unit) {
            (Some(own), Some(unit)) if own.base == unit.base => Some(value * own.factor / unit.factor),
            _ => multiple(rest).map(|factor| value * factor),
        }
    }
}

/// A unit as a cell writes it.
pub(super) fn unit_of(text: &str) -> Option<&'static Unit> {
    if !is_short(text) {
        return None;
    }
    let reading = Reading::of(text);
    unit(&reading.unit).filter(|unit| reading.kind == Some(unit.kind))
}

/// `1m23.5s`, as shells write times: in seconds.
pub(super) fn duration(text: &str) -> Option<f64> {
    let mut rest = text.trim().strip_suffix('s')?;
    let mut seconds = 0.0;
    for (mark, each) in [('h', 3600.0), ('m', 60.0)] {
        if let Some((count, behind)) = rest.split_once(mark) {
            seconds += each * count.trim().parse::<u32>().ok().map(f64::from)?;
            rest = behind;
        }
    }
    let is_long = rest.len() + 1 < text.trim().len();
    rest.trim()
        .replace(',', ".")
        .parse::<f64>()
        .ok()
        .filter(|own| is_long && (0.0..60.0).contains(own))
        .map(|own| seconds + own)
}

/// Whether a text is long enough for a unit, and no sentence.
fn is_short(text: &str) -> bool {
    !text.is_empty() && text.len() <= 16 && text.split_whitespace().count() <= 3
}

/// `^10` behind a number, `**10`, `<<10`.
fn power(base: f64, rest: &str) -> Option<f64> {
    // nvbench writes `2^10 = 1024`.
    let exponent = |text: &str| {
        text.split('=').next()?.trim().parse::<i32>().ok().filter(|exponent| (-300..=300).contains(exponent))
    };
    if let Some(exponent_text) = rest.strip_prefix('^').or_else(|| rest.strip_prefix("**")) {
        return exponent(exponent_text).map(|exponent| base.powi(exponent)).filter(|value| value.is_finite());
    }
    exponent(rest.strip_prefix("<<")?).map(|exponent| base * 2f64.powi(exponent)).filter(|value| value.is_finite())
}

/// The number that `K`, `Mi` or `kB` means. Without a `B`, and with an `i`, sizes are counted in powers of two.
fn multiple(rest: &str) -> Option<f64> {
    let mut letters = rest.chars();
    let power = "kmgt".find(letters.next()?.to_ascii_lowercase())? as i32 + 1;
    let binary = 1024f64.powi(power);
    match letters.as_str() {
        "" | "i" | "iB" | "ib" => Some(binary),
        "B" | "b" => Some(1000f64.powi(power)),
        _ => None,
    }
}

impl<'a> NumberAndRest<'a> {
    /// The parts of a cell that begins with a number: `**5.19 ms** ± 0.02`.
    fn of(cell: &'a str) -> Option<Self> {
        let cell = cell.trim_matches(|letter: char| letter.is_whitespace() || "*`~≈\"'".contains(letter));
        let cell = cell.strip_prefix('(').unwrap_or(cell);
        let digits = cell.strip_prefix(['+', '-']).unwrap_or(cell);
        if !digits.trim_start_matches('.').starts_with(|letter: char| letter.is_ascii_digit()) {
            return None;
        }
        let bytes = cell.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let mut end = cell.len() - digits.len();
        while end < bytes.len() {
            end += match bytes[end] {
                b'0'..=b'9' | b'.' => 1,
                b',' | b'_' if digit(end + 1) => 1,
                b'e' | b'E' if digit(end + 1) => 2,
                b'e' | b'E' if matches!(bytes.get(end + 1), Some(b'+' | b'-')) && digit(end + 2) => 3,
                _ => break,
            };
        }
        let (number, rest) = cell.split_at(end);
        Some(Self { number, rest: behind(rest) })
    }
}

/// The unit after a number, without the scatter and without additions in brackets.
fn behind(rest: &str) -> &str {
    if rest.starts_with("**") && rest[2..].starts_with(|letter: char| letter.is_ascii_digit()) {
        return rest;
    }
    let scatter = ["±", "+/-", "+-", "\\pm"].into_iter().find_map(|sign| rest.split_once(sign));
    let unit = match scatter {
        // `53.3 ± 0.09 t/s`, where the unit stands behind the scatter.
        Some((before, after)) if before.trim().is_empty() => {
            let after = after.trim_start();
            let number = |letter: char| letter.is_ascii_digit() || ".,eE+-".contains(letter);
            if after.starts_with(|letter: char| letter.is_ascii_digit()) {
                after.trim_start_matches(number)
            } else {
                after
            }
        }
        Some((before, _)) => before,
        None => rest,
    };
    let unit = unit.trim();
    // `5.1 (1.3x)`: text in brackets is the unit only if there is no text before them.
    let unit = match unit.split_once('(') {
        Some((before, _)) => before,
        None => unit,
    };
    unit.trim_matches(|letter: char| letter.is_whitespace() || ")*%".contains(letter))
}

/// Whether the point in a cell's number cannot divide thousands: `0.031`, `12.5`.
pub(super) fn has_point(text: &str) -> bool {
    let point = || {
        let (whole, fraction) = NumberAndRest::of(text)?.number.split_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        Some(digits(whole) && digits(fraction) && (fraction.len() != 3 || whole == "0"))
    };
    point().unwrap_or(false)
}

/// Whether a cell is a number, perhaps with a unit.
pub(super) fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.contains(|letter: char| letter.is_ascii_digit());
    duration(text).is_some()
        || NumberAndRest::of(text)
            .is_some_and(|parts| power(1.0, parts.rest).is_some() || parts.rest.len() <= 16 && !digits(parts.rest))
}

/// Whether a text is a number and nothing else.
pub(super) fn is_bare_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok_and(f64::is_finite)
}

/// Whether a cell says that there is no value.
pub(super) fn is_missing(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "",
        "-",
        "--",
        "—",
        "–",
        "na",
        "n/a",
        "nan",
        "null",
        "none",
        "inf",
        "-inf",
        "oom",
        "error",
        "err",
        "fail",
        "failed",
        "timeout",
        "skip",
        "skipped",
        "crash",
        "x",
        "?",
        "out of memory",
        "tbd",
    ];
    WORDS.contains(&&text.trim().to_lowercase()[..])
}

/// Every unit of that kind, for tests of the units.
#[cfg(test)]
pub(super) fn units() -> impl Iterator<Item = &'static Unit> {
    super::names::UNITS.iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, cells: &[&str]) -> (Option<String>, Vec<Option<f64>>) {
        let notation = Notation::of(name, cells.iter().copied(), false);
        (notation.addition(name), cells.iter().map(|cell| notation.number(cell)).collect())
    }

    #[test]
    fn a_unit_in_the_cells_belongs_to_the_column() {
        assert_eq!(read("latency", &["4.5 ms", "5ms"]), (Some("ms".into()), vec![Some(4.5), Some(5.0)]));
        assert_eq!(read("latency", &["900 ms", "1.15 s"]), (Some("ms".into()), vec![Some(900.0), Some(1150.0)]));
        assert_eq!(read("time_s", &["900 ms", "2 s"]), (None, vec![Some(0.9), Some(2.0)]));
        assert_eq!(read("Mean", &["1,204.5 ns", "98.1 ns"]), (Some("ns".into()), vec![Some(1204.5), Some(98.1)]));
        assert_eq!(read("bw", &["900 MB/s", "1.5 GB/s"]).1, [Some(900.0), Some(1500.0)]);
        assert_eq!(read("data set", &["2 kB", "16 kB"]), (Some("kB".into()), vec![Some(2.0), Some(16.0)]));
        for unit in units() {
            let cell = format!("2 {}", unit.name);
            assert_eq!(read("a", &[&cell]), (Some(unit.name.to_string()), vec![Some(2.0)]), "{cell}");
        }
    }

    #[test]
    fn scatter_and_bold_type_are_no_part_of_a_number() {
        assert_eq!(read("t/s", &["53.30 ± 0.09", "**61.2** ± 1"]).1, [Some(53.3), Some(61.2)]);
        assert_eq!(read("a", &["7.5 +/- 0.1 ms", "8 ± 0.2 ms"]), (Some("ms".into()), vec![Some(7.5), Some(8.0)]));
        assert_eq!(read("a", &["(7.5 ± 0.1) ms", "3.5 (1.4x)", "`4`"]).1, [Some(7.5), Some(3.5), Some(4.0)]);
    }

    #[test]
    fn sizes_are_read_in_every_notation() {
        assert_eq!(read("n", &["1K", "3K"]), (Some("K".into()), vec![Some(1.0), Some(3.0)]));
        assert_eq!(read("n", &["512", "1K", "64Ki", "1M"]).1, [512.0, 1024.0, 65536.0, 1_048_576.0].map(Some));
        assert_eq!(read("n", &["512", "64 kB", "1 MiB"]).1, [512.0, 64e3, 1_048_576.0].map(Some));
        assert_eq!(read("n", &["2^10", "2**3", "1<<4", "1e3", "1_000"]).1, [1024.0, 8.0, 16.0, 1e3, 1e3].map(Some));
        for cell in ["OOM", "N/A", "-", "RuntimeError", "nan", "2^99999", "12abc", "", "1.2.3"] {
            assert_eq!(read("n", &["1", cell]).1[1], None, "{cell}");
        }
    }
}
