//! One prepared step: starting it, timing it, and reporting what it computed.

use std::ops::Range;
use std::time::Instant;

use super::call::Slice;
use super::cuda::{Gpu, Graph, Mark, Program, StreamId, Timeline};
use super::element::Element;
use super::execution;
use super::feed::Feed;
use super::placed::Placed;
use super::plan::readback::floats;
use super::plan::{Phase, StepPlan};
use super::trainer::FedStep;
use crate::engine::train::Learnt;
use crate::engine::{
    AT_WORK_S, Computed, LayerExecution, SetupTimes, Step, StepTimes, Workload, let_it_begin, steps_at_work,
};
use crate::error::Result;
use crate::settings::Launch;
use crate::stats::quantile::median;

/// Passes over the step whose median is a layer's time.
const TIMED_PASSES: usize = 5;

/// A step whose memory is allocated and whose calls are ready.
#[derive(Debug)]
pub struct CudnnStep {
    // Dropped in this order: graphs and programs before the memory they work on.
    graphs: Vec<Graph>,
    programs: Vec<Program>,
    feed: Option<Feed>,
    timeline: Timeline,
    workload: Workload,
    placed: Placed,
    parts: [Range<usize>; 3],
    /// Seconds of each call, where they were measured.
    call_times: Option<Vec<f64>>,
    /// Steps begun; with prefetching, its parity gives which of the two batches is read.
    number: usize,
    gpu: Gpu,
    /// How the time of preparing it was spent.
    pub(super) setup: SetupTimes,
}

impl CudnnStep {
    /// Captures the step as a graph if the settings ask for it. Every program must have run once before: libraries load
    /// their kernels at their first call, which is not allowed while a stream is captured.
    pub(super) fn new(
        gpu: Gpu,
        workload: Workload,
        placed: Placed,
        programs: Vec<Program>,
        feed: Option<Feed>,
    ) -> Result<Self> {
        let timeline = Timeline::of_step(&gpu)?;
        let parts = parts(&placed.plan);
        let (graphs, setup) = (Vec::new(), SetupTimes::default());
        let mut step =
            Self { graphs, programs, feed, timeline, workload, placed, parts, call_times: None, number: 0, gpu, setup };
        if step.workload.settings.launch == Launch::Graph {
            let captured = step.programs.iter().map(|program| step.gpu.capture(|| step.compute(program)));
            step.graphs = captured.collect::<Result<_>>()?;
        }
        Ok(step)
    }

    /// Puts a whole step on the streams.
    fn enqueue(&self) -> Result<()> {
        self.timeline.record(Mark::Start as usize)?;
        if let Some(feed) = &self.feed {
            feed.copy(&self.gpu, self.number)?;
        }
        self.mark(Mark::AfterHostToDevice)?;
        let at = self.number % self.programs.len();
        match self.graphs.get(at) {
            Some(graph) => graph.launch()?,
            None => self.compute(&self.programs[at])?,
        }
        self.timeline.record(Mark::End as usize)
    }

    /// Forward, backward and update, with a mark after each of the first two.
    fn compute(&self, program: &Program) -> Result<()> {
        let [forward, backward, optimizer] = self.parts.clone();
        program.enqueue(forward)?;
        self.mark(Mark::AfterForward)?;
        program.enqueue(backward)?;
        self.mark(Mark::AfterBackward)?;
        program.enqueue(optimizer)
    }

    /// A mark between two phases, where they are timed.
    fn mark(&self, mark: Mark) -> Result<()> {
        if self.workload.settings.phases { self.timeline.record(mark as usize) } else { Ok(()) }
    }

    fn times(&self) -> Result<StepTimes> {
        self.timeline.wait()?;
        let part = |from: Mark, to: Mark| self.timeline.seconds(from as usize, to as usize);
        let times = StepTimes { gpu_s: Some(part(Mark::Start, Mark::End)?), ..StepTimes::default() };
        if !self.workload.settings.phases {
            return Ok(times);
        }
        let copy = part(Mark::Start, Mark::AfterHostToDevice)?;
        // A prefetched batch is copied while the step runs, so the time of its copy is not part of the compute
        // stream's.
        let is_in_line = self.feed.as_ref().is_some_and(|feed| !feed.is_ahead());
        Ok(StepTimes {
            h2d_s: is_in_line.then_some(copy),
            forward_s: Some(part(Mark::AfterHostToDevice, Mark::AfterForward)?),
            backward_s: Some(part(Mark::AfterForward, Mark::AfterBackward)?),
            optimizer_s: Some(part(Mark::AfterBackward, Mark::End)?),
            ..times
        })
    }

