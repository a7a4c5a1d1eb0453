//! The truth is right.

use super::curve::{Curve, Term};
use super::noise::Noise;
use super::sketch::Sketch;
use super::truth::changes;
use super::*;

/// Places (values of "after") of the required changes.
fn required(sketch: &Sketch) -> Vec<f64> {
    changes(sketch).iter().filter(|change| change.required).map(|change| sketch.x[change.at]).collect()
}

/// Looks for discontinuities between two neighbouring x on a fine grid: on a continuous curve the largest increment shrinks with
/// the spacing, at a jump it does not.
fn scanned(sketch: &Sketch, i: usize) -> f64 {
    let (from, to) = (sketch.x[i], sketch.x[i + 1]);
    const PARTS: usize = 8;
    let at = |part: usize| from + (to - from) * part as f64 / PARTS as f64;
    let mut sum = 0.0;
    for part in 0..PARTS {
        let (mut low, mut high) = (at(part), at(part + 1));
        let whole = sketch.curve.value(high) - sketch.curve.value(low);
        for _ in 0..32 {
            let middle = 0.5 * (low + high);
            let (left, right) = (
                (sketch.curve.value(middle) - sketch.curve.value(low)).abs(),
                (sketch.curve.value(high) - sketch.curve.value(middle)).abs(),
            );
            (low, high) = if left >= right { (low, middle) } else { (middle, high) };
        }
        let left = sketch.curve.value(high) - sketch.curve.value(low);
        let level = sketch.curve.value(high).abs();
        if left.abs() > 1e-8 * level && left.abs() > 1e-3 * whole.abs() {
            sum += left;
        }
    }
    sum
}

/// The labelled jumps are the discontinuities of the noise-free curve, at every boundary, and there are no others. For a rate, the time
/// that jumps divides work that grows up to the next x, so sizes agree only to the accuracy of that growth.
#[test]
fn the_truth_of_every_family_matches_its_curve() {
    for family in Family::all() {
        for seed in 0..3 {
            let sketch = family.sketch(seed);
            let labelled = truth::jumps(&sketch);
            let mut plain = sketch.clone();
            plain.curve.terms.retain(|term| !matches!(term, Term::Pattern { .. } | Term::Alternation { .. }));
            for i in 0..sketch.x.len() - 1 {
                let label = labelled.iter().find(|change| change.at == i);
                let seen = scanned(if label.is_some_and(|label| label.pattern) { &sketch } else { &plain }, i);
                let size = label.map_or(0.0, |change| change.size);
                let (level, ratio) = (sketch.curve.value(sketch.x[i + 1]), sketch.x[i + 1] / sketch.x[i]);
                let allowed = if sketch.curve.work.is_some() { 2.0 * (ratio - 1.0) * seen.abs() } else { 0.0 };
                let name = format!("{}, seed {seed}, after {}", family.name, sketch.x[i]);
                assert!((seen - size).abs() <= allowed + 1e-6 * level, "{name}: {seen:e} labelled {size:e}");
            }
        }
    }
}

/// Every jump and ramp is in the list of changes once, by itself or joined with its neighbours.
#[test]
fn every_jump_and_ramp_is_one_of_the_changes() {
    for family in Family::all() {
        for seed in 0..6 {
            let sketch = family.sketch(seed);
            let found = changes(&sketch);
            let ramps = sketch.curve.terms.iter().filter(|term| matches!(term, Term::Ramp { .. })).count();
            let total: f64 = found.iter().map(|change| change.size).sum();
            let jumps: f64 = truth::jumps(&sketch).iter().map(|change| change.size).sum();
            if ramps == 0 {
                assert!((total - jumps).abs() <= 1e-9 * jumps.abs(), "{}, seed {seed}", family.name);
            } else {
                assert_eq!(found.len(), ramps, "{}, seed {seed}", family.name);
            }
        }
    }
}

