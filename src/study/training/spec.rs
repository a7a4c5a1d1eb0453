//! `kind = "training"`: whole epochs of a network on a data set, fed by a loader.
//!
//! ```
//! use batchstep::study::Spec;
//! let text = "version = 1\nkind = \"training\"\nname = \"a\"\n[model]\nname = \"mnist_cnn\"\n[loader]\nworkers = [0, 2]";
//! let Spec::Training(training) = Spec::parse(text, "a.toml")? else { unreachable!() };
//! assert_eq!((training.subject.batch_sizes, training.loader.workers), (vec![64], vec![0, 2]));
//! # Ok::<(), batchstep::error::Error>(())
//! ```

use crate::error::Result;
use crate::settings::{EngineName, named};
use crate::spec::data::{self, Data};
use crate::spec::keys::{Table, count, flag, keys, list, name, seed, time_limit};
use crate::spec::{Input, Section, Subject, Usual, refuse_many};
use crate::study::Study;

/// A study of whole epochs.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The networks' `input` and `classes` follow from the data where they are not given. Default: a batch size of 64.
    pub subject: Subject,
    pub data: Data,
    pub loader: Loading,
    pub measure: Repetitions,
}

keys! {
    /// How batches are made.
    Loading in "loader" {
        /// Axis: threads (of PyTorch: processes) that make batches; 0: the training thread itself. Default: 0.
        workers: Vec<usize> = vec![0], "workers", list(count(0, 1024));
        /// Axis: batches that each worker keeps ready; no meaning without workers. Default: 2.
        prefetch: Vec<usize> = vec![2], "prefetch", list(count(1, 1024));
        /// A new order in each epoch. Default: true.
        shuffle: bool = true, "shuffle", flag();
        /// Leaves out the last batch of an epoch where it is not whole. Default: false.
        drop_last: bool = false, "drop_last", flag();
        /// Default: fail.
        on_error: OnError = OnError::Fail, "on_error", name(OnError::NAMES, OnError::from_name);
    }
}

named! {
    /// What an example that cannot be read does.
    OnError {
        /// The cell fails, with the name of the file, and the run goes on with the others.
        Fail = "fail",
        /// The example is left out, counted, and named in a warning.
        Skip = "skip",
        /// The run ends.
        Stop = "stop",
    }
}

keys! {
    /// How often what is measured.
    Repetitions in "measure" {
        /// Blocks: each visits every cell once. Default: 5.
        repetitions: usize = 5, "repetitions", count(1, 100_000);
        /// Epochs of a visit, from the initial parameters. Default: 1.
        epochs: usize = 1, "epochs", count(1, 100_000);
        /// Steps at the start of each visit that are stored, flagged, and not counted; the network then starts again. Default: 20.
        warmup_steps: usize = 20, "warmup_steps", count(0, 1_000_000);
        /// Whether the test examples are classified after each epoch, outside its time. Default: true.
        evaluate: bool = true, "evaluate", flag();
        /// Whether the processor's counters are read around each epoch. Default: true.
        counters: bool = true, "counters", flag();
        /// No visit begins later than this many seconds after the start. Default: 2 h.
        time_limit_s: f64 = 7200.0, "time_limit", time_limit();
        /// Default: 1.
        seed: u64 = 1, "seed", seed();
    }
}

const USUAL: Usual = Usual {
    kind: Training::KIND,
    model: None,
    input: Input::FromData,
    batch_size: 64,
    learning_rate: 1e-4,
    settings: &[],
    refused: &[EngineName::Synthetic],
};

impl Training {
    /// Reads the keys of a spec.
    pub(crate) fn of(mut spec: Section, origin: &str) -> Result<Self> {
        let (data, loader, measure) = (spec.section("data")?, spec.section("loader")?, spec.section("measure")?);
        let training = Self {
            subject: Subject::read(spec, &USUAL, origin)?,
            data: data::read(data)?,
            loader: Loading::read(loader)?,
            measure: Repetitions::read(measure)?,
        };
        refuse_many(training.cell_count(), origin)?;
        Ok(training)
    }

