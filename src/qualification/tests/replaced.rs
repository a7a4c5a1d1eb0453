//! A GPU on which kernels of our own fail: the emulator's, with faults injected.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;
use crate::engine::cudnn::emulated::{EmulatedEngine, Fault, REPLACEABLE_NETWORK, emulator};
use crate::engine::cudnn::replacement::{AVERAGE, BATCH_NORM, MAX_POOL, REPLACEABLE};

/// The operators that were replaced, or the error; and what the user reads.
type Settled = (Result<Vec<&'static str>, String>, Vec<String>);

fn settled(faults: &[(&'static str, Fault)], cache: &Cache) -> (Settled, EngineName) {
    let mut engines = Engines::of(EngineName::Cudnn, Box::new(EmulatedEngine::with(faults)));
    let mut heard = Heard::default();
    let answer = settle(
        &plan(&format!("{REPLACEABLE_NETWORK}[sweep]\nbatch_size = [2, 3]\n[engine]\nname = \"auto\"\n")),
        &mut engines,
        Asked::Gpu,
        cache,
        &mut heard,
    );
    let answer = answer.map_err(|error| error.to_string()).map(|found| {
        let is_torch = engines.resolve(EngineName::Auto) == EngineName::Torch;
        assert_eq!(found.cells, vec![(!is_torch).then_some(true); 2]);
        found.replaced.iter().map(|replacement| replacement.operator).collect()
    });
    ((answer, heard.0), engines.resolve(EngineName::Auto))
}

#[test]
fn the_operator_that_fails_is_replaced_and_no_other() {
    if emulator().is_none() {
        return;
    }
    for operator in REPLACEABLE {
        for fault in [Fault::Zeros, Fault::Refused, Fault::TooFar] {
            let folder = tempfile::tempdir().unwrap();
            let ((answer, said), _) = settled(&[(operator, fault)], &cache(&folder));
            assert_eq!(answer, Ok(vec![operator]), "{fault:?}: {said:?}");
            let reason = match fault {
                Fault::Zeros => "the output is off by",
                Fault::TooFar => "bytes behind `",
                Fault::Refused => "refused to launch",
            };
            let last = said.last().unwrap();
            assert!(last.contains(&format!("{operator}: a library computes it in this run")), "{last}");
            assert!(last.contains(reason) && last.contains(", forward, batch size 2: "), "{last}");
            // Nothing is tried that is not to blame.
            assert_eq!(said.iter().filter(|line| line.starts_with("checking")).count(), 2, "{said:?}");
        }
    }
}

#[test]
fn a_gpu_that_computes_everything_replaces_nothing_and_a_pass_is_not_repeated() {
    if emulator().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ((answer, said), _) = settled(&[], &cache(&folder));
    assert_eq!((answer, said.len()), (Ok(Vec::new()), 1));
    let other = tempfile::tempdir().unwrap();
    let wrong = [(MAX_POOL, Fault::Zeros)];
    let checks = |said: &[String]| said.iter().filter(|line| line.starts_with("checking")).count();
    let ((_, first), _) = settled(&wrong, &cache(&other));
    let ((answer, second), _) = settled(&wrong, &cache(&other));
    assert_eq!(answer, Ok(vec![MAX_POOL]));
    // Our own kernels fail again; what passes in their place is known.
    assert!(checks(&second) < checks(&first) && second[0].contains("checking cudnn's step of all at"), "{second:?}");
}

#[test]
fn two_operators_that_fail_together_are_both_replaced_and_no_other() {
    if emulator().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ((answer, said), _) = settled(&[(BATCH_NORM, Fault::Zeros), (AVERAGE, Fault::Zeros)], &cache(&folder));
    assert_eq!(answer, Ok(vec![BATCH_NORM, AVERAGE]), "{said:?}");
    assert!(said.iter().any(|line| line.contains(&format!("in place of {BATCH_NORM}, {AVERAGE}"))));
}

/// A fake Python whose first answer is that of PyTorch on a GPU.
const PYTORCH: &str = r#"read -r line; echo '{"ok": {"torch": "2.9", "device": "cuda:0", "device_name": "a GPU", "capability": [8, 0]}}'; read -r line"#;
const NO_PYTORCH: &str =
    r#"read -r line; echo '{"error": {"kind": "device", "what": "python3 cannot import torch: none"}}'"#;

/// In processes of their own, since the variable that names the Python is the process's.
#[test]
fn an_operator_that_nothing_replaces_leaves_pytorch_or_a_refusal_with_a_remedy() {
    const NAME: &str =
        "qualification::tests::replaced::an_operator_that_nothing_replaces_leaves_pytorch_or_a_refusal_with_a_remedy";
    const CASE: &str = "BATCHSTEP_TEST_REFUSED";
    if emulator().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    if let Ok(case) = std::env::var(CASE) {
        for fault in [("optimizer", Fault::Zeros), ("loss", Fault::Refused)] {
            let ((answer, said), engine) = settled(&[fault], &cache(&folder));
            match case.as_str() {
                "with" => {
                    assert_eq!((answer, engine), (Ok(Vec::new()), EngineName::Torch), "{said:?}");
                    assert!(said.last().unwrap().contains("`auto` takes PyTorch on this GPU instead"), "{said:?}");
                }
                _ => {
                    let error = answer.unwrap_err();
                    let reason =
                        if fault.0 == "loss" { "no step of this plan can be computed here" } else { "wrongly" };
                    assert!(error.contains(reason) && error.contains("help: "), "{error}");
                    assert!(said.last().unwrap().contains("PyTorch cannot take its place"), "{said:?}");
                    assert_eq!(engine, EngineName::Cudnn);
                }
            }
        }
        return;
    }
    for (case, text) in [("with", PYTORCH), ("without", NO_PYTORCH)] {
        let python = folder.path().join(case);
        fs::write(&python, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        // Another test's fork can hold a just written script open for a moment.
        let busy = |_: &i32| Command::new(&python).stdin(Stdio::null()).stdout(Stdio::null()).status().is_err();
        (0..50).take_while(busy).for_each(|_| std::thread::sleep(Duration::from_millis(20)));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([NAME, "--exact", "--nocapture"]).env(CASE, case).env("BATCHSTEP_PYTHON", &python);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
