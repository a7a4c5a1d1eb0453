//! Tests on runs made by hand: one dense layer of the CPU engine that takes half of the step, with and without
//! `batch_padding = 80`.

mod other_series;

use std::path::Path;

use super::*;
use crate::analysis::Series;
use crate::analysis::causes::{Cause, LayerStep, SideExecution};
use crate::analysis::mechanisms::formulas::{Kernel, LayerSizes, Tile};
use crate::analysis::mechanisms::machine::CacheLevel;
use crate::detect::{Candidate as Boundary, Jump, Period, Point, Rejection};
use crate::network::{Builder, Conv2d, Dense, Padding, Shape};
use crate::settings::Winograd;

const LAST: i64 = 40;

/// A series of a run.
#[derive(Clone, Default)]
struct Given {
    settings: Settings,
    findings: Findings,
    causes: Vec<Explanation>,
}

/// The answers for the series of a run, whose cells follow each other.
fn answered(
    engine: EngineName,
    network: &Network,
    machine: &MachineMemory,
    given: &[Given],
    layers: &[LayerRow],
) -> Vec<Answers> {
    let series = |at: i64| {
        let cells = (at * LAST..(at + 1) * LAST).collect();
        Series { cells, ..Series::planted(Vec::new(), Vec::new()) }
    };
    let series: Vec<Series> = (0..given.len() as i64).map(series).collect();
    let cases = series.iter().zip(given).map(|(series, Given { settings, findings, causes })| {
        let setup = Some(Setup { engine, network, settings, machine });
        KnownSeries { series, findings, setup, causes }
    });
    explain(&cases.collect::<Vec<_>>(), layers, &BTreeMap::new())
}

/// The same for one series with the default settings on an unknown machine.
fn answered_alone(engine: EngineName, network: &Network, findings: Findings, layers: &[LayerRow]) -> Answers {
    let given = Given { findings, ..Given::default() };
    answered(engine, network, &MachineMemory::default(), &[given], layers).remove(0)
}

fn network() -> Network {
    let mut b = Builder::new("one", Shape::Flat(512)).unwrap();
    b.then("dense", Dense { out_features: 512, bias: true }).unwrap();
    b.finish().unwrap()
}

/// A step of 1 ms and 50 us for each example, with those jumps. The smallest jump that would have been seen is 2 %.
fn findings(after: &[f64]) -> Findings {
    let fit = |x: f64| 1e-3 + 5e-5 * x;
    let point = |x: i64| {
        let (x, center) = (x as f64, fit(x as f64));
        Point { x, count: 5, center, low: center, high: center, fit: center, off: false }
    };
    let jump = |after: f64| {
        let size = 0.2 * fit(after);
        Jump { p_value: 1e-4, verdict: None, ..Jump::planted(after, size, 0.2) }
    };
    let period = Period { value: 16.0, p_value: 1e-3, explains: after.to_vec(), unconfirmed: vec![] };
    Findings {
        points: (1..=LAST).map(point).collect(),
        jumps: after.iter().copied().map(jump).collect(),
        period: (after.len() > 1).then_some(period),
        false_positive_rate: 0.01,
        detectable: Some(0.02),
        ..Findings::default()
    }
}

/// The same findings with jumps of that part of their size, known to a tenth.
fn weakened(findings: Findings, part: f64) -> Findings {
    let weaken = |jump: Jump| {
        let size = part * jump.size;
        Jump { size, low: 0.9 * size, high: 1.1 * size, relative: part * jump.relative, ..jump }
    };
    Findings { jumps: findings.jumps.into_iter().map(weaken).collect(), ..findings }
}

/// The rows of the layer's forward pass in the series whose cells begin at `first`: half of the step time.
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

/// Answers for the plain series and for the one with `batch_padding = 80`, which jump after those batch sizes.
fn answers(plain: &[f64], padded: &[f64]) -> Vec<Answers> {
    compared(findings(plain), findings(padded))
}

fn compared(plain: Findings, padded: Findings) -> Vec<Answers> {
    let given = [(1, plain), (80, padded)].map(|(batch_padding, findings)| Given {
        settings: Settings { batch_padding, ..Settings::default() },
        findings,
        ..Given::default()
    });
    let layers = [rows(0), rows(LAST)].concat();
    answered(EngineName::Cpu, &network(), &MachineMemory::default(), &given, &layers)
}

