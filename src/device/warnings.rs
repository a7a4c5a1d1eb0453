//! Failures of readings: the first of each kind is told, the rest are silence.

use std::collections::BTreeSet;

/// Warnings not told yet, and the kinds told already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings {
    seen: BTreeSet<&'static str>,
    fresh: Vec<String>,
}

impl Warnings {
    /// Notes that `what` cannot be read, unless that was noted before.
    pub(crate) fn unreadable(&mut self, what: &'static str, why: &str) {
        if self.seen.insert(what) {
            self.fresh.push(format!("{what} cannot be read: {why}"));
        }
    }

    /// The value, or a note that it is missing.
    pub(crate) fn expect<T>(&mut self, value: Option<T>, what: &'static str, why: &str) -> Option<T> {
        if value.is_none() {
            self.unreadable(what, why);
        }
        value
    }

    /// The warnings since the last call.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_is_told_once() {
        let mut warnings = Warnings::default();
        warnings.unreadable("the power", "no permission");
        warnings.unreadable("the power", "the driver is gone");
        assert_eq!(warnings.expect(Some(1), "the clock", "no driver"), Some(1));
        assert_eq!(warnings.expect(None::<u32>, "the clock", "no driver"), None);
        assert_eq!(warnings.take(), ["the power cannot be read: no permission", "the clock cannot be read: no driver"]);
        warnings.unreadable("the power", "no permission");
        assert!(warnings.take().is_empty());
    }
}
