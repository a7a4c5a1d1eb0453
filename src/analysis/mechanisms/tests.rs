//! On runs made by hand: one dense layer of the CPU engine that takes half of the step, with and without `batch_padding = 80`.

use super::*;
use crate::analysis::causes::{Cause, LayerStep, Side};
use crate::analysis::{Measurement, Series};
use crate::detect::{Jump, Period, Point, Verdict as Clock};
use crate::network::{Builder, Dense, Shape};

const LAST: i64 = 40;

fn network() -> Network {
    let mut b = Builder::new("one", Shape::Flat(512)).unwrap();
    b.then("dense", Dense { out_features: 512, bias: true }).unwrap();
    b.finish().unwrap()
}

/// A step of 1 ms and 50 us for each example, with those jumps, of which the smallest that would have been seen is 2 %.
fn findings(after: &[f64]) -> Findings {
    let fit = |x: f64| 1e-3 + 5e-5 * x;
    let point = |x: i64| {
        let (x, center) = (x as f64, fit(x as f64));
        Point { x, count: 5, center, low: center, high: center, fit: center, off: false }
    };
    let jump = |after: f64| {
        let size = 0.2 * fit(after);
        Jump { p_value: 1e-4, verdict: Clock::Ambiguous, ..Jump::planted(after, size, 0.2) }
    };
    Findings {
        points: (1..=LAST).map(point).collect(),
        jumps: after.iter().copied().map(jump).collect(),
        kinks: Vec::new(),
        period: (after.len() > 1).then(|| Period {
            value: 16.0,
            p_value: 1e-3,
            explains: after.to_vec(),
            unconfirmed: vec![],
        }),
        rejected: Vec::new(),
        notes: Vec::new(),
        false_positive_rate: 0.01,
        p_value: None,
        detectable: Some(0.02),
        factor: Vec::new(),
    }
}

/// The same with jumps of that part of their size, known to a tenth.
fn weakened(findings: Findings, part: f64) -> Findings {
    let weaken = |jump: Jump| {
        let size = part * jump.size;
        Jump { size, low: 0.9 * size, high: 1.1 * size, relative: part * jump.relative, ..jump }
    };
    Findings { jumps: findings.jumps.into_iter().map(weaken).collect(), ..findings }
}

/// A series whose cells begin at `first`.
fn series(first: i64) -> Series {
    Series { cells: (first..first + LAST).collect(), ..Series::planted(Vec::new(), Vec::<Measurement>::new()) }
}

/// The rows of the layer's forward pass in such a series: half of the step time.
fn rows(first: i64) -> Vec<LayerRow> {
    let row = |at: i64| LayerRow {
        cell: first + at,
        batch_size: at + 1,
        layer: "dense".into(),
        operation: "dense".into(),
        direction: "forward".into(),
        flops: 1e6,
        device_time_s: Some(0.5 * (1e-3 + 5e-5 * (at + 1) as f64)),
        ..LayerRow::default()
    };
    (0..LAST).map(row).collect()
}

/// Answers for the series as it is and for that with `batch_padding = 80`, where they jump after those batch sizes.
fn answers(plain: &[f64], padded: &[f64]) -> Vec<Answers> {
    compared(findings(plain), findings(padded))
}

fn compared(plain: Findings, padded: Findings) -> Vec<Answers> {
    let network = network();
    let settings = [1, 80].map(|batch_padding| Settings { batch_padding, ..Settings::default() });
    let series = [series(0), series(LAST)];
    let findings = [plain, padded];
    let case = |at: usize| Case {
        series: &series[at],
        findings: &findings[at],
        setup: Some(Setup { engine: EngineName::Cpu, network: &network, settings: &settings[at] }),
        causes: &[],
    };
    explain(&[case(0), case(1)], &[rows(0), rows(LAST)].concat())
}

#[test]
fn a_jump_that_goes_with_the_setting_is_shown_by_intervention() {
    let answers = answers(&[16.0, 32.0], &[]);
    let jump = &answers[0].jumps[0];
    let candidate = &jump.candidates[0];
    assert_eq!((jump.candidates.len(), candidate.mechanism), (1, Mechanism::CpuVectors));
    let shown = Verdict::Shown { setting: "batch_padding".into(), value: "80".into() };
    assert_eq!(candidate.verdict, shown);
    // 32 in place of 16 examples where 17 would be proportional, in half of the step.
    let expected = 0.5 * (2.0 - 17.0 / 16.0);
    assert!((candidate.predicted.unwrap() - expected).abs() < 1e-9, "{candidate:?}");
    assert_eq!((candidate.places[0].layer.as_str(), candidate.unseen.len()), ("dense", 0));
    let period = &answers[0].period[0];
    assert_eq!((period.jumps, period.shown, period.contradicted), (2, 2, 0));
    assert!(answers[1].jumps.is_empty() && answers[0].timed && answers[0].unknown.is_empty());
}

