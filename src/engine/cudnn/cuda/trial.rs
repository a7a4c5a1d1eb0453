//! Which algorithms have run, and which were refused when they should run.
//!
//! cuDNN may finalise a plan, or cuBLASLt propose an algorithm, that it then does not execute (PyTorch tries plan after
//! plan for the same reason: <https://github.com/pytorch/pytorch/issues/91032>). So each algorithm of a step is
//! executed once when the step is prepared. An algorithm that is refused is never taken again for the same convolution
//! or product; the next one is taken instead.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::computation::Computation;
use crate::error::Result;

/// An algorithm, by its name, and what it computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tried {
    pub computation: Computation,
    pub algorithm: String,
}

/// An algorithm that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub algorithm: String,
    /// The library's message.
    pub why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was refused when it was executed: {}", self.algorithm, self.why)
    }
}

/// The attempts so far, by the algorithms' names: why an algorithm was refused, and nothing where it ran.
#[derive(Debug, Default)]
pub struct Trials(RefCell<HashMap<Computation, BTreeMap<String, Option<String>>>>);

impl Trials {
    /// Executes every algorithm of a step that was not tried before; true if none is refused. If one is refused, the step
    /// must be prepared anew. `run` gets the index of the call, and gives the library's message where it is refused.
    ///
    /// # Errors
    /// The errors of `run`, after which nothing more is executed.
    pub fn all_run(
        &self,
        calls: impl IntoIterator<Item = (usize, Tried)>,
        mut run: impl FnMut(usize) -> Result<Option<String>>,
    ) -> Result<bool> {
        let mut all = true;
        for (index, Tried { computation, algorithm }) in calls {
            if self.0.borrow().get(&computation).is_some_and(|known| known.contains_key(&algorithm)) {
                continue;
            }
            let refusal = run(index)?;
            all &= refusal.is_none();
            self.0.borrow_mut().entry(computation).or_default().insert(algorithm, refusal);
        }
        Ok(all)
    }

    /// The algorithms that were refused for it, in the order of their names.
    pub fn refused(&self, computation: &Computation) -> Vec<Refused> {
        self.0.borrow().get(computation).into_iter().flatten().filter_map(Refused::of).collect()
    }

    /// All refused algorithms with their computations, in words.
    pub fn all_refused(&self) -> Vec<String> {
        let all = self.0.borrow();
        let of_each = |(of, tried): (&Computation, &BTreeMap<_, _>)| -> Vec<String> {
            tried.iter().filter_map(Refused::of).map(|refused| format!("{of}: {refused}")).collect()
        };
        let mut all: Vec<String> = all.iter().flat_map(of_each).collect();
        all.sort();
        all
    }
}

impl Refused {
    fn of((algorithm, refusal): (&String, &Option<String>)) -> Option<Self> {
        Some(Self { algorithm: algorithm.clone(), why: refusal.clone()? })
    }
}