/// A jump after 16 of which these layers' measured steps make up those parts.
fn timed(layers: &[(&str, f64)]) -> Vec<Explanation> {
    let cause = |(layer, share): &(&str, f64)| Cause {
        layer: (*layer).into(),
        direction: "forward".into(),
        step: Some(LayerStep { size_s: 1e-4, standard_error_s: 1e-6, share: *share }),
        before: SideExecution::default(),
        behind: SideExecution::default(),
    };
    let layers = layers.iter().map(cause).collect();
    vec![Explanation { after: 16.0, next: 17.0, size_s: 1e-4, layers, timed: true, together: None }]
}

/// The first candidate for a jump after 16 of which those layers' measured steps make up those parts.
fn with_timed(layers: &[(&str, f64)]) -> Candidate {
    let given = Given { findings: findings(&[16.0]), causes: timed(layers), ..Given::default() };
    answered(EngineName::Cpu, &network(), &MachineMemory::default(), &[given], &rows(0))[0].jumps[0].candidates[0]
        .clone()
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
    // At a jump elsewhere no mechanism predicts a step.
    assert!(self::answers(&[20.0], &[])[0].jumps[0].candidates.is_empty());
}

#[test]
fn a_jump_that_stays_contradicts_it() {
    let answers = answers(&[16.0, 32.0], &[16.0, 32.0]);
    let verdict = &answers[0].jumps[0].candidates[0].verdict;
    assert!(matches!(verdict, Verdict::Contradicted(why) if why.contains("batch_padding = 80")), "{verdict:?}");
    // With the padding, no mechanism predicts a step there.
    assert!(answers[1].jumps.iter().all(|jump| jump.candidates.is_empty()));
    assert_eq!(answers[0].period[0].contradicted, 2);
    // A step that is predicted and not seen is counted.
    let once = self::answers(&[16.0], &[16.0]);
    assert_eq!((&once[0].jumps[0].candidates[0].unseen[..], once[0].period.len()), (&[32.0][..], 0));
}

#[test]
fn a_jump_that_shrinks_is_shown_where_the_intervals_are_apart() {
    let verdict = |part: f64| {
        let answers = compared(findings(&[16.0]), weakened(findings(&[16.0]), part));
        answers[0].jumps[0].candidates[0].verdict.name()
    };
    assert_eq!([0.2, 0.4, 0.6].map(verdict), ["shown by intervention", "shown by intervention", "contradicted"]);
    // If the whole jump may remain, nothing is shown.
    let mut wide = weakened(findings(&[16.0]), 0.4);
    wide.jumps[0].high = 1.1 * findings(&[16.0]).jumps[0].size;
    assert_eq!(compared(findings(&[16.0]), wide)[0].jumps[0].candidates[0].verdict, Verdict::Consistent);
}

#[test]
fn without_a_series_to_compare_it_is_consistent_unless_other_layers_make_the_jump() {
    let alone = answered_alone(EngineName::Cpu, &network(), findings(&[16.0]), &rows(0));
    assert_eq!(alone.jumps[0].candidates[0].verdict, Verdict::Consistent);
    assert_eq!(with_timed(&[("dense", 0.9)]).verdict, Verdict::Consistent);
    let verdict = with_timed(&[("other", 0.9)]).verdict;
    assert!(matches!(verdict, Verdict::Contradicted(why) if why.contains("other layers")));
}

#[test]
fn another_algorithm_is_named_without_a_size() {
    let mut rows = rows(0);
    rows.iter_mut().for_each(|row| row.algorithm = Some(if row.batch_size > 20 { "b" } else { "a" }.into()));
    let answers = answered_alone(EngineName::Cudnn, &network(), findings(&[20.0]), &rows);
    let candidate = &answers.jumps[0].candidates[0];
    assert_eq!((candidate.mechanism, candidate.predicted), (Mechanism::OtherAlgorithm, None));
    assert_eq!((&candidate.verdict, answers.unknown.len()), (&Verdict::Consistent, 1));
}

/// cuDNN's non-fused Winograd, as the launch of a layer is read back: the batch is padded to 16.
#[test]
fn a_gpu_kernel_is_known_by_its_name() {
    let rows = convolution_rows(0, |row| {
        (row.algorithm, row.kernel) = (Some("winograd_nonfused".into()), Some("volta_sgemm_128x64_nn".into()));
    });
    let answers = answered_alone(EngineName::Cudnn, &convolution(8), findings(&[16.0, 32.0]), &rows);
    let mechanisms: Vec<Mechanism> =
        answers.jumps.iter().flat_map(|jump| jump.candidates.iter().map(|c| c.mechanism)).collect();
    assert_eq!(mechanisms, [Mechanism::WinogradPadding; 2]);
}

