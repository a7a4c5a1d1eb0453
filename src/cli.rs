//! The command-line interface.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// The commands in the order in which a person needs them; clap knows no groups of subcommands.
const HELP: &str = "\
{about}

To begin with:
  batchstep run quickstart                      measure three dense layers
  batchstep run my_step.py --batch-size 1..=64  measure a step of your own

Usage: {usage}

Measure
  run       Measure: find the jumps, draw the charts, write the page
  doctor    Show this machine's hardware and libraries, and what is missing
  selftest  Check every operator and network against a reference
  specs     List the experiments that the program has
Look
  jumps     Find the jumps in a run, or in a table of sizes and times
  explain   Explain the jumps of a run
  plot      Draw the charts again
  report    Write one page about runs or tables
Decide
  advise    Say which batch size to use, and which to avoid
  compare   Say what became slower or faster between runs
  collect   Gather runs into a database of measured steps
  predict   Predict time and cost from that database
Many machines
  submit    Run an experiment on several machines through a scheduler
  status    Show how far runs have come
  merge     Put several runs of one experiment into one

Options:
{options}

Results go to stdout, progress and warnings to stderr. Exit codes: 0 success;
1 success, with warnings that put the result in doubt (of what reads stored
runs: only that a run is too early, or that there is no advice); 2 failure.
";

/// Finds, proves and explains the batch sizes at which a step gets slower.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, help_template = HELP)]
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
    /// Say which batch size to use and which to avoid, by the examples per second that each one was shown to reach
    Advise(AdviseArgs),
    /// Put the shards of an experiment, or the same one from several machines, into one run
    Merge(MergeArgs),
    /// Show how far runs have come, from their files
    Status(StatusArgs),
    /// Run an experiment on several machines through a scheduler: a job array with a shard for each
    Submit(SubmitArgs),
    /// Draw the charts from stored data
    Plot(PlotArgs),
    /// Write one self-contained HTML page about one or several runs or files: the answer, interactive charts, the reasons, how to repeat it
    Report(ReportArgs),
    /// Gather runs into one Parquet data set, a database of measured steps
    Collect(CollectArgs),
    /// Predict the step times, the epochs and the cost of a spec from a database of measured steps
    Predict(PredictArgs),
    /// Compare runs cell by cell with the first (SAME, FASTER, SLOWER or AMBIGUOUS; with one run a side DIFFERS in place of FASTER and SLOWER), or the engines of one run
    Compare(CompareArgs),
    /// Explain the jumps of a run by the mechanisms that predict a step there, or forecast a network's from published kernel times
    Explain(ExplainArgs),
    /// Show the hardware and libraries that were found, and how to install what is missing
    Doctor(DoctorArgs),
    /// Check every operator and every network against the reference in double precision
    Selftest(SelftestArgs),
    /// List the experiment specs that the program has, or print one
    Specs(SpecsArgs),
    /// Print the completions of a shell
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man(ManArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep run experiments/quickstart.toml\n      measure for a minute, then results/quickstart/report.html\n  batchstep run experiments/vgg16.toml --time 25min --resume\n      go on with a run that was interrupted"
)]
pub struct RunArgs {
    /// Experiment specs (TOML files), names of the program's own (`batchstep specs`), or a step of your own (`my_step.py`)
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
    /// Measure one part of the plan, such as 3/8: the third of eight machines; `batchstep merge` puts them together
    #[arg(long, value_name = "K/N")]
    pub shard: Option<String>,
    /// What the shards divide: blocks (each measures every cell), or cells (each has series of its own) [default: blocks]
    #[arg(long, value_parser = SHARD_BY, value_name = "WHAT", requires = "shard", hide_possible_values = true)]
    pub shard_by: Option<String>,
    /// The name of this machine in the data [default: a number that identifies its host name, and the device]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// With --resume: go on even if another process still holds the run; that process stops at its next visit
    #[arg(long, requires = "resume")]
    pub take_over: bool,
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
    #[arg(long, value_parser = ["auto", "always", "never"], value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub qualify: String,
    /// End with everything that is known about the jumps, not only with the answer
    #[arg(long)]
    pub details: bool,
    // Its heading holds for all that follows.
    #[command(flatten)]
    pub own: OwnArgs,
}

