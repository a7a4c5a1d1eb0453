//! What another series of the run says of a jump, and which mechanisms are large enough for it.

use super::*;
use crate::report::{Style, likely_causes};
use crate::settings::Text;

/// The same findings where every step takes `factor` times as long.
fn scaled(findings: Findings, factor: f64) -> Findings {
    let point = |p: Point| Point { center: factor * p.center, fit: factor * p.fit, ..p };
    let jump = |j: Jump| Jump { size: factor * j.size, low: factor * j.low, high: factor * j.high, ..j };
    Findings {
        points: findings.points.into_iter().map(point).collect(),
        jumps: findings.jumps.into_iter().map(jump).collect(),
        ..findings
    }
}

/// What became of the jumps of the first series in the second, and of those of the second in the first.
fn changed(one: Findings, other: Findings) -> [Intervention; 2] {
    let answers = compared(one, other);
    [0, 1].map(|at| answers[at].interventions.first().cloned().unwrap_or_default())
}

/// A jump of 20 % is one of 20 % too where all steps take a quarter of the time.
#[test]
fn a_setting_that_makes_the_whole_step_faster_takes_no_jump_away() {
    let [slow, fast] = changed(findings(&[16.0]), scaled(findings(&[16.0]), 0.25));
    assert_eq!((slow.stay, slow.smaller.len()), (vec![16.0], 0));
    assert_eq!((fast.stay, fast.larger.len()), (vec![16.0], 0));
    let gone = |smallest: f64| {
        let none = Findings { detectable: Some(smallest), ..scaled(findings(&[]), 0.25) };
        let [made, _] = changed(findings(&[16.0]), none);
        (made.gone.len(), made.unjudged.len())
    };
    // Jumps of 30 % would have been seen, which is less time than 20 % of the slower step, but one of 20 % would not.
    assert_eq!([gone(0.1), gone(0.3)], [(1, 0), (0, 1)]);
}

/// The jumps after 16 of `experiments/runs/2026-11-27-h200-why-sixteen`: 7.9 of 20.9 ms with non-fused Winograd, and 24.0 of 37.6 ms with an
/// FFT.
#[test]
fn a_jump_of_another_size_is_not_the_same() {
    let fft = || scaled(weakened(findings(&[16.0]), 1.7), 1.8);
    let [winograd, of_fft] = changed(findings(&[16.0]), fft());
    assert_eq!((winograd.larger, winograd.stay.len()), (vec![16.0], 0));
    // More than half of it as a part of the step, and less as a time.
    assert_eq!((of_fft.unjudged, of_fft.smaller.len()), (vec![16.0], 0));
    assert_eq!(compared(findings(&[16.0]), fft())[0].jumps[0].candidates[0].verdict, Verdict::Consistent);
    let [_, thrice] = changed(findings(&[16.0]), weakened(findings(&[16.0]), 3.0));
    assert_eq!(thrice.smaller, [16.0]);
}

/// Non-fused Winograd forced, and cuDNN's own choice, which changes after `changes`; both jump after 16.
fn forced(changes: i64, causes: Vec<Explanation>) -> Verdict {
    let mut given = with_winograd([Winograd::NonFused, Winograd::Any].map(|winograd| (winograd, &[16.0][..])));
    given[1].causes = causes;
    let padded = convolution_rows(0, |row| {
        row.algorithm = Some("legacy:winograd_nonfused/fma".into());
        row.kernel = Some("volta_sgemm_128x64_nn".into());
    });
    let free = convolution_rows(LAST, |row| {
        row.algorithm = Some(if row.batch_size > changes { "graph:eng12{}" } else { "graph:eng3{}" }.into());
    });
    let layers = [padded, free].concat();
    let answers = answered(EngineName::Cudnn, &convolution(56), &MachineMemory::default(), &given, &layers);
    let candidate = answers[0].jumps[0].candidates[0].clone();
    assert_eq!(candidate.mechanism, Mechanism::WinogradPadding);
    candidate.verdict
}

#[test]
fn a_jump_that_another_mechanism_makes_in_the_other_series_contradicts_nothing() {
    let is_contradicted = |verdict: Verdict| matches!(verdict, Verdict::Contradicted(_));
    assert_eq!(forced(16, vec![]), Verdict::Consistent);
    assert_eq!(forced(16, timed(&[("conv", 0.9)])), Verdict::Consistent);
    // Without such a change the jump is the same one; and a layer that makes next to nothing of it is no excuse.
    assert!(is_contradicted(forced(LAST, vec![])));
    assert!(is_contradicted(forced(16, timed(&[("conv", 0.05), ("other", 0.9)]))));
}

