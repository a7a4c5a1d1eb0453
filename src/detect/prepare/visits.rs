//! Steps to visits: consecutive steps at one x share the state of the machine, and count as one repetition.
//!
//! Errors that take them for independent are too small: where steps scatter by 0.5 % and visits by 1 %, five steps a visit,
//! by half. So the steps of a visit are reduced to their median. Where most x have one visit alone nothing would be left to
//! compare, and the steps stay as they are.

use crate::detect::input::Observation;
use crate::stats::quantile::median;

/// One observation for each visit, in the order of the run; `observations` as they are where neither order nor block says which steps
/// belong together, or where half of the x have no second visit.
pub(crate) fn by_visit(mut observations: Vec<Observation>) -> Vec<Observation> {
    let place = |o: &Observation| o.order.or(o.block.map(f64::from));
    if observations.iter().any(|o| place(o).is_none_or(|place| !place.is_finite())) {
        return observations;
    }
    observations
        .sort_by(|a, b| place(a).partial_cmp(&place(b)).unwrap_or(std::cmp::Ordering::Equal).then(a.x.total_cmp(&b.x)));
    let visits: Vec<Observation> = observations.chunk_by(|a, b| a.x == b.x && a.block == b.block).map(visit).collect();
    let mut x: Vec<f64> = visits.iter().map(|visit| visit.x).collect();
    x.sort_by(f64::total_cmp);
    let (mut all, mut repeated) = (0, 0);
    for same in x.chunk_by(|a, b| a == b) {
        all += 1;
        repeated += usize::from(same.len() > 1);
    }
    if 2 * repeated > all { visits } else { observations }
}

/// The median of a visit's steps, and of the clock beside them.
fn visit(steps: &[Observation]) -> Observation {
    let clocks: Option<Vec<f64>> = steps.iter().map(|step| step.clock_hz).collect();
    Observation {
        y: median(&mut steps.iter().map(|step| step.y).collect::<Vec<_>>()),
        clock_hz: clocks.map(|mut clocks| median(&mut clocks)),
        ..steps[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(x: f64, y: f64, order: f64, block: u32) -> Observation {
        Observation { order: Some(order), block: Some(block), clock_hz: Some(1e9), ..Observation::new(x, y) }
    }

    #[test]
    fn the_steps_of_a_visit_become_their_median() {
        let steps = vec![
            step(2.0, 5.0, 0.0, 0),
            step(2.0, 7.0, 1.0, 0),
            step(2.0, 6.0, 2.0, 0),
            step(1.0, 1.0, 3.0, 0),
            // The second block begins where the first one ended.
            step(1.0, 2.0, 4.0, 1),
            step(1.0, 4.0, 5.0, 1),
            step(2.0, 9.0, 6.0, 1),
        ];
        let visits = by_visit(steps);
        let found: Vec<(f64, f64, Option<f64>)> = visits.iter().map(|v| (v.x, v.y, v.order)).collect();
        let expected = [(2.0, 6.0, Some(0.0)), (1.0, 1.0, Some(3.0)), (1.0, 3.0, Some(4.0)), (2.0, 9.0, Some(6.0))];
        assert_eq!(found, expected);
    }

    #[test]
    fn blocks_alone_separate_the_visits() {
        let steps = [(1.0, 3.0, 1), (2.0, 5.0, 0), (1.0, 1.0, 0), (2.0, 4.0, 1), (1.0, 2.0, 0)];
        let steps = steps.map(|(x, y, block)| Observation { block: Some(block), ..Observation::new(x, y) });
        let found: Vec<(f64, f64)> = by_visit(steps.to_vec()).iter().map(|v| (v.x, v.y)).collect();
        assert_eq!(found, [(1.0, 1.5), (2.0, 5.0), (1.0, 3.0), (2.0, 4.0)]);
    }

    #[test]
    fn steps_of_one_visit_each_and_steps_without_an_order_stay() {
        let once = vec![step(1.0, 1.0, 0.0, 0), step(1.0, 2.0, 1.0, 0), step(2.0, 3.0, 2.0, 0), step(2.0, 5.0, 3.0, 0)];
        assert_eq!(by_visit(once.clone()), once);
        let unknown = vec![Observation::new(1.0, 2.0), Observation::new(1.0, 4.0), Observation::new(2.0, 3.0)];
        assert_eq!(by_visit(unknown.clone()), unknown);
    }
}
