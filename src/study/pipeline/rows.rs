//! The table of a study of the input pipeline.

use crate::store::record::table;
use crate::store::{AxisValues, Status, on_shelf};

table! {
    /// One stage of one visit of a study of the input pipeline, or all stages together: a row of `pipeline.parquet`.
    PipelineRow {
        run_id: String, "", "The run: name, start time, process, a random number.";
        engine: String, "", "What executed the training step, by its name in the spec.";
        device: String, "", "cpu, cuda:0, ...";
        device_name: String, "", "The name that the device reports.";
        model: String, "", "The network.";
        axes: AxisValues, "", "The settings in force, a column for each axis.";
        storage: String, "", "The storage device that contains the images.";
        format: String, "", "raw, png, jpeg.";
        image_size: i64, "pixels", "Pixels of a side.";
        cache: String, "", "warm: in the page cache; cold: on the storage device.";
        read_method: String, "", "page_cache, direct (O_DIRECT), dropped (POSIX_FADV_DONTNEED after each read).";
        resident_share: Option<f64>, "", "Share of the files' pages in the page cache before the visit (mincore).";
        batch_size: i64, "examples", "Examples of a batch.";
        workers: i64, "", "Threads that make batches; 0: the training thread itself.";
        cell: i64, "", "The cell's number in the plan.";
        block: i64, "", "The block, from 0: a visit to every cell.";
        visit: i64, "", "The place of the visit in the whole run, from 0.";
        stage: String, "", "read, decode, transform, batch, copy, step: that stage by itself; loader: all work of the workers, by itself; loader_beside, step_beside: loader and training (copy and step) at the same time (without workers: in turn), each on its own data; loader_half, step_half: the same with half of the workers; together: all of them.";
        stage_threads: i64, "", "Threads that did this stage; for together, the workers.";
        status: Status, "", "ok, out_of_memory, failed.";
        error: Option<String>, "", "Why it failed, or why images were left out: a line for each.";
        images: i64, "examples", "Images that were processed in the measured time.";
        elapsed_s: Option<f64>, "s", "Host clock.";
        cpu_time_s: Option<f64>, "s", "Processor time meanwhile, of the stage's threads; for batch, loader and together of the whole process.";
        wait_time_s: Option<f64>, "s", "For together: the time in which the training had no batch; without workers, making the batches.";
        file_bytes: Option<i64>, "bytes", "For read: the total length of the files that were read.";
        storage_bytes: Option<i64>, "bytes", "For read and together: bytes that came from the storage device (/proc/self/io).";
        delay_time_s: Option<f64>, "s", "For read, decode and transform: the time in which a thread was ready and had no core (schedstat), the mean over the threads. For together: the time in which the training neither waited for a batch nor computed.";
        worker_delay_time_s: Option<f64>, "s", "For together: the same for a worker.";
        others_cpu_time_s: Option<f64>, "s", "For together: processor time of other processes, including a hypervisor, on the cores that this process may use (/proc/stat).";
        cores: Option<f64>, "", "Cores that this process may use.";
        skipped: i64, "examples", "For together: different images that were left out because they could not be read, including warm-up.";
        qualified: Option<bool>, "", "Whether its step passed a comparison with a reference on this machine before; null if the engine is not checked.";
    }
}

on_shelf! {
    PipelineRow: Pipeline, 0, visit;
}
