//! A GPU on which kernels of our own fail: the emulator's, with faults injected.

use super::*;
use crate::engine::cudnn::emulated::{EVERY_OPERATOR, EmulatedEngine, KernelFault, emulator};

fn settled(faults: &[(&'static str, KernelFault)], cache: &Cache) -> Answer {
    let mut engines = Engines::of(EngineName::Cudnn, Box::new(EmulatedEngine::with(faults)));
    let plan = plan(&format!("{EVERY_OPERATOR}[sweep]\nbatch_size = [2, 3]\n[engine]\nname = \"auto\"\n"));
    asked_of(&plan, &mut engines, Asked::Gpu, cache)
}

#[test]
fn an_operator_that_computes_zeros_ends_the_run_with_its_layer_and_a_remedy() {
    let Some(_) = emulator() else { return };
    for operator in ["batch_norm", "depthwise_conv2d", "global_average_pool", "max_pool2d", "optimizer"] {
        let folder = tempfile::tempdir().unwrap();
        let (answer, said) = settled(&[(operator, KernelFault::Zeros)], &cache(&folder));
        let error = answer.expect_err(operator);
        for words in ["wrongly", "off by", "help: "] {
            assert!(error.contains(words), "{operator}: {error}");
        }
        assert_eq!(said.iter().filter(|line| line.starts_with("checking")).count(), 1, "{said:?}");
    }
}

#[test]
fn an_operator_that_is_refused_ends_the_run_where_auto_took_the_engine() {
    let Some(_) = emulator() else { return };
    let folder = tempfile::tempdir().unwrap();
    let error = settled(&[("loss", KernelFault::Refused)], &cache(&folder)).0.unwrap_err();
    assert!(error.contains("no step of this plan can be computed here") && error.contains("help: "), "{error}");
}

#[test]
#[ignore = "slow"]
fn a_gpu_that_computes_everything_passes_and_a_pass_is_not_repeated() {
    let Some(_) = emulator() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (answer, said) = settled(&[], &cache(&folder));
    assert_eq!((answer, said.len()), (Ok(vec![Some(true); 2]), 1));
    assert_eq!(settled(&[], &cache(&folder)), (Ok(vec![Some(true); 2]), Vec::new()));
}
