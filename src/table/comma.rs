//! What the commas in the numbers of a column mean.

/// A comma in a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Comma {
    /// No number of the column holds one.
    #[default]
    None,
    /// As in `1,5`.
    Decimal,
    /// As in `1,234.5`.
    Thousands,
    /// All are like `1,234`, which is one and a bit or more than a thousand.
    Unknown,
}

impl Comma {
    /// The meaning of commas in `texts`, which may be numbers.
    pub fn of<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> Self {
        let mut found = Self::None;
        for text in texts.filter(|text| text.as_ref().contains(',')) {
            let text = text.as_ref();
            found = match parts(text) {
                Some(parts) if !may_be_thousands(parts) => return Self::Decimal,
                Some(_) if found == Self::None => Self::Unknown,
                Some(_) => found,
                None if thousands(text).is_some() => Self::Thousands,
                None => found,
            };
        }
        found
    }

    /// The number in a text with a comma; `None` if the text is not a number, or its comma may mean something else.
    pub fn read(self, text: &str) -> Option<f64> {
        match self {
            Self::Decimal => {
                let (whole, fraction) = parts(text)?;
                format!("{}.{fraction}", whole.replace('.', "")).parse().ok()
            }
            Self::Thousands => thousands(text),
            Self::None | Self::Unknown => None,
        }
    }
}

/// What stands before and after the one comma of a number; points may divide thousands before it.
fn parts(text: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = text.trim().split_once(',')?;
    let mantissa = fraction.split_once(['e', 'E']).map_or(fraction, |(mantissa, _)| mantissa);
    let is_whole = is_digits(whole.trim_start_matches(SIGNS)) || is_grouped(whole);
    (is_whole && is_digits(mantissa)).then_some((whole, fraction))
}

const SIGNS: [char; 2] = ['+', '-'];

/// Whether a text is digits and nothing else.
pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether `mark` divides a whole number into groups of three digits, where it has any.
fn is_divided(text: &str, mark: char) -> bool {
    let mut groups = text.trim_start_matches(SIGNS).split(mark);
    let is_first = groups.next().is_some_and(|first| first.len() <= 3 && is_digits(first));
    is_first && groups.all(|group| group.len() == 3 && is_digits(group))
}

/// Whether the points of a text may all divide groups of three digits, and it has one: `1.024`, `1.234.567`.
pub(super) fn is_grouped(text: &str) -> bool {
    text.contains('.') && is_divided(text, '.') && !text.trim_start_matches(SIGNS).starts_with('0')
}

fn may_be_thousands((whole, fraction): (&str, &str)) -> bool {
    let whole = whole.trim_start_matches(SIGNS);
    fraction.len() == 3 && whole.len() <= 3 && !whole.starts_with('0')
}

/// A number whose commas all divide groups of three digits.
fn thousands(text: &str) -> Option<f64> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_number = is_divided(whole, ',') && !fraction.contains(',');
    is_number.then(|| text.trim().replace(',', "").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Vec<Option<f64>> {
        let comma = Comma::of(texts.iter());
        texts.iter().map(|text| comma.read(text)).collect()
    }

    #[test]
    fn a_comma_is_decimal_where_nothing_else_is_possible() {
        assert_eq!(read(&["1,5", "-12,25", "1,234", "2,5e-3"]), [1.5, -12.25, 1.234, 2.5e-3].map(Some));
        assert_eq!(read(&["0,123"]), [Some(0.123)]);
        assert_eq!(read(&["1,234", "56,789"]), [None, None]);
        assert_eq!(read(&["1,5", "1,234,567", "12.34,5", "a,5", ",5", "5,"])[1..], [None; 5]);
        assert_eq!(read(&["1.046,2", "998,5", "1.234.567,25"]), [1046.2, 998.5, 1_234_567.25].map(Some));
        assert_eq!(
            ["1.024", "1.234.567", "12.5", "0.123", "1024", ""].map(is_grouped),
            [true, true, false, false, false, false]
        );
    }

    #[test]
    fn commas_divide_thousands_where_a_point_or_a_second_comma_shows_it() {
        assert_eq!(read(&["1,234", "5,179.7"]), [Some(1234.0), Some(5179.7)]);
        assert_eq!(read(&["1,234,567", "12,345"]), [Some(1_234_567.0), Some(12_345.0)]);
        assert_eq!(read(&["1,23,456.7"]), [None]);
        assert_eq!(Comma::of(["1,234"].into_iter()), Comma::Unknown);
    }
}
