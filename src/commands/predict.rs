//! `batchstep predict`: what a spec would take, from a database of measured steps.

use std::path::Path;

use batchstep::chart::{self, chart_data};
use batchstep::error::{Error, Result};
use batchstep::predict::database::Database;
use batchstep::predict::model::cost::{Job, Limits};
use batchstep::predict::{self, Devices, PredictedCells, priced};
use batchstep::report::{self, Predictions, Style};
use batchstep::spec::Experiment;
use batchstep::spec::prices::Prices;

use super::{Exit, print, seconds_of};
use crate::cli::{Form, PredictArgs};

pub fn predict(args: &PredictArgs) -> Result<Exit> {
    let experiment = Experiment::read(&args.spec)?;
    let (job, limits) = (job(args)?, limits(args)?);
    let prices = args.prices.as_deref().map(Prices::read).transpose()?;
    if limits.usd.is_some() && prices.is_none() {
        return Err(Error::spec("a budget needs prices")
            .at("--budget")
            .hint("name a file of prices with `--prices FILE`; experiments/predict/prices.toml is an example"));
    }
    let is_limited = limits != Limits::default();
    if is_limited && job.is_none() {
        return Err(Error::spec("a budget or a deadline applies to a whole training")
            .at(if limits.usd.is_some() { "--budget" } else { "--deadline" })
            .hint("say how long it is: `--examples N --epochs E`"));
    }
    let database = Database::open(&args.from)?;
    let devices = match &args.device {
        Some(device) => Devices::Named(device.clone()),
        None if is_limited => Devices::All,
        None => Devices::Measured,
    };
    let PredictedCells { rows, mut unknown } = predict::answer(&database, &experiment, &devices)?;
    let rows = priced::priced(rows, job, prices.as_ref());
    unknown.extend(without_price(&rows, args.prices.as_deref()));
    let choice = if is_limited { priced::choice(&rows, limits) } else { None };
    let prices_read = prices.as_ref().map(|prices| prices.read.as_str());
    let found = Predictions { name: &experiment.name, rows: &rows, unknown: &unknown, limits, choice, prices_read };
    if let Some(path) = &args.chart {
        chart::write(&chart::Paper::default(), &chart_data::prediction(&experiment.name, &rows), path)?;
    }
    match args.format {
        Form::Json => print(&format!("{:#}\n", report::predictions_json(&found))),
        Form::Table => print(&report::predictions(&found, args.all, &Style::of_terminal())),
    }
    Ok(if unknown.is_empty() { Exit::Done } else { Exit::Warned })
}

fn job(args: &PredictArgs) -> Result<Option<Job>> {
    match (args.examples, args.epochs) {
        (None, None) => Ok(None),
        (Some(examples), epochs) if examples > 0 && epochs != Some(0) => {
            Ok(Some(Job { examples: examples as f64, epochs: epochs.unwrap_or(1) as f64 }))
        }
        (None, Some(_)) => Err(Error::spec("epochs of how many examples?").at("--epochs").hint("add `--examples N`")),
        _ => Err(Error::spec("a training has at least one example and one epoch").at("--examples, --epochs")),
    }
}

fn limits(args: &PredictArgs) -> Result<Limits> {
    let seconds = args.deadline.as_deref().map(|text| seconds_of(text, "time", "--deadline", "90s, 25min or 12h"));
    if args.budget.is_some_and(|usd| !(usd > 0.0 && usd.is_finite())) {
        return Err(Error::spec("a budget must be more than 0").at("--budget").hint("in US dollars, for example 25"));
    }
    Ok(Limits { usd: args.budget, seconds: seconds.transpose()? })
}

/// The devices without an offer, in a sentence each.
fn without_price(rows: &[priced::Priced], prices: Option<&Path>) -> Vec<String> {
    let Some(path) = prices else { return Vec::new() };
    let mut devices: Vec<&str> =
        rows.iter().filter(|priced| priced.offer.is_none()).map(|priced| priced.row.device.as_str()).collect();
    devices.dedup();
    let sentence = |device: &str| format!("{} has no offer for {device}: add an [[offer]] for it", path.display());
    devices.into_iter().map(sentence).collect()
}
