//! An engine whose GPU is the emulator: every buffer in its place in one arena, poisoned before the first call.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{EmulatedMemory, emulator};
use crate::engine::cudnn::arena::Arena;
use crate::engine::cudnn::call::{Call, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::isolated::{self, PartRunner, See};
use crate::engine::cudnn::order::{Order, StepStream};
use crate::engine::cudnn::plan::StepPlan;
use crate::engine::cudnn::trainer::FedStep;
use crate::engine::part;
use crate::engine::train::Learnt;
use crate::engine::{Computed, DeviceName, Engine, LayerExecution, Settings, Step, StepTimes, Workload};
use crate::error::{Error, Result};
use crate::settings::{Launch, Winograd};

/// How a faulty GPU executes a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFault {
    /// The first half of its output is zeros.
    Zeros,
    /// It cannot be started.
    Refused,
}

/// The head of a spec: a network with every kind of kernel of ours, and layers that are fused with them.
pub const EVERY_OPERATOR: &str = "version = 1\nname = \"all\"\n[model]\nname = \"all\"\ninput = [3, 12, 12]\nclasses = 4\n\
    [[model.layers]]\ntype = \"conv2d\"\nout_channels = 8\nkernel = 3\npadding = 1\n\
    [[model.layers]]\ntype = \"relu\"\n\
    [[model.layers]]\ntype = \"max_pool2d\"\nkernel = 2\n\
    [[model.layers]]\ntype = \"conv2d\"\nout_channels = 8\nkernel = 3\npadding = 1\ngroups = 8\n\
    [[model.layers]]\ntype = \"batch_norm\"\n\
    [[model.layers]]\ntype = \"relu\"\n\
    [[model.layers]]\ntype = \"global_average_pool\"\n\
    [[model.layers]]\ntype = \"dense\"\nout_features = 4\n";

/// See the head of this module.
pub struct EmulatedEngine {
    name: DeviceName,
    /// Operators whose kernels fail.
    faults: Vec<(&'static str, KernelFault)>,
}

/// A step on the emulator.
pub struct EmulatedStep {
    plan: StepPlan,
    arena: Arena,
    memory: EmulatedMemory,
    workload: Workload,
    faults: Vec<(&'static str, KernelFault)>,
}

impl Default for EmulatedEngine {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl EmulatedEngine {
    /// An emulator on which the kernels of those operators fail.
    pub fn with(faults: &[(&'static str, KernelFault)]) -> Self {
        let name = DeviceName { id: "emulated".into(), name: "emulated".into(), multiprocessors: None };
        Self { name, faults: faults.to_vec() }
    }
}

impl Engine for EmulatedEngine {
    fn device(&self) -> &DeviceName {
        &self.name
    }

    /// Nothing is captured here, and no library chooses an algorithm.
    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        Ok(Settings { launch: Launch::Eager, winograd: Winograd::Any, ..asked.clone() })
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        Ok(Box::new(self.step(workload)?))
    }

    fn take_apart(&mut self, workload: &Workload, see: See) -> Result<(), part::Fault> {
        let workload = Workload { settings: isolated::in_turn(&workload.settings), ..workload.clone() };
        isolated::take_apart(&mut self.step_in(&workload, |plan| Arena::apart(&plan.buffers))?, &workload, see)
    }
}

impl EmulatedEngine {
    pub fn step(&self, workload: &Workload) -> Result<EmulatedStep> {
        self.step_in(workload, StepPlan::arena)
    }

