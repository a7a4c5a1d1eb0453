//! The times of single layers.

use super::*;
use crate::engine::LayerExecution;

/// The layers and directions without a time.
fn untimed(torch: &mut TorchEngine, workload: &Workload) -> Vec<String> {
    let mut step = torch.prepare(workload).unwrap();
    assert!(step.layers().iter().all(|row| row.device_s.is_none()));
    step.time_layers().unwrap();
    // PyTorch's own dropout, with its masks in the order of the steps, is not in these networks.
    let first = step.run().unwrap().loss;
    let again = torch.prepare(workload).unwrap().run().unwrap().loss;
    assert_eq!(first, again, "timing the layers changed the step");
    let without = |row: &&LayerExecution| !row.device_s.is_some_and(|seconds| seconds >= 0.0);
    step.layers().iter().filter(without).map(|row| format!("{} {}", row.layer, row.direction)).collect()
}

#[test]
fn every_layer_has_its_times_whatever_the_network() {
    let Some(mut torch) = pytorch() else { return };
    let mut networks: Vec<Arc<Network>> = NAMES.iter().map(|name| network(name)).collect();
    networks.push(Arc::new(crooked()));
    for network in networks {
        for precision in [Precision::Fp32, Precision::Bf16] {
            let workload = Workload {
                network: Arc::clone(&network),
                batch_size: 3,
                settings: Settings { precision, ..settings() },
            };
            let without = untimed(&mut torch, &workload);
            // A dropout that drops nothing does no work.
            let expected = |name: &String| name.contains("drop");
            assert!(without.iter().all(expected), "{} {precision}: {without:?}", network.name);
        }
    }
}
