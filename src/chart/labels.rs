//! Places labels so that none covers another one or the data.
//!
//! A label belongs to a guide: a vertical line across the panel. It stands beside its guide, above or below the data, as
//! near to its mark as there is room. All labels of a panel take the same form, the fullest for which all find a place;
//! only where no form fits all are they mixed, and what then finds no place is left out, and counted by the caller.

use super::geometry::Rect;

#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The x of its guide.
    pub guide: f64,
    /// The y from which the distance counts.
    pub mark: f64,
    /// Width and height of each form, the preferred one first.
    pub forms: Vec<(f64, f64)>,
    /// Labels of larger weight are placed first.
    pub weight: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacedLabel {
    pub form: usize,
    pub area: Rect,
    pub on_left: bool,
}

/// What the labels must keep clear of.
#[derive(Clone, Debug, PartialEq)]
pub struct Ground {
    pub bounds: Rect,
    /// The data.
    pub obstacles: Vec<Rect>,
    /// The x of every guide; a label crosses that of another label only where no other place is free.
    pub guides: Vec<f64>,
}

/// The gap between a label and its guide, and between two labels.
const GAP: f64 = 5.0;
/// The distance between two heights that are tried.
const STEP: f64 = 5.0;

/// A place for each of `wanted`, in their order; `None` where there was none. No two areas overlap, none overlaps an
/// obstacle, and all lie within the bounds.
pub fn place(wanted: &[Wanted], ground: &Ground) -> Vec<Option<PlacedLabel>> {
    let forms = wanted.iter().map(|w| w.forms.len()).max().unwrap_or(0);
    // The last form says least: before it is used, the others may cross the guides of other labels.
    let (full, last) = (0..forms.saturating_sub(1), forms.saturating_sub(1)..forms);
    let tries = full.clone().map(|f| (f, false)).chain(full.rev().map(|f| (f, true))).chain(last.map(|f| (f, true)));
    for (form, crossing) in tries {
        let placed = attempt(wanted, ground, &[form], crossing);
        if placed.iter().all(Option::is_some) {
            return placed;
        }
    }
    attempt(wanted, ground, &(0..forms).collect::<Vec<_>>(), true)
}

fn attempt(wanted: &[Wanted], ground: &Ground, forms: &[usize], crossing: bool) -> Vec<Option<PlacedLabel>> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[b].weight.total_cmp(&wanted[a].weight));
    let mut placed: Vec<Option<PlacedLabel>> = vec![None; wanted.len()];
    for index in order {
        placed[index] = forms.iter().find_map(|&form| nearest(&wanted[index], form, ground, crossing, &placed));
    }
    placed
}

/// The free place nearest to the mark.
fn nearest(
    label: &Wanted,
    form: usize,
    ground: &Ground,
    crossing: bool,
    placed: &[Option<PlacedLabel>],
) -> Option<PlacedLabel> {
    let &(width, height) = label.forms.get(form)?;
    let steps = (ground.bounds.height() / STEP) as usize;
    for step in 1..=steps {
        let distance = step as f64 * STEP;
        // On a rising line the first two are the free corners.
        for (on_left, above) in [(true, true), (false, false), (true, false), (false, true)] {
            let left = if on_left { label.guide - GAP - width } else { label.guide + GAP };
            let top = if above { label.mark - distance - height } else { label.mark + distance };
            let area = Rect { left, top, right: left + width, bottom: top + height };
            if is_free(&area, label.guide, ground, crossing, placed) {
                return Some(PlacedLabel { form, area, on_left });
            }
        }
    }
    None
}

fn is_free(area: &Rect, own: f64, ground: &Ground, crossing: bool, placed: &[Option<PlacedLabel>]) -> bool {
    let crosses = |&&guide: &&f64| guide != own && area.left - 1.0 < guide && guide < area.right + 1.0;
    ground.bounds.contains(area)
        && !ground.obstacles.iter().any(|o| o.overlaps(area))
        && !placed.iter().flatten().any(|p| p.area.grown(GAP - 1.0).overlaps(area))
        && (crossing || ground.guides.iter().find(crosses).is_none())
}

