//! Texts that are values of axes: copied like numbers, and kept for as long as the program runs.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// A text of which there is one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(&'static str);

static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Text {
    /// An object without members.
    pub const NONE: Self = Self("{}");

    /// Each text takes memory once; a spec has some, and a run a few.
    pub fn new(text: &str) -> Self {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = known.get(text).copied().unwrap_or_else(|| {
            let kept: &'static str = Box::leak(text.into());
            known.insert(kept);
            kept
        });
        Self(kept)
    }

    /// As a person reads it: `seq_len=128, attention=sdpa`.
    pub fn in_words(self) -> String {
        super::arguments::in_words(self.0)
    }

    pub fn as_str(self) -> &'static str {
        self.0
    }
}