/// What a step of one's own is given.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "For a step of your own (FILE.py)")]
pub struct OwnArgs {
    /// Batch sizes: 1..=64, "1..=64 step 4", or 8,16,32 [default: 1..=70]
    #[arg(long, value_name = "SIZES")]
    pub batch_size: Option<String>,
    /// Values of a further argument of step(); several are measured side by side
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub set: Vec<String>,
    /// The argument that is swept in place of the batch size; `--set` gives its values
    #[arg(long, value_name = "NAME")]
    pub x: Option<String>,
    /// Values of an environment variable, each measured in a process of its own; an empty value leaves it unset
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub env: Vec<String>,
    /// Run one visit at this size, show its output and its time, and store nothing
    #[arg(
        long = "try",
        value_name = "SIZE",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..),
        conflicts_with_all = ["dry_run", "out", "resume", "shard", "node", "seed", "time", "export_json", "smallest_jump", "qualify", "details"]
    )]
    pub try_size: Option<usize>,
    /// Open files of the process that holds the step, which `batchstep.sweep` in Python names
    #[arg(long, value_name = "R,W", hide = true)]
    pub worker_fds: Option<String>,
}

impl OwnArgs {
    pub fn is_given(&self) -> bool {
        let Self { batch_size, set, x, env, try_size, worker_fds: _ } = self;
        batch_size.is_some() || !set.is_empty() || x.is_some() || !env.is_empty() || try_size.is_some()
    }
}

const SHARD_BY: [&str; 2] = ["blocks", "cells"];

