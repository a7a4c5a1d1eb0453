//! A sweep as a job array of Slurm: the batch script. Nothing here talks to Slurm.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::spec::{MAX_SHARDS, ShardBy};

/// With gaps between @ signs; it also serves by hand.
const TEMPLATE: &str = include_str!("../scripts/slurm/array.sbatch");

/// What is submitted.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Of the experiment.
    pub name: String,
    /// This program, the spec, and the folder of all shards: absolute paths, since a job starts in a folder of its scheduler's choice.
    pub program: PathBuf,
    pub spec: PathBuf,
    pub out: PathBuf,
    pub shards: usize,
    pub by: ShardBy,
    /// GPUs of each task.
    pub gpus: usize,
    /// Further arguments of `batchstep run`.
    pub options: Vec<String>,
}

impl Submission {
    /// The batch script.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where the number of shards is none.
    pub fn script(&self) -> Result<String> {
        if !(1..=MAX_SHARDS).contains(&self.shards) {
            return Err(Error::spec(format!("{} is no number of machines", self.shards))
                .at("--nodes")
                .hint(format!("give a number from 1 to {MAX_SHARDS}")));
        }
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        let options: String = self.options.iter().map(|option| format!(" {}", quoted(option))).collect();
        let gpus = if self.gpus == 0 { "#".to_owned() } else { format!("#SBATCH --gres=gpu:{}", self.gpus) };
        // sbatch reads its own lines without a shell: a space ends a value unless it is quoted.
        let logs = format!("\"{}/shard-%a.log\"", self.out.display());
        let gaps = [
            ("@NAME@", self.name.clone()),
            ("@COUNT@", self.shards.to_string()),
            ("@GPUS@", gpus),
            ("@LOGS@", logs),
            ("@PROGRAM@", path(&self.program)),
            ("@SPEC@", path(&self.spec)),
            ("@BY@", self.by.name().to_owned()),
            ("@OUT@", path(&self.out)),
            ("@OPTIONS@", options),
        ];
        Ok(gaps.iter().fold(TEMPLATE.to_owned(), |script, (gap, text)| script.replace(gap, text)))
    }

    /// The folder of one shard, from 1.
    pub fn shard(&self, number: usize) -> PathBuf {
        self.out.join(format!("shard-{number}-of-{}", self.shards))
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_names_what_was_asked_for_and_leaves_no_gap() {
        let submission = Submission {
            name: "vgg16".into(),
            program: "/opt/batch step/batchstep".into(),
            spec: "/home/a/it's.toml".into(),
            out: "/home/a/results/vgg16.shards".into(),
            shards: 8,
            by: ShardBy::Cells,
            gpus: 1,
            options: vec!["--seed".into(), "7".into()],
        };
        let script = submission.script().expect("a script");
        for line in [
            "#SBATCH --array=1-8",
            "#SBATCH --gres=gpu:1",
            "#SBATCH --requeue",
            "#SBATCH --signal=B:USR1@120",
            "#SBATCH --output=\"/home/a/results/vgg16.shards/shard-%a.log\"",
        ] {
            assert!(script.lines().any(|other| other == line), "{line}\n{script}");
        }
        assert!(
            script.contains(
                "'/opt/batch step/batchstep' run '/home/a/it'\\''s.toml' --shard \"$shard/8\" --shard-by cells"
            )
        );
        assert!(script.contains("--take-over --node \"$node\" '--seed' '7' &"), "{script}");
        let gaps = script.lines().filter(|line| !line.starts_with("# ")).filter(|line| line.contains('@'));
        assert_eq!(gaps.collect::<Vec<_>>(), ["#SBATCH --signal=B:USR1@120"]);
        assert!(Submission { shards: 0, ..submission }.script().is_err());
    }
}
