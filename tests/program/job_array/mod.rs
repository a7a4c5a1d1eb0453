//! A sweep as a job array on a real Slurm cluster of two nodes: cancelled, queued again, killed, and with a node that
//! is lost in the middle. Nothing is lost and nothing counts twice.
//!
//! They wait most of the time. By their name they begin in the middle of all tests, so that others run meanwhile, and
//! after the pages of the book, which keep the processors busy.

mod cluster;
mod sweep;

use std::process::Command;
use std::time::Duration;

use batchstep::random::Rng;
use cluster::{Cluster, until};
use sweep::{Array, Sweep};

#[test]
#[ignore = "slow"]
fn shards_survive_the_events_of_a_cluster() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(cluster) = Cluster::up(folder, 3) else { return };
    // A shard that nothing happens to takes some twenty seconds: all of this happens to it before.
    let sweep = Sweep { shards: 4, blocks: 160, step_ms: 25 };
    let array = Array::submit(&cluster, folder, sweep);
    let undisturbed = sweep.undisturbed(folder);
    until("every shard has begun", 240, || array.status().iter().all(|(_, visits)| *visits >= 5));

    // Shard 1 is queued again by the scheduler, 2 is cancelled, 3 is killed.
    let job = &array.job;
    let requeued = cluster.command("scontrol", &["requeue", &format!("{job}_1")]);
    assert!(requeued.status.success(), "{}", String::from_utf8_lossy(&requeued.stderr));
    assert!(cluster.command("scancel", &[&format!("{job}_2")]).status.success());
    signal(&array.process(3).expect("a process"), "KILL");
    until("the cancelled shard is sealed", 120, || array.status()[1].0 == "stopped");

    // The daemon of shard 4's node dies. The shard's process survives. It is paused so that it does not finish before
    // its task runs a second time on the other node, which takes Slurm some seconds.
    let node = if array.log(4).contains("on n2") { "n2" } else { "n1" };
    let orphan = array.process(4).expect("a process");
    signal(&orphan, "STOP");
    let slurmd = std::fs::read_to_string(cluster.folder.join("pid").join(node)).expect("a process");
    signal(slurmd.trim(), "KILL");
    // Slurm would notice it after about ten seconds.
    let lost = ["update", &format!("NodeName={node}"), "State=DOWN", "Reason=lost"];
    assert!(cluster.command("scontrol", &lost).status.success());

    // The cancelled shard continues when it is submitted again.
    let script = array.shards.join("array.sbatch").display().to_string();
    assert!(cluster.command("sbatch", &["--array=2", "--cpus-per-task=1", &script]).status.success());
    // After the second claim to the run, the first process wakes up and must notice it.
    let claim = array.shard(4).join(".claim-2");
    until("shard 4 runs a second time", 240, || claim.exists());
    signal(&orphan, "CONT");
    until("all shards have finished", 600, || array.has_finished());
    until("the first process has seen that its run was taken over", 120, || {
        array.log(4).contains("another process has taken this run over")
    });

    let merged = array.merged();
    assert_eq!(merged.len(), 160 * 8);
    assert!(merged == undisturbed.join().expect("measured"), "the disturbed shards hold other rows");
}

/// How often a process is killed, a second apart, unless `BATCHSTEP_SLURM_KILLS` is set: a minute of kills must be
/// requested.
const KILLS: usize = 8;

/// A shard may be killed any number of times, since something is measured in between each time.
#[test]
#[ignore = "slow"]
fn shards_that_are_killed_every_second_hold_the_rows_of_undisturbed_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(cluster) = Cluster::up(folder, 8) else { return };
    let asked = std::env::var("BATCHSTEP_SLURM_KILLS").ok();
    let kills = asked.map_or(KILLS, |text| text.parse().expect("BATCHSTEP_SLURM_KILLS is a number"));
    // Sixteen shards, since a killed shard waits in the queue for some seconds. Undisturbed, each takes a second and a
    // half for each kill.
    let sweep = Sweep { shards: 16, blocks: 16 * 30, step_ms: (3 * kills).max(10) };
    let array = Array::submit(&cluster, folder, sweep);
    let undisturbed = sweep.undisturbed(folder);
    until("every shard has begun", 480, || array.status().iter().all(|(_, visits)| *visits >= 2));
    let mut random = Rng::new(1);
    let mut of_shard = vec![0; sweep.shards];
    while of_shard.iter().sum::<usize>() < kills {
        let number = random.below(sweep.shards) + 1;
        if let Some(process) = array.process(number) {
            signal(&process, "KILL");
            of_shard[number - 1] += 1;
            std::thread::sleep(Duration::from_secs(1));
        }
        assert!(!array.has_finished(), "all shards finished after {of_shard:?} kills");
    }
    until("all shards have finished", 2400, || array.has_finished());
    let (merged, undisturbed) = (array.merged(), undisturbed.join().expect("measured"));
    let steps = |rows: &sweep::Steps| rows.values().map(Vec::len).sum::<usize>();
    println!("killed, by shard: {of_shard:?}; {} steps, and {} undisturbed", steps(&merged), steps(&undisturbed));
    assert_eq!(merged.len(), sweep.blocks * 8);
    assert!(merged == undisturbed, "the disturbed shards hold other rows");
}

fn signal(pid: &str, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), pid]).status().expect("kill runs");
    assert!(sent.success(), "no process {pid}");
}
