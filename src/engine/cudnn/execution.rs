//! What was executed for each layer and direction.

use std::collections::BTreeMap;

use super::cuda::Program;
use super::element::Element;
use super::kernels;
use super::plan::StepPlan;
use crate::engine::{KernelLaunch, LayerExecution, Workload, work};
use crate::network::Direction;

/// How every layer was executed, in every direction in which it computes something. A layer that is computed together
/// with the one before it has that layer's name instead of an algorithm, and no time of its own. `times` are the
/// seconds of each call of the plan. Every call must have run once ([`Program::kernels`]).
pub fn layers(workload: &Workload, plan: &StepPlan, program: &Program, times: Option<&[f64]>) -> Vec<LayerExecution> {
    let mut calls: BTreeMap<(usize, Direction), Vec<usize>> = BTreeMap::new();
    for (index, planned) in plan.calls.iter().enumerate() {
        if let Some(layer) = planned.layer {
            calls.entry((layer, planned.direction)).or_default().push(index);
        }
    }
    let bytes = Element::of(workload.settings.precision).bytes();
    work::layers_with(workload, bytes, |index, direction, layer| {
        let own = calls.get(&(index, direction)).map(Vec::as_slice).unwrap_or_default();
        let executions = || own.iter().filter_map(|&call| program.execution(call));
        LayerExecution {
            algorithm: match own.is_empty() {
                false => joined(executions().map(|execution| execution.algorithm.as_str())),
                true => elsewhere(workload, plan, &calls, index, direction),
            },
            workspace_bytes: executions().map(|execution| execution.workspace_bytes).max(),
            math_mode: joined(executions().filter_map(|execution| execution.math_mode.as_deref())),
            device_s: times.filter(|_| !own.is_empty()).map(|times| own.iter().map(|&call| times[call]).sum()),
            kernel: kernel(plan, program, own),
            ..layer
        }
    })
}

/// The kernel that does most of the work of these calls; `None` where the kernels of one of them are not known.
fn kernel(plan: &StepPlan, program: &Program, calls: &[usize]) -> Option<KernelLaunch> {
    let mut launches = Vec::new();
    for &call in calls {
        launches.extend(program.kernels(call)?.into_iter().map(|launched| (&plan.calls[call].call, launched)));
    }
    kernels::main(&launches)
}

/// Names without repetition, in their order.
fn joined<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen: Vec<&str> = Vec::new();
    names.for_each(|name| {
        if !seen.contains(&name) {
            seen.push(name);
        }
    });
    (!seen.is_empty()).then(|| seen.join(" + "))
}

/// Where a layer without calls of its own in a direction is computed: with its other backward direction, or in the node of
/// another layer.
fn elsewhere(
    workload: &Workload,
    plan: &StepPlan,
    calls: &BTreeMap<(usize, Direction), Vec<usize>>,
    index: usize,
    direction: Direction,
) -> Option<String> {
    let other = match direction {
        Direction::BackwardData => Direction::BackwardWeights,
        Direction::BackwardWeights => Direction::BackwardData,
        Direction::Forward => Direction::Forward,
    };
    if calls.contains_key(&(index, other)) {
        return Some(format!("with {}", other.name()));
    }
    let node = plan.nodes.iter().find(|node| node.layer < index && index <= node.output)?;
    Some(format!("fused into {}", workload.network.layers[node.layer].name))
}
