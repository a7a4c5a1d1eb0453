//! What was found, in sentences that texts and charts share.

pub mod crossover;
mod machines;
mod repeated;
mod slow;
mod summary;
mod unexplained;

pub use crossover::{crossover_sentence, first_size};
pub use machines::machines;
pub use repeated::Repeated;
pub use slow::slow;
pub use summary::{COARSE, has_too_few_points, is_too_steep, places, seen_between, smallest_seen, summary};
pub use unexplained::at_the_ends;

use crate::units::human;

/// The first of these, and how many more there are.
pub fn shortened(all: impl ExactSizeIterator<Item = String>, most: usize) -> Vec<String> {
    let more = all.len().saturating_sub(most);
    let more = (more > 0).then(|| format!("{} more", human::count(more as u64)));
    all.take(most).chain(more).collect()
}
