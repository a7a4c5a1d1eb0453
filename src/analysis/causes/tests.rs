use super::*;

/// A layer's row: cell 0 has batch size 13.
fn row(layer: &str, batch_size: i64, seconds: Option<f64>, algorithm: &str) -> LayerRow {
    LayerRow {
        engine: "cudnn".into(),
        model: "vgg16".into(),
        cell: batch_size - 13,
        batch_size,
        layer: layer.into(),
        direction: "forward".into(),
        algorithm: Some(algorithm.into()),
        device_time_s: seconds,
        ..LayerRow::default()
    }
}

fn jump(after: f64, size: f64) -> Jump {
    Jump::planted(after, size, 0.1)
}

/// A series in milliseconds with these jumps and cells.
fn found(jumps: Vec<Jump>, cells: std::ops::Range<i64>) -> Vec<Analysed> {
    let planted = Series::planted(Vec::new(), Vec::new());
    let series = Series { unit: "ms".into(), cells: cells.collect(), ..planted };
    let mut findings = series.find(&crate::detect::Settings::default());
    findings.jumps = jumps;
    vec![Analysed { series, findings }]
}

/// Batch sizes 13 to 20: `conv` steps by half a millisecond after 16 and takes another algorithm there, `pool` only grows.
fn stepping() -> Vec<LayerRow> {
    let conv = [1.301, 1.399, 1.502, 1.598, 2.203, 2.297, 2.401, 2.499];
    let pool = [0.131, 0.139, 0.150, 0.161, 0.170, 0.179, 0.190, 0.201];
    let each = (13..=20).zip(conv).zip(pool);
    each.flat_map(|((size, conv), pool)| {
        let algorithm = if size <= 16 { "graph:eng28" } else { "graph:eng30" };
        [row("conv", size, Some(conv * 1e-3), algorithm), row("pool", size, Some(pool * 1e-3), "kernel:pool")]
    })
    .collect()
}

// Size and standard error: NumPy 2.4, linalg.lstsq on the columns 1, x, x > 16.
#[test]
fn the_layer_that_steps_is_named_with_its_size_and_share() {
    let explained = explain(&found(vec![jump(16.0, 0.625)], 0..8), &stepping());
    let [explanation] = &explained[0][..] else { panic!("{explained:?}") };
    assert_eq!((explanation.after, explanation.next), (16.0, 17.0));
    assert!((explanation.size_s - 0.625e-3).abs() < 1e-12);
    let [conv] = &explanation.layers[..] else { panic!("{explanation:?}") };
    assert_eq!((conv.layer.as_str(), conv.direction.as_str()), ("conv", "forward"));
    let step = conv.step.unwrap();
    assert!(
        (step.size_s - 5.0280000000e-04).abs() < 1e-12 && (step.standard_error_s - 3.2468446221e-06).abs() < 1e-12,
        "{step:?}"
    );
    assert!((step.share - 5.0280000000e-04 / 0.625e-3).abs() < 1e-9);
    assert!(conv.changes_algorithm() && !conv.changes_rounds());
    assert_eq!(conv.behind.algorithm.as_deref(), Some("graph:eng30"));
    // The pool's line has no step, so the sum's is the convolution's and a little.
    let together = explanation.together.unwrap();
    assert!((together.size_s - step.size_s).abs() < 5e-6, "{together:?}");
}

#[test]
fn without_times_changes_of_algorithm_and_of_rounds_are_reported() {
    let mut rows = stepping();
    for row in &mut rows {
        row.device_time_s = None;
        // 132 blocks at a time: 16 images of 8 blocks are 0.97 waves, 17 are 1.03.
        if row.layer == "pool" {
            row.waves = Some(row.batch_size as f64 * 8.0 / 132.0);
        }
    }
    let explained = explain(&found(vec![jump(16.0, 0.5)], 0..8), &rows);
    let explanation = &explained[0][0];
    assert_eq!(explanation.together, None);
    let named: Vec<_> = explanation.layers.iter().map(|cause| cause.layer.as_str()).collect();
    assert_eq!(named, ["conv", "pool"]);
    assert!(explanation.layers.iter().all(|cause| cause.step.is_none()));
    assert!(explanation.layers[1].changes_rounds() && !explanation.layers[1].changes_algorithm());
    // The thirty-first round after thirty is nothing to speak of.
    rows.iter_mut().for_each(|row| row.waves = row.waves.map(|waves| waves + 29.0));
    let explained = explain(&found(vec![jump(16.0, 0.5)], 0..8), &rows);
    assert_eq!(explained[0][0].layers.len(), 1);
}

