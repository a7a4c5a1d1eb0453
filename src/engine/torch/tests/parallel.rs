//! Several processes.

use super::*;

/// Four examples for each of two processes, or eight in all: the same eight examples. The network has no batch norm,
/// because PyTorch takes its moments only over a process's own examples.
fn parallel(scaling: Scaling) -> Workload {
    let mut b = Builder::new("plain", Shape::Maps { channels: 1, height: 12, width: 12 }).unwrap();
    b.then("c", Conv2d::square(6, 3)).unwrap();
    b.then("r", Operation::Relu).unwrap();
    b.then("f", Operation::Flatten).unwrap();
    b.then("d", Dense { out_features: 5, bias: true }).unwrap();
    let batch_size = if scaling == Scaling::Weak { 4 } else { 8 };
    let settings = Settings { processes: 2, scaling, optimizer: Optimizer::Adam, ..settings() };
    Workload { network: Arc::new(b.finish().unwrap()), batch_size, settings }
}

#[test]
fn two_processes_go_the_way_of_one_with_the_whole_batch() {
    let Some(mut torch) = pytorch() else { return };
    let one = Workload {
        settings: Settings { processes: 1, ..parallel(Scaling::Strong).settings },
        ..parallel(Scaling::Strong)
    };
    let expected = losses(&mut torch, &one);
    for scaling in [Scaling::Weak, Scaling::Strong] {
        let found = losses(&mut torch, &parallel(scaling));
        // PyTorch with one process and a batch of eight. The sums over examples are in another order.
        for (a, b) in found.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-5 * expected[0], "{scaling}: {found:?}, one process has {expected:?}");
        }
        let mut step = torch.prepare(&parallel(scaling)).unwrap();
        let times = step.run().unwrap();
        let reduced = times.allreduce_s.unwrap();
        assert!(reduced > 0.0 && reduced < times.step_s, "{times:?}");
    }
    assert_eq!(losses(&mut torch, &one), expected, "one process is not disturbed");
    assert_eq!(torch.prepare(&one).unwrap().run().unwrap().allreduce_s, None);
}

#[test]
fn what_several_processes_cannot_do_is_refused_with_a_remedy() {
    let Some(mut torch) = pytorch() else { return };
    let odd = Workload { batch_size: 7, ..parallel(Scaling::Strong) };
    let error = torch.prepare(&odd).err().unwrap().to_string();
    assert!(
        error.contains("7 examples cannot be shared out evenly to 2 processes") && error.contains("help: "),
        "{error}"
    );
    let compiled = Settings { compile: Compile::Default, ..parallel(Scaling::Weak).settings };
    assert_eq!(torch.in_force(&compiled).unwrap_err().kind(), Kind::Spec);
    // The other processes go on.
    torch.prepare(&parallel(Scaling::Weak)).unwrap().run().unwrap();
}

fn signal(id: u32, signal: libc::c_int) {
    // SAFETY: sends a signal to a process that this test started and has not waited for.
    assert_eq!(unsafe { libc::kill(id as libc::pid_t, signal) }, 0);
}

fn is_there(id: u32) -> bool {
    Path::new("/proc").join(id.to_string()).exists()
}

#[test]
fn a_process_that_dies_in_an_all_reduce_ends_the_step_with_its_words_and_leaves_no_process() {
    let Some(mut torch) = pytorch() else { return };
    let mut step = torch.prepare(&parallel(Scaling::Weak)).unwrap();
    step.run().unwrap();
    let ids = {
        let connection = torch.connection.borrow();
        [connection.worker.process.as_ref().unwrap(), &connection.others[0]].map(|process| process.id().unwrap())
    };
    // The second process is stopped, so that the first one is waiting for it when it is killed.
    signal(ids[1], libc::SIGSTOP);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        signal(ids[1], libc::SIGKILL);
    });
    let start = Instant::now();
    let error = step.run().unwrap_err();
    killer.join().unwrap();
    assert!(error.to_string().contains("process 2 of 2") && error.to_string().contains("killed"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(150));
    drop(step);
    assert!(!ids.into_iter().any(is_there), "a process is left");
    torch.prepare(&parallel(Scaling::Weak)).unwrap().run().unwrap();
}

/// A group of two. The process that starts first, and has answered before a second exists, answers the requests of the
/// first process; the next one answers those of the second, which dies in the step.
const DIES_AS_SECOND: &str = r#"read -r line; mkdir $0.first 2>/dev/null && role=first
echo '{"ok": {"torch": "2.9", "device": "cpu", "device_name": null, "capability": null, "distributed": true}}'
if [ "$role" = first ]; then
  echo $$ > $0.pid
  read -r line; echo '{"ok": {"port": 1}}'; read -r line; echo '{"ok": {}}'; read -r line; echo '{"ok": {}}'
  read -r line; exec sleep 600
fi
read -r line; echo '{"ok": {}}'; read -r line; echo '{"ok": {}}'
read -r line; echo 'ncclRemoteError' >&2; exit 7"#;

#[test]
fn the_error_has_the_last_words_of_the_process_that_died_and_the_waiting_one_is_ended() {
    with_interpreter(DIES_AS_SECOND, |python| {
        let patience = Duration::from_secs(300);
        let long = Patience { start: patience, prepare: patience, step: patience, epoch: patience };
        let mut torch = open_within(python, long).unwrap();
        let workload = Workload { settings: Settings { processes: 2, ..settings() }, ..mlp() };
        let mut step = torch.prepare(&workload).unwrap();
        let start = Instant::now();
        let error = step.run().unwrap_err().to_string();
        for part in ["process 2 of 2", "exit status: 7", "ncclRemoteError"] {
            assert!(error.contains(part), "{error}");
        }
        // Much less than the time that a step may take.
        assert!(start.elapsed() < patience, "{:?}", start.elapsed());
        let id = fs::read_to_string(python.with_file_name("python3.pid")).unwrap();
        assert!(!is_there(id.trim().parse().unwrap()), "process {id} is left");
        assert!(step.run().unwrap_err().to_string().contains("have ended"));
    });
}
