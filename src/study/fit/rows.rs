//! The tables of a study of fits.

use crate::store::record::table;
use crate::store::{AxisValues, Status, on_shelf};

table! {
    /// The state of a fit after a number of updates: a row of `fit.parquet`.
    FitRow {
        run_id: String, "", "The run: name, start time, process, a random number.";
        engine: String, "", "What executed the training, by its name in the spec.";
        device: String, "", "cpu, cuda:0, ...";
        device_name: String, "", "The name that the device reports.";
        model: String, "", "The network.";
        axes: AxisValues, "", "The settings in force, a column for each axis.";
        batch_size: i64, "examples", "Points of the surface; all are in each batch.";
        cell: i64, "", "The cell's number in the plan.";
        visit: i64, "", "The place of the fit in the whole run, from 0.";
        epoch: i64, "", "Updates before this row, one for each epoch.";
        status: Status, "", "ok, nan_loss, out_of_memory, failed.";
        error: Option<String>, "", "Why it failed.";
        loss: Option<f64>, "", "Mean squared error after these updates.";
        step_time_s: Option<f64>, "s", "The step that measured this loss and made the next update, by the host's clock.";
        prepare_time_s: Option<f64>, "s", "Until the first step: parameters, data, memory, compilation, search for algorithms.";
        qualified: Option<bool>, "", "Whether the step, with the algorithms of this batch size, passed a comparison with a reference on this machine before; null if the engine is not checked.";
    }
}

table! {
    /// One point of a fitted surface: a row of `surface.parquet`.
    SurfaceRow {
        cell: i64, "", "The cell's number in the plan.";
        visit: i64, "", "The place of the fit in the whole run, from 0.";
        row: i64, "", "The point's row in the grid, from 0.";
        column: i64, "", "The point's column in the grid, from 0.";
        x: f64, "", "The point's place.";
        y: f64, "", "The point's place.";
        height: f64, "", "The height of the surface there, which the network was trained on.";
        fitted: f64, "", "The network's output there after the last update.";
    }
}

on_shelf! {
    FitRow: Fit, 0, visit;
    SurfaceRow: Fit, 1, visit;
}
