use super::*;
use crate::engine::cpu::thread_team::by_three;
use Optimizer as O;

pub(crate) const RATE: f64 = 0.1;
pub(crate) const START: [f64; 5] = [1.0, -2.0, 0.5, 0.0, 3.0];
pub(crate) const GRADIENTS: [[f64; 5]; 3] =
    [[0.1, -0.2, 0.3, 0.0, 1e-3], [-0.4, 0.5, 0.6, 1e-9, 0.0], [0.7, 0.0, -0.9, 2.0, -1e-3]];

/// The parameters after each of three updates. Produced with torch 2.15.0 by, for each optimizer,
/// ```python
/// w = torch.tensor(START, dtype=torch.float64, requires_grad=True)
/// o = torch.optim.SGD([w], lr=0.1)       # SGD(momentum=0.9), RMSprop, Adam, AdamW
/// for g in GRADIENTS:
///     w.grad = torch.tensor(g, dtype=torch.float64); o.step(); print(w.tolist())
/// ```
pub(crate) const EXPECTED: [(O, [[f64; 5]; 3]); 5] = [
    (
        O::Sgd,
        [
            [0.99, -1.98, 0.47, 0.0, 2.9999],
            [1.03, -2.03, 0.41, -1.0000000000000002e-10, 2.9999],
            [0.9600000000000001, -2.03, 0.5, -0.20000000010000002, 3.0],
        ],
    ),
    (
        O::Momentum,
        [
            [0.99, -1.98, 0.47, 0.0, 2.9999],
            [1.021, -2.012, 0.38299999999999995, -1.0000000000000002e-10, 2.9998099999999996],
            [0.9788999999999999, -2.0408, 0.39469999999999994, -0.20000000019000003, 2.9998289999999996],
        ],
    ),
    (
        O::RmsProp,
        [
            [9.999990003839443e-07, -1.0000004999997505, -0.4999996666667773, 0.0, 2.0000999900010004],
            [0.970428726686518, -1.9291180101568064, -1.395322495137953, -0.009900990099009903, 2.0000999900010004],
            [0.1076116785751352, -1.9291180101568064, -0.5918180728702851, -1.009900940099012, 2.7107006001000444],
        ],
    ),
    (
        O::Adam,
        [
            [0.900000009999999, -1.9000000049999999, 0.4000000033333332, 0.0, 2.90000099999],
            [0.9559503574851284, -1.944221530217233, 0.3034818027856334, -0.004915493116144774, 2.832996122405518],
            [0.9228415530469758, -1.9784048971759303, 0.3101417042408007, -0.06879685253179074, 2.8415827886855394],
        ],
    ),
    (
        O::AdamW,
        [
            [0.8990000099999991, -1.8980000049999997, 0.39950000333333324, 0.0, 2.89700099999],
            [0.9540513574751285, -1.9403235302122328, 0.30258230278230014, -0.004915493116144774, 2.827099121405528],
            [0.9199885016795007, -1.9725665736407179, 0.3089396219346851, -0.06879193703867459, 2.832858688564144],
        ],
    ),
];

/// The parameters after each of the first updates.
fn updated<T: Scalar + Float>(in_place: &mut InPlace<T>, gradients: &[[f64; 5]]) -> Vec<Vec<f64>> {
    let mut w = START.map(T::from_f64);
    let update = |gradient: &[f64; 5]| {
        let gradient = gradient.map(T::from_f64);
        in_place.update([&mut w[..]].into_iter(), [&gradient[..]].into_iter());
        w.map(Scalar::to_f64).to_vec()
    };
    gradients.iter().map(update).collect()
}

fn compare<T: Scalar + Float>(tolerance: f64) {
    for (optimizer, expected) in EXPECTED {
        let mut in_place = InPlace::<T>::new([5].into_iter(), optimizer, RATE);
        let found = updated(&mut in_place, &GRADIENTS);
        for (value, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((value - expected).abs() <= tolerance, "{optimizer}: {value} {expected}");
        }
    }
}

#[test]
fn three_updates_match_pytorch() {
    compare::<f64>(2e-15);
    compare::<f32>(1e-6);
}

#[test]
fn every_element_of_a_long_tensor_is_updated_once() {
    let count = 2 * CHUNK + 77;
    for (optimizer, _) in EXPECTED {
        let (mut w, g) = (vec![1f32; count], vec![1f32; count]);
        let mut in_place = InPlace::new([count].into_iter(), optimizer, 0.5);
        by_three(|| in_place.update([&mut w[..]].into_iter(), [&g[..]].into_iter()));
        assert!(w[0] < 1.0 && w.iter().all(|value| *value == w[0]), "{optimizer}");
    }
}

#[test]
fn a_reset_forgets_the_state_and_the_number_of_updates() {
    for (optimizer, expected) in EXPECTED {
        let mut in_place = InPlace::<f64>::new([5].into_iter(), optimizer, 9.0);
        updated(&mut in_place, &GRADIENTS[2..]);
        in_place.reset(RATE);
        let found = updated(&mut in_place, &GRADIENTS[..1]);
        for (value, expected) in found[0].iter().zip(expected[0]) {
            assert!((value - expected).abs() <= 2e-15, "{optimizer}: {value} {expected}");
        }
    }
}
