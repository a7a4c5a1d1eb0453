//! What a comparison takes, held against what is asked for before it begins.

use std::process::Command;

use super::*;
use crate::device::root::{field, kilobytes};
use crate::network::build::Builder;
use crate::network::{Dense, Shape};

const NAME: &str = "check::selftest::tests::memory::first_steps_take_no_more_memory_than_is_asked_for";
const CHILD: &str = "BATCHSTEP_TEST_PEAK";

/// Two tensors of 2048 x 2048: 8.4 million parameters, 67 MB in double precision.
fn workload() -> Workload {
    let mut b = Builder::new("wide", Shape::Flat(2048)).unwrap();
    for name in ["first", "second"] {
        b.then(name, Dense { out_features: 2048, bias: false }).unwrap();
    }
    let settings = Settings { optimizer: Optimizer::Adam, ..Settings::default() };
    Workload { network: b.finish().unwrap().into(), batch_size: 2, settings }
}

/// The most that this process has held at any time, in bytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(field(&status, "VmHWM")?)
}

/// In a process of its own, which holds nothing of other tests'.
#[test]
fn first_steps_take_no_more_memory_than_is_asked_for() {
    let Some(before) = peak() else { return };
    if std::env::var_os(CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.args([NAME, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let workload = workload();
    let step = crate::engine::memory::step_bytes(&workload, 4);
    let steps = first_steps(&mut CpuEngine::cpu(None), Engines::cpu_reference(), &workload).unwrap();
    assert!(steps.check.passed() && steps.repeats, "{steps:?}");
    let (asked, taken) = (trace::bytes(&workload, step, step), peak().unwrap() - before);
    assert!(taken <= asked, "{taken} bytes were taken, {asked} asked for");
    // What is asked for is not so much that a machine with enough would be refused.
    assert!(2 * taken > asked, "{taken} bytes were taken, {asked} asked for");
}

/// 138,357,544 parameters (Simonyan and Zisserman 2015, their table 2: 138 million); 25,088 x 4096 of them are one tensor; an output is 3 x 1000.
#[test]
fn what_vgg16_takes_matches_a_hand_calculation() {
    let image = Shape::Maps { channels: 3, height: 224, width: 224 };
    let network = crate::network::Network::by_name("vgg16", image, 1000).unwrap();
    let workload = Workload { network: network.into(), batch_size: 3, settings: Settings::default() };
    let while_comparing = 8 * (4 * 138_357_544 + 2 * 102_760_448 + 4 * 3000);
    assert_eq!(trace::bytes(&workload, 0, 0), while_comparing);
    // The reference's own step beside half as many copies.
    let while_expecting = 4_000_000_000 + 8 * (2 * 138_357_544 + 2 * 102_760_448 + 2 * 3000);
    assert_eq!(trace::bytes(&workload, 4_000_000_000, 0), while_expecting);
}
