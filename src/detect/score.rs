//! How well jumps were found, against a known truth.

/// Counts over one or more series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Jumps found where there is one.
    pub found: usize,
    /// Jumps claimed where there is none.
    pub invented: usize,
    /// Jumps that were missed.
    pub missed: usize,
}

impl Score {
    /// Matches `claimed` to `true_jumps` (both values of "after") one to one, nearest first, at most `tolerance` apart.
    ///
    /// ```
    /// use batchstep::detect::score::Score;
    /// let score = Score::of(&[16.0, 33.0], &[16.0, 32.0, 48.0], 0.0);
    /// assert_eq!((score.found, score.invented, score.missed), (1, 1, 2));
    /// ```
    pub fn of(claimed: &[f64], true_jumps: &[f64], tolerance: f64) -> Self {
        let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
        for (i, claim) in claimed.iter().enumerate() {
            for (j, truth) in true_jumps.iter().enumerate() {
                let distance = (claim - truth).abs();
                if distance <= tolerance {
                    pairs.push((distance, i, j));
                }
            }
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut used, mut met) = (vec![false; claimed.len()], vec![false; true_jumps.len()]);
        let mut found = 0;
        for (_, i, j) in pairs {
            if !used[i] && !met[j] {
                (used[i], met[j]) = (true, true);
                found += 1;
            }
        }
        Self { found, invented: claimed.len() - found, missed: true_jumps.len() - found }
    }

    /// Both counts together.
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

    /// Share of the true jumps that are found; 1 where there are none.
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

    #[test]
    fn counts_of_a_hand_worked_case() {
        // claims 8 17 40, truth 8 16 32: at tolerance 0 one is right; at 1 the 17 counts for 16
        let exact = Score::of(&[8.0, 17.0, 40.0], &[8.0, 16.0, 32.0], 0.0);
        assert_eq!(exact, Score { found: 1, invented: 2, missed: 2 });
        let near = Score::of(&[8.0, 17.0, 40.0], &[8.0, 16.0, 32.0], 1.0);
        assert_eq!(near, Score { found: 2, invented: 1, missed: 1 });
        assert!((near.precision() - 2.0 / 3.0).abs() < 1e-15 && (near.f1() - 4.0 / 6.0).abs() < 1e-15);
    }

    #[test]
    fn a_claim_serves_only_one_jump() {
        assert_eq!(Score::of(&[10.0], &[9.0, 11.0], 1.0), Score { found: 1, invented: 0, missed: 1 });
    }

    #[test]
    fn silence_on_a_quiet_series_is_perfect() {
        let score = Score::of(&[], &[], 0.0);
        assert_eq!((score.precision(), score.recall(), score.f1()), (1.0, 1.0, 1.0));
    }
}
