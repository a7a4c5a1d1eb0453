//! The search for algorithms: the candidates, and which of them may be used.

use std::rc::Rc;

use crate::engine::cudnn::cuda::api::cudnn as sys;

use super::algorithm::{Algorithm, Implementation, MathType};
use super::graph::{Configuration, Heuristics, Operation};
use super::note::Eligibility;
use super::routine::Routine;
use super::{Choice, Executable, Problem, Search, legacy};
use crate::engine::cudnn::call::ConvolutionKind;
use crate::engine::cudnn::cuda::trial::Refused;
use crate::engine::cudnn::element::Math;
use crate::error::{Error, Result};
use crate::settings::Winograd;

impl Problem<'_> {
    /// The first candidates whose plans can be made and fit, at least one and at most `count`, without those that were refused
    /// when they were executed.
    pub fn first(self, search: &Search, count: usize, refused: &[Refused]) -> Result<Vec<Choice>> {
        let mut found = SearchState::without(refused, count);
        match search.winograd {
            Winograd::NonFused => self.ask_for_non_fused(search, &mut found),
            Winograd::Any | Winograd::Never => self.ask_all(search, &mut found),
        }
        match found.ready.is_empty() {
            false => Ok(found.candidates()),
            true => Err(none(search.winograd, &found.refused)),
        }
    }

    /// The graph API and the older calls, in the order of [`super`].
    fn ask_all(self, search: &Search, found: &mut SearchState) {
        let operation = Operation::new(self.convolution, self.kind, self.target);
        let advice = [Heuristics::Accurate, Heuristics::Fast];
        match &operation {
            Ok(operation) => self.ask_graph(operation, &advice, search, found),
            // The graph API cannot express it; the older calls may.
            Err(error) => found.refuse(error),
        }
        // For strict float32 the heuristics often propose only engines with tensor cores. Among the rest, the older calls
        // give a ranking and the fallbacks do not.
        let strict = self.convolution.math == Math::Fp32;
        if strict && !found.enough() {
            self.ask_older_calls(search, found);
        }
        if let Ok(operation) = &operation {
            self.ask_graph(operation, &[Heuristics::Fallback], search, found);
        }
        if !strict && !found.enough() {
            self.ask_older_calls(search, found);
        }
        for (configuration, remark) in std::mem::take(&mut found.later) {
            if found.ready.is_empty() {
                self.plan(configuration, search.workspace_limit, Some(remark), found);
            }
        }
    }

    /// The algorithm of the older calls that is named non-fused Winograd, in each arithmetic that the precision allows.
    fn ask_for_non_fused(self, search: &Search, found: &mut SearchState) {
        if self.kind == ConvolutionKind::ForwardBiasRelu {
            return found
                .refused
                .push("the call that adds bias and ReLU reports only when it runs what it does not compute".into());
        }
        let routine = Routine::non_fused_winograd(self.kind).into_iter();
        let all = routine
            .flat_map(|routine| legacy::arithmetics(self.convolution.math).iter().map(move |math| (routine, *math)));
        self.take_older(all, search, found);
    }

    /// Considers the proposals of some heuristics; those that are a last resort are kept for later.
    fn ask_graph(self, operation: &Operation, modes: &[Heuristics], search: &Search, found: &mut SearchState) {
        for mode in modes {
            if found.enough() {
                return;
            }
            let proposed = match operation.propose(*mode, self.target) {
                Ok(proposed) => proposed,
                Err(error) => {
                    found.refuse(&error);
                    continue;
                }
            };
            for configuration in proposed {
                match configuration {
                    Ok(configuration) => self.consider(configuration, *mode, search, found),
                    Err(error) => found.refuse(&error),
                }
                if found.enough() {
                    return;
                }
            }
        }
    }

    fn consider(self, configuration: Configuration, from: Heuristics, search: &Search, found: &mut SearchState) {
        let algorithm = configuration.algorithm.clone();
        if found.seen.contains(&algorithm) || configuration.reorders {
            return;
        }
        let mode = configuration.notes.math_mode();
        match configuration.notes.eligibility(self.convolution.math) {
            _ if !configuration.notes.is_allowed(search.winograd) => {
                found.refused.push(format!("{algorithm} is {mode}, and `winograd = \"{}\"`", search.winograd));
            }
            Eligibility::Excluded => found.refused.push(format!("{algorithm} is {mode}")),
            Eligibility::LastResort => {
                found.later.push((configuration, format!("only {mode} computes this convolution")));
            }
            // Compiling takes more than a second, for each batch size anew. If the call with bias and ReLU has no other
            // algorithm, the plain convolution and a pass over its output compute the same.
            Eligibility::Allowed if configuration.compiles && self.kind == ConvolutionKind::ForwardBiasRelu => {
                found.refused.push(format!("{algorithm} is compiled when it is chosen"));
            }
            Eligibility::Allowed if configuration.compiles => {
                found
                    .later
                    .push((configuration, "no engine that is already compiled computes this convolution".into()));
            }
            Eligibility::Allowed => {
                let fallback = "cuDNN's heuristics propose nothing that may be used: this is one of its fallbacks";
                let remark = (from == Heuristics::Fallback).then(|| fallback.to_string());
                self.plan(configuration, search.workspace_limit, remark, found);
            }
        }
        found.seen.push(algorithm);
    }

    fn plan(self, configuration: Configuration, limit: u64, remark: Option<String>, found: &mut SearchState) {
        let algorithm = configuration.algorithm.to_string();
        match self.executable(configuration, limit) {
            Ok(ready) => found.ready.push(Choice { remark, ..ready }),
            Err(error) => found.refuse(&error.at(algorithm)),
        }
    }

    /// The plan of a configuration, where it fits within the limit.
    fn executable(self, configuration: Configuration, limit: u64) -> Result<Choice> {
        let (algorithm, compiled) = (configuration.algorithm.clone(), configuration.compiles);
        let plan = configuration.plan(self.target)?;
        fits(plan.workspace_bytes, limit)?;
        let executable = Executable::Graph(Rc::new(plan));
        Ok(Choice { algorithm, compiled, seconds: None, remark: None, executable })
    }

    /// The older calls work only with the GPU of a handle.
    fn handle(self) -> Result<sys::cudnnHandle_t> {
        self.target.handle.ok_or_else(|| Error::engine("cuDNN's older calls need a GPU in this machine"))
    }

    fn ask_older_calls(self, search: &Search, found: &mut SearchState) {
        if self.kind == ConvolutionKind::ForwardBiasRelu {
            return;
        }
        let math = self.convolution.math;
        let list = |handle| legacy::Descriptors::new(self.convolution, self.kind)?.list(handle, math);
        let listed = match self.handle().and_then(list) {
            Ok(listed) => listed,
            Err(error) => return found.refuse(&error),
        };
        let allowed = listed.into_iter().filter(|(routine, _)| routine.is_allowed(search.winograd));
        self.take_older(allowed, search, found);
    }

    /// Takes those algorithms of the older calls that can be planned.
    fn take_older(
        self,
        candidates: impl Iterator<Item = (Routine, MathType)>,
        search: &Search,
        found: &mut SearchState,
    ) {
        for (routine, math) in candidates {
            if found.enough() {
                return;
            }
            match self.older(routine, math, search.workspace_limit) {
                Ok(ready) if found.seen.contains(&ready.algorithm) => {}
                Ok(ready) => found.ready.push(ready),
                Err(error) => found.refuse(&error),
            }
        }
    }

    fn older(self, routine: Routine, math: MathType, limit: u64) -> Result<Choice> {
        let plan = legacy::Descriptors::new(self.convolution, self.kind)?.plan(self.handle()?, routine, math)?;
        fits(plan.workspace_bytes, limit)?;
        let algorithm = plan.algorithm();
        let executable = Executable::Legacy(Rc::new(plan));
        Ok(Choice { algorithm, compiled: false, seconds: None, remark: None, executable })
    }

    /// An algorithm named by the user, where it may be used and fits.
    pub fn fixed(self, name: &str, search: &Search) -> Result<Choice> {
        let algorithm: Algorithm = name.parse()?;
        let limit = search.workspace_limit;
        let forbidden = || {
            let what = format!("{name} is not what `winograd = \"{}\"` in [engine] allows", search.winograd);
            Err(Error::spec(what).hint("leave `winograd` out where the algorithms are fixed"))
        };
        let math = self.convolution.math;
        if algorithm.fused != (self.kind == ConvolutionKind::ForwardBiasRelu) {
            return Err(Error::spec(format!(
                "{name} is not for this kind of call: fused with bias and ReLU, or alone"
            )));
        }
        let ready = match &algorithm.implementation {
            Implementation::Graph { engine, knobs } => {
                let operation = Operation::new(self.convolution, self.kind, self.target)?;
                let configuration = operation.configure(*engine, knobs, self.target)?;
                if configuration.notes.eligibility(math) == Eligibility::Excluded {
                    let mode = configuration.notes.math_mode();
                    return Err(Error::spec(format!("{name} is {mode}, which this precision does not allow")));
                }
                if !configuration.notes.is_allowed(search.winograd) {
                    return forbidden();
                }
                self.executable(configuration, limit)?
            }
            Implementation::Legacy { routine, math: arithmetic } => {
                if !legacy::allowed(*arithmetic, math) || !routine.is_deterministic() {
                    let what = format!("{name} is not deterministic, or this precision does not allow its arithmetic");
                    return Err(Error::spec(what));
                }
                if !routine.computes(self.kind) {
                    return Err(Error::spec(format!("{name} does not compute this direction of a convolution")));
                }
                if !routine.is_allowed(search.winograd) {
                    return forbidden();
                }
                self.older(*routine, *arithmetic, limit)?
            }
        };
        Ok(ready)
    }
}

