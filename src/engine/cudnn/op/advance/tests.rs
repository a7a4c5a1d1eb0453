use super::*;
use crate::engine::cudnn::emulated::{EmulatedMemory, Emulator, emulator};

struct AdvanceFixture {
    memory: EmulatedMemory,
    scalars: Scalars,
    row_losses: Slice,
}

impl AdvanceFixture {
    fn new(emulator: &Emulator, losses: &[f32]) -> Self {
        let mut memory = EmulatedMemory::new();
        let scalars = Scalars(memory.reserve(Scalars::BYTES));
        let row_losses = memory.tensor(Element::F32, losses);
        emulator.check_all(&mut memory, [scalars.reset()]);
        Self { memory, scalars, row_losses }
    }

    fn advance(&mut self, emulator: &Emulator, learning_rate: f64, scaling: bool) -> [f32; 4] {
        let Self { scalars, row_losses, .. } = *self;
        emulator.check_all(&mut self.memory, [advance(row_losses, learning_rate, scaling, scalars)]);
        let factors = self.memory.read(scalars.factors(), Element::F32);
        [factors[0], factors[1], factors[2], factors[3]]
    }

    fn scale(&self) -> f32 {
        self.memory.read(self.scalars.loss_scale(), Element::F32)[0]
    }

    fn check(&mut self, emulator: &Emulator, element: Element, weights: &[f32], others: &[f32]) {
        let (w, o) = (self.memory.tensor(element, weights), self.memory.tensor(Element::F32, others));
        emulator.check_all(&mut self.memory, [check_finite(element, w, o, self.scalars)]);
    }
}

#[test]
fn the_loss_is_the_mean_of_the_examples_and_steps_are_counted() {
    let Some(emulator) = emulator() else { return };
    for rows in [1, 17, 256, 1000] {
        let losses: Vec<f32> = (1..=rows).map(|i| i as f32).collect();
        let mut state = AdvanceFixture::new(emulator, &losses);
        for step in 1..=3u64 {
            state.advance(emulator, 0.1, false);
            assert_eq!(state.memory.read_u64(state.scalars.step()), [step]);
        }
        // The mean of 1..=n.
        assert_eq!(state.memory.read(state.scalars.loss(), Element::F32), [(rows as f32 + 1.0) / 2.0]);
    }
}

/// The formulas of engine/cpu/optimizer/adam.rs.
#[test]
fn the_factors_of_adam_match_the_cpu_engine() {
    let Some(emulator) = emulator() else { return };
    let mut state = AdvanceFixture::new(emulator, &[1.0]);
    for step in 1..=200 {
        let [rate, scale, inverse, skip] = state.advance(emulator, 1e-3, false);
        assert_eq!(rate, (1e-3 / (1.0 - 0.9f64.powi(step))) as f32, "{step}");
        assert_eq!(scale, (1.0 - 0.999f64.powi(step)).sqrt().recip() as f32, "{step}");
        assert_eq!((inverse, skip), (1.0, 0.0));
    }
}

/// torch.amp.GradScaler(): 65536, halved by each skipped step, doubled by 2000 other steps in a row.
#[test]
#[ignore = "slow"]
fn the_loss_scale_follows_the_rules_of_pytorch() {
    let Some(emulator) = emulator() else { return };
    let mut state = AdvanceFixture::new(emulator, &[1.0]);
    assert_eq!(state.scale(), 65536.0);
    let [.., inverse, skip] = state.advance(emulator, 0.1, true);
    assert_eq!((inverse, skip, state.scale()), (1.0 / 65536.0, 0.0, 65536.0));

    state.check(emulator, Element::F16, &[1.0, f32::INFINITY], &[0.0]);
    let [_, scale, inverse, skip] = state.advance(emulator, 0.1, true);
    assert_eq!((inverse, skip, state.scale()), (1.0 / 65536.0, 1.0, 32768.0));
    // The skipped update counts neither for Adam nor as a step.
    assert_eq!(scale, (1.0 - 0.999f64).sqrt().recip() as f32);
    assert_eq!(state.memory.read_u64(state.scalars.step()), [1]);

    for clean in 1..=2000 {
        state.check(emulator, Element::F16, &[1.0, -65504.0], &[f32::MAX]);
        let [.., skip] = state.advance(emulator, 0.1, true);
        assert_eq!((skip, state.scale()), (0.0, if clean == 2000 { 65536.0 } else { 32768.0 }), "{clean}");
    }
    assert_eq!(state.memory.read_u64(state.scalars.step()), [2001]);
}

#[test]
fn one_bad_gradient_is_found_wherever_it_is() {
    let Some(emulator) = emulator() else { return };
    let (weights, others) = (3 * THREADS * 8 + 5, 1003);
    for bad in [f32::NAN, f32::NEG_INFINITY] {
        for place in [0, 8, weights - 6, weights - 1, weights, weights + others - 1] {
            let mut values = vec![1.0; weights + others];
            values[place] = bad;
            let mut state = AdvanceFixture::new(emulator, &[1.0]);
            for element in Element::ALL {
                state.check(emulator, element, &values[..weights], &values[weights..]);
                assert_eq!(state.advance(emulator, 0.1, true)[3], 1.0, "{element:?} {bad} at {place}");
                assert_eq!(state.advance(emulator, 0.1, true)[3], 0.0, "it was not forgotten");
            }
        }
    }
}
