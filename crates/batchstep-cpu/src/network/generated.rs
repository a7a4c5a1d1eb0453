//! Networks drawn at random from a family. A name says which: `cnn_1_7` is the seventh convolutional network of seed 1, so that
//! it can be built again from its name, and a longer draw of one seed begins with the networks of a shorter one.
//!
//! They are small: made to be measured in large numbers, as the training set of a predictor of step times.

use super::Network;
use super::build::Builder;
use super::layer::{BatchNorm, Conv2d, Dense, MaxPool2d, Operation, Padding, Shape};
use crate::error::Result;
use crate::random::{GOLDEN, Rng, mix};
use crate::settings::named;

named! {
    /// What is drawn.
    Family {
        /// One to three stages of convolutions (1x1, 3x3 or 5x5), each of which halves the map, then dense layers.
        Cnn = "cnn",
        /// Dense layers.
        Mlp = "mlp",
    }
}

/// One network of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    pub family: Family,
    pub seed: u64,
    /// From 1.
    pub number: usize,
}

impl Generated {
    /// `cnn_1_7`.
    pub fn name(&self) -> String {
        format!("{}_{}_{}", self.family, self.seed, self.number)
    }

    /// The network that a name of that form describes.
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('_');
        let family = Family::from_name(parts.next()?)?;
        let (seed, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let found = Self { family, seed, number };
        // No second spelling of a name, such as one with leading zeros.
        (number > 0 && found.name() == name).then_some(found)
    }

    /// The shape of an example and the number of outputs that were drawn with it.
    pub fn default_input(&self) -> (Shape, usize) {
        let mut random = self.random(0);
        let input = match self.family {
            Family::Cnn => {
                let channels = pick(&mut random, &[1, 3]);
                let side = pick(&mut random, &[8, 12, 16, 20, 24, 28, 32]);
                Shape::Maps { channels, height: side, width: side }
            }
            Family::Mlp => Shape::Flat(pick(&mut random, &[8, 16, 32, 64, 100, 200, 400, 784])),
        };
        (input, pick(&mut random, &[1, 2, 5, 10, 20, 50, 100]))
    }

    /// The network, for an input and a number of outputs of choice.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where the input is of the wrong kind, or `outputs` is 0.
    pub fn build(&self, input: Shape, outputs: usize) -> Result<Network> {
        let mut random = self.random(1);
        let mut b = Builder::new(self.name(), input)?;
        match self.family {
            Family::Cnn => convolutions(&mut b, &mut random)?,
            Family::Mlp => dense_layers(&mut b, &mut random, 1 + self.number % 5, &[16, 32, 64, 128, 256, 512])?,
        }
        b.then("output", Dense { out_features: outputs, bias: true })?;
        b.finish()
    }

    /// The random numbers of a network; `part` separates the draws for the input from the draws for the layers.
    fn random(&self, part: u64) -> Rng {
        let words = [self.family as u64, self.seed, self.number as u64, part];
        Rng::new(words.into_iter().fold(0, |state, word| mix(state.wrapping_add(GOLDEN) ^ mix(word))))
    }
}

fn pick(random: &mut Rng, choices: &[usize]) -> usize {
    choices[random.below(choices.len())]
}

/// The channels of each stage of a convolutional network, and its kernels.
fn stages(random: &mut Rng) -> Vec<(usize, Vec<usize>)> {
    let base = pick(random, &[4, 8, 12, 16, 24]);
    let stage = |random: &mut Rng, place: usize| {
        (base << place, (0..1 + random.below(2)).map(|_| pick(random, &[1, 3, 3, 3, 5])).collect())
    };
    (0..1 + random.below(3)).map(|place| stage(random, place)).collect()
}

fn convolutions(b: &mut Builder, random: &mut Rng) -> Result<()> {
    let (normalised, pooled_whole) = (random.below(2) == 0, random.below(3) == 0);
    for (place, (channels, kernels)) in (1..).zip(stages(random)) {
        for (number, kernel) in (1..).zip(kernels) {
            let name = |what: &str| format!("stage{place}_{what}{number}");
            let padding = Padding::all(kernel / 2);
            b.then(name("conv"), Conv2d { padding, ..Conv2d::square(channels, kernel) })?;
            if normalised {
                b.then(name("bn"), BatchNorm::default())?;
            }
            b.then(name("relu"), Operation::Relu)?;
        }
        let smallest = |shape| matches!(shape, Shape::Maps { height, width, .. } if height >= 2 && width >= 2);
        if smallest(b.output(b.last())) {
            b.then(format!("stage{place}_pool"), MaxPool2d::square(2))?;
        }
    }
    match pooled_whole {
        true => b.then("pool", Operation::GlobalAveragePool)?,
        false => b.then("flatten", Operation::Flatten)?,
    };
    let hidden = random.below(3);
    dense_layers(b, random, hidden, &[32, 64, 128, 256])
}

fn dense_layers(b: &mut Builder, random: &mut Rng, count: usize, widths: &[usize]) -> Result<()> {
    let dropout = random.below(3) == 0;
    for place in 1..=count {
        b.then(format!("fc{place}"), Dense { out_features: pick(random, widths), bias: true })?;
        b.then(format!("fc{place}_relu"), Operation::Relu)?;
        if dropout {
            b.then(format!("fc{place}_dropout"), Operation::Dropout { rate: 0.5 })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::published;
    use super::*;

    #[test]
    fn every_network_of_a_family_fits_together_and_is_called_by_its_name() {
        for &family in Family::ALL {
            for number in 1..=200 {
                let name = Generated { family, seed: 1, number }.name();
                let network = published(&name);
                assert_eq!(network.name, name);
                // About three times as many multiplications and as many additions in a step.
                assert!(network.trainable_count() > 0 && 6.0 * network.multiply_adds() < 3e8, "{name}");
            }
        }
    }

    #[test]
    fn a_name_always_gives_the_same_network_and_another_name_another() {
        assert_eq!(published("cnn_1_7"), published("cnn_1_7"));
        let layers = |name: &str| published(name).layers.into_iter().map(|layer| layer.output).collect::<Vec<_>>();
        let all: Vec<_> = ["cnn_1_7", "cnn_1_8", "cnn_2_7", "mlp_1_7", "mlp_1_8"].map(layers).into();
        assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
    }

    #[test]
    fn only_whole_names_are_read() {
        assert_eq!(Generated::parse("mlp_3_12"), Some(Generated { family: Family::Mlp, seed: 3, number: 12 }));
        for name in ["cnn", "cnn_1", "cnn_1_0", "cnn_01_2", "cnn_1_2_3", "cnn_-1_2", "rnn_1_2", "mnist_cnn", "mlp"] {
            assert_eq!(Generated::parse(name), None, "{name}");
        }
    }
}
