use super::*;

/// A stage that took `seconds` for each of 100 images.
pub(crate) fn row(stage: &str, workers: i64, threads: i64, seconds: f64) -> PipelineRow {
    PipelineRow {
        engine: "cpu".into(),
        device_name: "a processor".into(),
        model: "small".into(),
        storage: "vda (a virtual disk)".into(),
        format: "png".into(),
        cache: "cold".into(),
        read_method: "direct".into(),
        image_size: 64,
        batch_size: 32,
        workers,
        cell: workers,
        visit: workers,
        stage: stage.into(),
        stage_threads: threads,
        images: 100,
        elapsed_s: Some(100.0 * seconds / threads.max(1) as f64),
        cpu_time_s: Some(100.0 * seconds),
        wait_time_s: (stage == "together").then_some(30.0 * seconds / threads.max(1) as f64),
        file_bytes: (stage == "read").then_some(1000),
        storage_bytes: (stage == "read").then_some(4000),
        cores: Some(8.0),
        ..PipelineRow::default()
    }
}

pub(crate) fn visit_rows(workers: i64, together_s: f64) -> Vec<PipelineRow> {
    let mut rows = Vec::new();
    let threads = if workers > 1 { vec![1, workers] } else { vec![1] };
    for threads in threads {
        rows.extend([("read", 1e-3), ("decode", 3e-3)].map(|(stage, seconds)| row(stage, workers, threads, seconds)));
    }
    rows.push(row("step", workers, 1, 1e-3));
    let mut together = row("together", workers, 1, together_s);
    together.stage_threads = workers;
    rows.push(together);
    rows
}

#[test]
fn a_cell_is_compared_with_the_bounds_of_its_stages() {
    // Predicted by hand: 1 / 5 ms = 200 without workers, 1 / 4 ms = 250 with one, 500 with two.
    let rows: Vec<PipelineRow> = [visit_rows(0, 5.2e-3), visit_rows(1, 4.1e-3), visit_rows(2, 2.5e-3)].concat();
    let study = Results::of(&rows);
    let predicted: Vec<f64> =
        study.cells.iter().filter_map(|cell| Some(cell.prediction.as_ref()?.rate.round())).collect();
    assert_eq!(predicted, [200.0, 250.0, 500.0]);
    let within = study.within();
    assert_eq!((within.model, within.bounds, within.of), (2, 2, 3), "400 of 500 is farther than a tenth");
    assert_eq!(within.overlapping, [1, 2]);
    assert_eq!(
        study.cells.iter().map(|cell| cell.held).collect::<Vec<_>>(),
        [Held::Serial, Held::Feeding, Held::Feeding]
    );
    assert!((study.cells[2].waiting - 0.3).abs() < 1e-12 && study.cells[2].from_storage == Some(4.0));
    assert_eq!(study.cells[0].place(), "png of 64x64, cold, batch size 32");
    let knees = study.knees();
    assert_eq!((knees.len(), knees[0].at, knees[0].predicted), (1, 2, Some(2)));
}

#[test]
fn what_the_sides_take_from_each_other_is_in_the_prediction() {
    let mut rows = visit_rows(2, 2.4e-3);
    // With two threads the loader takes 2 ms for an image by itself and 2.5 ms beside the training, which takes 1 ms by itself and 1.2 ms beside the loader.
    rows.extend([("loader", 2.0e-3), ("loader_beside", 2.5e-3), ("step_beside", 1.2e-3)].map(|(stage, seconds)| {
        let mut row = row(stage, 2, 1, seconds);
        row.stage_threads = 2;
        row
    }));
    let study = Results::of(&rows);
    let cell = &study.cells[0];
    // By hand: 2 ms + 1.2 ms (1 - 2 / 2.5) = 2.24 ms.
    let expected = 1.0 / 2.24e-3;
    let prediction = cell.prediction.as_ref().expect("known");
    assert!((prediction.rate / expected - 1.0).abs() < 1e-9, "{prediction:?}, by hand {expected}");
    assert_eq!(prediction.limit, Limit::Workers { longest: "decode".into() });
    assert_eq!(cell.bounds.as_ref().map(|bounds| bounds.rate.round()), Some(500.0));
    // 1 / 2.4 ms = 417, which is 0.93 of the predicted 446 and 0.83 of the bound.
    assert_eq!(study.within(), Within { model: 1, overlapping: [1, 1], bounds: 0, slowest_stage: 0, of: 1 });
}

#[test]
fn without_workers_both_sides_are_taken_in_turn() {
    let mut rows = visit_rows(0, 5.0e-3);
    let sides = [("loader", 3.0e-3), ("loader_beside", 3.5e-3), ("step_beside", 1.3e-3)];
    rows.extend(sides.map(|(stage, seconds)| row(stage, 0, 1, seconds)));
    let study = Results::of(&rows);
    // By hand: 1 / (3.5 ms + 1.3 ms).
    let prediction = study.cells[0].prediction.as_ref().expect("known");
    assert!((prediction.rate - 1.0 / 4.8e-3).abs() < 1e-9, "{prediction:?}");
    assert!(matches!(prediction.limit, Limit::Serial { .. }));
}

#[test]
fn the_knee_is_the_smallest_number_close_to_the_best() {
    assert_eq!(enough(&[100.0, 190.0, 199.0, 200.0]), 1);
    assert_eq!(enough(&[100.0, 180.0, 199.0, 200.0]), 2);
    assert_eq!(enough(&[]), 0);
}

#[test]
fn files_that_came_from_memory_are_not_cold() {
    let mut rows = visit_rows(0, 5e-3);
    rows.iter_mut().filter(|row| row.stage == "read").for_each(|row| row.storage_bytes = Some(0));
    assert_eq!(Results::of(&rows).not_cold().len(), 1);
    rows.iter_mut().for_each(|row| row.cache = "warm".into());
    assert!(Results::of(&rows).not_cold().is_empty());
}

#[test]
fn a_stage_that_the_first_cell_lacks_keeps_its_place_and_takes_no_time_there() {
    // Too short to be measured in the first cell.
    let first: Vec<PipelineRow> = visit_rows(0, 5e-3).into_iter().filter(|row| row.stage != "decode").collect();
    let other = visit_rows(1, 5e-3).into_iter().map(|row| PipelineRow { image_size: 128, ..row });
    let study = Results::of(&first.into_iter().chain(other).collect::<Vec<_>>());
    let all = ["read", "decode", "step"];
    assert_eq!(study.stages(), all);
    let stacks = crate::study::pipeline::figures::stacks(&study);
    assert_eq!(stacks.iter().map(|stack| stack.parts.len()).collect::<Vec<_>>(), [all.len(); 2]);
    assert_eq!((stacks[0].parts[1], stacks[0].parts[2]), (0.0, 1e-3), "the step is the step");
}
