//! The tables of a database of runs: a row for each run, cell and layer, and for kernels that others measured.

use super::axis_values::AxisValues;
use super::record::table;
use super::schema::StopReason;

/// The version of the tables below. A reader refuses another one.
pub const DATABASE_VERSION: u32 = 2;

table! {
    /// One run: a row of `runs/device=.../runs.parquet`.
    CollectedRun {
        run_id: String, "", "The run: name, start time, process, a random number.";
        name: String, "", "The name of its spec.";
        source: String, "", "Who measured: batchstep, or where the numbers were published.";
        licence: Option<String>, "", "Of published numbers.";
        digest: String, "", "Of the files it was collected from; the same run collected twice has the same.";
        schema_version: i64, "", "Of the run's tables.";
        cells: i64, "", "Cells that were collected for this device.";
        batchstep: Option<String>, "", "The version that measured.";
        started: Option<String>, "", "UTC.";
        device_name: String, "", "The name that the device reports.";
        cores: Option<i64>, "", "Processor cores that the run may use.";
        os: Option<String>, "", "The operating system.";
        driver: Option<String>, "", "The GPU's driver.";
        peak_flops_per_s: Option<f64>, "FLOP/s", "The highest measured rate of a large matrix product.";
        peak_bytes_per_s: Option<f64>, "bytes/s", "The highest measured rate of a plain copy.";
        spec: String, "", "The spec as resolved (TOML).";
        environment: String, "", "The whole environment (JSON).";
    }
}

table! {
    /// The step time of one cell in one run: a row of `cells/device=.../network=.../cells.parquet`.
    CollectedCell {
        run_id: String, "", "The run.";
        source: String, "", "Who measured.";
        licence: Option<String>, "", "Of published numbers.";
        engine: String, "", "What executed the step, by its name in the spec.";
        device_name: String, "", "The name that the device reports.";
        model: String, "", "The network's name.";
        network_id: String, "", "A hash of its layers: two networks with the same are the same.";
        input: String, "", "The shape of one example.";
        outputs: i64, "", "Outputs for one example.";
        parameters: i64, "", "Scalars that are trained.";
        axes: AxisValues, "", "The settings in force, a column for each axis.";
        batch_size: i64, "examples", "The batch size.";
        median_s: Option<f64>, "s", "The step time: median of the blocks' medians; null where there was none.";
        low_s: Option<f64>, "s", "Lower end of its 95 % interval within the run.";
        high_s: Option<f64>, "s", "Upper end.";
        fastest_s: Option<f64>, "s", "Median over its visits of the fastest step of each: what other programs disturb least.";
        blocks: i64, "", "Visits that counted.";
        steps: i64, "", "Steps that counted.";
        stop_reason: StopReason, "", "converged, budget, out_of_memory, failed.";
        power_w: Option<f64>, "W", "Mean power drawn by the device beside the steps.";
        pcie_link_width: Option<i64>, "lanes", "In force.";
        pcie_link_generation: Option<i64>, "", "In force.";
        searched: bool, "", "Whether jumps were looked for in the run; if not, the columns below say nothing.";
        jump_s: Option<f64>, "s", "Size of the jump after this batch size; null where there is none.";
        jump_low_s: Option<f64>, "s", "Lower end of its interval.";
        jump_high_s: Option<f64>, "s", "Upper end.";
        jump_after_low: Option<i64>, "examples", "The jump is after one of the batch sizes from here";
        jump_after_high: Option<i64>, "examples", "to here.";
        kink_before_s: Option<f64>, "s/example", "Slope before a kink at this batch size; null where there is none.";
        kink_after_s: Option<f64>, "s/example", "Slope after it.";
        period: Option<i64>, "examples", "The common distance of the series' jumps, where one was proven.";
    }
}

table! {
    /// One layer of a cell in one direction: a row of `layers/device=.../network=.../layers.parquet`. If several runs have
    /// the same cell, one of them is kept, with measured times if any has them.
    CollectedLayer {
        run_id: String, "", "The run.";
        engine: String, "", "The engine that executed it.";
        model: String, "", "The network's name.";
        network_id: String, "", "As in the cells.";
        axes: AxisValues, "", "The settings in force, a column for each axis.";
        batch_size: i64, "examples", "The batch size.";
        layer: String, "", "The layer's name in the network.";
        operation: String, "", "conv2d, dense, ...";
        direction: String, "", "forward, backward_data, backward_weights.";
        algorithm: Option<String>, "", "The library's name for the algorithm.";
        math_mode: Option<String>, "", "The arithmetic in force.";
        workspace_bytes: Option<i64>, "bytes", "Scratch memory of the algorithm.";
        flops: f64, "FLOP", "Arithmetic of the whole batch; a multiply-add is two.";
        bytes: f64, "bytes", "Least memory traffic.";
        terms: f64, "", "Terms of each sum that the layer computes: the places of a filter, or the features that go in; 1 of a layer without weights.";
        channels: f64, "", "Channels, or features, that come out.";
        places: f64, "", "Places of each channel.";
        device_time_s: Option<f64>, "s", "Time on the device, where measured.";
        kernel: Option<String>, "", "The kernel that does most of its work on a GPU.";
        waves: Option<f64>, "", "Its tiles over those that the GPU works on at a time.";
    }
}

table! {
    /// A GPU kernel that others measured and published: a row of `kernels/device=.../kernels.parquet`.
    CollectedKernel {
        source: String, "", "Where it was published.";
        licence: String, "", "The first line of the licence.";
        device_name: String, "", "The GPU as its driver names it.";
        multiprocessors: i64, "", "Streaming multiprocessors.";
        flops_per_s: f64, "FLOP/s", "The manufacturer's rate in float32.";
        bytes_per_s: f64, "bytes/s", "The manufacturer's rate of the memory.";
        operation: String, "", "conv2d, dense.";
        batch_size: i64, "examples", "The batch size.";
        in_channels: i64, "", "Channels, or features, that go in.";
        out_channels: i64, "", "Channels, or features, that come out.";
        height: i64, "", "Of the map.";
        width: i64, "", "Of the map.";
        kernel_size: i64, "", "Side of the window.";
        stride: i64, "", "Of the window.";
        padding: i64, "", "On each side.";
        kernel: String, "", "The kernel that does most of the work.";
        kernels: String, "", "All kernels of the call.";
        grid_x: i64, "thread blocks", "Of the kernel's launch.";
        grid_y: i64, "thread blocks", "Of the kernel's launch.";
        grid_z: i64, "thread blocks", "Of the kernel's launch.";
        time_s: f64, "s", "Its time.";
    }
}

table! {
    /// A training step that others measured and published: a row of `steps/device=.../steps.parquet`.
    CollectedStep {
        source: String, "", "Where it was published.";
        licence: String, "", "Its licence.";
        device_name: String, "", "The GPU as its driver names it.";
        flops_per_s: f64, "FLOP/s", "The manufacturer's rate in this precision.";
        bytes_per_s: f64, "bytes/s", "The manufacturer's rate of the memory.";
        model: String, "", "The network, by its name in a spec.";
        framework: String, "", "What computed it.";
        precision: String, "", "As in a spec.";
        batch_size: i64, "examples", "The batch size.";
        step_time_s: f64, "s", "The batch size over the published examples in a second.";
    }
}
