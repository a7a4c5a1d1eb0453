//! The data of the page's charts, as JSON.
//!
//! The numbers are those of the PNG charts and of `jumps.json`: they come from [`StepTime`], [`Timeline`] and [`StudyChart`], and nothing is
//! estimated again here. Values of charts are rounded to six digits, finer than any screen; the documents are not rounded.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Charts, RunPage};
use crate::analysis::{Analysed, Series};
use crate::chart::axis::{Scale, ascending, scale_of};
use crate::chart::typeset;
use crate::chart::{CONFIDENCE, ChartSeries, Covariate, LinePanel, Quantity, Stack, StepTime, StudyChart, Timeline};
use crate::detect::{Jump, Kink, Point, Verdict};
use crate::report::position;
use crate::units::human;

const VERSION: u32 = 1;

/// The most steps that all honesty charts of a page show one by one; with more, each stretch is shown by its extremes and its median.
const MOST_STEPS: usize = 30_000;
/// The most points that all charts of step times show together; with more, only every n-th point is shown.
const MOST_POINTS: usize = 10_000;

/// Everything that the script reads.
pub(super) fn of(runs: &[RunPage]) -> Value {
    let documents: Vec<&Value> = runs.iter().map(|run| &run.documents).collect();
    let (mut honesty, mut training) = (Vec::new(), Vec::new());
    for (at, run) in runs.iter().enumerate() {
        match &run.charts {
            Charts::Sweep { honesty: Some(chart), .. } => {
                honesty.push(steps_in_order(chart, at, MOST_STEPS / runs.len()));
            }
            Charts::Training(chart) => {
                let panels: Vec<Value> = chart.panels.iter().map(panel).collect();
                training.push(json!({"run": at, "panels": panels, "bars": bars(chart)}));
            }
            Charts::Sweep { honesty: None, .. } | Charts::Pictures => {}
        }
    }
    json!({
        "version": VERSION,
        "steps": step_charts(runs),
        "honesty": honesty,
        "training": training,
        "documents": documents,
    })
}

/// The charts of step times: series of any run whose sizes and values are of the same kind share one chart.
fn step_charts(runs: &[RunPage]) -> Vec<Value> {
    let mut charts: Vec<(&StepTime, Vec<Value>)> = Vec::new();
    let sweeps = runs.iter().enumerate().filter_map(|(at, run)| match run.charts {
        Charts::Sweep { step_time, found, .. } => Some((at, run, step_time, found)),
        _ => None,
    });
    let sweeps: Vec<(usize, &RunPage, &StepTime, &[Analysed])> = sweeps.collect();
    let all_series = sweeps.iter().flat_map(|(_, _, chart, _)| &chart.series);
    let every = all_series.map(|series| series.findings.points.len()).sum::<usize>().div_ceil(MOST_POINTS).max(1);
    for (at, run, step_time, found) in sweeps {
        let alike =
            |chart: &StepTime| (chart.x == step_time.x) && chart.y == step_time.y && chart.item == step_time.item;
        let place = charts.iter().position(|(chart, _)| alike(chart)).unwrap_or_else(|| {
            charts.push((step_time, Vec::new()));
            charts.len() - 1
        });
        for (index, (drawn, found)) in step_time.series.iter().zip(found).enumerate() {
            let name = if runs.len() > 1 { format!("{}: {}", run.name(), drawn.name) } else { drawn.name.clone() };
            let mut entry = series(drawn, found, &step_time.y, every);
            (entry["name"], entry["run"], entry["index"]) = (name.into(), at.into(), index.into());
            charts[place].1.push(entry);
        }
    }
    charts.into_iter().map(|(chart, series)| step_chart(chart, series, every)).collect()
}

fn step_chart(chart: &StepTime, series: Vec<Value>, every: usize) -> Value {
    let x = ascending(chart.series.iter().flat_map(|series| &series.findings.points).map(|point| point.x));
    json!({
        "x": chart.x,
        "y": chart.y,
        "item": chart.item,
        "log": scale_of(&x) == Scale::Log,
        "confidence": human::limit(CONFIDENCE),
        "thinned": every,
        "series": series,
    })
}

