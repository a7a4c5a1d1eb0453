//! A step that is prepared in a process of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use serde::Deserialize;
use serde_json::json;

use super::visit::Visit;
use super::{PATIENCE, StepKey};
use crate::engine::worker::{self, AnsweredTimes, Worker};
use crate::engine::{KernelTime, LayerExecution, REST, SetupTimes, Step, StepTimes, WorkerCounts};
use crate::error::{Error, Result};

/// Steps that are asked for at once take no longer than this together, so that a limit is heeded between two requests.
const AT_ONCE_S: f64 = 0.05;

/// A step that is prepared in a process of its own.
#[derive(Debug)]
pub(super) struct OwnStep {
    pub id: u64,
    pub worker: Rc<RefCell<Worker>>,
    pub visit: Visit,
    pub setup: SetupTimes,
    /// Steps that were run and not yet asked for.
    pub ready: VecDeque<StepTimes>,
    /// How many will be asked for at least.
    pub expected: usize,
    /// Which step it is, and the times of the last ones.
    pub cell: StepKey,
    pub last_s: Rc<RefCell<BTreeMap<StepKey, f64>>>,
    pub layers: Vec<LayerExecution>,
    /// Whether the process can time layers of it.
    pub has_layers: bool,
    /// Whether its last step ran on a device other than the processor.
    pub on_device: bool,
    /// Whether the process rests before the next step that it is asked for.
    pub rests: bool,
}

/// As `worker.py` writes it.
#[derive(Deserialize)]
struct TimesAnswer {
    steps: Vec<Times>,
}

#[derive(Deserialize)]
struct Times {
    #[serde(flatten)]
    step: AnsweredTimes,
    #[serde(flatten)]
    counts: WorkerCounts,
}

impl Times {
    /// A person's step has no copy to the device and no other processes.
    fn times(self) -> StepTimes {
        StepTimes { h2d_s: None, allreduce_s: None, worker: Some(self.counts), ..self.step.times() }
    }
}

#[derive(Deserialize)]
struct LayerTimes {
    layer: String,
    operation: String,
    forward_s: Option<f64>,
    backward_s: Option<f64>,
}

impl LayerTimes {
    fn row(&self, direction: &'static str, device_s: Option<f64>) -> LayerExecution {
        LayerExecution {
            layer: self.layer.clone(),
            operation: self.operation.clone(),
            direction,
            // Nobody knows what it computes.
            flops: f64::NAN,
            bytes: f64::NAN,
            device_s,
            ..LayerExecution::default()
        }
    }
}

impl OwnStep {
    /// Has the process run the steps that are sure to be asked for, where they are short: a request takes a tenth of a millisecond.
    fn run_some(&mut self) -> Result<()> {
        let short = self.last_s.borrow().get(&self.cell).map_or(1, |&last| (AT_ONCE_S / last.max(1e-9)) as usize);
        let mut count = self.expected.min(short).max(1);
        if std::mem::take(&mut self.rests) {
            // A process that waits for a request sleeps.
            std::thread::sleep(REST);
            count = 1;
        }
        let mut worker = self.worker.borrow_mut();
        let patience = self.visit.left(PATIENCE.step);
        let outside = worker.watched();
        let answer = worker.ask(&json!({"do": "step", "id": self.id, "count": count}), patience)?;
        let name = &worker.program.name;
        let TimesAnswer { steps } =
            worker::read(answer, format_args!("{name} answered without the times of its steps"))?;
        let mut steps: Vec<StepTimes> = steps.into_iter().map(Times::times).collect();
        let steps_s: Vec<f64> = steps.iter().map(|step| step.step_s).collect();
        for (step, seen) in steps.iter_mut().zip(worker::seen(outside, &steps_s)) {
            step.witnessed = step.witnessed.or(Some(seen));
        }
        self.ready.extend(steps);
        match self.ready.is_empty() {
            true => Err(Error::engine(format!("{name} answered without the times of its steps"))),
            false => Ok(()),
        }
    }
}

impl Step for OwnStep {
    fn expect(&mut self, steps: usize) {
        self.expected = steps;
    }

    fn rest(&mut self) {
        self.rests = true;
    }

    fn run(&mut self) -> Result<StepTimes> {
        if self.ready.is_empty() {
            self.run_some()?;
        }
        let times = self.ready.pop_front().ok_or_else(|| Error::engine("no step was run"))?;
        self.expected = self.expected.saturating_sub(1);
        self.on_device = times.enqueue_s.is_some();
        self.last_s.borrow_mut().insert(self.cell.clone(), times.step_s);
        Ok(times)
    }

    fn setup(&self) -> SetupTimes {
        self.setup
    }

    fn layers(&self) -> Vec<LayerExecution> {
        self.layers.clone()
    }

    fn at_work(&mut self, look: &mut dyn FnMut()) -> Result<()> {
        let step_s = self.on_device.then(|| self.last_s.borrow().get(&self.cell).copied()).flatten();
        self.worker.borrow_mut().at_work(self.id, step_s, look)
    }

    fn kernels(&mut self) -> Result<Vec<KernelTime>> {
        let mut worker = self.worker.borrow_mut();
        // The profiler runs after the visits, which have a limit.
        let answer = worker.ask(&worker::about(self.id, "kernels"), PATIENCE.prepare)?;
        worker::read(answer, "no list of kernels was answered")
    }

    fn time_layers(&mut self) -> Result<()> {
        if !self.has_layers {
            return Ok(());
        }
        let mut worker = self.worker.borrow_mut();
        let patience = self.visit.left(PATIENCE.step);
        let answer = worker.ask(&worker::about(self.id, "layers"), patience)?;
        let name = &worker.program.name;
        let times: Vec<LayerTimes> =
            worker::read(answer, format_args!("{name} answered without the times of the layers"))?;
        let rows = |times: &LayerTimes| {
            [("forward", times.forward_s), ("backward", times.backward_s)].map(|(way, time)| times.row(way, time))
        };
        self.layers = times.iter().flat_map(rows).collect();
        Ok(())
    }
}

impl Drop for OwnStep {
    /// Has what `step` made released, before anything else that this process is asked.
    fn drop(&mut self) {
        self.worker.borrow_mut().release_soon(self.id);
    }
}
