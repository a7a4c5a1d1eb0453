use crate::engine::cpu::loss::{loss, loss_gradient};
use crate::engine::cpu::op::reference::assert_values_close;
use crate::settings::Loss;

const KIND: Loss = Loss::BinaryCrossEntropy;

const LOGITS: [f64; 6] = [0.5, -1.25, 3.0, -40.0, 0.0, 900.0];
const TARGETS: [f64; 6] = [1.0, 0.25, 0.0, 0.0, 0.5, 1.0];

/// Produced by PyTorch 2.15 in float64, for the 2 x 3 logits and targets above:
/// `loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets); loss.backward()`
const LOSS: f64 = 0.7967067662765278;
const GRADIENT: [f64; 6] =
    [-0.0629234447996909, -0.0045499768624485265, 0.15876235447040557, 7.080590425485981e-19, 0.0, 0.0];

#[test]
fn value_and_gradient_match_pytorch() {
    let mut gradient = [0.0; 6];
    loss_gradient(KIND, &LOGITS, &TARGETS, 2, &mut gradient);
    assert_values_close(&[loss(KIND, &LOGITS, &TARGETS, 2)], &[LOSS], 1e-15, "loss");
    assert_values_close(&gradient, &GRADIENT, 1e-15, "gradient");

    let (logits, targets, mut gradient) = (LOGITS.map(|x| x as f32), TARGETS.map(|t| t as f32), [0f32; 6]);
    loss_gradient(KIND, &logits, &targets, 2, &mut gradient);
    assert_values_close(&[f64::from(loss(KIND, &logits, &targets, 2))], &[LOSS], 1e-7, "loss");
    assert_values_close(&gradient.map(f64::from), &GRADIENT, 1e-7, "gradient");
}