/// Points as columns; `steps` are those that counted.
fn series(drawn: &ChartSeries, found: &Analysed, y: &Quantity, every: usize) -> Value {
    let findings = &drawn.findings;
    let steps = steps_of(&found.series);
    let points: Vec<&Point> = findings.points.iter().filter(|point| point.center.is_finite()).step_by(every).collect();
    let column =
        |value: fn(&Point) -> f64| -> Vec<Value> { points.iter().map(|point| rounded(value(point))).collect() };
    let counts: Vec<u64> = points.iter().map(|point| steps.get(&point.x.to_bits()).copied().unwrap_or(0)).collect();
    json!({
        "x": points.iter().map(|point| position(point.x)).collect::<Vec<_>>(),
        "center": column(|point| point.center),
        "low": column(|point| point.low),
        "high": column(|point| point.high),
        "fit": column(|point| point.fit),
        "steps": counts,
        "off": points.iter().map(|point| point.off).collect::<Vec<_>>(),
        "avoid": drawn.avoid.iter().copied().map(position).collect::<Vec<_>>(),
        "jumps": findings.jumps.iter().map(|found| jump(found, y)).collect::<Vec<_>>(),
        "kinks": findings.kinks.iter().map(|found| kink(found, y)).collect::<Vec<_>>(),
        "rejected": findings.rejected.iter().map(|found| json!({
            "after": position(found.after),
            "text": format!("{} after {}: {}", typeset(&human::signed(found.size, &y.unit)), human::batch_size(found.after), found.reason),
        })).collect::<Vec<_>>(),
        "period": findings.period.as_ref().map(|period| json!({
            "value": position(period.value),
            "first": period.explains.first().copied().map(position),
        })),
    })
}

fn jump(jump: &Jump, y: &Quantity) -> Value {
    json!({
        "after": position(jump.after),
        "after_low": position(jump.after_low),
        "after_high": position(jump.after_high),
        "up": jump.size >= 0.0,
        "size": typeset(&human::signed(jump.size, &y.unit)),
        "interval": typeset(&human::range(jump.low, jump.high, &y.unit)),
        "relative": human::signed_percent(jump.relative),
        "p": human::p_equals(jump.p_value),
        "more_work": jump.verdict.map(Verdict::more_work),
    })
}

fn kink(kink: &Kink, y: &Quantity) -> Value {
    let slope = |slope| typeset(&human::signed(slope, &y.unit));
    json!({
        "at": position(kink.at),
        "text": format!("slope {} instead of {}", slope(kink.slope_after), slope(kink.slope_before)),
    })
}

/// How many steps counted at each size, by its bits.
fn steps_of(series: &Series) -> BTreeMap<u64, u64> {
    let mut steps = BTreeMap::new();
    for seen in series.observations() {
        *steps.entry(seen.x.to_bits()).or_insert(0) += 1;
    }
    steps
}

/// Residuals in percent, flags (1: warm-up, 2: outlier), and what was read beside them, at the steps that are shown.
fn steps_in_order(chart: &Timeline, run: usize, most: usize) -> Value {
    let stretch = chart.steps.len().div_ceil(most).max(1);
    let shown = if stretch == 1 { (0..chart.steps.len()).collect() } else { extremes(chart, 3 * stretch) };
    let flag = |at: usize| u8::from(chart.steps[at].warmup) + 2 * u8::from(chart.steps[at].outlier);
    let covariates = chart.covariates.iter().filter(|covariate| covariate.values.iter().any(Option::is_some));
    let over_time = |covariate: &Covariate| {
        let values = shown.iter().map(|&at| covariate.values.get(at).copied().flatten().map_or(Value::Null, rounded));
        json!({"quantity": covariate.quantity, "values": values.collect::<Vec<_>>()})
    };
    let factors = chart.factors.iter().map(|factor| {
        let every = factor.len().div_ceil(most / 4).max(1);
        let shown = || factor.iter().step_by(every);
        json!({
            "step": shown().map(|point| position(point.order)).collect::<Vec<_>>(),
            "percent": shown().map(|point| rounded(100.0 * point.relative)).collect::<Vec<_>>(),
            "sd": shown().map(|point| rounded(100.0 * point.sd)).collect::<Vec<_>>(),
        })
    });
    json!({
        "run": run,
        "of": chart.steps.len(),
        "stretch": if stretch == 1 { 1 } else { 3 * stretch },
        "step": shown,
        "percent": shown.iter().map(|&at| hundredth(100.0 * chart.steps[at].residual)).collect::<Vec<_>>(),
        "flags": shown.iter().map(|&at| flag(at)).collect::<Vec<_>>(),
        "blocks": block_starts(chart),
        "factors": factors.collect::<Vec<_>>(),
        "covariates": covariates.map(over_time).collect::<Vec<_>>(),
    })
}