/// The columns to use.
#[derive(Debug, Args)]
pub struct ColumnArgs {
    /// Column with the batch size, or another size: tokens, a matrix's side [default: found by name]
    #[arg(long, value_name = "COL")]
    pub x: Option<String>,
    /// Column with the time, or a rate such as GB/s; several make series of their own [default: found by name]
    #[arg(long, value_name = "COL,...")]
    pub y: Option<String>,
    /// Whether that column contains times or rates; a rate that falls is slower [default: by its name]
    #[arg(long, value_parser = ["time", "rate"], value_name = "KIND")]
    pub y_kind: Option<String>,
    /// Columns that split the data into series [default: the model, and whatever else varies]
    #[arg(long, value_name = "COL,...", value_delimiter = ',')]
    pub group: Option<Vec<String>>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep jumps results/vgg16\n      the jumps of a run\n  batchstep jumps mine.csv --x batch --y time_ms --group gpu\n      of a file that another program wrote"
)]
pub struct JumpsArgs {
    /// Run directories, Parquet files, CSV files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Method for finding jumps; all but `ours` are baselines for comparison
    #[arg(long, value_enum, default_value_t = Method::Ours)]
    pub method: Method,
    /// Also print how the jumps were found, how far to trust them, and the layers behind them
    #[arg(long)]
    pub details: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep advise results/vgg16\n      of a run\n  batchstep advise mine.csv --x batch --y time_ms --latency 50ms\n      of a file that another program wrote, for a server"
)]
pub struct AdviseArgs {
    /// Run directory, Parquet file, CSV file
    pub path: PathBuf,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Share of the best examples per second that a smaller size may lose
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    pub within: String,
    /// Longest step, for a server: only sizes that keep to it are advised
    #[arg(long, value_name = "TIME")]
    pub latency: Option<String>,
    /// Work of a step, as a formula in the name of the size column, such as 'N^3'; needed where twice the size is not twice the work [default: the size]
    #[arg(long, value_name = "FORMULA")]
    pub work: Option<String>,
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
#[command(
    after_help = "Examples:\n  batchstep collect results/* --into results/database\n      gather all runs\n  batchstep collect results/published/kernels.parquet experiments/predict/published_steps.csv --into results/database\n      add kernels and training steps that others published"
)]
pub struct CollectArgs {
    /// Run directories, folders of run directories, or the table that `scripts/fetch-published` writes
    #[arg(required = true, value_name = "RUN")]
    pub paths: Vec<PathBuf>,
    /// The database: a folder, which is made where it is missing
    #[arg(long, value_name = "DIR")]
    pub into: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep predict experiments/vgg16.toml\n      step times at each batch size of the spec\n  batchstep predict experiments/vgg16.toml --examples 1281167 --epochs 90 --prices experiments/predict/prices.toml --budget 200\n      what a training costs, and the device and batch size to take"
)]
pub struct PredictArgs {
    /// Experiment spec (TOML): its networks, batch sizes, engine and settings
    pub spec: PathBuf,
    /// The database, as `batchstep collect` makes it
    #[arg(long, value_name = "DIR", default_value = "results/database")]
    pub from: PathBuf,
    /// A device of the database, or a word of its name [default: all with measured steps; with a limit, those with published kernels too]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Examples of one epoch
    #[arg(long, value_name = "N")]
    pub examples: Option<u64>,
    /// Epochs of the training [default: 1]
    #[arg(long, value_name = "E")]
    pub epochs: Option<u64>,
    /// Prices of devices (TOML); experiments/predict/prices.toml is an example
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Also draw what an example costs at each batch size: a file that ends in .png, .svg or .pdf
    #[arg(long, value_name = "FILE")]
    pub chart: Option<PathBuf>,
    /// The most that the training may cost, in US dollars
    #[arg(long, value_name = "USD")]
    pub budget: Option<f64>,
    /// The longest that the training may take: 90s, 25min, 12h
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
    /// List every batch size, not only those to choose among
    #[arg(long)]
    pub all: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep merge results/vgg16 results/vgg16.shard-*\n      the shards of an experiment, also while they are under way\n  batchstep merge results/gpus a100/vgg16 h100/vgg16\n      one experiment from several GPUs"
)]
pub struct MergeArgs {
    /// Folder for the result; an earlier merge there is replaced
    pub out: PathBuf,
    /// Run directories of one spec
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Only merge the tables, without looking for jumps
    #[arg(long)]
    pub no_analysis: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep status results/vgg16.shards/shard-*-of-8\n      how far each shard is\n  batchstep status results/vgg16 --format json\n      for a program"
)]
pub struct StatusArgs {
    /// Run directories; one that does not exist yet is shown as waiting
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep submit --slurm experiments/vgg16.toml --nodes 8 --gpus 1\n      eight shards, each on one GPU\n  batchstep submit --slurm experiments/vgg16.toml --nodes 8 -- --partition=gpu --exclusive\n      what follows -- is for sbatch"
)]
pub struct SubmitArgs {
    /// Experiment spec (TOML)
    pub spec: PathBuf,
    /// Submit to Slurm
    #[arg(long, required = true)]
    pub slurm: bool,
    /// Number of shards, each a task of its own
    #[arg(long, value_name = "N")]
    pub nodes: usize,
    /// GPUs per task
    #[arg(long, value_name = "G", default_value_t = 0)]
    pub gpus: usize,
    /// What the shards divide: blocks (each measures every cell), or cells (each has series of its own) [default: blocks]
    #[arg(long, value_parser = SHARD_BY, value_name = "WHAT", hide_possible_values = true)]
    pub shard_by: Option<String>,
    /// Folder of the shards, which every machine has to see [default: results/<name>.shards]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the batch script and do not submit it
    #[arg(long)]
    pub dry_run: bool,
    /// Further arguments for sbatch
    #[arg(last = true, value_name = "ARGUMENT")]
    pub sbatch: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep plot results/vgg16\n      draw the charts again\n  batchstep plot results/t4 results/h100 --out charts\n      also both in one picture, charts/runs.png"
)]
pub struct PlotArgs {
    /// Run directories, Parquet files, CSV files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Folder for the charts [default: the run directory, or the folder of the file; for the picture of several runs, the current folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// File format of the charts
    #[arg(long, value_parser = ["png", "svg", "pdf"], default_value = "png")]
    pub format: String,
    /// For a paper: the width of its column, such as 3.3in or 84mm. Text becomes 7 pt, and what belongs into the caption is left out
    #[arg(long, value_name = "LENGTH")]
    pub width: Option<String>,
    /// Title of the charts, in place of what was measured; with `--width` there is none without it
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep report results/vgg16\n      write results/vgg16/report.html\n  batchstep report results/a100 results/h100 --out gpus.html\n      several runs in one page"
)]
pub struct ReportArgs {
    /// Run directories, Parquet files, CSV files
    #[arg(required = true, value_name = "RUN")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// The page [default: report.html in the run directory; for several runs, in the current folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep compare --in-turns before.toml after.toml --fail-on slower\n      for CI: measures both in turns, exit code 1 if any cell is slower (two builds: --program OLD --program NEW)\n  batchstep compare old1 old2 old3 --against new1 new2 new3\n      several runs of each of two versions, measured by turns"
)]
pub struct CompareArgs {
    /// Baseline run
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// Runs to compare with A; several are also compared with each other [default: compare the engines of A, or two columns of a table, with each other]
    #[arg(value_name = "B")]
    pub others: Vec<PathBuf>,
    /// Several runs of another version, measured by turns with those before it: two sides are compared, and runs are the unit. At least two a side, better three
    #[arg(long, value_name = "B", num_args = 1.., conflicts_with = "in_turns")]
    pub against: Vec<PathBuf>,
    /// Exit with 1 if any cell of B is slower than in A (with one run a side, if it DIFFERS and takes longer, whatever the cause; of several, also if all cells together are slower), and with 2 if a cell of A is missing in B or none can be judged; for one run, with 1 if any engine is
    /// faster than the first
    #[arg(long, value_parser = ["slower"], value_name = "WHAT")]
    pub fail_on: Option<String>,
    /// List every cell, not only those that differ
    #[arg(long)]
    pub all: bool,
    /// A cell is SAME if the interval of its ratio, corrected for the number of cells, lies within this margin of 1. It is no tolerance: a proven slowdown
    /// of 4 % that may be 6 % is SLOWER with 5%
    #[arg(long, default_value = "1%")]
    pub margin: String,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Output format; JSON only for two runs or sides, or two columns of a table
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
    #[command(flatten)]
    pub turns: TurnArgs,
}

