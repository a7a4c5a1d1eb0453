//! Numbers with a decimal comma, as spreadsheets write them in many countries.

/// What the commas in a column's texts mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comma {
    /// Nothing that is known.
    Unknown,
    /// That of `1,5`.
    Decimal,
}

impl Comma {
    /// Decimal where any of the texts can't be read in another way: `1,5` and `0,123`, while `1,234` may be a thousand.
    pub fn of(texts: &[String]) -> Self {
        if texts.iter().any(|text| parts(text).is_some_and(|parts| !may_be_thousands(parts))) {
            Self::Decimal
        } else {
            Self::Unknown
        }
    }

    /// The number in a text with one comma; `None` where it is none, or its comma may mean something else.
    pub fn read(self, text: &str) -> Option<f64> {
        let (whole, fraction) = parts(text).filter(|_| self == Self::Decimal)?;
        format!("{whole}.{fraction}").parse().ok()
    }
}

/// What stands before and after the one comma of a number.
fn parts(text: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = text.trim().split_once(',')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa = fraction.split_once(['e', 'E']).map_or(fraction, |(mantissa, _)| mantissa);
    (digits(whole.trim_start_matches(['+', '-'])) && digits(mantissa)).then_some((whole, fraction))
}

fn may_be_thousands((whole, fraction): (&str, &str)) -> bool {
    let whole = whole.trim_start_matches(['+', '-']);
    fraction.len() == 3 && whole.len() <= 3 && !whole.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Vec<Option<f64>> {
        let comma = Comma::of(&texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        texts.iter().map(|text| comma.read(text)).collect()
    }

    #[test]
    fn a_comma_is_decimal_where_nothing_else_is_possible() {
        assert_eq!(read(&["1,5", "-12,25", "1,234", "2,5e-3"]), [1.5, -12.25, 1.234, 2.5e-3].map(Some));
        assert_eq!(read(&["0,123"]), [Some(0.123)]);
        assert_eq!(read(&["1,234", "56,789"]), [None, None]);
        assert_eq!(read(&["1,5", "1,234,567", "1.234,5", "a,5", ",5", "5,"])[1..], [None; 5]);
    }
}
