//! The notation of the batch axis: `1..=70`, `1..71`, `1..=512 step 8`.

use regex::Regex;

/// Reads a range of batch sizes.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub(super) fn parse_range(text: &str, limit: usize) -> Result<Vec<usize>, String> {
    let notation = Regex::new(r"^\s*(\d+)\s*\.\.(=?)\s*(\d+)\s*(?:step\s*(\d+)\s*)?$").ok();
    let found = notation.as_ref().and_then(|notation| notation.captures(text)).ok_or_else(|| form(text))?;
    let number =
        |place: usize| found.get(place).map_or(Ok(1), |digits| digits.as_str().parse().map_err(|_| form(text)));
    let (low, high, step): (usize, usize, usize) = (number(1)?, number(3)?, number(4)?);
    let inclusive = &found[2] == "=";
    let end = if inclusive { high } else { high.saturating_sub(1) };
    if step == 0 {
        return Err("the step of a range must be at least 1".to_string());
    }
    if low == 0 {
        return Err("a batch holds at least 1 example".to_string());
    }
    if low > end || (high == 0 && !inclusive) {
        return Err(format!("the range from {low} to {end} is empty"));
    }
    if (end - low) / step >= limit {
        return Err(format!("the range names more than {limit} batch sizes"));
    }
    Ok((low..=end).step_by(step).collect())
}

/// How a range is written; also in these notations, if its numbers are plain: `1-24`, `1 to 24`, `8:64:8`.
fn form(text: &str) -> String {
    const FORM: &str = "a range is written \"1..=70\", or \"1..=512 step 8\"";
    let numbers: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()).collect();
    match numbers[..] {
        [one] => format!("{FORM}; one batch size is written [{one}]"),
        [low, high] => format!("{FORM}; write \"{low}..={high}\""),
        [low, high, step] => {
            format!("{FORM}; write \"{low}..={high} step {step}\", or a list: [{low}, {high}, {step}]")
        }
        _ => FORM.to_owned(),
    }
}

/// The notice for an exclusive range that ends at an even number, as written by someone who takes the end to be part of it:
/// `1..70`, and not `1..71`.
pub(super) fn surprise(text: &str, sizes: &[usize]) -> Option<String> {
    let (low, high) = text.split_once("..").filter(|(_, high)| !high.starts_with('='))?;
    let end: usize = high.split("step").next()?.trim().parse().ok()?;
    let (first, last) = (sizes.first()?, sizes.last()?);
    let low = low.trim();
    end.is_multiple_of(2).then(|| {
        format!("the batch sizes are {first} to {last}; `{low}..={end}` is the range that has {end} in it too")
    })
}

/// Writes batch sizes in the shortest form that reads back the same; `None` where only a list can.
pub(super) fn range_text(sizes: &[usize]) -> Option<String> {
    let (first, last) = (*sizes.first()?, *sizes.last()?);
    let step = sizes.get(1)?.checked_sub(first)?;
    let regular = step > 0 && sizes.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(step));
    match (regular, step) {
        (false, _) => None,
        (true, 1) => Some(format!("{first}..={last}")),
        (true, _) => Some(format!("{first}..={last} step {step}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_its_end_is_reported_where_that_is_likely_a_slip() {
        let notice = |text: &str| surprise(text, &parse_range(text, 100).expect("a range"));
        let expected = "the batch sizes are 1 to 69; `1..=70` is the range that has 70 in it too";
        assert_eq!(notice("1..70").as_deref(), Some(expected));
        assert!(notice(" 8 .. 32 step 8").is_some_and(|text| text.contains("8 to 24") && text.contains("`8..=32`")));
        for fine in ["1..71", "1..=70", "1..=64 step 8"] {
            assert_eq!(notice(fine), None, "{fine}");
        }
    }

    #[test]
    fn ranges_read_as_rust_reads_them_and_what_is_written_reads_back() {
        for (text, sizes, written) in [
            ("1..=4", &[1, 2, 3, 4][..], Some("1..=4")),
            ("1..4", &[1, 2, 3], Some("1..=3")),
            (" 8 ..= 30 step 8 ", &[8, 16, 24], Some("8..=24 step 8")),
            ("7..=7", &[7], None),
        ] {
            assert_eq!((parse_range(text, 100).as_deref(), range_text(sizes).as_deref()), (Ok(sizes), written));
        }
        assert_eq!(range_text(&[1, 2, 4]), None);
    }

    #[test]
    fn ranges_of_nothing_and_of_too_much_are_refused() {
        for (text, right) in [
            ("1-24", "write \"1..=24\""),
            ("1 to 24", "write \"1..=24\""),
            ("1\u{2013}24", "write \"1..=24\""),
            ("1...24", "write \"1..=24\""),
            ("8:64:8", "write \"8..=64 step 8\""),
            ("16", "[16]"),
            ("5..=4", "empty"),
            ("3..3", "empty"),
            ("0..=4", "at least 1"),
            ("1..=4 step 0", "must be at least 1"),
            ("1..=4000000000", "more than 100"),
        ] {
            let error = parse_range(text, 100).unwrap_err();
            assert!(error.contains(right), "{text}: {error}");
        }
        assert!(parse_range("1..=99999999999999999999999", 100).is_err());
    }
}
