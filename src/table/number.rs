//! A number that a cell begins with, and the text behind it.

use std::borrow::Cow;

/// A number, without marks between thousands other than points and commas, and the text after it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NumberAndRest<'a> {
    pub number: Cow<'a, str>,
    pub rest: &'a str,
}

impl<'a> NumberAndRest<'a> {
    /// The parts of a cell that begins with a number: `**5.19 ms** ± 0.02`.
    pub fn of(cell: &'a str) -> Option<Self> {
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
                _ => match group(&cell[..end], &cell[end..]) {
                    Some(length) => length,
                    None => break,
                },
            };
        }
        let (number, rest) = cell.split_at(end);
        let is_mark = |letter: char| !letter.is_ascii() || letter == ' ' || letter == '\'';
        let number = if number.contains(is_mark) { Cow::from(number.replace(is_mark, "")) } else { Cow::from(number) };
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
            let is_scatter = after.starts_with(|letter: char| letter.is_ascii_digit());
            if is_scatter { after.trim_start_matches(number) } else { after }
        }
        Some((before, _)) => before,
        None => rest,
    };
    // `5.1 (1.3x)`: text in brackets is the unit only if there is no text before them.
    let unit = unit.split('(').next().unwrap_or_default();
    unit.trim_matches(|letter: char| letter.is_whitespace() || ")*%".contains(letter))
}

/// The length of a mark between thousands and of the three digits behind it, if `before` may be thousands: `5'226.8`, `5 226,8`.
fn group(before: &str, behind: &str) -> Option<usize> {
    // Typewriter and curly apostrophes, and the three blanks that do not break a line.
    const MARKS: &[char] = &['\'', '\u{2019}', '\u{a0}', '\u{202f}', '\u{2009}'];
    let is_digit = |letter: char| letter.is_ascii_digit();
    let mark = behind.chars().next()?;
    let rest = &behind[mark.len_utf8()..];
    // An ordinary blank may stand between two numbers: a fraction shows that it does not.
    let is_fraction = || {
        let end = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' ');
        end.strip_prefix(['.', ',']).is_some_and(|fraction| fraction.starts_with(is_digit))
    };
    let divides = MARKS.contains(&mark) || mark == ' ' && is_fraction();
    if !divides {
        return None;
    }
    let ahead = before.trim_end_matches(is_digit);
    let (first, digits) = (before.len() - ahead.len(), rest.len() - rest.trim_start_matches(is_digit).len());
    let is_first = matches!(ahead, "" | "+" | "-") && (1..=3).contains(&first);
    let is_next = ahead.ends_with(mark) && first == 3;
    ((is_first || is_next) && digits == 3).then_some(mark.len_utf8() + 3)
}
