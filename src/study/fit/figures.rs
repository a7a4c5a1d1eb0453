//! The chart of a study of fits, from its stored tables.

use std::path::Path;

use super::results::{FitCurve, FittedSurface, Results};
use crate::chart::figures::{Drawing, made_by};
use crate::chart::{Chart, Fits, Line, LinePoint};
use crate::units::human;

/// A curve keeps every update up to this one, and then [`PER_DECADE`] of them for each factor of ten.
const EVERY: usize = 20;
const PER_DECADE: f64 = 150.0;

/// The chart of a study.
pub fn drawing(source: &Path, study: &Results) -> Drawing {
    let chart = chart(source, study);
    let (summary, title) = (chart.summary.clone(), "The losses");
    Drawing { name: "fit", title, summary, chart: Chart::Fits(chart) }
}

fn chart(source: &Path, study: &Results) -> Fits {
    let same = study.agreements.iter().filter(|agreement| agreement.holds()).count();
    let agreement = match study.agreements.len() {
        0 => String::new(),
        all => format!(" {same} of {all} loss curves of the same seed agree with the first of their kind."),
    };
    let fitted = study.surface.as_ref().map(|surface| {
        let FittedSurface { name, points, error } = surface;
        format!(
            "{name} fitted to {}: mean squared error {}.",
            human::counted(*points as u64, "point"),
            human::digits(*error)
        )
    });
    let blank = fitted.is_none();
    let summary = fitted.unwrap_or_default() + if blank { agreement.trim_start() } else { &agreement };
    Fits {
        title: format!("Fits on {}", study.device),
        summary,
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
}
