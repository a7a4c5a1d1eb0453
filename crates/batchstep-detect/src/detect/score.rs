//! How well jumps were found, compared with a known truth.

/// Counts over one or more series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// True jumps that were found.
    pub found: usize,
    /// Jumps that were claimed at places without a jump.
    pub invented: usize,
    /// Jumps that were missed.
    pub missed: usize,
}

/// The range of values of "after" that are right for one jump, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub first: f64,
    pub last: f64,
}

impl Place {
    /// The distance of a claim from the range; 0 within it.
    pub fn distance(&self, claim: f64) -> f64 {
        (self.first - claim).max(claim - self.last).max(0.0)
    }
}

impl Score {
    /// Matches `claimed` values of "after" to `places` one to one, nearest first, at most `tolerance` apart. Further claims within the places of a found
    /// jump count as that jump.
    pub fn of(claimed: &[f64], places: &[Place], tolerance: f64) -> Self {
        let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
        for (i, claim) in claimed.iter().enumerate() {
            for (j, place) in places.iter().enumerate() {
                let distance = place.distance(*claim);
                if distance <= tolerance {
                    pairs.push((distance, i, j));
                }
            }
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut used, mut met) = (vec![false; claimed.len()], vec![false; places.len()]);
        let mut found = 0;
        for (_, i, j) in pairs {
            if !used[i] && !met[j] {
                (used[i], met[j]) = (true, true);
                found += 1;
            }
        }
        let again = |claim: f64| places.iter().any(|place| place.last > place.first && place.distance(claim) == 0.0);
        let invented = claimed.iter().zip(&used).filter(|(claim, used)| !**used && !again(**claim)).count();
        Self { found, invented, missed: places.len() - found }
    }

    /// The sum of both counts.
    pub fn plus(self, other: Self) -> Self {
        Self {
            found: self.found + other.found,
            invented: self.invented + other.invented,
            missed: self.missed + other.missed,
        }
    }

    /// Share of the claims that are true; 1 where nothing is claimed.
    pub fn precision(self) -> f64 {
        share(self.found, self.found + self.invented)
    }

    /// Share of the true jumps that are found; 1 if there are no true jumps.
    pub fn recall(self) -> f64 {
        share(self.found, self.found + self.missed)
    }

    /// Harmonic mean of precision and recall.
    pub fn f1(self) -> f64 {
        share(2 * self.found, 2 * self.found + self.invented + self.missed)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(jumps: &[f64]) -> Vec<Place> {
        jumps.iter().map(|&jump| Place { first: jump, last: jump }).collect()
    }

    #[test]
    fn counts_of_a_hand_worked_case() {
        // claims 8 17 40, truth 8 16 32: at tolerance 0 one is right; at 1 the 17 counts for 16
        let exact = Score::of(&[8.0, 17.0, 40.0], &at(&[8.0, 16.0, 32.0]), 0.0);
        assert_eq!(exact, Score { found: 1, invented: 2, missed: 2 });
        let near = Score::of(&[8.0, 17.0, 40.0], &at(&[8.0, 16.0, 32.0]), 1.0);
        assert_eq!(near, Score { found: 2, invented: 1, missed: 1 });
        assert!((near.precision() - 2.0 / 3.0).abs() < 1e-15 && (near.f1() - 4.0 / 6.0).abs() < 1e-15);
    }

    #[test]
    fn a_claim_serves_only_one_jump() {
        assert_eq!(Score::of(&[10.0], &at(&[9.0, 11.0]), 1.0), Score { found: 1, invented: 0, missed: 1 });
    }

    #[test]
    fn any_place_of_a_jump_is_right_once() {
        let places = [Place { first: 9.0, last: 11.0 }, Place { first: 20.0, last: 20.0 }];
        assert_eq!(Score::of(&[10.0, 20.0], &places, 0.0), Score { found: 2, invented: 0, missed: 0 });
        // The second claim within 9 to 11 is the same jump; 12 is wrong at tolerance 0.
        assert_eq!(Score::of(&[9.0, 11.0, 12.0], &places, 0.0), Score { found: 1, invented: 1, missed: 1 });
        assert_eq!(Score::of(&[12.0, 21.0], &places, 1.0), Score { found: 2, invented: 0, missed: 0 });
    }

    #[test]
    fn silence_on_a_quiet_series_is_perfect() {
        let score = Score::of(&[], &[], 0.0);
        assert_eq!((score.precision(), score.recall(), score.f1()), (1.0, 1.0, 1.0));
    }
}
