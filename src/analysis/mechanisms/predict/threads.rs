//! Steps where a layer's pieces do not divide evenly among the threads.

use std::collections::BTreeMap;

use super::{Amounts, Setup, batch};
use crate::analysis::mechanisms::formulas::own;
use crate::engine::cpu::examples_of_the_busiest;
use crate::network::Direction;
use crate::settings::EngineName;
use crate::store::LayerRow;

/// The work of the CPU engine's busiest thread, where the convolution's algorithm today is the recorded one.
pub(super) fn uneven(setup: &Setup, layer: usize, rows: &[&LayerRow]) -> Option<Amounts> {
    if setup.engine != EngineName::Cpu {
        return None;
    }
    let threads = setup.settings.threads.or(setup.machine.threads)?;
    let at = |row: &&LayerRow| {
        let (network, settings) = (setup.network, setup.settings);
        let now = own::kernel(setup.engine, network, layer, batch(row), settings);
        let direction = Direction::from_name(&row.direction)?;
        let examples = examples_of_the_busiest(network, layer, batch(row), settings, (direction, threads));
        Some((row.batch_size, examples.filter(|_| now == row.algorithm.as_deref())?))
    };
    let amounts: BTreeMap<i64, f64> = rows.iter().filter_map(at).collect();
    (threads > 1 && !amounts.is_empty()).then_some(Amounts::Sized(amounts))
}

#[cfg(test)]
mod tests {
    use super::super::super::MachineMemory;
    use super::*;
    use crate::network::build::Builder;
    use crate::network::{Conv2d, Network, Shape};
    use crate::settings::Settings;

    /// A convolution of 1 x 1 taps on 16 x 16: each image is a task.
    fn network() -> Network {
        let mut b = Builder::new("one", Shape::Maps { channels: 64, height: 16, width: 16 }).unwrap();
        b.then("conv", Conv2d::square(64, 1)).unwrap();
        b.finish().unwrap()
    }

    fn row(batch_size: i64, algorithm: &str) -> LayerRow {
        LayerRow {
            batch_size,
            layer: "conv".into(),
            operation: "conv2d".into(),
            direction: "forward".into(),
            algorithm: Some(algorithm.into()),
            ..LayerRow::default()
        }
    }

    fn step(threads: Option<usize>, cores: Option<usize>, algorithm: &str, after: i64) -> Option<f64> {
        let (network, settings) = (network(), Settings { threads, ..Settings::default() });
        let machine = MachineMemory { threads: cores, ..MachineMemory::default() };
        let setup = Setup { engine: EngineName::Cpu, network: &network, settings: &settings, machine: &machine };
        let rows: Vec<LayerRow> = (8..12).map(|batch| row(batch, algorithm)).collect();
        uneven(&setup, 1, &rows.iter().collect::<Vec<_>>())?.step(after, after + 1)?.excess
    }

    // With 9 images, one of two threads has 5, as with 10: after 8 the work grows by 10 / 8, while one image's share is
    // 9 / 8.
    #[test]
    fn one_image_more_is_a_step_for_the_thread_that_gets_it() {
        let predicted = step(Some(2), None, "gemm", 8);
        assert!(predicted.is_some_and(|excess| (excess - 0.125).abs() < 1e-12), "{predicted:?}");
        assert_eq!([step(None, Some(2), "gemm", 8), step(Some(2), None, "gemm", 9)], [predicted, None]);
        // One thread, a number of threads that is not known, and another algorithm than today's.
        for other in
            [step(Some(1), None, "gemm", 8), step(None, None, "gemm", 8), step(Some(2), None, "im2col_gemm", 8)]
        {
            assert_eq!(other, None);
        }
    }
}