/// Moves `centers` (any order) apart until each is at least `distance` from the next, all within `low..=high` where they
/// fit, and as near as that allows to where they were.
pub fn spread(centers: &[f64], distance: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..centers.len()).collect();
    order.sort_by(|&a, &b| centers[a].total_cmp(&centers[b]));
    let mut result = centers.to_vec();
    let mut least = low;
    for &i in &order {
        result[i] = result[i].max(least);
        least = result[i] + distance;
    }
    let mut most = high;
    for &i in order.iter().rev() {
        result[i] = result[i].min(most);
        most = result[i] - distance;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Rect = Rect { left: 60.0, top: 100.0, right: 960.0, bottom: 440.0 };

    /// A rising line of `n` dots with labels at `count` of them.
    fn rising(n: usize, count: usize) -> (Vec<Wanted>, Ground) {
        let x = |i: f64| BOUNDS.left + 900.0 * (i + 0.5) / n as f64;
        let y = |i: f64| BOUNDS.bottom - 320.0 * (i + 1.0) / n as f64;
        let obstacles = (0..n).map(|i| Rect::about((x(i as f64), y(i as f64)), 5.0)).collect();
        let at = |k: usize| (k + 1) as f64 * n as f64 / (count + 1) as f64;
        let forms = vec![(190.0, 14.0), (95.0, 28.0), (60.0, 42.0), (20.0, 14.0)];
        let label = |k| Wanted { guide: x(at(k)), mark: y(at(k)), forms: forms.clone(), weight: 1.0 };
        let wanted: Vec<Wanted> = (0..count).map(label).collect();
        let guides = wanted.iter().map(|w| w.guide).collect();
        (wanted, Ground { bounds: BOUNDS, obstacles, guides })
    }

    fn assert_clear(placed: &[Option<PlacedLabel>], ground: &Ground) {
        let areas: Vec<Rect> = placed.iter().flatten().map(|p| p.area).collect();
        for (i, area) in areas.iter().enumerate() {
            assert!(ground.bounds.contains(area));
            assert!(!ground.obstacles.iter().any(|o| o.overlaps(area)));
            assert!(!areas[i + 1..].iter().any(|other| other.overlaps(area)));
        }
    }

    #[test]
    #[ignore = "slow"]
    fn labels_never_overlap_each_other_nor_the_data() {
        for n in [8, 70, 512] {
            for count in 0..=60 {
                let (wanted, ground) = rising(n, count);
                let placed = place(&wanted, &ground);
                assert_clear(&placed, &ground);
                // Up to fifteen jumps are all labelled, and all in one form.
                let forms: Vec<_> = placed.iter().flatten().map(|p| p.form).collect();
                let all = forms.len() == count && forms.windows(2).all(|w| w[0] == w[1]);
                assert!(all || n != 70 || count > 15, "{count}: {placed:?}");
            }
        }
    }

    #[test]
    fn few_labels_take_the_long_form_without_crossing_a_guide() {
        let (wanted, ground) = rising(70, 3);
        for (label, placed) in wanted.iter().zip(place(&wanted, &ground)) {
            let placed = placed.unwrap();
            assert_eq!(placed.form, 0);
            let inside = |g: &&f64| placed.area.left < **g && **g < placed.area.right;
            assert_eq!(ground.guides.iter().filter(inside).count(), 0, "{} {placed:?}", label.guide);
        }
    }

    #[test]
    fn where_there_is_no_room_the_heavier_label_stays() {
        let (mut wanted, mut ground) = rising(8, 2);
        ground.bounds = Rect { left: 360.0, top: 100.0, right: 400.0, bottom: 440.0 };
        wanted[1].mark = wanted[0].mark;
        ground.obstacles = vec![Rect { left: 0.0, right: 1000.0, top: 120.0, bottom: 440.0 }];
        (wanted[0].guide, wanted[1].guide, wanted[1].weight) = (395.0, 394.0, 2.0);
        let placed = place(&wanted, &ground);
        assert!(placed[0].is_none() && placed[1].is_some(), "{placed:?}");
        assert_eq!(place(&[], &ground), []);
    }

    #[test]
    fn crowded_names_are_spread_in_their_order() {
        assert_eq!(spread(&[10.0, 11.0, 50.0], 10.0, 0.0, 100.0), [10.0, 20.0, 50.0]);
        assert_eq!(spread(&[99.0, 98.0], 10.0, 0.0, 100.0), [100.0, 90.0]);
        assert_eq!(spread(&[], 10.0, 0.0, 100.0), Vec::<f64>::new());
    }
}