    fn step_in(&self, workload: &Workload, placed: fn(&StepPlan) -> Arena) -> Result<EmulatedStep> {
        let plan = StepPlan::new(workload, &mut |_, _| workload.batch_size % 2 == 1)?;
        let arena = placed(&plan);
        let memory = EmulatedMemory::of(&[arena.bytes]);
        let faults = self.faults.clone();
        let mut step = EmulatedStep { plan, arena, memory, workload: workload.clone(), faults };
        step.begin_again()?;
        Ok(step)
    }
}

impl EmulatedStep {
    fn call(&mut self, call: Call) -> Result<()> {
        let call = call.moved(&mut |slice| self.place(slice));
        let fault = match &call {
            Call::Launch(launch) => self.faults.iter().find(|(operator, _)| *operator == launch.kernel.operator),
            _ => None,
        };
        if let Some((operator, KernelFault::Refused)) = fault {
            return Err(Error::engine(format!("the CUDA driver refused to launch a kernel of {operator}")));
        }
        emulator().expect("asked before").run(&mut self.memory, &call);
        if fault.is_some() {
            call.writes().into_iter().for_each(|slice| self.memory.bytes_mut(slice.part(0, slice.bytes / 2)).fill(0));
        }
        Ok(())
    }

    fn place(&self, slice: Slice) -> Slice {
        Slice::new(0, self.arena.offset(slice), slice.bytes)
    }
}

impl PartRunner for EmulatedStep {
    fn plan(&self) -> &StepPlan {
        &self.plan
    }

    fn arena(&self) -> &Arena {
        &self.arena
    }

    fn run(&mut self, calls: Range<usize>) -> Result<()> {
        calls.into_iter().try_for_each(|index| self.call(self.plan.calls[index].call.clone()))
    }

    fn read(&self, Range { start, end }: Range<usize>) -> Result<Vec<u8>> {
        Ok(self.memory.bytes(Slice::new(0, start, end - start)).to_vec())
    }
}

impl Step for EmulatedStep {
    fn run(&mut self) -> Result<StepTimes> {
        let begun = std::time::Instant::now();
        for index in latest(&self.plan.order) {
            self.call(self.plan.calls[index].call.clone())?;
        }
        let loss = self.memory.bytes(self.place(self.plan.scalars.loss()));
        let loss = f32::from_le_bytes(loss.try_into().expect("one float32"));
        Ok(StepTimes { loss: Some(loss.into()), step_s: begun.elapsed().as_secs_f64(), ..StepTimes::default() })
    }

    /// A row for each layer and direction that has calls.
    fn layers(&self) -> Vec<LayerExecution> {
        let network = &self.workload.network;
        let of = self.plan.calls.iter().filter_map(|planned| Some((planned.layer?, planned.direction)));
        let row = |(layer, direction): (usize, crate::network::Direction)| LayerExecution {
            layer: network.layers[layer].name.clone(),
            operation: network.operation_name(layer).to_owned(),
            direction: direction.name(),
            algorithm: None,
            workspace_bytes: None,
            math_mode: None,
            flops: 0.0,
            bytes: 0.0,
            device_s: None,
            kernel: None,
        };
        of.collect::<BTreeSet<_>>().into_iter().map(row).collect()
    }

    fn computed(&self) -> Result<Option<Computed>> {
        let mut read = |slice| Ok(self.memory.bytes(self.place(slice)).to_vec());
        self.plan.computed(&mut read).map(Some)
    }
}

impl FedStep for EmulatedStep {
    fn load(&mut self, inputs: &[f32], targets: &[f32]) {
        let places = [self.place(self.plan.inputs), self.place(self.plan.targets)];
        self.memory.write(places[0], self.plan.element, inputs);
        self.memory.write(places[1], Element::F32, targets);
    }

    fn learnt(&self) -> Result<Learnt> {
        self.plan.learnt(&mut |slice| Ok(self.memory.bytes(self.place(slice)).to_vec()))
    }

    fn begin_again(&mut self) -> Result<()> {
        self.plan.initial.clone().into_iter().try_for_each(|call| self.call(call))
    }
}

/// The calls in the order in which the side stream runs as late as possible; in the plan's own order it runs as early
/// as possible.
fn latest(order: &Order) -> Vec<usize> {
    let (mut calls, mut late) = (Vec::new(), Vec::new());
    for index in 0..order.0.len() {
        if order.0[index].stream == StepStream::Side {
            late.push(index);
            continue;
        }
        let done = late.iter().take_while(|&&side| Some(side) <= order.0[index].wait).count();
        calls.extend(late.drain(..done));
        calls.push(index);
    }
    calls.extend(late);
    calls
}