/// Prepares until everything that was prepared runs; `prepare` returns `None` if something was refused. Each further
/// attempt has at least one algorithm fewer to choose from.
pub fn until_all_run<T>(mut prepare: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    loop {
        if let Some(prepared) = prepare()? {
            return Ok(prepared);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::computation::Finish;
    use super::*;
    use crate::engine::cudnn::call::{Convolution, ConvolutionKind, Product};
    use crate::engine::cudnn::feature_maps::FeatureMaps;
    use crate::error::Error;
    use crate::settings::Layout;

    fn convolution(batch: usize) -> Computation {
        let maps = FeatureMaps { batch, channels: 8, height: 6, width: 6, layout: Layout::Nchw };
        Computation::Convolution(Convolution::between(maps, maps, 1), ConvolutionKind::Forward)
    }

    /// A library that proposes three algorithms in an order and refuses to execute some of them.
    struct Library<'a> {
        refuses: &'a [&'a str],
        trials: Trials,
        executions: Cell<usize>,
    }

    impl Library<'_> {
        fn choose(&self, batch: usize) -> Result<Tried> {
            let computation = convolution(batch);
            let refused = self.trials.refused(&computation);
            let left =
                ["eng1", "eng2", "eng3"].into_iter().find(|name| refused.iter().all(|known| known.algorithm != *name));
            let algorithm = left.ok_or_else(|| Error::engine(format!("none is left: {refused:?}")))?.to_owned();
            Ok(Tried { computation, algorithm })
        }

        /// A step of one convolution at each batch size, prepared until it runs.
        fn prepare(&self, batches: &[usize]) -> Result<Vec<Tried>> {
            until_all_run(|| {
                let calls = batches.iter().map(|batch| self.choose(*batch)).collect::<Result<Vec<Tried>>>()?;
                let all = self.trials.all_run(calls.iter().cloned().enumerate(), |index| {
                    self.executions.set(self.executions.get() + 1);
                    let name = calls[index].algorithm.as_str();
                    Ok(self.refuses.contains(&name).then(|| format!("NOT_SUPPORTED by {name}")))
                })?;
                Ok(all.then_some(calls))
            })
        }
    }

    fn library<'a>(refuses: &'a [&'a str]) -> Library<'a> {
        Library { refuses, trials: Trials::default(), executions: Cell::new(0) }
    }

    fn names(calls: &[Tried]) -> Vec<&str> {
        calls.iter().map(|tried| tried.algorithm.as_str()).collect()
    }

    #[test]
    fn an_algorithm_that_is_refused_when_it_runs_is_replaced_by_the_next_and_remembered() {
        let library = library(&["eng1", "eng2"]);
        assert_eq!(names(&library.prepare(&[1, 2]).unwrap()), ["eng3", "eng3"]);
        // Three algorithms for each of two convolutions.
        assert_eq!(library.executions.get(), 6);
        assert_eq!(names(&library.prepare(&[2]).unwrap()), ["eng3"]);
        assert_eq!(library.executions.get(), 6, "what was tried is not tried again");
        let refused = library.trials.refused(&convolution(2));
        assert_eq!(refused[0], Refused { algorithm: "eng1".to_owned(), why: "NOT_SUPPORTED by eng1".to_owned() });
        assert!(library.trials.refused(&convolution(3)).is_empty());
        let all = library.trials.all_refused();
        let first = "forward convolution 1x8x6x6 -> 1x8x6x6, 1x1 stride 1x1 padding 0x0 groups 1, nchw, f32: eng1 was refused when it was executed: NOT_SUPPORTED by eng1";
        assert_eq!((all.len(), all[0].as_str()), (4, first));
    }

    #[test]
    fn where_all_are_refused_the_error_names_each_with_its_reason() {
        let error = library(&["eng1", "eng2", "eng3"]).prepare(&[4]).unwrap_err().to_string();
        assert!(error.contains("none is left") && error.contains("NOT_SUPPORTED by eng3"), "{error}");
    }

    #[test]
    fn a_gpu_that_is_lost_ends_the_attempts() {
        let trials = Trials::default();
        let tried = Tried { computation: convolution(1), algorithm: "eng1".into() };
        let lost = trials.all_run([(0, tried.clone())], |_| Err(Error::engine("an illegal address")));
        assert!(lost.is_err());
        assert!(trials.refused(&tried.computation).is_empty(), "it may not be the algorithm's fault");
    }

    /// By hand: a dense layer of 64 examples, 25,088 inputs and 4,096 outputs.
    #[test]
    fn a_refused_product_is_reported_with_its_sizes_and_another_epilogue_is_another_product() {
        let product = Product::plain(64, 4096, 25_088);
        let trials = Trials::default();
        let computation = Computation::Product(product, Finish::BiasRelu);
        let tried = Tried { computation, algorithm: "cublaslt:66".into() };
        assert!(!trials.all_run([(0, tried)], |_| Ok(Some("NOT_SUPPORTED".into()))).unwrap());
        let all = "product 64x25088 by 25088x4096 (second transposed), bias and ReLU, f32 as tf32: cublaslt:66 was refused when it was executed: NOT_SUPPORTED";
        assert_eq!(trials.all_refused(), [all]);
        assert_eq!(trials.refused(&computation).len(), 1);
        assert!(trials.refused(&Computation::Product(product, Finish::Bias)).is_empty());
    }
}
