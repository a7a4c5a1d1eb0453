//! The batch script that runs a sweep as a job array of Slurm. Nothing here talks to Slurm.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::spec::{MAX_SHARDS, ShardBy};

/// The template, with gaps between @ signs; it can also be filled in by hand.
const TEMPLATE: &str = include_str!("../../scripts/slurm/array.sbatch");

/// The parameters of a submission.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The name of the experiment.
    pub name: String,
    /// This program, the spec, and the folder of all shards: absolute paths, since a job starts in a folder of its scheduler's choice.
    pub program: PathBuf,
    pub spec: PathBuf,
    pub out: PathBuf,
    pub shards: usize,
    pub by: ShardBy,
    /// GPUs of each task.
    pub gpus: usize,
}

impl Submission {
    /// The batch script.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] if the number of shards is zero, or if a path has characters that a batch script
    /// cannot contain.
    pub fn script(&self) -> Result<String> {
        if !(1..=MAX_SHARDS).contains(&self.shards) {
            return Err(Error::spec(format!("{} is not a number of machines", self.shards))
                .at("--nodes")
                .hint(format!("give a number from 1 to {MAX_SHARDS}")));
        }
        let gpus = if self.gpus == 0 { "#".to_owned() } else { format!("#SBATCH --gres=gpu:{}", self.gpus) };
        // sbatch reads its own lines without a shell: a space ends a value unless it is quoted.
        let out = text("the folder of the shards", &self.out)?;
        let logs = format!("\"{}/shard-%a.log\"", out.replace('%', "%%"));
        let gaps = [
            ("NAME", self.name.clone()),
            ("COUNT", self.shards.to_string()),
            ("GPUS", gpus),
            ("LOGS", logs),
            ("PROGRAM", format!("'{}'", text("the program", &self.program)?)),
            ("SPEC", format!("'{}'", text("the spec", &self.spec)?)),
            ("BY", self.by.name().to_owned()),
            ("OUT", format!("'{out}'")),
            // Further arguments of `batchstep run`, for who fills the template in by hand.
            ("OPTIONS", String::new()),
        ];
        Ok(filled(TEMPLATE, &gaps))
    }
}

/// A path that bash, between single quotes, and sbatch read unchanged. A line end would end one of sbatch's lines, and the rest would become a
/// command; quotes and backslashes mean something else to sbatch than to bash.
fn text<'a>(what: &str, path: &'a Path) -> Result<&'a str> {
    let plain = |text: &&str| !text.chars().any(|c| c.is_control() || "'\"\\".contains(c));
    path.to_str().filter(plain).ok_or_else(|| {
        Error::spec("a batch script cannot name a path with a quote, a backslash, a control character or bytes that are not UTF-8")
            .at(format!("{what}: {path:?}"))
            .hint("give it another name; `--out DIR` names the folder of the shards")
    })
}

/// Fills all gaps in one pass, so that a value that looks like a gap stays unchanged.
fn filled(template: &str, gaps: &[(&str, String)]) -> String {
    let (mut script, mut rest) = (String::new(), template);
    while let Some((before, from)) = rest.split_once('@') {
        script.push_str(before);
        let gap = gaps.iter().find_map(|(gap, text)| Some((text, from.strip_prefix(gap)?.strip_prefix('@')?)));
        script.push_str(gap.map_or("@", |(text, _)| text));
        rest = gap.map_or(from, |(_, after)| after);
    }
    script + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(out: &str) -> Submission {
        Submission {
            name: "vgg16".into(),
            program: "/opt/batch step/batchstep".into(),
            spec: "/home/a/vgg 16.toml".into(),
            out: out.into(),
            shards: 8,
            by: ShardBy::Cells,
            gpus: 1,
        }
    }

    #[test]
    fn the_script_contains_the_options_and_leaves_no_gap() {
        let submission = submission("/home/a/results/vgg16.shards");
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
                "'/opt/batch step/batchstep' run '/home/a/vgg 16.toml' --shard \"$shard/8\" --shard-by cells"
            )
        );
        assert!(script.contains("--take-over --node \"$node\" &"), "{script}");
        let gaps = script.lines().filter(|line| !line.starts_with("# ")).filter(|line| line.contains('@'));
        assert_eq!(gaps.collect::<Vec<_>>(), ["#SBATCH --signal=B:USR1@120"]);
        assert!(Submission { shards: 0, ..submission }.script().is_err());
    }

    #[test]
    fn a_value_that_looks_like_a_gap_or_a_pattern_stays_unchanged() {
        let script = submission("/a@OUT@/50%a").script().expect("a script");
        assert!(script.contains("#SBATCH --output=\"/a@OUT@/50%%a/shard-%a.log\"\n"), "{script}");
        assert!(script.contains("run='/a@OUT@/50%a'/shard-"), "{script}");
        let script = Submission { spec: "/a/@OPTIONS@;id".into(), ..submission("/a") }.script().expect("a script");
        assert!(script.contains("run '/a/@OPTIONS@;id' --shard"), "{script}");
    }

    #[test]
    fn a_path_that_a_batch_script_cannot_hold_is_refused() {
        for path in ["/x\ntouch PWNED\n#", "/a\"b", "/it's", "/a\\b", "/a\u{1b}[2J", "/a\rb"] {
            let of = [
                submission(path),
                Submission { spec: path.into(), ..submission("/a") },
                Submission { program: path.into(), ..submission("/a") },
            ];
            for submission in of {
                let error = submission.script().expect_err(path).to_string();
                assert!(error.contains("a batch script cannot name a path"), "{error}");
                assert!(error.lines().count() == 2 && !error.contains('\u{1b}'), "{error:?}");
            }
        }
    }
}