/// The state of a search.
#[derive(Default)]
struct SearchState {
    ready: Vec<Choice>,
    /// Last resorts, each with the remark for when it is used.
    later: Vec<(Configuration, String)>,
    /// Configurations that were considered, since the heuristics' lists overlap.
    seen: Vec<Algorithm>,
    /// Why the others were excluded.
    refused: Vec<String>,
    /// The last algorithm that did not fit in memory: with more memory another algorithm might have been chosen.
    short_of_memory: Option<String>,
    wanted: usize,
}

impl SearchState {
    fn without(refused: &[Refused], wanted: usize) -> Self {
        let seen = refused.iter().filter_map(|one| one.algorithm.parse().ok()).collect();
        let refused = refused.iter().map(Refused::to_string).collect();
        Self { seen, refused, wanted, ..Self::default() }
    }

    fn enough(&self) -> bool {
        self.ready.len() >= self.wanted
    }

    fn refuse(&mut self, error: &Error) {
        let why = error.clause();
        if error.is_out_of_memory() {
            self.short_of_memory = Some(why.clone());
        }
        self.refused.push(why);
    }

    fn candidates(self) -> Vec<Choice> {
        let short = self.short_of_memory.map(|why| {
            format!("memory was short in the search, and another algorithm may be chosen where there is more: {why}")
        });
        let noted = |ready: Choice| {
            let remarks: Vec<String> = short.iter().cloned().chain(ready.remark).collect();
            Choice { remark: (!remarks.is_empty()).then(|| remarks.join("; ")), ..ready }
        };
        self.ready.into_iter().map(noted).collect()
    }
}

/// The error for a convolution for which no algorithm is left.
fn none(winograd: Winograd, refused: &[String]) -> Error {
    let why = refused.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
    let (what, hint) = match winograd {
        Winograd::Any => (
            format!("cuDNN has no algorithm for this convolution that may be used: {why}"),
            "a larger workspace limit, another layout or another precision may have one",
        ),
        Winograd::Never => (
            format!("without Winograd's algorithm cuDNN has none for this convolution that may be used: {why}"),
            "use `winograd = \"any\"`; a larger `workspace_limit` or another layout may have one as well",
        ),
        Winograd::NonFused => (
            format!("cuDNN does not compute this convolution by non-fused Winograd: {why}"),
            "non-fused Winograd takes filters of 3x3 or 5x5 with stride 1 and one group; raise `workspace_limit` where that is the reason; \
             else use `winograd = \"any\"` or \"never\" for this network",
        ),
    };
    Error::engine(what).no_kernels_fault().hint(hint)
}

fn fits(bytes: u64, limit: u64) -> Result<()> {
    match bytes <= limit {
        true => Ok(()),
        false => Err(Error::engine(format!("it needs a workspace of {bytes} bytes, and the limit is {limit}"))),
    }
}