#[test]
fn a_jump_that_stays_contradicts_it() {
    let answers = answers(&[16.0, 32.0], &[16.0, 32.0]);
    let verdict = &answers[0].jumps[0].candidates[0].verdict;
    assert!(matches!(verdict, Verdict::Contradicted(why) if why.contains("batch_padding = 80")), "{verdict:?}");
    // With the padding nothing predicts a step there.
    assert!(answers[1].jumps.iter().all(|jump| jump.candidates.is_empty()));
    assert_eq!(answers[0].period[0].contradicted, 2);
}

#[test]
fn a_jump_that_shrinks_is_shown_where_the_intervals_are_apart() {
    let verdict = |part: f64| {
        let answers = compared(findings(&[16.0]), weakened(findings(&[16.0]), part));
        answers[0].jumps[0].candidates[0].verdict.name()
    };
    assert_eq!([0.2, 0.4, 0.6].map(verdict), ["shown by intervention", "shown by intervention", "contradicted"]);
    // Where all of it may be left, nothing is shown.
    let mut wide = weakened(findings(&[16.0]), 0.4);
    wide.jumps[0].high = 1.1 * findings(&[16.0]).jumps[0].size;
    assert_eq!(compared(findings(&[16.0]), wide)[0].jumps[0].candidates[0].verdict, Verdict::Consistent);
}

#[test]
fn a_step_that_is_predicted_and_not_seen_is_counted() {
    let answers = answers(&[16.0], &[16.0]);
    assert_eq!(answers[0].jumps[0].candidates[0].unseen, [32.0]);
    assert!(answers[0].period.is_empty());
}

#[test]
fn a_jump_elsewhere_has_no_mechanism() {
    let answers = answers(&[20.0], &[]);
    assert!(answers[0].jumps[0].candidates.is_empty());
}

#[test]
fn without_a_series_to_compare_it_is_consistent_unless_other_layers_make_the_jump() {
    let network = network();
    let (series, findings, settings) = (series(0), findings(&[16.0]), Settings::default());
    let step = |layer: &str| Cause {
        layer: layer.into(),
        direction: "forward".into(),
        step: Some(LayerStep { size_s: 1e-4, standard_error_s: 1e-6, share: 0.9 }),
        before: Side::default(),
        behind: Side::default(),
    };
    let verdict = |causes: &[Explanation]| {
        let setup = Some(Setup { engine: EngineName::Cpu, network: &network, settings: &settings });
        let case = Case { series: &series, findings: &findings, setup, causes };
        explain(&[case], &rows(0))[0].jumps[0].candidates[0].verdict.clone()
    };
    let causes = |layer: &str| {
        [Explanation { after: 16.0, next: 17.0, size_s: 1e-4, layers: vec![step(layer)], timed: true, together: None }]
    };
    assert_eq!(verdict(&[]), Verdict::Consistent);
    assert_eq!(verdict(&causes("dense")), Verdict::Consistent);
    assert!(matches!(verdict(&causes("other")), Verdict::Contradicted(why) if why.contains("other layers")));
}

#[test]
fn another_algorithm_is_named_without_a_size() {
    let network = network();
    let (series, findings, settings) = (series(0), findings(&[20.0]), Settings::default());
    let mut rows = rows(0);
    rows.iter_mut().for_each(|row| row.algorithm = Some(if row.batch_size > 20 { "b" } else { "a" }.into()));
    let setup = Some(Setup { engine: EngineName::Cudnn, network: &network, settings: &settings });
    let case = Case { series: &series, findings: &findings, setup, causes: &[] };
    let answers = explain(&[case], &rows);
    let candidate = &answers[0].jumps[0].candidates[0];
    assert_eq!((candidate.mechanism, candidate.predicted), (Mechanism::OtherAlgorithm, None));
    assert_eq!((&candidate.verdict, answers[0].unknown.len()), (&Verdict::Consistent, 1));
}

/// cuDNN's non-fused Winograd, as the launch of a layer is read back: the batch is padded to 16.
#[test]
fn a_gpu_kernel_is_known_by_its_name() {
    let mut b = Builder::new("one", Shape::Maps { channels: 64, height: 8, width: 8 }).unwrap();
    let padding = crate::network::Padding { top: 1, bottom: 1, left: 1, right: 1 };
    b.then("conv", crate::network::Conv2d { padding, ..crate::network::Conv2d::square(64, 3) }).unwrap();
    let network = b.finish().unwrap();
    let (series, findings, settings) = (series(0), findings(&[16.0, 32.0]), Settings::default());
    let mut rows = rows(0);
    for row in &mut rows {
        (row.layer, row.operation) = ("conv".into(), "conv2d".into());
        (row.algorithm, row.kernel) = (Some("winograd_nonfused".into()), Some("volta_sgemm_128x64_nn".into()));
    }
    let setup = Some(Setup { engine: EngineName::Cudnn, network: &network, settings: &settings });
    let answers = explain(&[Case { series: &series, findings: &findings, setup, causes: &[] }], &rows);
    let mechanisms: Vec<Mechanism> =
        answers[0].jumps.iter().flat_map(|jump| jump.candidates.iter().map(|c| c.mechanism)).collect();
    assert_eq!(mechanisms, [Mechanism::WinogradPadding; 2]);
}
