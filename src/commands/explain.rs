//! `batchstep explain`: the mechanisms behind the jumps of a run, or a forecast from published kernel times.

use std::path::Path;

use batchstep::analysis::mechanisms::{self, Answers, copying};
use batchstep::analysis::{Analysed, Query, analyse};
use batchstep::error::{Error, Result};
use batchstep::network::Network;
use batchstep::os::look;
use batchstep::predict::published_kernels::forecast::{Forecast, forecast};
use batchstep::predict::published_kernels::model::Assumptions;
use batchstep::predict::published_kernels::validation::{Errors, of_layers_left_out};
use batchstep::predict::published_kernels::{PATH, Published};
use batchstep::report::{self, Forecasts, Style, Warning};
use batchstep::store::files;

use super::findings::explain as causes;
use super::intervene::intervene;
use super::jumps::{DETAILS, tell_apart, warn};
use super::{Exit, print};
use crate::cli::{ExplainArgs, Form};

/// Batch sizes of a forecast: those of the study.
const LARGEST: usize = 70;

pub fn explain(args: &ExplainArgs) -> Result<Exit> {
    if args.intervene {
        return intervene(args);
    }
    match (&args.published, &args.gpu) {
        (Some(network), Some(gpu)) if args.runs.is_empty() => of_published(args, network, gpu),
        (Some(_), Some(_)) => Err(Error::spec("a forecast from published times takes no run")
            .at("--published")
            .hint("leave the run out, or explain it by itself: `batchstep explain RUN`")),
        (Some(_), None) => Err(Error::spec("no GPU is named for the forecast").at("--published").hint("add for example `--gpu t4`")),
        (None, _) if args.runs.is_empty() => Err(Error::spec("there is nothing to explain")
            .hint("name a run: `batchstep explain results/vgg16`; or ask for a forecast: `batchstep explain --published vgg16 --gpu t4`")),
        (None, Some(_)) => Err(Error::spec("a run has its own GPU").at("--gpu").hint("leave `--gpu` out, or add `--published NETWORK`")),
        (None, None) => of_runs(args),
    }
}

/// A run with all that its explanation needs.
struct ExplainedRun {
    found: Vec<Analysed>,
    answers: Vec<Answers>,
    warnings: Vec<Warning>,
}

fn of_runs(args: &ExplainArgs) -> Result<Exit> {
    let mut runs: Vec<ExplainedRun> = args.runs.iter().map(|path| read(path)).collect::<Result<_>>()?;
    // In JSON their `source` tells them apart.
    if args.format == Form::Table {
        tell_apart(&args.runs, runs.iter_mut().map(|run| &mut run.found));
    }
    let series: Vec<(&Analysed, &Answers)> = runs.iter().flat_map(|run| run.found.iter().zip(&run.answers)).collect();
    match args.format {
        Form::Json => {
            print(&format!("{:#}\n", report::explanation_json(series.into_iter())));
        }
        Form::Table => {
            let style = Style::of_terminal();
            let of = if args.details { report::explanation } else { report::brief_explanation };
            let text = |(found, answers)| of(found, answers).render(&style);
            print(&series.into_iter().map(text).collect::<Vec<_>>().join("\n"));
            if !args.details {
                print(DETAILS);
            }
        }
    }
    Ok(warn(runs.iter().flat_map(|run| &run.warnings)))
}

fn read(path: &Path) -> Result<ExplainedRun> {
    if !look::is_file(&path.join(files::LAYERS))? {
        let hint = "give the folder that `batchstep run` wrote, once the run has ended; `layers = true` in [measure] times the layers as well";
        let what = "there is no layers.parquet, and without layers no mechanism can be named";
        return Err(Error::data(what).at(path.display().to_string()).hint(hint));
    }
    let found = analyse(path, &Query::default(), None)?;
    let answers = mechanisms::of_run(path, &found, &causes(path, &found))?;
    let warnings = report::warnings(&found, report::kept_warnings(path)?);
    Ok(ExplainedRun { found, answers, warnings })
}

fn of_published(args: &ExplainArgs, network: &str, gpu: &str) -> Result<Exit> {
    let (input, classes) = Network::default_input(network).map_err(|error| error.at("--published"))?;
    let network = Network::by_name(network, input, classes)?;
    let path = args.data.as_deref().unwrap_or(Path::new(PATH));
    let published = Published::read(path)?;
    let gpu = published.find(gpu).map_err(|error| error.at("--gpu"))?;
    let with = |assumed| -> Result<Forecast> { forecast(&published, gpu, &network, LARGEST, assumed) };
    let full = with(Assumptions::BOTH)?;
    let without_padding = with(Assumptions { padding: false, ..Assumptions::BOTH })?;
    let without_rounds = with(Assumptions { rounds: false, ..Assumptions::BOTH })?;
    let validated = of_layers_left_out(&published, gpu, Assumptions::BOTH);
    let errors = Errors::of(validated.iter().map(|prediction| prediction.error));
    let forecasts = Forecasts {
        full: &full,
        without_padding: &without_padding,
        without_rounds: &without_rounds,
        image_bytes: copying::example_bytes(&network),
        errors,
    };
    match args.format {
        Form::Json => print(&format!("{:#}\n", report::forecast_json(&forecasts))),
        Form::Table => print(&report::forecast(&forecasts, &Style::of_terminal())),
    }
    Ok(Exit::Done)
}
