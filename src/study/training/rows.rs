//! The tables of a training.

use crate::store::record::table;
use crate::store::{AxisValues, CounterValues, Status, on_shelf};

table! {
    /// One epoch of a training, or the warm-up before it: a row of `epochs.parquet`.
    TrainingRow {
        run_id: String, "", "The run: name, start time, process, a random number.";
        engine: String, "", "What executed the training, by its name in the spec.";
        device: String, "", "cpu, cuda:0, ...";
        device_name: String, "", "The name that the device reports.";
        model: String, "", "The network.";
        axes: AxisValues, "", "The settings in force, a column for each axis.";
        batch_size: i64, "examples", "Examples of a whole batch.";
        workers: i64, "", "Threads (for PyTorch: processes) that make batches; 0: the training thread itself.";
        prefetch: Option<i64>, "batches", "Batches that each worker keeps ready; null without workers.";
        dataset: String, "", "The name of the examples.";
        cell: i64, "", "The cell's number in the plan.";
        block: i64, "", "The block, from 0: a visit to every cell.";
        visit: i64, "", "The place of the visit in the whole run, from 0.";
        epoch: i64, "", "The epoch of the visit, from 0.";
        warmup: bool, "", "True for the steps before the visit's first epoch, which are not counted.";
        status: Status, "", "ok, nan_loss, out_of_memory, failed.";
        error: Option<String>, "", "Why it failed; or the first of the examples that were left out, and why.";
        examples: i64, "examples", "Examples that the network was trained on.";
        steps: i64, "", "Training steps.";
        dropped: i64, "examples", "Examples left out at the end, because drop_last asks for whole batches.";
        skipped: i64, "examples", "Examples left out because they could not be read.";
        epoch_time_s: Option<f64>, "s", "Host clock, from the shuffling to the end of the last step.";
        compute_time_s: Option<f64>, "s", "The part in training steps, including copies of the batch; null for PyTorch on a GPU, where they run asynchronously.";
        wait_time_s: Option<f64>, "s", "The part waiting for the loader; without workers, making the batches.";
        copy_time_s: Option<f64>, "s", "The part of the steps for copying the batch to the engine.";
        forward_time_s: Option<f64>, "s", "The part of the steps for forward pass and loss.";
        backward_time_s: Option<f64>, "s", "The part of the steps for the backward pass.";
        optimizer_time_s: Option<f64>, "s", "The part of the steps for the parameter update.";
        user_time_s: Option<f64>, "s", "Processor time in user space, over all threads; for PyTorch, over its processes.";
        system_time_s: Option<f64>, "s", "Processor time in the kernel, likewise.";
        loss: Option<f64>, "", "Mean over the examples of the loss before each update.";
        last_loss: Option<f64>, "", "The loss of the last step.";
        test_loss: Option<f64>, "", "Mean loss of the test examples after the epoch.";
        test_accuracy: Option<f64>, "", "Share of the test examples that are classified correctly after the epoch.";
        test_skipped: Option<i64>, "examples", "Test examples that could not be read; loss and accuracy cover the others.";
        test_time_s: Option<f64>, "s", "Classifying the test examples; not part of the epoch's time.";
        prepare_time_s: Option<f64>, "s", "Until the visit's first step: parameters, memory, workers.";
        cpu_clock_hz: Option<f64>, "Hz", "Mean frequency of the CPU's cores, read after the epoch.";
        temperature_c: Option<f64>, "degrees C", "The temperature of the GPU or of the CPU package.";
        memory_used_bytes: Option<i64>, "bytes", "Memory of this process on a CPU, read after the epoch.";
        counters: CounterValues, "", "What was counted during the epoch.";
        qualified: Option<bool>, "", "Whether the step, with the algorithms of this batch size, passed a comparison with a reference on this machine before; null if the engine is not checked.";
    }
}

table! {
    /// One training step of an epoch: a row of `batches.parquet`.
    BatchRow {
        cell: i64, "", "The cell's number in the plan.";
        visit: i64, "", "The place of the visit in the whole run.";
        epoch: i64, "", "The epoch of the visit, from 0.";
        warmup: bool, "", "As in epochs.parquet.";
        step: i64, "", "The place of the step in its epoch, from 0.";
        examples: i64, "examples", "Examples of the batch.";
        step_time_s: Option<f64>, "s", "The training step; null for an engine that feeds itself.";
        wait_time_s: Option<f64>, "s", "Waiting for the batch, likewise.";
        loss: Option<f64>, "", "The loss before the update.";
    }
}

on_shelf! {
    TrainingRow: Training, 0, visit;
    BatchRow: Training, 1, visit;
}
