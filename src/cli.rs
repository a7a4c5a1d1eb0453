//! The command-line interface.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Finds, proves and explains the batch sizes at which a training step suddenly gets slower.
///
/// Results go to stdout, progress and warnings to stderr. Exit codes: 0 success; 1 success, with warnings that put the
/// result in doubt; 2 failure.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run experiment specs: measure, store the data, find the jumps and draw the charts
    Run(RunArgs),
    /// Find the jumps in a run directory, or in any Parquet or CSV file with a size and a time or rate column
    Jumps(JumpsArgs),
    /// Draw the charts from stored data
    Plot(PlotArgs),
    /// Compare two runs cell by cell (SAME, FASTER, SLOWER or AMBIGUOUS), or the engines of one run
    Compare(CompareArgs),
    /// Explain the jumps of a run by the mechanisms that predict a step there, or forecast a network's from published kernel times
    Explain(ExplainArgs),
    /// Show the hardware and libraries that were found, and how to install what is missing
    Doctor(DoctorArgs),
    /// Check every operator and every network against the reference in double precision
    Selftest(SelftestArgs),
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Experiment specs (TOML)
    #[arg(required = true, value_name = "SPEC")]
    pub specs: Vec<PathBuf>,
    /// Device to run on: auto, cpu, cuda:0, ...
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Run directory [default: results/<name>]; with several specs, the parent folder of their run directories
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue a run that was interrupted or killed
    #[arg(long)]
    pub resume: bool,
    /// Print the resolved spec and the plan without running anything
    #[arg(long)]
    pub dry_run: bool,
    /// Seed, instead of the one in the spec
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Time limit, instead of the one in the spec: 90s, 25min, 2h
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// For a training: also write the results in the JSON format of hyperfine's `--export-json`
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Smallest jump to look for, instead of the one in the spec: 1%, 5%
    #[arg(long, value_name = "SHARE")]
    pub smallest_jump: Option<String>,
    /// Check what an engine computes before timing it: auto (batchstep's engine on a GPU), always (others too), never
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Qualify::Auto, hide_possible_values = true)]
    pub qualify: Qualify,
}

/// Which engines are checked before they are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Qualify {
    Auto,
    Always,
    Never,
}

/// The columns to use.
#[derive(Debug, Args)]
pub struct ColumnArgs {
    /// Column with the batch size, or another size: tokens, a matrix's side [default: found by name]
    #[arg(long, value_name = "COL")]
    pub x: Option<String>,
    /// Column with the time, or a rate such as GB/s [default: found by name]
    #[arg(long, value_name = "COL")]
    pub y: Option<String>,
    /// Whether that column holds times or rates; of a rate, a fall is slower [default: by its name]
    #[arg(long, value_enum, value_name = "KIND")]
    pub y_kind: Option<Values>,
    /// Columns that split the data into series [default: the model, and whatever else varies]
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub group: Option<Vec<String>>,
}

/// What the y column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Values {
    Time,
    Rate,
}

#[derive(Debug, Args)]
pub struct JumpsArgs {
    /// Run directories, Parquet files, CSV files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Method for finding jumps; all but `ours` are baselines for comparison
    #[arg(long, value_enum, default_value_t = Method::Ours)]
    pub method: Method,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Jumps, kinks and periods, distinguished from curvature, drift and outliers
    Ours,
    /// First differences that are outliers among all first differences
    Differences,
    /// Mean-shift PELT on the first differences
    Pelt,
    /// E-divisive on the medians after subtracting a straight line
    EDivisive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    Table,
    Json,
}

#[derive(Debug, Args)]
pub struct PlotArgs {
    /// Run directories, Parquet files, CSV files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Folder for the charts [default: the run directory, or the folder of the file]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// File format of the charts
    #[arg(long, value_enum, default_value_t = Picture::Png)]
    pub format: Picture,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    Png,
    Svg,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Baseline run
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// Run to compare with A [default: compare the engines of A with each other]
    #[arg(value_name = "B")]
    pub second: Option<PathBuf>,
    /// Exit with 1 if any cell of B is slower than in A; for one run, if any engine is faster than the first
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// A cell is SAME if the interval of its ratio lies within this margin of 1
    #[arg(long, default_value = "1%")]
    pub margin: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Slower,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Run directories
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Forecast this network from published kernel times instead, such as vgg16; needs --gpu
    #[arg(long, value_name = "NETWORK")]
    pub published: Option<String>,
    /// GPU of the forecast: its name, or a word of it, such as t4
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// The published times, as `scripts/fetch-published` writes them [default: results/published/kernels.parquet]
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Draw how devices hang together instead: the PCIe tree with the link of every hop, NUMA nodes, pairs of GPUs
    #[arg(long)]
    pub topology: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// Engine to check: auto, cpu, candle, cudnn
    #[arg(long, default_value = "auto")]
    pub engine: String,
    /// Device to check: auto, cpu, cuda:0, ...
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Run only the checks whose line contains these words, such as `resnet50`, `fp32 nhwc` or `batch 17`; may be repeated
    #[arg(long, value_name = "WORDS")]
    pub only: Vec<String>,
    /// Skip the checks whose line contains these words; may be repeated
    #[arg(long, value_name = "WORDS")]
    pub skip: Vec<String>,
}
