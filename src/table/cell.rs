//! The cells of a column as numbers: units, scatter behind a `±`, thousands, powers.

use super::comma::{Comma, is_digits, is_grouped};
use super::names::Reading;
use super::number::NumberAndRest;
use super::units::{TimeOrRate, Unit, unit};

/// How the numbers of a column are written, from some of its cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notation {
    comma: Comma,
    /// Whether a point before three digits divides thousands, as beside decimal commas.
    has_groups: bool,
    /// What the column measures, where its name or its cells say that.
    measured: Option<TimeOrRate>,
    /// The unit that values are given in, where it is known.
    unit: Option<&'static Unit>,
    /// The common ending of all cells, which is added to the name.
    shared: Option<String>,
}

impl Notation {
    /// The notation of the column of that `name`.
    pub fn of<'a>(name: &str, mut cells: impl Iterator<Item = &'a str> + Clone) -> Self {
        let parts = cells.clone().filter_map(NumberAndRest::of);
        let comma = Comma::of(parts.clone().map(|parts| parts.number));
        let reading = Reading::of(name);
        let in_name = unit(&reading.unit);
        let mut rests = parts.map(|parts| parts.rest);
        let first = rests.next().filter(|rest| is_short(rest) && !has_digit(rest));
        // `k img/s` is a multiple of a unit, which becomes the column's.
        let shared = first
            .filter(|first| in_name.is_none() && prefixed(first).is_none() && rests.all(|rest| rest == *first))
            .map(str::to_string);
        let in_cells = move || {
            let of_cell = |cell: &str| Some(scaled(NumberAndRest::of(cell)?.rest)?.0);
            cells.find_map(|cell| duration(cell).and(unit("s")).or_else(|| of_cell(cell)))
        };
        let unit = in_name.or_else(in_cells);
        Self { comma, has_groups: false, measured: measured(&reading).or(unit.map(|unit| unit.kind)), unit, shared }
    }

    /// If other numbers in the table have decimal points, commas are not decimal; else they are beside semicolons, as in spreadsheets with
    /// decimal commas.
    pub fn beside_points(mut self, points: bool, semicolons: bool) -> Self {
        self.comma = match self.comma {
            Comma::Unknown if points => Comma::Thousands,
            Comma::Unknown if semicolons => Comma::Decimal,
            comma => comma,
        };
        self
    }

    /// If numbers of the `table` have decimal commas, points that may all divide thousands do so.
    pub fn beside_commas<'a>(
        mut self,
        table: &[Self],
        semicolons: bool,
        mut cells: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut decimal = table.iter().filter(|other| other.comma == Comma::Decimal).peekable();
        // The comma of another column may stand in a pair, `8,1`, which says nothing about times such as `5.227`.
        let by_any = semicolons && self.measured.is_none() && decimal.peek().is_some();
        let is_shown = self.comma == Comma::Decimal || by_any || decimal.any(|other| other.measured.is_some());
        self.has_groups = is_shown && !cells.any(has_point);
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
        // The usual case first, unless its point divides thousands.
        let is_plain = !self.has_groups || !is_grouped(text.trim());
        if is_plain && let Ok(number) = text.trim().parse::<f64>() {
            return Some(number).filter(|number| number.is_finite());
        }
        let NumberAndRest { number, rest } = NumberAndRest::of(text)?;
        if let Some(seconds) = duration(text) {
            return Some(seconds / self.unit.filter(|unit| unit.base == "s").map_or(1.0, |unit| unit.factor));
        }
        let plain = number.replace('_', "");
        let plain = if self.has_groups && is_grouped(&plain) { plain.replace('.', "") } else { plain };
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
        match (scaled(rest), self.unit) {
            (Some((own, factor)), Some(unit)) if own.base == unit.base => Some(value * factor / unit.factor),
            (None, Some(unit)) if is_minutes(rest, unit) => Some(value * 60.0 / unit.factor),
            _ => multiple(rest, self.measured).map(|factor| value * factor),
        }
    }
}

/// What a column of that name measures.
fn measured(reading: &Reading) -> Option<TimeOrRate> {
    let said = reading.kind.or(reading.is_time().then_some(TimeOrRate::Time));
    said.or(reading.is_provider().then_some(TimeOrRate::Rate))
}

/// Whether a cell of a column in seconds is in minutes. Of milliseconds, `m` may be an abbreviation.
fn is_minutes(rest: &str, unit: &Unit) -> bool {
    unit.base == "s" && (matches!(rest, "min" | "mins") || rest == "m" && unit.name == "s")
}

/// A unit as a cell writes it, and how many of its base one is.
fn scaled(text: &str) -> Option<(&'static Unit, f64)> {
    prefixed(text).or_else(|| unit_of(text).map(|unit| (unit, unit.factor)))
}

/// A rate behind a letter that multiplies it: `k img/s`. The letter of `GB/s` is its own, as `B/s` is no unit here.
fn prefixed(text: &str) -> Option<(&'static Unit, f64)> {
    let rest = text.strip_prefix(['k', 'K', 'M', 'G'])?.trim_start();
    let thousands = match text.as_bytes()[0] {
        b'M' => 1e6,
        b'G' => 1e9,
        _ => 1e3,
    };
    unit_of(rest).filter(|unit| unit.kind == TimeOrRate::Rate).map(|unit| (unit, thousands * unit.factor))
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
    let plain = rest.strip_prefix('^').or_else(|| rest.strip_prefix("**"));
    // nvbench writes `2^10 = 1024`.
    let exponent = plain.or_else(|| rest.strip_prefix("<<"))?.split('=').next()?.trim().parse::<i32>().ok()?;
    let value = if plain.is_some() { base.powi(exponent) } else { base * 2f64.powi(exponent) };
    Some(value).filter(|value| exponent.abs() <= 300 && value.is_finite())
}