    /// The number of cells.
    pub fn cell_count(&self) -> usize {
        let with_workers = self.loader.workers.iter().filter(|workers| **workers > 0).count();
        let loaders =
            self.loader.workers.len() - with_workers + with_workers.saturating_mul(self.loader.prefetch.len());
        self.subject.cell_count(&[loaders])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Spec;
    use crate::study::tests::read_back;

    fn parse(body: &str) -> Result<Training> {
        let body = format!("[model]\nname = \"mnist_cnn\"\n{body}");
        crate::study::tests::parse("training", &body, Training::of)
    }

    fn refusal(body: &str) -> String {
        parse(body).expect_err("refused").to_string()
    }

    #[test]
    fn the_resolved_spec_reads_back_the_same() {
        let bodies = [
            "",
            "[loader]\nworkers = [0, 1, 2]\nprefetch = [1, 4]\ndrop_last = true\non_error = \"skip\"",
            "[data]\nsource = \"images\"\ntrain = \"a\"\ntest = \"b\"\nmean = [0.1, 0.2, 0.3]\nsd = 0.5",
            "[data]\nsource = \"parquet\"\npath = \"mnist\"\nlabel = \"fine_label\"",
            "[data]\nsource = \"parquet\"\ntrain = \"a/train-*.parquet\"\ntest = \"b\"\nimage = \"img\"",
            "[data]\nsource = \"digits\"\nexamples = 100\ntest_examples = 0\n[engine]\nname = [\"cpu\", \"torch\"]\nthreads = [1, 2]",
            "[engine]\nname = [\"cpu\", \"cudnn\"]\noptional = \"cudnn\"",
            "[sweep]\nbatch_size = [64, 512]\n[measure]\nrepetitions = 2\ntime_limit = \"90s\"\ncounters = false\nseed = 9",
        ];
        read_back(bodies.map(parse), Spec::Training);
    }

    #[test]
    fn the_prefetch_depth_makes_no_cells_without_workers() {
        let training =
            parse("[sweep]\nbatch_size = [64, 128]\n[loader]\nworkers = [0, 1, 2]\nprefetch = [1, 4]").expect("valid");
        assert_eq!(training.cell_count(), 2 * (1 + 2 * 2));
    }

    #[test]
    fn what_has_no_meaning_in_a_training_is_refused_with_its_place() {
        assert!(refusal("[data]\nsource = \"minst\"").contains("did you mean `mnist`?"));
        assert!(refusal("[data]\nsource = \"idx\"").contains("needs `path`"));
        assert!(refusal("[data]\nsource = \"images\"").contains("needs `train`"));
        assert!(refusal("[data]\nsource = \"parquet\"").contains("needs `path`"));
        assert!(refusal("[data]\nsource = \"parquet\"\npath = \"a\"\ntest = \"b\"").contains("and not both"));
        assert!(refusal("[data]\nsource = \"images\"\ntrain = \"a\"\nlabel = \"b\"").contains("belong to"));
        assert!(refusal("[data]\nsource = \"digits\"\npath = \"x\"").contains("no path: the digits are drawn"));
        assert!(refusal("[measure]\nsmallest_jump = \"1%\"").contains("t.toml:7: measure.smallest_jump: unknown key"));
        assert!(refusal("[sweep]\nexecutes = 3").contains("no A/A control"));
        assert!(refusal("[loader]\nworker = 2").contains("did you mean `workers`?"));
        assert!(refusal("[loader]\nprefetch = 0").contains("from 1 to 1024"));
        let sweep =
            Spec::parse("version = 1\nkind = \"trianing\"\nname = \"t\"", "t.toml").expect_err("refused").to_string();
        assert!(sweep.contains("none of: sweep, training, pipeline, fit"), "{sweep}");
    }
}