/// The lowest, the median and the highest of each stretch of steps, so that no outlier is lost.
fn extremes(chart: &Timeline, stretch: usize) -> Vec<usize> {
    let mut shown = Vec::new();
    for start in (0..chart.steps.len()).step_by(stretch) {
        let mut all: Vec<usize> = (start..chart.steps.len().min(start + stretch)).collect();
        all.sort_by(|&a, &b| chart.steps[a].residual.total_cmp(&chart.steps[b].residual));
        let mut three = vec![all[0], all[all.len() / 2], all[all.len() - 1]];
        three.sort_unstable();
        three.dedup();
        shown.extend(three);
    }
    shown
}

/// The step at which each block begins, where the order of the run keeps blocks together.
fn block_starts(chart: &Timeline) -> Vec<Value> {
    let mut starts = Vec::new();
    let mut last = None;
    for (at, step) in chart.steps.iter().enumerate() {
        if step.block != last {
            starts.push(json!([at, step.block]));
            last = step.block;
        }
    }
    // Runs that were measured side by side have their blocks interleaved, and no bands.
    if starts.len() > 2000 { Vec::new() } else { starts }
}

fn panel(panel: &LinePanel) -> Value {
    let line = |line: &crate::chart::Line| {
        let column = |value: fn(&crate::chart::LinePoint) -> f64| -> Vec<Value> {
            line.points.iter().map(|point| rounded(value(point))).collect()
        };
        json!({
            "name": line.name,
            "x": line.points.iter().map(|point| position(point.x)).collect::<Vec<_>>(),
            "y": column(|point| point.y),
            "sd": column(|point| point.sd),
            "marked": line.marked,
        })
    };
    let x = ascending(panel.lines.iter().flat_map(|line| &line.points).map(|point| point.x));
    json!({
        "x": panel.x,
        "y": panel.y,
        "zero": panel.from_zero,
        "log": panel.from_zero && scale_of(&x) == Scale::Log,
        "lines": panel.lines.iter().map(line).collect::<Vec<_>>(),
    })
}

fn bars(training: &StudyChart) -> Vec<Value> {
    let parts = |bar: &Stack| bar.parts.iter().copied().map(rounded).collect::<Vec<_>>();
    let bar = |bar: &Stack| json!({"name": bar.name, "parts": parts(bar), "note": bar.note});
    training.stacks.bars.iter().map(bar).collect()
}

/// Six significant digits; null where there is no finite value.
fn rounded(value: f64) -> Value {
    format!("{value:.5e}").parse().ok().filter(|value: &f64| value.is_finite()).map_or(Value::Null, position)
}

/// Rounds to two decimals: for a residual in percent that is less than its noise.
fn hundredth(value: f64) -> Value {
    if value.is_finite() { position((100.0 * value).round() / 100.0) } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::StepRecord;

    #[test]
    fn of_many_steps_the_extremes_stay() {
        let record = |at: usize| StepRecord {
            block: Some(at as u32 / 100),
            residual: if at == 777 { 5.0 } else { 0.001 * (at % 7) as f64 },
            warmup: at.is_multiple_of(10),
            outlier: at == 777,
        };
        let chart = Timeline {
            title: String::new(),
            steps: (0..1000).map(record).collect(),
            factors: Vec::new(),
            covariates: Vec::new(),
            caption: Vec::new(),
        };
        let shown = steps_in_order(&chart, 0, 100);
        let steps: Vec<u64> = shown["step"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
        // By hand: 1000 steps in stretches of 30, with three shown of each.
        assert_eq!((shown["stretch"].as_u64(), steps.len()), (Some(30), 102));
        let at = steps.iter().position(|step| *step == 777).expect("the outlier is shown");
        assert_eq!((shown["percent"][at].as_f64(), shown["flags"][at].as_u64()), (Some(500.0), Some(2)));
        assert_eq!(shown["blocks"].as_array().map(Vec::len), Some(10));
        assert!(steps.is_sorted());
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(rounded(0.001_234_567_89).to_string(), "0.00123457");
        assert_eq!(rounded(f64::NAN), Value::Null);
        assert_eq!((position(16.0).to_string(), hundredth(1.236).to_string()), ("16".into(), "1.24".into()));
    }
}