/// The number that `K`, `Mi` or `kB` means. Without a `B`, and with an `i`, sizes are counted in powers of two; times and rates are not.
fn multiple(rest: &str, measured: Option<TimeOrRate>) -> Option<f64> {
    let mut letters = rest.chars();
    let letter = letters.next()?;
    let power = "kmgt".find(letter.to_ascii_lowercase())? as i32 + 1;
    match (letters.as_str(), measured) {
        // Minutes, or thousandths.
        ("", Some(TimeOrRate::Time)) if letter == 'm' => None,
        ("", Some(_)) | ("B" | "b", _) => Some(1000f64.powi(power)),
        ("" | "i" | "iB" | "ib", _) => Some(1024f64.powi(power)),
        _ => None,
    }
}

/// Whether the point in a cell's number cannot divide thousands: `0.031`, `12.5`.
pub(super) fn has_point(text: &str) -> bool {
    let parts = NumberAndRest::of(text);
    parts.as_ref().and_then(|parts| parts.number.split_once('.')).is_some_and(|(whole, fraction)| {
        is_digits(whole) && is_digits(fraction) && (fraction.len() != 3 || whole == "0")
    })
}

/// Whether a text has a digit.
pub(super) fn has_digit(text: &str) -> bool {
    text.contains(|letter: char| letter.is_ascii_digit())
}

/// Whether a cell is a number, perhaps with a unit.
pub(super) fn is_number(text: &str) -> bool {
    let is_unit = |rest: &str| power(1.0, rest).is_some() || rest.len() <= 16 && !has_digit(rest);
    duration(text).is_some() || NumberAndRest::of(text).is_some_and(|parts| is_unit(parts.rest))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, cells: &[&str]) -> (Option<String>, Vec<Option<f64>>) {
        let notation = Notation::of(name, cells.iter().copied());
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
        for unit in super::super::units::UNITS {
            let cell = format!("2 {}", unit.name);
            assert_eq!(read("a", &[&cell]), (Some(unit.name.to_string()), vec![Some(2.0)]), "{cell}");
        }
    }

    #[test]
    fn multiples_of_rates_and_times_are_decimal() {
        assert_eq!(read("throughput", &["990", "1.5k", "2M"]).1, [990.0, 1500.0, 2e6].map(Some));
        assert_eq!(
            read("throughput", &["985 img/s", "1.5k img/s"]),
            (Some("images/s".into()), vec![Some(985.0), Some(1500.0)])
        );
        let tokens = (Some("tokens/s".to_string()), vec![Some(60e3), Some(1.5e6)]);
        assert_eq!(read("rate", &["60K tokens/s", "1.5M tokens/s"]), tokens);
        assert_eq!(
            read("rate", &["2K tokens/s", "3K tokens/s"]),
            (Some("tokens/s".into()), vec![Some(2e3), Some(3e3)])
        );
        assert_eq!(read("time", &["58.5s", "1.5m", "2 min"]).1, [58.5, 90.0, 120.0].map(Some));
        assert_eq!(read("time_ms", &["950", "1.5m", "1.5k"]).1, [Some(950.0), None, Some(1500.0)]);
        assert_eq!(read("bw", &["900 MB/s", "1.5 GB/s", "2 Gbit/s"]).1, [Some(900.0), Some(1500.0), None]);
    }

    #[test]
    fn apostrophes_and_blanks_divide_thousands() {
        let found = [5226.5, 1_234_567.5, 998.5].map(Some);
        assert_eq!(read("time_us", &["5'226.5", "1'234'567.5", "998.5"]).1, found);
        assert_eq!(read("time_us", &["5\u{2019}226.5", "1\u{2019}234\u{2019}567.5", "998.5"]).1, found);
        assert_eq!(read("time_us", &["5 226.5", "1 234 567.5", "998.5"]).1, found);
        assert_eq!(read("time_us", &["5\u{202f}226,5", "1\u{a0}234\u{a0}567,5", "998,5"]).1, found);
        assert_eq!(read("n", &["1\u{a0}024", "8 512", "8'51", "1234'567"]).1, [Some(1024.0), None, None, None]);
    }

    #[test]
    fn points_divide_thousands_beside_decimal_commas() {
        let (sizes, times) = (["960", "1.024", "1.234.567"], ["15,68", "1.046,2", "16,5"]);
        let table = [Notation::of("Batch", sizes.into_iter()), Notation::of("Zeit_ms", times.into_iter())];
        let of = |at: usize, cells: [&'static str; 3]| {
            let notation = table[at].clone().beside_commas(&table, true, cells.into_iter());
            cells.map(|cell| notation.number(cell))
        };
        assert_eq!(of(0, sizes), [960.0, 1024.0, 1_234_567.0].map(Some));
        assert_eq!(of(1, times), [15.68, 1046.2, 16.5].map(Some));
        assert_eq!(of(0, ["0.5", "1.024", "2.048"]), [0.5, 1.024, 2.048].map(Some));
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
