//! `batchstep submit`: a sweep as a job array of the scheduler that is there.

use std::path::Path;
use std::process::{Command, Stdio};

use batchstep::error::{Error, Kind, Result};
use batchstep::fleet::submission::Submission;
use batchstep::os::atomic::write_text;
use batchstep::os::child::{self, Failure};
use batchstep::spec::plan::Plan;
use batchstep::spec::{Experiment, Shard, ShardBy};

use super::{Exit, own, print, shards_by};
use crate::cli::SubmitArgs;

pub fn submit(args: &SubmitArgs) -> Result<Exit> {
    if own::is_step(&args.spec) {
        return Err(Error::spec("a job array needs a spec").at(args.spec.display().to_string()).hint(format!(
            "write one with `[engine] step = \"{}\"`: `batchstep run {0} --dry-run` prints it",
            args.spec.display()
        )));
    }
    let experiment = Experiment::read(&args.spec)?;
    let by = shards_by(args.shard_by.as_deref());
    check(&experiment, args.nodes, by)?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("results").join(format!("{}.shards", experiment.name)));
    let out = std::path::absolute(&out).map_err(|e| Error::io("find the folder", &out, &e))?;
    // A copy, so that all shards read the same spec whenever they start.
    let spec = out.join("spec.toml");
    let program = std::env::current_exe().map_err(|e| Error::io("find this program", Path::new("batchstep"), &e))?;
    let (name, shards, gpus) = (experiment.name.clone(), args.nodes, args.gpus);
    let submission = Submission { name, program, spec: spec.clone(), out: out.clone(), shards, by, gpus };
    let text = submission.script()?;
    std::fs::create_dir_all(&out).map_err(|e| Error::io("make the folder", &out, &e))?;
    keep(&spec, &experiment)?;
    let script = out.join("array.sbatch");
    write_text(&script, &text)?;
    if args.dry_run {
        print(&format!("{}\nSubmit it: sbatch {}\n", script.display(), script.display()));
        return Ok(Exit::Done);
    }
    let job = sbatch(&script, &args.sbatch)?;
    let merged = format!("{}.merged", out.display().to_string().trim_end_matches(".shards"));
    let out = out.display();
    print(&format!(
        "{job}\nLogs:     {out}/shard-1.log and so on\nProgress: batchstep status {out}/shard-*-of-{shards}\nResult:   batchstep \
         merge {merged} {out}/shard-*-of-{shards}\n"
    ));
    Ok(Exit::Done)
}

/// Refuses here what every shard would refuse.
fn check(experiment: &Experiment, nodes: usize, by: ShardBy) -> Result<()> {
    let mut last = experiment.clone();
    let shard = Shard { number: nodes, count: nodes, by };
    last.measure.shard = Some(shard).filter(|_| nodes > 0);
    Plan::new(&last.own_part()?).map(drop)
}

fn keep(path: &Path, experiment: &Experiment) -> Result<()> {
    let text = experiment.to_toml_in(path.parent().unwrap_or(Path::new("")));
    match std::fs::read_to_string(path) {
        Ok(earlier) if earlier != text => Err(Error::new(
            Kind::Conflict,
            "this folder contains the shards of another spec, or of an earlier state of this one",
        )
        .at(path.display().to_string())
        .hint("give another folder with `--out DIR`")),
        _ => write_text(path, &text),
    }
}

/// Bytes that Slurm may answer.
const LONGEST_ANSWER: usize = 1 << 20;

/// What Slurm answers.
fn sbatch(script: &Path, further: &[String]) -> Result<String> {
    let mut command = Command::new("sbatch");
    command.args(further).arg(script).stderr(Stdio::piped());
    let refused = |said: &str| Error::new(Kind::Io, format!("sbatch {said}")).at(script.display().to_string());
    // With `--wait` it takes as long as the jobs.
    let ended = child::run(&mut command, None, LONGEST_ANSWER).map_err(|failure| match failure {
        Failure::NotStarted(error) => Error::io("start sbatch", Path::new("sbatch"), &error)
            .hint(format!("on a machine of the cluster: sbatch {}", script.display())),
        Failure::TooLong | Failure::Late(_) => refused("printed without end, and was ended"),
    })?;
    if !ended.status.success() {
        return Err(refused(&format!("refused: {}", ended.stderr.trim())));
    }
    Ok(ended.stdout.trim().to_owned())
}
