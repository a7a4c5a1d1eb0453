//! `kind = "fit"`: a small network is fitted to the surface `peaks`, in full batches, from its setup to the last epoch.
//!
//! ```
//! use batchstep::study::Spec;
//! let text = "version = 1\nkind = \"fit\"\nname = \"a\"\n[sweep]\nbatch_size = [100, 40000]\n[engine]\nname = [\"cpu\", \"candle\"]";
//! let Spec::Fit(fit) = Spec::parse(text, "a.toml")? else { unreachable!() };
//! assert_eq!((fit.subject.batch_sizes.len(), fit.measure.epochs), (2, 2000));
//! # Ok::<(), batchstep::error::Error>(())
//! ```

use crate::error::Result;
use crate::settings::EngineName;
use crate::spec::keys::{Table, count, keys, seed, time_limit};
use crate::spec::{Input, Section, Subject, Usual, refuse_many};
use crate::study::Study;

/// A study of fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Its batch sizes are the numbers of points: all of them are in each batch. Default: 40,000 points, `mlp`, the engine `cpu`, Adam with a
    /// learning rate of 0.08, mean squared error, fp32.
    pub subject: Subject,
    pub measure: Updates,
}

keys! {
    /// How long is fitted.
    Updates in "measure" {
        /// Parameter updates. Default: 2000.
        epochs: usize = 2000, "epochs", count(1, 1_000_000);
        /// No fit begins later than this many seconds after the start. Default: 30 min.
        time_limit_s: f64 = 1800.0, "time_limit", time_limit();
        /// Default: 1.
        seed: u64 = 1, "seed", seed();
    }
}

const USUAL: Usual = Usual {
    kind: Fit::KIND,
    model: Some("mlp"),
    input: Input::Needed,
    batch_size: 40_000,
    learning_rate: 0.08,
    settings: &[("precision", "fp32"), ("optimizer", "adam"), ("loss", "mean_squared_error")],
    refused: &[EngineName::Synthetic],
};

impl Fit {
    /// Reads the keys of a spec.
    pub(crate) fn of(mut spec: Section, origin: &str) -> Result<Self> {
        let measure = spec.section("measure")?;
        let fit = Self { subject: Subject::read(spec, &USUAL, origin)?, measure: Updates::read(measure)? };
        refuse_many(fit.subject.cell_count(&[]), origin)?;
        Ok(fit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Spec;
    use crate::study::tests::read_back;

    fn parse(body: &str) -> Result<Fit> {
        crate::study::tests::parse("fit", body, Fit::of)
    }

    #[test]
    fn the_resolved_spec_reads_back_the_same() {
        let bodies = [
            "",
            "[sweep]\nbatch_size = [100, 400]\n[train]\nlearning_rate = 0.01\noptimizer = [\"adam\", \"rmsprop\"]",
            "[engine]\nname = [\"cpu\", \"torch\"]\noptional = \"torch\"\nthreads = [1, 2]\n[measure]\nepochs = 10\nseed = 3\ntime_limit = \"90s\"",
        ];
        read_back(bodies.map(parse), Spec::Fit);
        let fit = parse("").expect("valid");
        assert_eq!(
            (fit.subject.learning_rate, fit.measure.epochs, &fit.subject.batch_sizes[..]),
            (0.08, 2000, &[40_000][..])
        );
    }

    #[test]
    fn what_has_no_meaning_in_a_fit_is_refused_with_its_place() {
        let refusal = |body: &str| parse(body).expect_err("refused").to_string();
        assert!(refusal("[measure]\nsmallest_jump = \"1%\"").contains("measure.smallest_jump: unknown key"));
        assert!(refusal("[sweep]\nexecutes = 3").contains("no A/A control"));
        assert!(refusal("[train]\nexamples = \"uniform\"").contains("unknown key"));
        assert!(refusal("[measure]\nepochs = 0").contains("from 1 to"));
    }
}