/// A network of one convolution of 64 channels, with padding that keeps the size.
fn convolution(side: usize) -> Network {
    let mut b = Builder::new("one", Shape::Maps { channels: 64, height: side, width: side }).unwrap();
    let padding = Padding { top: 1, bottom: 1, left: 1, right: 1 };
    b.then("conv", Conv2d { padding, ..Conv2d::square(64, 3) }).unwrap();
    b.finish().unwrap()
}

/// The rows of its forward pass, half of the step time, changed by `change`.
fn convolution_rows(first: i64, change: impl Fn(&mut LayerRow)) -> Vec<LayerRow> {
    let mut rows = rows(first);
    for row in &mut rows {
        (row.layer, row.operation) = ("conv".into(), "conv2d".into());
        change(row);
    }
    rows
}

/// Series with jumps after those batch sizes that differ in their use of Winograd's algorithm.
fn with_winograd<'a>(given: impl IntoIterator<Item = (Winograd, &'a [f64])>) -> Vec<Given> {
    let of = |(winograd, jumps)| Given {
        settings: Settings { winograd, ..Settings::default() },
        findings: findings(jumps),
        ..Given::default()
    };
    given.into_iter().map(of).collect()
}

/// The question of `experiments/why_sixteen.toml`: Winograd allowed, forbidden and forced, with jumps of the steps
/// after those batch sizes. Where it is allowed, the graph API takes the non-fused algorithm, as its notes and the
/// plain product as the main kernel show.
fn why_sixteen(jumps: [&[f64]; 3]) -> Vec<Answers> {
    let given = with_winograd([Winograd::Any, Winograd::Never, Winograd::NonFused].into_iter().zip(jumps));
    let executed = |row: &mut LayerRow, algorithm: &str, math_mode: &str, kernel: &str| {
        (row.algorithm, row.math_mode) = (Some(algorithm.into()), Some(math_mode.into()));
        row.kernel = Some(kernel.into());
    };
    let rows = [
        convolution_rows(0, |row| executed(row, "graph:eng6{}", "fma+winograd+winograd_6x6", "volta_sgemm_128x64_nn")),
        convolution_rows(LAST, |row| executed(row, "graph:eng34{}", "fma", "volta_scudnn_128x64_relu_small_nn_v1")),
        convolution_rows(2 * LAST, |row| {
            executed(row, "legacy:winograd_nonfused/fma", "fma_math", "volta_sgemm_128x64_nn");
        }),
    ];
    answered(EngineName::Cudnn, &convolution(56), &MachineMemory::default(), &given, &rows.concat())
}

#[test]
fn jumps_that_go_with_winograd_are_shown_to_go_with_it() {
    let answers = why_sixteen([&[16.0, 32.0], &[], &[16.0, 32.0]]);
    for at in [0, 2] {
        for jump in &answers[at].jumps {
            let padding = jump.candidates.iter().find(|one| one.mechanism == Mechanism::WinogradPadding).unwrap();
            let shown = Verdict::Shown { setting: "winograd".into(), value: "never".into() };
            assert_eq!(padding.verdict, shown, "{at}");
        }
    }
    let made = &answers[0].interventions;
    assert_eq!(made.len(), 2);
    assert_eq!((made[0].setting.as_str(), made[0].value.as_str()), ("winograd", "never"));
    assert_eq!((made[0].gone.as_slice(), made[0].stay.len(), made[0].unjudged.len()), (&[16.0, 32.0][..], 0, 0));
    // With Winograd forced, the jumps stay.
    assert_eq!((made[1].value.as_str(), made[1].stay.as_slice()), ("nonfused", &[16.0, 32.0][..]));
    assert!(answers[1].interventions.is_empty(), "there is no jump to take away");
}

