//! From a fit to findings: each step is tested by itself.

use super::boundary;
use super::dictionary::{Dictionary, Term};
use super::model::Problem;
use super::reduce::Reduced;
use super::series::Series;
use super::{Candidate, Findings, Jump, Settings, Verdict, search, stairs};

pub(super) fn explain(series: &Series, reduced: &Reduced, settings: &Settings, findings: &mut Findings) {
    let dictionary = Dictionary::new(&series.x);
    let middle = crate::stats::quantile::median(&mut reduced.center.clone());
    let y: Vec<f64> = reduced.center.iter().map(|c| (c - middle).exp()).collect();
    let level = smooth_level(&y);
    let error: Vec<f64> = reduced.error.iter().zip(&level).map(|(e, l)| e * l).collect();
    let floor = if reduced.repeated { 1.0 } else { 0.1 };
    let problem = Problem::new(&dictionary, &y, &error, floor);
    let mut model = search::search(&problem, &y);
    if let Some(m) = stairs::from_teeth(&model, &series.x, &y) { model = m; }
    if std::env::var("DBG").is_ok() { for (i,&j) in model.terms.iter().enumerate() { let (_, al, er) = model.direction(i); eprintln!("{:?} z {:.2} coef {:.4}", dictionary.term(j), al/model.dispersion().sqrt(), al*er); } eprintln!("phi {:.2} len {:.2}", model.dispersion(), model.length()); }
    let unit = middle.exp();
    let phi = model.dispersion();
    let n = series.x.len();
    let fit = model.fitted(|t| !matches!(t, Term::Spike(_) | Term::Bump(_)));
    let freedom = model.error_freedom();
    let curve = model.fitted(|t| matches!(t, Term::Shape(_) | Term::Stairs(_)));
    let base = model.fitted(|_| false);
    let straight: Vec<f64> = y.iter().zip(curve.iter().zip(&base)).map(|(y, (c, b))| y - (c - b)).collect();
    let limit = boundary::threshold(&dictionary, freedom, settings.false_positive_rate);
    for b in boundary::boundaries(&model) {
        let k = b.k;
        let p = boundary::p_value(b.z(), freedom, n - 1);
        let zl = if b.riser { 99.0 } else { boundary::local_z(&model, &straight, k) };
        let dl = 99.0;
        if std::env::var("DBG").is_ok() { eprintln!("FEAT {} z {:.2} zl {:.2} dn {:.1} dl {:.1} rel {:.4} phi {:.1} m {} lim {limit:.2}", series.x[k], b.z(), zl, b.size/model.dispersion(), dl, b.size/fit[k], phi, model.terms.len()); }
        if (!b.riser && b.z() < limit) || zl < 3.5 || (b.size / fit[k]).abs() < settings.smallest_jump {
            findings.rejected.push(Candidate { after: series.x[k], size: b.size * unit, p_value: p, reason: "weak".into() });
            continue;
        }
        let se = b.error;
        findings.jumps.push(Jump { after: series.x[k], size: b.size * unit, low: (b.size - 2.0 * se) * unit, high: (b.size + 2.0 * se) * unit, relative: b.size / fit[k], p_value: p, verdict: Verdict::Ambiguous });
    }
}

/// A running median of five: the level that errors are a share of.
fn smooth_level(y: &[f64]) -> Vec<f64> {
    (0..y.len()).map(|i| crate::stats::quantile::median(&mut y[i.saturating_sub(2)..(i + 3).min(y.len())].to_vec())).collect()
}
