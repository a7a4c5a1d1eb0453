//! The chart of a study of fits, from its stored tables.

use std::path::Path;

use super::SurfaceRow;
use super::results::{FitCurve, FittedSurface, Results};
use crate::chart::chart_data::{Drawing, made_by};
use crate::chart::{Chart, FitChart, FitPoint, FitSurface, Line, LinePoint};
use crate::units::human;

/// A curve keeps every update up to this one, and then [`PER_DECADE`] of them for each factor of ten.
const EVERY: usize = 20;
const PER_DECADE: f64 = 150.0;
/// A training set of more points is drawn as a surface.
const MOST_DOTS: usize = 2500;

/// The chart of a study.
pub fn drawing(source: &Path, study: &Results) -> Drawing {
    let chart = chart(source, study);
    let (summary, title) = (chart.summary.clone(), "The surface and the losses");
    Drawing { name: "fit", title, summary, chart: Chart::Fit(chart) }
}

fn chart(source: &Path, study: &Results) -> FitChart {
    let same = study.agreements.iter().filter(|agreement| agreement.holds()).count();
    let agreement = match study.agreements.len() {
        0 => String::new(),
        all => format!(" {same} of {all} loss curves of the same seed agree with the first of their kind."),
    };
    let fitted = study.surface.as_ref().map(|surface| {
        let FittedSurface { name, points, error, .. } = surface;
        format!(
            "{name} fitted to {}: mean squared error {}.",
            human::counted(*points as u64, "point"),
            human::digits(*error)
        )
    });
    let blank = fitted.is_none();
    let summary = fitted.unwrap_or_default() + if blank { agreement.trim_start() } else { &agreement };
    FitChart {
        title: format!("Fits on {}", study.device),
        summary,
        surfaces: study.surface.as_ref().map(surfaces).unwrap_or_default(),
        losses: study.fits.iter().map(|fit| line(fit, study)).collect(),
        caption: vec![
            format!("{} \u{b7} {}", study.device, human::counted(study.fits.len() as u64, "fit")),
            made_by(source, &[]),
        ],
    }
}

fn line(fit: &FitCurve, study: &Results) -> Line {
    let several = study.fits.iter().any(|other| other.points != fit.points);
    let points = several.then(|| format!(", {}", human::counted(fit.points as u64, "point")));
    let kept = |updates: &usize| {
        let bin = |updates: usize| (PER_DECADE * (updates as f64).log10()).floor();
        *updates <= EVERY || *updates == fit.epochs() || bin(*updates) > bin(updates - 1)
    };
    let drawn = (1..fit.losses.len()).filter(kept).map(|updates| LinePoint {
        x: updates as f64,
        y: fit.losses[updates],
        sd: 0.0,
    });
    Line {
        name: format!("{}{}", fit.name, points.unwrap_or_default()),
        points: drawn.filter(|point| point.y > 0.0 && point.y.is_finite()).collect(),
        marked: None,
    }
}

/// The training set, the fit on the same vertical axis, and their difference.
fn surfaces(surface: &FittedSurface) -> Vec<FitSurface> {
    let places = &surface.places;
    let both = || places.iter().flat_map(|point| [point.height, point.fitted]);
    let extent = |values: &mut dyn Iterator<Item = f64>| {
        values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)])
    };
    let [low, high] = extent(&mut both());
    let [least, most] = extent(&mut places.iter().map(|point| point.fitted - point.height));
    let reach = places.iter().map(|point| point.x.abs().max(point.y.abs())).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let index = |value: i64| usize::try_from(value).unwrap_or(0);
    let drawn = |title: String, value: &dyn Fn(&SurfaceRow) -> f64| FitSurface {
        title,
        points: places
            .iter()
            .map(|point| FitPoint {
                row: index(point.row),
                column: index(point.column),
                x: point.x,
                y: point.y,
                z: value(point),
            })
            .collect(),
        reach,
        low,
        high,
        signed: false,
        dots: false,
    };
    let training = drawn(format!("Training set: {}", human::counted(surface.points as u64, "point")), &|p| p.height);
    let fitted = drawn(format!("Fit: {}", surface.name), &|point| point.fitted);
    let error = drawn("Error: fit less training set".to_owned(), &|point| point.fitted - point.height);
    vec![
        FitSurface { dots: places.len() <= MOST_DOTS, ..training },
        fitted,
        FitSurface { low: least.min(0.0), high: most.max(0.0), signed: true, ..error },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_is_drawn_with_few_points_and_both_ends() {
        let fit = FitCurve {
            name: "cpu".into(),
            losses: (0..=20_000).map(|updates| 1.0 / (1.0 + f64::from(updates))).collect(),
            ..FitCurve::default()
        };
        let study = Results { fits: vec![fit.clone()], ..Results::default() };
        let line = line(&fit, &study);
        assert!((200..700).contains(&line.points.len()), "{}", line.points.len());
        assert_eq!((line.points[0].x, line.points[line.points.len() - 1].x), (1.0, 20_000.0));
        assert_eq!(line.name, "cpu");
    }

    #[test]
    fn training_set_and_fit_share_their_axis_and_the_error_has_its_own() {
        let place = |row: i64, column: i64, height: f64, fitted: f64| {
            let [x, y] = [column, row].map(|at| 6.0 * at as f64 - 3.0);
            SurfaceRow { row, column, x, y, height, fitted, ..SurfaceRow::default() }
        };
        let places = vec![place(0, 0, 1.0, 1.5), place(0, 1, 2.0, 1.0), place(1, 0, 3.0, 3.0), place(1, 1, 4.0, 7.0)];
        let drawn = surfaces(&FittedSurface { name: "cpu".into(), points: 4, error: 1.0, places });
        let axes: Vec<[f64; 2]> = drawn.iter().map(|one| [one.low, one.high]).collect();
        assert_eq!(axes, [[1.0, 7.0], [1.0, 7.0], [-1.0, 3.0]]);
        assert_eq!(drawn[2].points.iter().map(|point| point.z).collect::<Vec<_>>(), [0.5, -1.0, 0.0, 3.0]);
    }
}