#[test]
fn a_line_ends_where_another_jump_begins() {
    // A second jump after 18 leaves only 17 and 18 behind the first; the sizes after it must not hide the step between 13 to 16 and these two.
    let mut rows = stepping();
    rows.iter_mut().filter(|row| row.layer == "conv" && row.batch_size > 18).for_each(|row| {
        row.device_time_s = row.device_time_s.map(|seconds| seconds + 5e-3);
    });
    let explained = explain(&found(vec![jump(16.0, 0.5), jump(18.0, 5.0)], 0..8), &rows);
    let steps: Vec<f64> = explained[0].iter().map(|one| one.together.unwrap().size_s).collect();
    assert!((steps[0] - 0.5e-3).abs() < 2e-5 && (steps[1] - 5e-3).abs() < 4e-5, "{steps:?}");
}

#[test]
fn scatter_is_no_step() {
    let mut rows = stepping();
    // Fixed noise of 10 % on a line without a step.
    let noise = [0.04, -0.09, 0.07, -0.02, 0.1, -0.06, -0.03, 0.05];
    for (row, noise) in rows.iter_mut().filter(|row| row.layer == "conv").zip(noise) {
        row.device_time_s = Some(1e-4 * row.batch_size as f64 * (1.0 + noise));
        row.algorithm = Some("graph:eng28".into());
    }
    let explained = explain(&found(vec![jump(16.0, 0.5)], 0..8), &rows);
    assert!(explained[0][0].layers.is_empty(), "{explained:?}");
}

#[test]
fn the_layers_of_another_series_are_not_asked() {
    // The same network again, as another setting has it: batch size 13 is cell 8.
    let mut rows = stepping();
    let others: Vec<LayerRow> = rows
        .iter()
        .map(|row| LayerRow { cell: row.cell + 8, algorithm: Some("graph:eng1".into()), ..row.clone() })
        .map(|row| LayerRow { device_time_s: Some(1e-4 * row.batch_size as f64), ..row })
        .collect();
    rows.extend(others);
    let first = explain(&found(vec![jump(16.0, 0.5)], 0..8), &rows);
    assert_eq!(first[0][0].layers[0].behind.algorithm.as_deref(), Some("graph:eng30"));
    let second = explain(&found(vec![jump(16.0, 0.5)], 8..16), &rows);
    assert!(second[0][0].layers.is_empty(), "{second:?}");
    // An engine that reports no algorithms, and data without cells, give no explanation.
    rows.iter_mut().for_each(|row| (row.algorithm, row.device_time_s) = (None, None));
    assert_eq!(explain(&found(vec![jump(16.0, 0.5)], 0..8), &rows), [vec![]]);
}

#[test]
fn a_cell_of_another_series_is_not_taken_for_a_missing_one() {
    // Batch size 13 did not run here, so nothing but the cells' numbers says that the other 13 is not of this series.
    let mut rows: Vec<LayerRow> = stepping().into_iter().filter(|row| row.batch_size > 13).collect();
    rows.extend([LayerRow { cell: 8, device_time_s: Some(1.0), ..row("conv", 13, None, "graph:eng1") }]);
    let explained = explain(&found(vec![jump(16.0, 0.625)], 0..8), &rows);
    let conv = &explained[0][0].layers[0];
    assert!((conv.step.unwrap().size_s - 0.5e-3).abs() < 2e-5, "{conv:?}");
}

#[test]
fn settings_that_a_grouping_merges_explain_nothing() {
    let mut rows = stepping();
    rows.extend(stepping().into_iter().map(|row| LayerRow { cell: row.cell + 8, ..row }));
    assert_eq!(explain(&found(vec![jump(16.0, 0.5)], 0..16), &rows), [vec![]]);
}

#[test]
fn layers_that_were_timed_at_too_few_sizes_are_known_to_be_timed() {
    let explained = explain(&found(vec![jump(14.0, 0.1), jump(15.0, 0.1)], 0..8), &stepping());
    let of = |at: usize| (explained[0][at].timed, explained[0][at].together.is_some());
    assert_eq!((of(0), of(1)), ((true, false), (true, true)));
}
