use super::*;
use crate::engine::cpu::loss::{loss, loss_gradient};
use crate::engine::cudnn::emulated::{EmulatedMemory, assert_close, emulator, rounded, rounding, sample};

const SHAPES: [(usize, usize); 7] = [(1, 1), (1, 10), (17, 3), (70, 33), (2, 1000), (1, 5000), (3, 129)];

/// The loss and its gradient by the CPU engine in float64.
fn reference(kind: Loss, logits: &[f32], targets: &[f32], shape: (usize, usize)) -> (f64, Vec<f64>) {
    let [x, t] = [logits, targets].map(|values| values.iter().copied().map(f64::from).collect::<Vec<f64>>());
    let mut gradient = vec![0.0; x.len()];
    loss_gradient(kind, &x, &t, shape.0, &mut gradient);
    (loss(kind, &x, &t, shape.0), gradient)
}

struct Case {
    memory: EmulatedMemory,
    rows: BatchLoss,
}

fn case(
    element: Element,
    (batch, classes): (usize, usize),
    logits: &[f32],
    targets: &[f32],
    scale: Option<f32>,
) -> Case {
    let mut memory = EmulatedMemory::new();
    let (logits, targets) = (memory.tensor(element, logits), memory.tensor(Element::F32, targets));
    let (gradient, row_losses) = (memory.empty(element, batch * classes), memory.empty(Element::F32, batch));
    let loss_scale = scale.map(|scale| memory.tensor(Element::F32, &[scale]));
    Case { memory, rows: BatchLoss { element, batch, classes, logits, targets, gradient, row_losses, loss_scale } }
}

fn mean(losses: &[f32]) -> f64 {
    losses.iter().map(|loss| f64::from(*loss)).sum::<f64>() / losses.len() as f64
}

#[test]
fn losses_and_gradients_match_the_cpu_engine() {
    let Some(emulator) = emulator() else { return };
    for (element, shape) in Element::ALL.into_iter().flat_map(|element| SHAPES.map(|shape| (element, shape))) {
        use Loss::{BinaryCrossEntropy, CategoricalCrossEntropy, MeanSquaredError};
        for (kind, scale, factor) in [
            (CategoricalCrossEntropy, None, 1.0),
            (MeanSquaredError, None, 30.0),
            (CategoricalCrossEntropy, Some(1024.0), 30.0),
            (BinaryCrossEntropy, None, 30.0),
        ] {
            let count = shape.0 * shape.1;
            let wide: Vec<f32> = sample(element, 1, count).iter().map(|x| rounded(element, x * factor)).collect();
            let targets: Vec<f32> = sample(Element::F32, 2, count).iter().map(|t| t.abs()).collect();
            let (loss, gradient) = reference(kind, &wide, &targets, shape);
            let gradient: Vec<f64> = gradient.iter().map(|g| g * f64::from(scale.unwrap_or(1.0f32))).collect();
            let Case { mut memory, rows } = case(element, shape, &wide, &targets, scale);
            emulator.check_all(&mut memory, [rows.launch(kind)]);
            let what = format!("{element:?} {shape:?} {kind}");
            let ours = mean(&memory.read(rows.row_losses, Element::F32));
            assert!((ours - loss).abs() <= 2e-6 * loss.abs().max(1e-3), "{what}: {ours} {loss}");
            assert_close(&memory.read(rows.gradient, element), &gradient, rounding(element) + 2e-6, &what);
        }
    }
}

#[test]
fn a_hundred_thousand_classes_are_summed_without_loss() {
    let Some(emulator) = emulator() else { return };
    let classes = 100_000;
    let mut targets = vec![0.0; classes];
    targets[77_777] = 1.0;
    let Case { mut memory, rows } = case(Element::F32, (1, classes), &vec![2.0; classes], &targets, None);
    emulator.check_all(&mut memory, [rows.launch(Loss::CategoricalCrossEntropy)]);
    // Equal logits: the logarithm of the number of classes.
    let loss = memory.read(rows.row_losses, Element::F32)[0];
    assert!((f64::from(loss) - 1e5f64.ln()).abs() < 1e-5, "{loss}");
    let gradient = memory.read(rows.gradient, Element::F32);
    assert!((gradient[0] - 1e-5).abs() < 1e-10 && (gradient[77_777] + 0.99999).abs() < 1e-6, "{}", gradient[0]);
}

#[test]
fn large_logits_do_not_overflow_and_masked_ones_cost_nothing() {
    let Some(emulator) = emulator() else { return };
    let logits = [1000.0, -1000.0, f32::NEG_INFINITY, 0.0];
    let Case { mut memory, rows } = case(Element::F32, (2, 2), &logits, &[0.0, 1.0, 0.0, 1.0], None);
    emulator.check_all(&mut memory, [rows.launch(Loss::CategoricalCrossEntropy)]);
    assert_eq!(memory.read(rows.row_losses, Element::F32), [2000.0, 0.0]);
    assert_eq!(memory.read(rows.gradient, Element::F32), [0.5, -0.5, 0.0, 0.0]);
    let Case { mut memory, rows } = case(Element::F32, (1, 2), &[f32::NAN, 0.0], &[0.0, 1.0], None);
    emulator.check_all(&mut memory, [rows.launch(Loss::CategoricalCrossEntropy)]);
    assert!(memory.read(rows.row_losses, Element::F32)[0].is_nan());
}
