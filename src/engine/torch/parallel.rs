//! A step of data parallel training: several PyTorch processes, each with a copy of the network, that average their gradients
//! (DistributedDataParallel; NCCL on GPUs, gloo on the processor).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::group;
use super::step::times;
use super::{Connection, message};
use crate::engine::worker::{self, Process};
use crate::engine::{LayerExecution, Step, StepTimes, Workload, processor};
use crate::error::{Error, Result};
use crate::settings::Scaling;

/// How the batch is split among the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub processes: usize,
    /// Examples of each process.
    pub each: usize,
}

impl Split {
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the whole batch cannot be split evenly: processes with fewer examples would
    /// wait for the others.
    pub fn of(workload: &Workload) -> Result<Self> {
        let (processes, batch_size) = (workload.settings.processes, workload.batch_size);
        let each = match workload.settings.scaling {
            Scaling::Weak => batch_size,
            Scaling::Strong if batch_size.is_multiple_of(processes) => batch_size / processes,
            Scaling::Strong => {
                let what =
                    format!("a batch of {batch_size} examples cannot be shared out evenly to {processes} processes");
                let hint = format!(
                    "with `scaling = \"strong\"` use batch sizes that are multiples of {processes}, such as `step {processes}`"
                );
                return Err(Error::engine(what).hint(hint));
            }
        };
        Ok(Self { processes, each })
    }

    /// The workload that all processes compute together.
    pub fn whole(self, workload: &Workload) -> Workload {
        Workload { batch_size: self.each * self.processes, ..workload.clone() }
    }

    /// The workload of one process. On a CPU it gets its share of the cores as threads, unless the settings name a
    /// number.
    fn part(self, workload: &Workload, on_gpu: bool) -> Workload {
        let mut part = Workload { batch_size: self.each, ..workload.clone() };
        if !on_gpu {
            let share = (processor::cores() / self.processes).max(1);
            part.settings.threads = part.settings.threads.or(Some(share));
        }
        part
    }
}

impl Connection {
    /// Prepares the step in all processes of the split; processes that do not exist yet are started.
    pub(super) fn prepare_split(&mut self, workload: &Workload, split: Split, on_gpu: bool) -> Result<u64> {
        if self.worker.process.is_none() {
            self.connect()?;
        }
        self.worker.prepared += 1;
        let id = self.worker.prepared;
        let patience = self.worker.patience;
        self.group(split.processes)?;
        let part = split.part(workload, on_gpu);
        let request = |rank: usize| {
            let mut request = message::prepare(id, &part);
            request["first"] = json!(rank * split.each);
            request
        };
        self.ask_group(0..split.processes, request, patience.prepare)?;
        Ok(id)
    }

    /// Makes the first `processes` processes one group.
    fn group(&mut self, processes: usize) -> Result<()> {
        if self.grouped == processes {
            return Ok(());
        }
        let start = self.worker.patience.start;
        // All start at once: importing PyTorch takes seconds.
        let first_new = 1 + self.others.len();
        while self.others.len() + 1 < processes {
            self.others.push(Process::start(&self.worker.program)?);
        }
        // On the processor, or on the GPUs after the one that the first process opened.
        let first = self.opened_on.strip_prefix("cuda:").and_then(|number| number.parse::<usize>().ok());
        let device = |rank: usize| first.map_or("cpu".to_owned(), |first| format!("cuda:{}", first + rank));
        self.ask_group(first_new..processes, |rank| message::open(&device(rank)), start)?;
        let port = self.ask(&json!({"do": "host"}), start)?["port"].clone();
        let join = |rank: usize| json!({"do": "join", "rank": rank, "processes": processes, "port": port});
        self.ask_group(0..processes, join, start)?;
        self.grouped = processes;
        Ok(())
    }

    /// Asks the processes of these ranks at the same time. After an error all are ended; they are started again when
    /// needed.
    fn ask_group(
        &mut self,
        ranks: std::ops::Range<usize>,
        request: impl Fn(usize) -> Value,
        patience: Duration,
    ) -> Result<Vec<Value>> {
        let all = self.worker.process.iter_mut().chain(&mut self.others).enumerate();
        let chosen = all.filter(|(rank, _)| ranks.contains(rank));
        let asked: Vec<_> = chosen.map(|(rank, process)| (process, request(rank))).collect();
        if asked.len() < ranks.len() {
            return Err(Error::engine("the PyTorch processes that held this step have ended"));
        }
        let answers = group::ask(asked, patience);
        if answers.is_err() {
            self.end();
        }
        answers
    }
}

#[derive(Debug)]
pub(super) struct ParallelStep {
    pub id: u64,
    pub processes: usize,
    pub connection: Rc<RefCell<Connection>>,
    pub layers: Vec<LayerExecution>,
}

impl Step for ParallelStep {
    /// The times of the process that took longest: it waited least for the others.
    fn run(&mut self) -> Result<StepTimes> {
        let mut connection = self.connection.borrow_mut();
        let patience = connection.worker.patience.step;
        let answers = connection.ask_group(0..self.processes, |_| worker::about(self.id, "step"), patience)?;
        let times = answers.into_iter().map(times).collect::<Result<Vec<StepTimes>>>()?;
        let slowest = times.into_iter().max_by(|a, b| a.step_s.total_cmp(&b.step_s));
        slowest.ok_or_else(|| Error::engine("no process answered"))
    }

    fn layers(&self) -> Vec<LayerExecution> {
        self.layers.clone()
    }
}

impl Drop for ParallelStep {
    /// Waits until the memory is released in all of them.
    fn drop(&mut self) {
        let mut connection = self.connection.borrow_mut();
        if connection.worker.process.is_some() {
            let patience = connection.worker.patience.step;
            let _ = connection.ask_group(0..self.processes, |_| worker::about(self.id, "release"), patience);
        }
    }
}
