//! Where the tests during a run and the analysis at its end differ.
//!
//! The run decides at each boundary from cells of the neighbourhood, the detector from the whole curve with its bends and periods. Both are
//! right with the stated rates, so that they differ now and then; a jump that only one of them shows is not proven.

use super::Warning;
use crate::analysis::Analysed;
use crate::detect::Jump;
use crate::run::{Decision, Outcome};
use crate::spec::Measure;

/// The jumps that only one of the two shows, if there are any.
pub fn disagreement(outcome: &Outcome, found: &[Analysed], measure: &Measure) -> Option<Warning> {
    let (mut during, mut at_the_end) = (Vec::new(), Vec::new());
    for Analysed { series, findings } in found {
        let cells: Vec<(usize, f64)> = outcome
            .cells
            .iter()
            .filter(|cell| series.cells.contains(&cell.cell))
            .map(|cell| (cell.cell as usize, cell.batch_size as f64))
            .collect();
        let place =
            |after: f64| if found.len() > 1 { format!("{after} ({})", series.label()) } else { after.to_string() };
        let position = |after: f64| cells.iter().position(|(_, size)| *size == after);
        // A place that is off by one cell is the same jump.
        let is_near = |k: usize| move |jump: &Jump| position(jump.after).is_some_and(|j| j.abs_diff(k) <= 1);
        for boundary in &outcome.boundaries {
            let Some(k) = cells.iter().position(|(cell, _)| *cell == boundary.below) else { continue };
            let after = cells[k].1;
            match boundary.decision {
                Decision::Jump if !findings.jumps.iter().any(is_near(k)) => during.push(place(after)),
                Decision::NoJump => {
                    let shown = |jump: &&Jump| jump.after == after && jump.relative.abs() >= measure.smallest_jump;
                    at_the_end.extend(findings.jumps.iter().find(shown).map(|_| place(after)));
                }
                _ => {}
            }
        }
    }
    (!during.is_empty() || !at_the_end.is_empty()).then_some(Warning::Disagreement { during, at_the_end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Series;
    use crate::detect::Observation;
    use crate::run::Boundary;
    use crate::simulation::simulate;
    use crate::spec::Experiment;

    /// Twelve batch sizes with one jump of 40 %, after 6.
    #[test]
    fn a_jump_that_one_analysis_alone_shows_is_named() {
        let spec = "version = 1\nname = \"a\"\n[sweep]\nbatch_size = \"1..=12\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                    base = \"10ms\"\njumps = [{ after = 6, size = \"4ms\" }]\nnoise = { visits = \"0.5%\" }\n\
                    [measure]\nsmallest_jump = \"5%\"\n";
        let experiment = Experiment::parse(spec, "a.toml").expect("valid");
        let simulated = simulate(&experiment, None).expect("runs");
        let (observations, mut outcome) = (simulated.observations(), simulated.outcome);
        let mut series = Series::planted(Vec::new(), observations.into_iter().map(measurement).collect());
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

    fn measurement(observation: Observation) -> crate::analysis::Measurement {
        let (warmup, outlier, clock_hz, temperature_c) = (false, false, None, None);
        crate::analysis::Measurement { observation, warmup, outlier, clock_hz, temperature_c }
    }
}