/// The jump does not count as gone where the series without Winograd has a boundary that looked like a jump but was not
/// confirmed.
#[test]
fn a_jump_is_not_gone_where_the_other_series_cannot_be_judged() {
    let mut doubted = findings(&[]);
    let reason = Rejection::NotAmongNeighbours { local: 1.1 };
    doubted.rejected = vec![Boundary { after: 16.0, size: 1e-5, p_value: 0.01, reason }];
    let answers = compared(findings(&[16.0, 32.0]), doubted);
    let made = &answers[0].interventions[0];
    assert_eq!((made.unjudged.as_slice(), made.gone.as_slice()), (&[16.0][..], &[32.0][..]));
    let verdicts = answers[0].jumps.iter().map(|jump| jump.candidates[0].verdict.name());
    assert_eq!(verdicts.collect::<Vec<_>>(), ["consistent", "shown by intervention"]);
}

#[test]
fn jumps_that_stay_without_winograd_contradict_it() {
    let answers = why_sixteen([&[16.0, 32.0], &[16.0, 32.0], &[16.0, 32.0]]);
    let of = |at: usize| {
        let candidate = &answers[at].jumps[0].candidates[0];
        (candidate.mechanism, candidate.verdict.name())
    };
    assert_eq!(of(0), (Mechanism::WinogradPadding, "contradicted"));
    let made = &answers[0].interventions[0];
    assert_eq!((made.gone.len(), made.stay.as_slice()), (0, &[16.0, 32.0][..]));
    // Without Winograd, the tiles of another mechanism are 32 B 56^2 / 128 = 24.5 B, which has no step near 16: none is
    // known.
    assert!(answers[1].jumps[0].candidates.is_empty(), "{:?}", answers[1].jumps[0]);
}

/// 50 MB for each example and a limit of 1.02 GB: 20 fit, and 21 would need 1.05 GB. There the library takes another algorithm.
fn with_workspace(limit: u64, jump: f64) -> JumpCandidates {
    let rows = convolution_rows(0, |row| {
        let fits = row.batch_size <= 20;
        row.algorithm = Some(if fits { "graph:eng3{}" } else { "graph:eng1{}" }.into());
        row.workspace_bytes = Some(if fits { 50_000_000 * row.batch_size } else { 1024 });
    });
    on_machine(&MachineMemory { workspace_limit: Some(limit), ..MachineMemory::default() }, &[jump], &rows)[0].clone()
}

/// The jumps of the convolution on cuDNN after those batch sizes.
fn on_machine(machine: &MachineMemory, after: &[f64], rows: &[LayerRow]) -> Vec<JumpCandidates> {
    let given = Given { findings: findings(after), ..Given::default() };
    answered(EngineName::Cudnn, &convolution(56), machine, &[given], rows).remove(0).jumps
}

#[test]
fn an_algorithm_whose_workspace_no_longer_fits_is_named_with_the_sizes() {
    let mechanisms = |answer: &JumpCandidates| answer.candidates.iter().map(|one| one.mechanism).collect::<Vec<_>>();
    let answer = with_workspace(1_020_000_000, 20.0);
    assert_eq!(mechanisms(&answer), [Mechanism::OtherAlgorithm, Mechanism::WorkspaceLimit]);
    let place = &answer.candidates[1].places[0];
    let sizes = "conv forward: 1.00 GB of workspace at 20, about 1.05 GB at 21, and the limit is 1.02 GB";
    assert_eq!((place.detail.as_deref(), place.predicted), (Some(sizes), None));
    // If the memory would still suffice, the change had another reason. Elsewhere nothing changes.
    assert_eq!(mechanisms(&with_workspace(1_060_000_000, 20.0)), [Mechanism::OtherAlgorithm]);
    assert!(mechanisms(&with_workspace(1_020_000_000, 25.0)).is_empty());
}

/// 1 MB for each example, and a cache of 20.5 MB: after 20 it overflows. A copy at 84 GB/s moves the 21 MB in 0.25 ms, an eighth of the step
/// of 2 ms.
#[test]
fn a_cache_overflow_explains_at_most_the_time_of_the_memory() {
    let rows = convolution_rows(0, |row| row.bytes = 1e6 * row.batch_size as f64);
    let candidates = |rate: f64| {
        let caches = vec![CacheLevel { level: 2, bytes: 20_500_000 }];
        let machine = MachineMemory { caches, bytes_per_s: Some(rate), ..MachineMemory::default() };
        on_machine(&machine, &[20.0], &rows)[0].candidates.clone()
    };
    let found = candidates(84e9);
    assert_eq!(
        (found.len(), found[0].mechanism, &found[0].verdict),
        (1, Mechanism::CacheOverflow, &Verdict::Consistent)
    );
    assert!((found[0].predicted.unwrap() - 0.125).abs() < 1e-9 && found[0].unseen.is_empty(), "{found:?}");
    let detail = found[0].places[0].detail.as_deref().unwrap();
    assert_eq!(detail, "conv forward: 20.00 MB at 20, 21.00 MB at 21, and cache L2 has 20.50 MB");
    // The jump is 20 %: a step of at most 2 % cannot cause it, and 0.2 % is no step at all.
    let verdict = candidates(84e9 * 6.0).remove(0).verdict;
    assert!(matches!(verdict, Verdict::Contradicted(why) if why.contains("less than half")));
    assert!(candidates(84e9 * 60.0).is_empty());
}