#[test]
fn quiet_series_have_no_jumps_and_the_others_have() {
    for family in Family::all() {
        let mut loud = 0;
        for seed in 0..20 {
            let series = family.series(seed);
            if series.quiet {
                assert!(series.changes.iter().all(|change| change.pattern), "{}, seed {seed}", family.name);
            } else {
                loud += series.changes.iter().filter(|change| change.required).count();
            }
            assert!((20..=2048).contains(&series.x.len()), "{}: {}", family.name, series.x.len());
            assert!(series.x.windows(2).all(|x| x[0] < x[1]), "{}", family.name);
            assert!(series.observations.iter().all(|o| o.y.is_finite() && o.y > 0.0), "{}, seed {seed}", family.name);
        }
        assert!(loud >= 5, "{}: {loud} required jumps in all", family.name);
    }
}

#[test]
fn a_seed_gives_the_same_series_and_another_seed_another() {
    let family = Family::all().next().expect("one");
    assert_eq!(family.series(3), family.series(3));
    assert_ne!(family.series(3).observations, family.series(5).observations);
}

#[test]
fn tiles_of_sixteen_jump_after_their_multiples() {
    let curve = Curve::line(1.0, 0.001).with(Term::Tiles { period: 16.0, phase: 0.0, height: 0.5 });
    let sketch = Sketch::whole(70, curve, Noise::of(0.001));
    assert_eq!(required(&sketch), [16.0, 32.0, 48.0, 64.0]);
    assert!(changes(&sketch).iter().all(|change| (change.size - 0.5).abs() < 1e-12 && change.first == change.last));
}

/// By hand: level 1, noise 1 %. The larger of the two levels has the larger noise. A jump of 6.2 % is 6.2 / 1.062 = 5.84 times the noise of
/// a point, below 6: one place to each side. Its standard error is 1.062 % x sqrt(4/16 + 4/16) = 0.751 %, so it is 8.3 of them and
/// required. One of 7 % is 6.5 times the noise and certain. One of 5 % is 6.7 standard errors, and not required.
#[test]
fn places_and_requirements_follow_from_the_size_over_the_noise() {
    let one = |share: f64| {
        let mut sketch = Sketch::whole(60, Curve::line(1.0, 0.0), Noise::of(0.01));
        sketch.step(29, share);
        changes(&sketch)[0]
    };
    assert_eq!((one(0.07).first, one(0.07).last, one(0.07).required), (29, 29, true));
    assert_eq!((one(0.062).first, one(0.062).last, one(0.062).required), (28, 30, true));
    assert!(!one(0.05).required && one(-0.07).required);
}

#[test]
fn changes_that_cancel_within_four_points_are_not_required() {
    let block = |length: usize, back: f64| {
        let mut sketch = Sketch::whole(60, Curve::line(1.0, 0.0), Noise::of(0.002));
        sketch.curve.terms.push(Term::Step { after: 20.0, size: 0.3 });
        sketch.curve.terms.push(Term::Step { after: 20.0 + length as f64, size: back });
        required(&sketch)
    };
    assert_eq!(block(4, -0.3), [0.0; 0]);
    assert_eq!(block(5, -0.3), [20.0, 25.0]);
    assert_eq!(block(2, -0.1), [20.0, 22.0]);
    // With one point in between they are one change, of which the larger part comes first.
    assert_eq!(block(1, -0.1), [20.0]);
}

#[test]
fn in_a_rate_a_longer_time_is_a_fall() {
    use super::curve::Work;
    // 10 per second up to 20, 5 from there on: twice the time.
    let curve = Curve { work: Some(Work { scale: 1.0, exponent: 0.0 }), ..Curve::line(0.1, 0.0) };
    let sketch = Sketch::whole(40, curve.with(Term::Step { after: 20.0, size: 0.1 }), Noise::of(0.001));
    let found = changes(&sketch);
    assert_eq!((found.len(), found[0].at, found[0].required), (1, 19, true));
    assert!((found[0].size + 5.0).abs() < 1e-12);
}

#[test]
fn a_ramp_over_two_boundaries_may_be_found_at_either() {
    let mut sketch = Sketch::whole(40, Curve::line(1.0, 0.0), Noise::of(0.001));
    sketch.curve.terms.push(Term::Ramp { after: 20.0, until: 22.0, size: 0.3 });
    let found = changes(&sketch);
    assert_eq!((found.len(), found[0].first, found[0].last, found[0].required), (1, 19, 20, true));
    assert!((found[0].size - 0.3).abs() < 1e-12);
}
