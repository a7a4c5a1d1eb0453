//! Failures of readings. Each quantity is reported once, and quantities that fail for the same reason share a line: if
//! a driver disappears, all of its readings fail together.

use std::collections::BTreeSet;

/// Warnings to be reported, and the quantities that were reported already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings {
    seen: BTreeSet<&'static str>,
    /// Each reason, with the quantities that cannot be read because of it.
    fresh: Vec<(String, Vec<&'static str>)>,
}

impl Warnings {
    /// Notes that `what` cannot be read, unless that was noted before.
    pub(crate) fn unreadable(&mut self, what: &'static str, why: &str) {
        if self.seen.insert(what) {
            match self.fresh.iter_mut().find(|(known, _)| known == why) {
                Some((_, all)) => all.push(what),
                None => self.fresh.push((why.to_owned(), vec![what])),
            }
        }
    }

    /// Notes that a value is missing, where it is.
    pub(crate) fn expect<T>(&mut self, value: Option<T>, what: &'static str, why: &str) {
        if value.is_none() {
            self.unreadable(what, why);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh)
            .into_iter()
            .map(|(why, what)| format!("{} cannot be read: {why}", listed(&what)))
            .collect()
    }
}

fn listed(what: &[&str]) -> String {
    match what {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [a, b, c, _, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} other readings", rest.len() + 1),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_is_reported_once() {
        let mut warnings = Warnings::default();
        warnings.unreadable("the power", "no permission");
        warnings.unreadable("the power", "the driver is gone");
        warnings.expect(Some(1), "the memory", "no driver");
        warnings.expect(None::<u32>, "the clock", "no driver");
        assert_eq!(warnings.take(), ["the power cannot be read: no permission", "the clock cannot be read: no driver"]);
        warnings.unreadable("the power", "no permission");
        assert!(warnings.take().is_empty());
    }

    #[test]
    fn what_vanishes_together_is_reported_in_one_line() {
        for (what, expected) in [
            (&["the power", "the memory", "the temperature"][..], "the power, the memory and the temperature"),
            (&["a", "b", "c", "d", "e", "f"], "a, b, c and 3 other readings"),
        ] {
            let mut warnings = Warnings::default();
            what.iter().for_each(|what| warnings.unreadable(what, "the GPU is lost"));
            assert_eq!(warnings.take(), [format!("{expected} cannot be read: the GPU is lost")]);
        }
    }
}
