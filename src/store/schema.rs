//! Every column of the tables of a sweep: name, type, unit, meaning. A null is a value that could not be read. The other kinds of study have
//! theirs in their folders.

use super::axis_values::AxisValues;
use super::counter_values::CounterValues;
use super::record::{named_field, table};
use crate::error::Error;
use crate::settings::named;

/// The version of all tables. A reader refuses a newer one.
///
/// 2: the engine `cpu` was called `candle` in version 1.
pub const SCHEMA_VERSION: u32 = 2;

named! {
    /// The outcome of one step.
    #[derive(Default)]
    Status {
        #[default]
        Ok = "ok",
        /// It ran, and its loss was infinite or not a number.
        NanLoss = "nan_loss",
        OutOfMemory = "out_of_memory",
        Failed = "failed",
    }
}

impl Status {
    /// Of a cell that failed with this error.
    pub fn of(error: &Error) -> Self {
        if error.is_out_of_memory() { Self::OutOfMemory } else { Self::Failed }
    }

    /// Whether nothing was measured.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::OutOfMemory)
    }
}

named! {
    /// Why a cell was left.
    #[derive(Default)]
    StopReason {
        /// Its interval is narrow enough, or no undecided boundary lies beside it.
        Converged = "converged",
        /// Time or blocks ran out first.
        #[default]
        Budget = "budget",
        OutOfMemory = "out_of_memory",
        Failed = "failed",
    }
}

named_field!(Status, StopReason);