/// 512 x 512 weights, 1.05 MB, are read three times for 18 examples and four times for 19. At 1 GB/s that takes at most 1.05 ms of the 1.9 ms of a step.
#[test]
fn a_dense_layer_that_reads_its_weights_once_more_explains_at_most_that_reading() {
    let machine = MachineMemory { bytes_per_s: Some(1e9), ..MachineMemory::default() };
    let given = [Given { findings: findings(&[18.0, 20.0]), ..Given::default() }];
    let of = |direction: &str| {
        let rows: Vec<LayerRow> =
            rows(0).into_iter().map(|row| LayerRow { direction: direction.into(), ..row }).collect();
        answered(EngineName::Cpu, &network(), &machine, &given, &rows).remove(0).jumps
    };
    let jumps = of("backward_data");
    let candidate = &jumps[0].candidates[0];
    assert_eq!((candidate.mechanism, &candidate.verdict), (Mechanism::CpuReadings, &Verdict::Consistent));
    assert!((candidate.predicted.unwrap() - 1.048_576 / 1.9).abs() < 1e-9, "{candidate:?}");
    let detail = candidate.places[0].detail.as_deref();
    assert_eq!(detail, Some("dense backward_data: 1.05 MB of weights are read 3 times at 18, 4 times at 19"));
    // 20 and 21 examples both take four readings. The rows of the weights' own gradient run along the outputs.
    assert!(jumps[1].candidates.is_empty(), "{:?}", jumps[1]);
    assert!(of("backward_weights")[0].candidates.is_empty());
}

/// When this was measured, the CPU engine used Winograd's algorithm from 24 images of 4x4 on; today it uses it from 28
/// / (4 - 1), that is 10 images, on.
#[test]
fn a_kernel_that_the_cpu_engine_itself_changes_is_its_own_mechanism() {
    let given = with_winograd([(Winograd::Any, &[23.0][..]), (Winograd::Never, &[][..])]);
    let named = |row: &mut LayerRow, winograd: bool| {
        row.algorithm = Some(if winograd { "winograd_4x4_3x3" } else { "im2col_gemm" }.into());
    };
    let rows =
        [convolution_rows(0, |row| named(row, row.batch_size >= 24)), convolution_rows(LAST, |row| named(row, false))];
    let answers = answered(EngineName::Cpu, &convolution(4), &MachineMemory::default(), &given, &rows.concat());
    let candidate = &answers[0].jumps[0].candidates[0];
    assert_eq!((candidate.mechanism, candidate.predicted), (Mechanism::OwnKernel, None));
    // The layer's own rows say what changed to what, with the layer's times.
    let detail = candidate.places[0].detail.as_deref().unwrap_or_default();
    let change = "conv forward: im2col_gemm at 23, winograd_4x4_3x3 at 24; 1.0750 ms, then 1.1000 ms; it multiplies";
    assert!(detail.starts_with(change), "{detail}");
    // An intervention needs no size: without Winograd there is no such change, and no jump.
    assert_eq!(candidate.verdict, Verdict::Shown { setting: "winograd".into(), value: "never".into() });
    assert_eq!(answers[0].jumps[0].candidates.len(), 1);
}

