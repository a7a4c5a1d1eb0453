use super::super::advance::advance;
use super::*;
use crate::engine::cpu::optimizer::InPlace;
use crate::engine::cudnn::emulated::{EmulatedMemory, Emulator, assert_close, emulator, rounded, sample};

const RATE: f64 = 0.01;
const STEPS: u64 = 3;

/// A training of parameters without a network.
struct Training {
    memory: EmulatedMemory,
    update: Update,
    row_losses: Slice,
}

impl Training {
    fn new(emulator: &Emulator, optimizer: Optimizer, element: Element, weights: usize, others: usize) -> Self {
        let mut memory = EmulatedMemory::new();
        let count = weights + others;
        let scalars = Scalars(memory.reserve(Scalars::BYTES));
        let states = [0, 1]
            .map(|number| (number < optimizer.state_copies()).then(|| memory.tensor(Element::F32, &vec![0.0; count])));
        let update = Update {
            optimizer,
            learning_rate: RATE,
            element,
            master: memory.tensor(Element::F32, &sample(Element::F32, 1, count)),
            gradients_weights: memory.empty(element, weights),
            gradients_others: memory.empty(Element::F32, others),
            states,
            working: (element != Element::F32).then(|| memory.empty(element, weights)),
            scalars,
        };
        emulator.check_all(&mut memory, [scalars.reset()]);
        let row_losses = memory.tensor(Element::F32, &[1.0]);
        Self { memory, update, row_losses }
    }

    /// One step by those gradients, given times the loss scale.
    fn step(&mut self, emulator: &Emulator, gradients: &[f32], scaling: bool) {
        let Update { element, gradients_weights, gradients_others, learning_rate, scalars, .. } = self.update;
        let (first, second) = gradients.split_at(gradients_weights.bytes / element.bytes());
        self.memory.write(gradients_weights, element, first);
        self.memory.write(gradients_others, Element::F32, second);
        let advance = advance(self.row_losses, learning_rate, scaling, scalars);
        emulator.check_all(&mut self.memory, [advance, self.update.launch()]);
    }

    fn master(&self) -> Vec<f32> {
        self.memory.read(self.update.master, Element::F32)
    }
}

fn gradients(element: Element, seed: u64, weights: usize, others: usize) -> Vec<f32> {
    let mut gradients = sample(element, seed, weights);
    gradients.extend(sample(Element::F32, seed + 100, others));
    gradients
}

/// The parameters after the same steps of the CPU engine, in float64.
fn reference(optimizer: Optimizer, element: Element, weights: usize, others: usize) -> Vec<f64> {
    let double = |values: Vec<f32>| -> Vec<f64> { values.into_iter().map(f64::from).collect() };
    let mut w = double(sample(Element::F32, 1, weights + others));
    let mut in_place = InPlace::new([w.len()].into_iter(), optimizer, RATE);
    for step in 0..STEPS {
        let gradients = double(gradients(element, step, weights, others));
        in_place.update([&mut w[..]].into_iter(), [&gradients[..]].into_iter());
    }
    w
}

#[test]
fn updates_match_the_cpu_engine_in_both_regions() {
    let Some(emulator) = emulator() else { return };
    let sizes = [(1, 0), (0, 1), (64, 64), (8, 5), (1003, 77), (4 * 256 * 8 + 12, 1027)];
    for (optimizer, element) in Optimizer::ALL.iter().flat_map(|o| Element::ALL.map(|element| (*o, element))) {
        for (weights, others) in sizes {
            let mut training = Training::new(emulator, optimizer, element, weights, others);
            for step in 0..STEPS {
                training.step(emulator, &gradients(element, step, weights, others), false);
            }
            let what = format!("{optimizer} {element:?} {weights} {others}");
            let master = training.master();
            assert_close(&master, &reference(optimizer, element, weights, others), 5e-6, &what);
            if let Some(working) = training.update.working {
                let expected: Vec<f32> = master[..weights].iter().map(|w| rounded(element, *w)).collect();
                assert_eq!(training.memory.read(working, element), expected, "{what}");
            }
        }
    }
}

#[test]
fn a_scaled_gradient_gives_the_update_of_the_gradient() {
    let Some(emulator) = emulator() else { return };
    for optimizer in Optimizer::ALL {
        let [mut plain, mut scaled] = [0, 1].map(|_| Training::new(emulator, *optimizer, Element::F16, 100, 20));
        // Powers of two: scaling is exact, and 65536 times them is an f16 still.
        let gradients: Vec<f32> = (0..120).map(|i| 0.5f32.powi(2 + i % 16)).collect();
        let larger: Vec<f32> = gradients.iter().map(|g| g * 65536.0).collect();
        plain.step(emulator, &gradients, false);
        scaled.step(emulator, &larger, true);
        assert_eq!(plain.master(), scaled.master(), "{optimizer}");
    }
}

#[test]
fn an_update_that_is_left_out_changes_nothing() {
    let Some(emulator) = emulator() else { return };
    let mut training = Training::new(emulator, Optimizer::Adam, Element::F16, 100, 20);
    training.step(emulator, &[1.0; 120], true);
    let before = (training.master(), training.update.states.map(|s| s.map(|s| training.memory.read(s, Element::F32))));
    // `check_finite` writes this flag, which op/advance/tests.rs tests.
    let found = training.update.scalars.0.part(52, 4);
    training.memory.bytes_mut(found).copy_from_slice(&1i32.to_le_bytes());
    training.step(emulator, &[f32::INFINITY; 120], true);
    let after = (training.master(), training.update.states.map(|s| s.map(|s| training.memory.read(s, Element::F32))));
    assert_eq!(before, after);
}