/// How sides are measured in turns.
#[derive(Debug, Args)]
pub struct TurnArgs {
    /// A and B are specs: measure them in turns, round by round, and compare round by round. For tables and folders measured that way,
    /// compare blocks that have the same number
    #[arg(long, requires = "others")]
    pub in_turns: bool,
    /// Rounds; each is one run of every spec
    #[arg(long, value_name = "N", default_value_t = 8, requires = "in_turns")]
    pub rounds: u32,
    /// Time for all turns together: 90s, 25min, 2h [default: the longest `time_limit` of the specs]
    #[arg(long, value_name = "TIME", requires = "in_turns")]
    pub time: Option<String>,
    /// The batchstep program that runs the specs, such as an old and a new build: one for each spec, in order, or one for all [default: this one]
    #[arg(long, value_name = "PROGRAM", requires = "in_turns")]
    pub program: Vec<PathBuf>,
    /// Folder for the runs: those of A lie in DIR/a, those of B in DIR/b
    #[arg(long, value_name = "DIR", default_value = "results/in-turns", requires = "in_turns")]
    pub out: PathBuf,
    /// The seed of the order of the turns and of each run
    #[arg(long, value_name = "N", default_value_t = 1, requires = "in_turns")]
    pub seed: u64,
    /// A further argument for each `batchstep run`, such as `--run-arg=--device=cpu`; may be repeated
    #[arg(long = "run-arg", value_name = "ARGUMENT", allow_hyphen_values = true, requires = "in_turns")]
    pub run_args: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep explain results/vgg16\n      the mechanisms behind the jumps of a run\n  batchstep explain --published vgg16 --gpu t4\n      a forecast from published kernel times"
)]
pub struct ExplainArgs {
    /// Run directories
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Forecast this network, such as vgg16, from published kernel times instead; needs --gpu
    #[arg(long, value_name = "NETWORK")]
    pub published: Option<String>,
    /// GPU of the forecast: its name, or a word of it, such as t4
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// The published times, as `scripts/fetch-published` writes them [default: results/published/kernels.parquet]
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Measure a step of your own again beside its jump, with and without the likeliest cause, to show it
    #[arg(long, conflicts_with_all = ["published", "format", "details"])]
    pub intervene: bool,
    /// With --intervene: measure for at most this long
    #[arg(long, value_name = "TIME", default_value = "2min", requires = "intervene")]
    pub time: String,
    /// Also print the formulas, their sources, and where they predict steps that were not seen
    #[arg(long)]
    pub details: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep doctor\n      what was found, and what to install\n  batchstep doctor --format json\n      the same for a program"
)]
pub struct DoctorArgs {
    /// Draw how the devices are connected instead: the PCIe tree with the link of every hop, NUMA nodes, pairs of GPUs
    #[arg(long)]
    pub topology: bool,
    /// Print the commands that fix the findings, in order, as a shell script; none of them is run
    #[arg(long, conflicts_with_all = ["topology", "format"])]
    pub fix: bool,
    /// Write one small file for a report to the maintainers: versions, refusals, the first check that fails with its inputs; no private
    /// paths, no names of the host or the user
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "batchstep-bundle.json", conflicts_with_all = ["topology", "fix", "format"])]
    pub bundle: Option<PathBuf>,
    /// Opens and checks the GPU's engine and prints the result as one line of JSON, for `--bundle`, which runs it in a separate process
    #[arg(long, hide = true, conflicts_with_all = ["topology", "fix", "bundle"])]
    pub try_engine: bool,
    /// Opens a GPU and runs a step on it, for a run, which does so in a separate process first
    #[arg(long, value_name = "GPU", hide = true, conflicts_with_all = ["topology", "fix", "bundle", "try_engine"])]
    pub first_contact: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep selftest\n      check the engine that a run would choose\n  batchstep selftest --engine cpu --only \"resnet50\"\n      one network on one engine"
)]
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

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep specs\n      each with its question and the machine that it needs\n  batchstep specs vgg16 > mine.toml\n      a spec of your own to begin with"
)]
pub struct SpecsArgs {
    /// Print this one
    pub name: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep completions bash > ~/.local/share/bash-completion/completions/batchstep\n      for bash\n  batchstep completions zsh > ~/.zfunc/_batchstep\n      for zsh"
)]
pub struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  batchstep man ~/.local/share/man/man1\n      then: man batchstep-run\n  batchstep man man\n      into ./man"
)]
pub struct ManArgs {
    /// Folder for the pages; it is made where it is missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_lists_every_command_and_fits_into_80_columns() {
        let text = Cli::command().render_help().to_string();
        let shown = Cli::command();
        for command in shown.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            assert!(text.lines().any(|line| line.starts_with(&format!("  {name} "))), "{name}\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
