//! Rounds: sides that were measured in turns. A side is a folder, and in it each turn is a run directory that is called after its round.

use std::path::{Path, PathBuf};

use crate::analysis::{self, Query, Series};
use crate::error::{Error, Result};
use crate::random::Rng;

/// Where the turn of a side in a round lies.
pub fn turn(side: &Path, round: u32) -> PathBuf {
    side.join(round.to_string())
}

/// For each round the order of the sides. It is random in the first round and the other way round in the second, and so on, so that a
/// machine that gets slower and slower is as bad for each of them.
pub fn order(rounds: u32, sides: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = Rng::new(seed);
    let mut order: Vec<usize> = (0..sides).collect();
    let mut next = |round: u32| {
        if round % 2 == 1 {
            order.reverse();
        } else {
            random.shuffle(&mut order);
        }
        order.clone()
    };
    (0..rounds).map(&mut next).collect()
}

/// The series of a side, with the number of the round as the block number. Any other source, such as a table with a column `block`, is read
/// by [`analysis::series`].
///
/// # Errors
/// As [`analysis::series`]; [`crate::error::Kind::Io`] where the folder can't be read.
pub fn series(side: &Path, query: &Query) -> Result<Vec<Series>> {
    let mut all = Vec::new();
    for (round, path) in turns(side)? {
        let mut series = analysis::series(&path, query)?;
        let steps = series.iter_mut().flat_map(|series| &mut series.measurements);
        steps.for_each(|step| step.observation.block = Some(round));
        all.extend(series);
    }
    if all.is_empty() { analysis::series(side, query) } else { Ok(all) }
}

/// The rounds by number; empty if `side` is not a folder.
fn turns(side: &Path) -> Result<Vec<(u32, PathBuf)>> {
    if !side.is_dir() {
        return Ok(Vec::new());
    }
    let refused = |e: std::io::Error| Error::io("read the folder", side, &e);
    let mut turns = Vec::new();
    for entry in std::fs::read_dir(side).map_err(refused)? {
        let name = entry.map_err(refused)?.file_name();
        turns.extend(name.to_str().and_then(|name| name.parse().ok()).map(|round| (round, turn(side, round))));
    }
    turns.sort();
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn every_side_is_as_often_early_as_late() {
        let all = order(100, 2, 1);
        assert!(all.chunks(2).all(|pair| pair[0].iter().rev().eq(&pair[1])), "{all:?}");
        let first = all.iter().step_by(2).filter(|round| round[0] == 0).count();
        // Binomial(50, 1/2): mean 25, sd 3.5; four standard deviations either way.
        assert!((11..=39).contains(&first), "{first}");
        assert_eq!(order(3, 3, 7), order(3, 3, 7));
    }
}