/// The predicted step after 32 was not found. The detector's notes on that place decide whether it would have been seen.
#[test]
fn a_place_that_the_detector_doubts_is_not_counted_as_not_seen() {
    let of = |findings: Findings| {
        let candidate = compared(findings.clone(), findings)[0].jumps[0].candidates[0].clone();
        (candidate.unseen, candidate.unjudged)
    };
    let (seen, doubted) = ((vec![32.0], vec![]), (vec![], vec![32.0]));
    let plain = || findings(&[16.0]);
    assert_eq!(of(plain()), seen);
    let rejected = |after: f64, reason: Rejection| Findings {
        rejected: vec![Boundary { after, size: 5e-4, p_value: 0.01, reason }],
        ..plain()
    };
    assert_eq!(of(rejected(32.0, Rejection::NotAmongNeighbours { local: 1.1 })), doubted);
    assert_eq!(of(rejected(30.0, Rejection::Rough { count: 3 })), doubted);
    assert_eq!(of(rejected(28.0, Rejection::Rough { count: 3 })), seen);
    // It was judged too small.
    assert_eq!(of(rejected(32.0, Rejection::BelowSmallestJump { relative: 0.001 })), seen);
    // A small rejected step leaves only its own place in doubt: half of the layer's step of 23 % is 0.3 ms.
    let small = |after: f64| {
        let mut findings = rejected(after, Rejection::TooSteep);
        findings.rejected[0].size = 1e-5;
        findings
    };
    assert_eq!([of(small(32.0)), of(small(31.0))], [doubted.clone(), seen.clone()]);
    let mut off = plain();
    (off.points[32].off, off.points[32].center) = (true, off.points[32].fit + 5e-4);
    assert_eq!(of(off), doubted);
    let period = Period { value: 16.0, p_value: 1e-3, explains: vec![16.0], unconfirmed: vec![32.0] };
    assert_eq!(of(Findings { period: Some(period), ..plain() }), doubted);
    let mut wide = findings(&[16.0, 34.0]);
    wide.jumps[1].after_low = 31.0;
    assert_eq!(compared(wide.clone(), wide)[0].jumps[0].candidates[0].unjudged, [32.0]);
    // Three points after it are too few.
    let mut short = plain();
    short.points.truncate(35);
    assert_eq!(of(short), doubted);
}

/// The launch grids that the driver told on an H200, where non-fused Winograd was forced: those of a batch padded to 16, forward and in the
/// gradient of the data. CUTLASS rounds the number of tiles up to a multiple of 8, to let neighbours share a cache.
#[test]
fn an_h200_launched_the_grids_of_a_batch_padded_to_sixteen() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/runs/2026-11-27-h200-why-sixteen");
    let network = Network::by_name("vgg16", Shape::Maps { channels: 3, height: 224, width: 224 }, 1000).unwrap();
    let sizes = |row: &LayerRow| {
        let at = network.layers.iter().position(|layer| layer.name == row.layer)?;
        let forward = LayerSizes::of(&network, at)?;
        let (inputs, outputs) = (forward.inputs, forward.outputs);
        match row.direction.as_str() {
            "forward" => Some(forward),
            "backward_data" => Some(LayerSizes { inputs: outputs, outputs: inputs, ..forward }),
            _ => None,
        }
    };
    let fits = |row: &LayerRow, padding: usize| {
        let sizes = sizes(row)?;
        row.algorithm.as_deref().filter(|name| name.contains("winograd_nonfused"))?;
        let name = row.kernel.as_deref()?;
        let Kernel::NonFusedWinograd(tile) = Kernel::of(sizes.product, name, "winograd_nonfused")? else { return None };
        let group = if name.contains("cutlass_80") { 8 } else { 1 };
        let blocks = |tile: Tile| {
            let batch = usize::try_from(row.batch_size).unwrap();
            let [tiles, channels, components] = Kernel::NonFusedWinograd(tile).grid_padded(&sizes, batch, padding);
            (tiles.next_multiple_of(group) * channels * components) as i64
        };
        // The name has the sizes of a tile of the product or of its transpose.
        let turned = Tile { first: tile.second, second: tile.first };
        Some([tile, turned].into_iter().any(|tile| row.blocks == Some(blocks(tile))))
    };
    let rows = crate::store::sealed::<crate::store::LayerRow>(&run.join("layers.parquet")).unwrap();
    let count = |padding: usize| {
        let all: Vec<bool> = rows.iter().filter_map(|row| fits(row, padding)).collect();
        (all.iter().filter(|fits| **fits).count(), all.len())
    };
    assert_eq!(count(16), (375, 375));
    // The same counts by the formula in Python.
    assert_eq!([1, 8, 32].map(|padding| count(padding).0), [157, 247, 200]);
}