/// The rounds of a GPU's blocks grow from 10 to 11, which is 3.75 % more than the share of one example, in half of the step: 1.9 % of it,
/// where the step jumps by 20 %.
#[test]
fn a_mechanism_that_is_too_small_for_the_jump_comes_last_and_is_not_the_likeliest() {
    let rows = convolution_rows(0, |row| {
        let is_behind = row.batch_size > 16;
        row.waves = Some(if is_behind { 11.0 } else { 10.0 });
        row.algorithm = Some(if is_behind { "graph:eng12{}" } else { "graph:eng3{}" }.into());
    });
    let answers = answered_alone(EngineName::Cudnn, &convolution(56), findings(&[16.0]), &rows);
    let found: Vec<(Mechanism, bool)> =
        answers.jumps[0].candidates.iter().map(|one| (one.mechanism, one.may_make_most)).collect();
    assert_eq!(found, [(Mechanism::OtherAlgorithm, true), (Mechanism::Rounds, false)]);
    let rounds = &answers.jumps[0].candidates[1];
    assert!((rounds.predicted.unwrap() - 0.5 * (1.1 - 17.0 / 16.0)).abs() < 1e-9, "{rounds:?}");
    assert_eq!(rounds.verdict, Verdict::Consistent);
    assert!(likely(&answers).contains("another algorithm (consistent at 1 of 1 jump"), "{}", likely(&answers));
}

/// The line that a user reads.
fn likely(answers: &Answers) -> String {
    likely_causes(&[("st".to_owned(), answers)]).render(&Style { color: false, width: 300 })
}

/// The dense layer's predicted step is more than the whole jump.
#[test]
fn measured_layers_contradict_a_mechanism_whose_own_layers_show_next_to_nothing() {
    let of = |layers: &[(&str, f64)]| {
        let candidate = with_timed(layers);
        (candidate.verdict.name(), candidate.may_make_most)
    };
    assert_eq!(of(&[("dense", 0.9)]), ("consistent", true));
    assert_eq!(of(&[("dense", 0.3), ("other", 0.7)]), ("consistent", false));
    assert_eq!(of(&[("dense", 0.05), ("other", 0.9)]), ("contradicted", false));
}

/// The answers for series of a step of one's own, each with a jump after 16 or none.
fn own_steps<const COUNT: usize>(given: [(Settings, bool); COUNT]) -> Vec<Answers> {
    let given = given.map(|(settings, jumps)| Given {
        settings,
        findings: findings(if jumps { &[16.0] } else { &[] }),
        ..Given::default()
    });
    answered(EngineName::Python, &network(), &MachineMemory::default(), &given, &[])
}

/// The jump is there only if alpha is 1.
#[test]
fn two_arguments_that_change_at_once_are_not_one_setting() {
    let with = |text: &str| Settings { arguments: Text::new(text), ..Settings::default() };
    let answers = own_steps([
        (with(r#"{"alpha":1,"beta":"a"}"#), true),
        (with(r#"{"alpha":1,"beta":"b"}"#), true),
        (with(r#"{"alpha":2,"beta":"a"}"#), false),
        (with(r#"{"alpha":2,"beta":"b"}"#), false),
    ]);
    let made: Vec<(&str, &str, usize, usize)> = (answers[0].interventions.iter())
        .map(|made| (made.setting.as_str(), made.value.as_str(), made.gone.len(), made.stay.len()))
        .collect();
    assert_eq!(made, [("beta", "b", 0, 1), ("alpha", "2", 1, 0)]);
    let sentence = "  Likely   with alpha = 2, the jump after 16 is gone (shown by intervention)\n";
    assert_eq!(likely(&answers[0]), sentence);
}

/// Both other values take the jump away: the first is named.
#[test]
fn a_variable_of_the_environment_is_a_setting_by_its_own_name() {
    let with = |text: &str| Settings { env: Text::new(text), ..Settings::default() };
    let answers = own_steps([
        (with(r#"{"CHOICE":null,"MODE":"1"}"#), true),
        (with(r#"{"CHOICE":"benchmark","MODE":"1"}"#), false),
        (with(r#"{"CHOICE":"tf32","MODE":"1"}"#), false),
    ]);
    let sentence = "  Likely   with CHOICE = benchmark, the jump after 16 is gone (shown by intervention)\n";
    assert_eq!((likely(&answers[0]).as_str(), answers[0].interventions.len()), (sentence, 2));
    let back = own_steps([(with(r#"{"CHOICE":"tf32"}"#), true), (with(r#"{"CHOICE":null}"#), false)]);
    assert_eq!(back[0].interventions[0].value, "not set");
}
