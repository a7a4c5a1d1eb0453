//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Finds, proves and explains the batch sizes at which a training step suddenly gets slower.
///
/// Results go to stdout, progress and warnings to stderr. Exit codes: 0 done; 1 done, with warnings that touch the result;
/// 2 failed.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run experiment specs: sweep, store, find the jumps, draw the charts
    Run(RunArgs),
    /// Find the jumps in a run directory, or in any Parquet or CSV file with a batch-size and a time column
    Jumps(JumpsArgs),
    /// Draw the charts again, from the stored data alone
    Plot(PlotArgs),
    /// Compare two runs, cell by cell: SAME, FASTER, SLOWER, AMBIGUOUS; or the engines of one run
    Compare(CompareArgs),
    /// Show what this machine has, and how to get what is missing
    Doctor(DoctorArgs),
    /// Check every operator and every network against the reference in double precision
    Selftest(SelftestArgs),
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Experiment specs (TOML)
    #[arg(required = true, value_name = "SPEC")]
    pub specs: Vec<PathBuf>,
    /// Where to run: auto, cpu, cuda:0, ...
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// The run directory [default: results/<name>]; with several specs, the folder that holds theirs
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue a run that was interrupted or killed
    #[arg(long)]
    pub resume: bool,
    /// Print the resolved spec and the plan, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take this seed in place of the spec's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Which columns are what.
#[derive(Debug, Args)]
pub struct ColumnArgs {
    /// The column of the batch size [default: found by name]
    #[arg(long, value_name = "COL")]
    pub x: Option<String>,
    /// The column of the time [default: found by name]
    #[arg(long, value_name = "COL")]
    pub y: Option<String>,
    /// Columns whose values make a series each [default: the model, and whatever else varies]
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub group: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub struct JumpsArgs {
    /// Run directories, Parquet files, CSV files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// How jumps are looked for; all but `ours` are for comparison
    #[arg(long, value_enum, default_value_t = Method::Ours)]
    pub method: Method,
    /// The form of the answer
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Jumps, kinks and periods, told from curves, drift and bad points
    Ours,
    /// First differences that stand out of all others
    Differences,
    /// Mean-shift PELT on the first differences
    Pelt,
    /// E-divisive on the medians less a straight line
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
    /// Where the charts go [default: the run directory; for a file, beside it]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The form of the charts
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
    /// The run to compare with
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// The run that is judged [default: A's own engines, side by side]
    #[arg(value_name = "B")]
    pub second: Option<PathBuf>,
    /// Exit with 1 where any cell of B is slower; of one run, where any other engine is faster than the first
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// Cells are the SAME where their ratio is proven to lie this near to 1
    #[arg(long, default_value = "1%")]
    pub margin: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Slower,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The form of the answer
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// What to check: auto, cpu, cuda:0, ...
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Only the checks whose line has these words: `resnet50`, `fp32 nhwc`, `batch 17`; may be given several times
    #[arg(long, value_name = "WORDS")]
    pub only: Vec<String>,
    /// Leave out the checks whose line has these words
    #[arg(long, value_name = "WORDS")]
    pub skip: Vec<String>,
}
