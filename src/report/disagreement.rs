//! The warning where the tests during a run and the analysis at its end differ.

use super::Warning;
use crate::analysis::Analysed;
use crate::run::{Boundary, Disagreement, Outcome};
use crate::spec::Measure;

/// The jumps that only one of the two shows, if there are any.
pub fn disagreement(outcome: &Outcome, found: &[Analysed], measure: &Measure) -> Option<Warning> {
    let (mut during, mut at_the_end) = (Vec::new(), Vec::new());
    for Analysed { series, findings } in found {
        let cells = outcome.cells.iter().filter(|cell| series.cells.contains(&cell.cell));
        let (cells, x): (Vec<usize>, Vec<f64>) = cells.map(|cell| (cell.cell as usize, cell.batch_size as f64)).unzip();
        let place = |boundary: &Boundary| cells.iter().position(|cell| *cell == boundary.below);
        let decided = outcome.boundaries.iter().filter_map(|boundary| Some((place(boundary)?, boundary.decision)));
        let decisions: Vec<_> = decided.collect();
        let found_here = Disagreement::between(&decisions, &x, &findings.jumps, measure.smallest_jump);
        let name =
            |k: &usize| if found.len() > 1 { format!("{} ({})", x[*k], series.label()) } else { x[*k].to_string() };
        during.extend(found_here.only_the_tests.iter().map(name));
        at_the_end.extend(found_here.only_the_analysis.iter().map(name));
    }
    (!during.is_empty() || !at_the_end.is_empty()).then_some(Warning::Disagreement { during, at_the_end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Series;
    use crate::run::Decision;
    use crate::run::simulation::simulate;
    use crate::spec::Experiment;

    /// Twelve batch sizes with one jump of 40 %, after 6.
    #[test]
    fn a_jump_that_only_one_analysis_shows_is_named() {
        let spec = "version = 1\nname = \"a\"\n[sweep]\nbatch_size = \"1..=12\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                    base = \"10ms\"\njumps = [{ after = 6, size = \"4ms\" }]\nnoise = { visits = \"0.5%\" }\n\
                    [measure]\nsmallest_jump = \"5%\"\n";
        let experiment = Experiment::parse(spec, "a.toml").expect("valid");
        let simulated = simulate(&experiment, None).expect("runs");
        let (observations, mut outcome) = (simulated.observations(), simulated.outcome);
        let mut series = Series::planted(Vec::new(), observations.into_iter().map(Into::into).collect());
        series.cells = (0..12).collect();
        let findings = series.find(&crate::detect::Settings::default());
        let mut found = [Analysed { series, findings }];
        let measure = &experiment.measure;
        assert_eq!(found[0].findings.jumps.iter().map(|jump| jump.after).collect::<Vec<_>>(), [6.0]);
        assert_eq!(disagreement(&outcome, &found, measure), None);
        // One place beside is the same jump.
        outcome.boundaries = vec![Boundary { below: 4, decision: Decision::Jump }];
        assert_eq!(disagreement(&outcome, &found, measure), None);
        outcome.boundaries =
            vec![Boundary { below: 1, decision: Decision::Jump }, Boundary { below: 5, decision: Decision::NoJump }];
        let text = disagreement(&outcome, &found, measure).expect("a warning").to_string();
        let during = "the tests during the run show a jump after 2 that the analysis of all steps does not";
        let at_the_end = "the analysis of all steps shows a jump after 6 that the tests during the run ruled out";
        assert_eq!(text, format!("{during}; {at_the_end}"));
        found[0].findings.jumps.clear();
        outcome.boundaries.truncate(1);
        assert_eq!(disagreement(&outcome, &found, measure).expect("a warning").to_string(), during);
    }
}