table! {
    /// One training step that was executed, or the attempt at one: a row of `steps.parquet`.
    StepRow {
        run_id: String, "", "The run: name, start time, process, a random number.";
        engine: String, "", "What executed the step, by its name in the spec.";
        device: String, "", "cpu, cuda:0, ...";
        device_name: String, "", "The name that the device reports.";
        model: String, "", "The network.";
        axes: AxisValues, "", "The settings in force, a column for each axis.";
        batch_size: i64, "examples", "The batch size the cell is named after.";
        block: i64, "", "The block, from 0: a visit to all cells, or to those that are still measured.";
        order: i64, "", "The place of the step in the whole run, from 0.";
        visit: i64, "", "The place of the visit in the whole run, from 0.";
        step: i64, "", "The place of the step in its visit, from 0.";
        warmup: bool, "", "True before the visit's times were steady; not used for results.";
        status: Status, "", "ok, nan_loss, out_of_memory, failed.";
        step_time_s: Option<f64>, "s", "Host clock, synchronised start to synchronised end.";
        gpu_time_s: Option<f64>, "s", "Device clock, event to event.";
        enqueue_time_s: Option<f64>, "s", "Host clock until the last piece of work was queued.";
        h2d_time_s: Option<f64>, "s", "Batch to device.";
        forward_time_s: Option<f64>, "s", "Forward pass and loss.";
        backward_time_s: Option<f64>, "s", "Backward pass.";
        optimizer_time_s: Option<f64>, "s", "Parameter update.";
        loss: Option<f64>, "", "The loss before the update.";
        pcie_link_width: Option<i64>, "lanes", "In force, read right after the visit.";
        pcie_link_generation: Option<i64>, "", "In force; drops while idle.";
        pcie_link_width_max: Option<i64>, "lanes", "The most that device and slot allow.";
        pcie_link_generation_max: Option<i64>, "", "The most that device and slot allow.";
        pcie_replay_counter: Option<i64>, "", "Packets that the link had to send again since the driver was loaded.";
        sm_clock_hz: Option<f64>, "Hz", "Clock of the GPU's multiprocessors.";
        memory_clock_hz: Option<f64>, "Hz", "Clock of the GPU's memory.";
        throttle_reasons: Option<String>, "", "Why the clock was held down; empty if it was not.";
        temperature_c: Option<f64>, "degrees C", "The temperature of the GPU or of the CPU package.";
        power_w: Option<f64>, "W", "Drawn by the device.";
        energy_j: Option<f64>, "J", "The device's energy counter.";
        memory_used_bytes: Option<i64>, "bytes", "Memory used on the device, or by this process on a CPU.";
        outlier: Option<bool>, "", "Far from the cell's median (modified z above 3.5); kept, flagged when the run is sealed.";
        cell: i64, "", "The cell's number in the plan.";
        executed_batch_size: i64, "examples", "The batch size that ran; differs from batch_size in an A/A run only.";
        started_s: Option<f64>, "s", "When the visit began: Unix time.";
        prepare_time_s: Option<f64>, "s", "Host clock, until the visit's step was ready: plan, algorithms, memory, parameters.";
        compile_time_s: Option<f64>, "s", "The part for compiling the network (torch.compile); null if it is not compiled, or not timed separately.";
        search_time_s: Option<f64>, "s", "The part for choosing algorithms and planning memory, including the compilation of kernels that are not cached; only the engine cudnn.";
        capture_time_s: Option<f64>, "s", "The part for capturing the step in a CUDA graph, with the steps before it; launch = graph.";
        multiprocessors: Option<i64>, "", "Streaming multiprocessors of the GPU.";
        cpu_clock_hz: Option<f64>, "Hz", "Mean frequency of the CPU's cores.";
        qualified: Option<bool>, "", "Whether the step, with the algorithms of this batch size, passed a comparison with a reference on this machine before it was timed; null if the engine is not checked.";
        node: Option<String>, "", "The machine that measured it, by the name that `--node` gave it, or by a number that identifies its host's name.";
        allreduce_time_s: Option<f64>, "s", "With several processes: the time in which an all-reduce of gradients ran, including waits for slower processes; a part of it overlaps the backward pass.";
        counters: CounterValues, "", "What was counted from the start of the step to its end.";
        x_name: Option<String>, "", "The swept argument of a user's own step, whose values are in batch_size; null if it is the batch size.";
        peak_memory_bytes: Option<i64>, "bytes", "For a user's own step: the most memory of its process so far in the visit, allocated on a GPU, else resident.";
        compilations: Option<i64>, "", "For a user's own step: the number of compilations of its frameworks during the step.";
        repeats: Option<i64>, "", "For a user's own step: how often it ran between two waits; the times are those of one step.";
        processor_time_s: Option<f64>, "s", "Processor time of all threads that computed the step; null if it was not read, as in runs of earlier versions.";
        runqueue_wait_s: Option<f64>, "s", "The time in which these threads, together, were ready but had no processor, because other programs had it (schedstat); null if the kernel does not count it.";
        longest_wait_s: Option<f64>, "s", "The part of the thread that waited longest.";
        delay_s: Option<f64>, "s", "How much earlier the step would have ended if no thread had waited. The engine cpu knows what its threads did: its step without delay is their processor time without polling, divided by their number. Elsewhere: the longest wait of a thread that also ran.";
        voluntary_switches: Option<f64>, "", "How often a thread of its process gave up its processor, for example to wait for another thread.";
        involuntary_switches: Option<f64>, "", "How often the processor of a thread of its process was given to another thread or program.";
        witness: Option<String>, "", "The source of `disturbed`: schedstat, or switches if the kernel counts no waits.";
        disturbed: Option<bool>, "", "Whether another program held one of its threads up for more than 2 % of its time; then it is not used for results, unless its batch size has fewer than two visits with undisturbed steps; null if this is not known.";
        steal_s: Option<f64>, "s", "The time during the visit in which a hypervisor took the processors that this process may use, over all of them (/proc/stat).";
        others: Option<String>, "", "For a visit with a disturbed step: the number of running processes of each other program, as a JSON object; null if they were not counted, as within a second of the last count.";
    }
}

impl StepRow {
    /// Whether a step is one of those that a visit was made for: after its warm-up, and it ran.
    pub fn is_counted(&self) -> bool {
        !self.warmup && self.status == Status::Ok
    }