    fn synchronize(&self) -> Result<()> {
        if self.feed.as_ref().is_some_and(Feed::is_ahead) {
            self.gpu.synchronize(StreamId::Copy)?;
        }
        self.gpu.synchronize(StreamId::Compute)
    }

    fn read(&self, slice: Slice) -> Result<Vec<u8>> {
        self.gpu.read(self.placed.placement.resolve(slice)?, slice.bytes)
    }

    fn loss(&self) -> Result<f64> {
        let bytes = self.read(self.placed.plan.scalars.loss())?;
        Ok(floats(&bytes, Element::F32)[0].into())
    }
}

impl FedStep for CudnnStep {
    fn load(&mut self, inputs: &[f32], targets: &[f32]) {
        self.feed.iter_mut().for_each(|feed| feed.overwrite(inputs, targets));
    }

    fn learnt(&self) -> Result<Learnt> {
        self.placed.plan.learnt(&mut |slice| self.read(slice))
    }

    fn begin_again(&mut self) -> Result<()> {
        self.synchronize()?;
        self.placed.begin(&self.gpu)?;
        self.number = 0;
        Ok(())
    }
}

impl Step for CudnnStep {
    fn run(&mut self) -> Result<StepTimes> {
        self.synchronize()?;
        let start = Instant::now();
        self.enqueue()?;
        let enqueue_s = start.elapsed().as_secs_f64();
        self.synchronize()?;
        let step_s = start.elapsed().as_secs_f64();

        self.number += 1;
        Ok(StepTimes { step_s, enqueue_s: Some(enqueue_s), loss: Some(self.loss()?), ..self.times()? })
    }

    fn at_work(&mut self, look: &mut dyn FnMut()) -> Result<()> {
        let step_s = self.times()?.gpu_s.unwrap_or(AT_WORK_S);
        // A batch that is copied ahead must not be overwritten by that of a later step.
        let is_ahead = self.feed.as_ref().is_some_and(Feed::is_ahead);
        for _ in 0..if is_ahead { 1 } else { steps_at_work(step_s) } {
            self.enqueue()?;
            self.number += 1;
        }
        let_it_begin();
        look();
        self.synchronize()
    }

    fn setup(&self) -> SetupTimes {
        self.setup
    }

    fn layers(&self) -> Vec<LayerExecution> {
        execution::layers(&self.workload, &self.placed.plan, &self.programs[0], self.call_times.as_deref())
    }

    fn time_layers(&mut self) -> Result<()> {
        let program = &self.programs[0];
        // One event before each call and one after the last; the times include the cost of the events.
        let stopwatch = Timeline::new(&self.gpu, program.len() + 1)?;
        let mut passes = Vec::with_capacity(TIMED_PASSES);
        for _ in 0..TIMED_PASSES {
            program.enqueue_each(0..program.len(), |index| stopwatch.record(index))?;
            stopwatch.record(program.len())?;
            stopwatch.wait()?;
            passes.push(
                (0..program.len()).map(|index| stopwatch.seconds(index, index + 1)).collect::<Result<Vec<f64>>>()?,
            );
        }
        let times = |index: usize| passes.iter().map(|pass| pass[index]).collect::<Vec<f64>>();
        self.call_times = Some((0..program.len()).map(|index| median(&mut times(index))).collect());
        Ok(())
    }

    fn computed(&self) -> Result<Option<Computed>> {
        self.placed.plan.computed(&mut |slice| self.read(slice)).map(Some)
    }
}

/// The calls of each phase.
fn parts(plan: &StepPlan) -> [Range<usize>; 3] {
    let end = |phase: Phase| plan.calls.partition_point(|planned| planned.phase <= phase);
    let (forward, backward) = (end(Phase::Forward), end(Phase::Backward));
    [0..forward, forward..backward, backward..plan.calls.len()]
}