    /// The step time without the delay, where that is known.
    fn less_delay(&self) -> Option<f64> {
        let step_s = self.step_time_s?;
        Some(step_s - self.delay_s.filter(|delay_s| *delay_s < step_s).unwrap_or(0.0))
    }

    /// The steps of a visit that count: its undisturbed ones, or all where it has none.
    pub fn counted_times(visit: &[Self]) -> CountedTimes {
        let steps = |disturbed: bool| -> Vec<&Self> {
            visit.iter().filter(|row| row.is_counted() && (row.disturbed == Some(true)) == disturbed).collect()
        };
        let (quiet, delayed) = (steps(false), steps(true));
        let disturbed = quiet.is_empty() && !delayed.is_empty();
        let counted = if disturbed { delayed } else { quiet };
        let less_delays: Vec<f64> = counted.iter().filter_map(|row| row.less_delay()).collect();
        let whole = || counted.iter().filter_map(|row| row.step_time_s).collect();
        CountedTimes { times: if disturbed { less_delays.clone() } else { whole() }, less_delays, disturbed }
    }
}

/// Seconds of the steps of a visit that count.
#[derive(Clone, Debug)]
pub struct CountedTimes {
    /// Less their delays if all were disturbed.
    pub times: Vec<f64>,
    /// Less their delays in any case.
    pub less_delays: Vec<f64>,
    pub disturbed: bool,
}

table! {
    /// How one layer of one cell was executed in one direction: a row of `layers.parquet`.
    LayerRow {
        run_id: String, "", "The run.";
        engine: String, "", "The engine that executed it.";
        model: String, "", "The network.";
        batch_size: i64, "examples", "The batch size the cell is named after.";
        cell: i64, "", "The cell's number in the plan.";
        layer: String, "", "The layer's name in the network.";
        operation: String, "", "conv2d, dense, ...";
        direction: String, "", "forward, backward_data, backward_weights.";
        algorithm: Option<String>, "", "The library's name for the algorithm.";
        workspace_bytes: Option<i64>, "bytes", "Scratch memory of the algorithm.";
        math_mode: Option<String>, "", "The arithmetic in force, as read back.";
        flops: f64, "FLOP", "Arithmetic of the whole batch; a multiply-add is two.";
        bytes: f64, "bytes", "Least memory traffic: operands read once, results written once.";
        device_time_s: Option<f64>, "s", "Time on the device if measured, the shortest of up to ten visits: by a GPU's own clock, or by the host's clock on a processor.";
        kernel: Option<String>, "", "The kernel that does most of its work on a GPU, by its library's name.";
        blocks: Option<i64>, "thread blocks", "Thread blocks of that kernel's launch.";
        threads_per_block: Option<i64>, "threads", "Thread blocks of that kernel's launch.";
        blocks_per_multiprocessor: Option<i64>, "thread blocks", "How many of these blocks a multiprocessor holds at a time.";
        waves: Option<f64>, "", "Its tiles (its blocks, if each has one tile) over the number that the GPU works on at a time; null if that is not certain.";
    }
}

table! {
    /// The result of one cell: a row of `cells.parquet`.
    CellRow {
        run_id: String, "", "The run.";
        cell: i64, "", "The cell's number in the plan.";
        engine: String, "", "The engine that executed it.";
        model: String, "", "The network.";
        precision: Option<String>, "", "The arithmetic in force; null for a user's own step.";
        batch_size: i64, "examples", "The batch size the cell is named after.";
        blocks: i64, "", "Visits that counted.";
        steps: i64, "", "Steps that counted.";
        median_s: Option<f64>, "s", "Median of the blocks' medians.";
        low_s: Option<f64>, "s", "Lower end of its 95 % interval (block bootstrap).";
        high_s: Option<f64>, "s", "Upper end.";
        stop_reason: StopReason, "", "converged (interval narrow enough, or no undecided boundary beside it), budget, out_of_memory, failed.";
    }
}
