//! The meaning of a column's name: a time or a rate and its unit, or a size and what it counts.

use crate::foreign;
use crate::settings::named;

named! {
    /// Whether a larger value is slower or faster.
    #[derive(Default)]
    TimeOrRate {
        /// Larger is slower.
        #[default]
        Time = "time",
        /// Work over time: larger is faster.
        Rate = "rate",
    }
}

/// A unit that columns are given in.
#[derive(Debug, PartialEq)]
pub struct Unit {
    pub name: &'static str,
    pub kind: TimeOrRate,
    /// The unit without prefix, and how many of it one is.
    pub base: &'static str,
    pub factor: f64,
    /// How others end a column's name, in lower case, with `_` for all else.
    pub(super) endings: &'static [&'static str],
}

const fn time(name: &'static str, factor: f64, endings: &'static [&'static str]) -> Unit {
    Unit { name, kind: TimeOrRate::Time, base: "s", factor, endings }
}

const fn rate(name: &'static str, base: &'static str, factor: f64, endings: &'static [&'static str]) -> Unit {
    Unit { name, kind: TimeOrRate::Rate, base, factor, endings }
}

/// In lower case a GB/s and a Gbit/s look alike; `gbps` is read as GB/s, as programs that time kernels write it.
pub(super) const UNITS: &[Unit] = &[
    time("s", 1.0, &["s", "sec", "secs", "seconds"]),
    time("ms", 1e-3, &["ms", "msec", "milliseconds"]),
    time("us", 1e-6, &["us", "usec", "microseconds", "µs", "μs"]),
    time("ns", 1e-9, &["ns", "nsec", "nanoseconds"]),
    rate("TB/s", "B/s", 1e12, &["tbps", "tb_s", "tb_per_s", "tb_per_sec"]),
    rate("GB/s", "B/s", 1e9, &["gbps", "gb_s", "gb_per_s", "gb_per_sec", "gbytes_s", "gbytes_per_s"]),
    rate("MB/s", "B/s", 1e6, &["mbps", "mb_s", "mb_per_s", "mb_per_sec"]),
    rate("GiB/s", "B/s", 1_073_741_824.0, &["gib_s", "gibps", "gib_per_s"]),
    rate("MiB/s", "B/s", 1_048_576.0, &["mib_s", "mibps", "mib_per_s"]),
    rate("Gbit/s", "bit/s", 1e9, &["gbit_s", "gbits_s", "gbit_per_s"]),
    rate("PFLOP/s", "FLOP/s", 1e15, &["pflops", "pflop_s", "pflops_s"]),
    rate("TFLOP/s", "FLOP/s", 1e12, &["tflops", "tflop_s", "tflops_s", "tflop_per_s"]),
    rate("GFLOP/s", "FLOP/s", 1e9, &["gflops", "gflop_s", "gflops_s", "gflop_per_s"]),
    rate("MFLOP/s", "FLOP/s", 1e6, &["mflops", "mflop_s", "mflops_s"]),
    rate("images/s", "images/s", 1.0, &["images_s", "image_s", "imgs_s", "img_s", "images_sec", "img_sec"]),
    rate("samples/s", "samples/s", 1.0, &["samples_s", "sample_s", "samples_sec"]),
    rate("examples/s", "examples/s", 1.0, &["examples_s", "examples_sec"]),
    rate("tokens/s", "tokens/s", 1.0, &["tokens_s", "token_s", "tok_s", "toks_s", "tokens_sec", "tok_sec", "tps"]),
    rate("items/s", "items/s", 1.0, &["items_s", "items_sec"]),
    rate("iterations/s", "iterations/s", 1.0, &["it_s", "iter_s", "iters_s", "iterations_s"]),
    rate("steps/s", "steps/s", 1.0, &["steps_s", "steps_sec"]),
    rate("requests/s", "requests/s", 1.0, &["requests_s", "req_s", "rps", "qps"]),
    rate("frames/s", "frames/s", 1.0, &["frames_s", "fps"]),
];

/// Any item per second.
const PER_SECOND: &[&str] = &["_per_s", "_per_sec", "_per_second"];
/// Names of rates without a unit.
const RATES: &[&str] = &[
    "throughput",
    "bandwidth",
    "busbw",
    "algbw",
    "bw",
    "rate",
    "msgrate",
    "perf",
    "performance",
    "speed",
    "speedup",
    "flops",
    "flop_s",
    "tops",
    "gops",
    "mops",
    "kops",
    "ops",
    "iops",
    "nps",
    "ts",
    "mfu",
    "hfu",
    "goodput",
    "hz",
    "mpps",
];
/// Rates of other things than work.
const NO_RATES: &[&str] = &["learning_rate", "error_rate", "hit_rate", "miss_rate", "sampling_rate", "acceptance_rate"];
/// Libraries and languages of kernels.
const PROVIDERS: &[&str] = &[
    "cublas",
    "cublaslt",
    "cudnn",
    "cutlass",
    "rocblas",
    "hipblaslt",
    "triton",
    "torch",
    "pytorch",
    "naive",
    "flash",
    "fa2",
    "fa3",
    "cute",
    "tilelang",
    "liger",
    "apex",
    "xformers",
    "jax",
];
/// Words in the names of times that are not usual names of a step time.
const TIMES: &[&str] = &["time", "latency", "duration", "elapsed", "runtime", "walltime", "ttft", "tpot", "itl"];
/// Words in the names of columns that describe the scatter of others, or compare them.
const SCATTER: &[&str] = &[
    "std",
    "stddev",
    "stdev",
    "sd",
    "sem",
    "stderr",
    "var",
    "variance",
    "cv",
    "error",
    "err",
    "ratio",
    "spread",
    "ci",
    "ci95",
    "iqr",
    "mad",
    "allocated",
    "deviation",
    "speedup",
    "relative",
    "delta",
    "diff",
    "difference",
    "change",
    "improvement",
    "gain",
    "percent",
    "pct",
];

/// Words in the names of columns that hold what a model says.
const FORECASTS: &[&str] = &["forecast", "predicted", "prediction"];

/// The unit of that name.
pub fn unit(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.name == name)
}

/// The name of a column, read.
#[derive(Debug, PartialEq)]
pub struct Reading {
    /// In lower case, with `_` for all that is no letter or digit, and without the unit.
    pub stem: String,
    /// Empty where the name has none.
    pub unit: String,
    /// `None` where the name says nothing.
    pub kind: Option<TimeOrRate>,
}

impl Reading {
    /// Reads the whole name, without the prefix of W&B (`run - name`). If that says nothing, reads the text in its brackets, then the text before
    /// them, then its first word: `TFLOPS (cuBLAS)`.
    pub fn of(name: &str) -> Self {
        if let Some((_, name)) = name.rsplit_once(" - ") {
            let named = Self::of(name);
            if named.kind.is_some() || named.may_be(TimeOrRate::Time) {
                return named;
            }
        }
        let whole = Self::of_part(name);
        if whole.kind.is_some() {
            return whole;
        }
        let plain = whole.stem.clone();
        let brackets = brackets(name);
        let outside = brackets.map(|(before, _)| before);
        let front = plain.split('_').next().filter(|front| front.len() > 1 && plain.len() > front.len());
        let front = front.filter(|_| !whole.may_be(TimeOrRate::Time));
        let apart = apart(name);
        let parts = [brackets.map(|(_, inside)| inside), outside, front, Some(&apart[..])];
        let found = parts.into_iter().flatten().map(Self::of_part).find(|part| part.kind.is_some());
        let stem = outside.map_or(whole.stem, plain_of);
        match found {
            Some(part) => Self { stem, ..part },
            None => Self { stem, ..whole },
        }
    }

    fn of_part(name: &str) -> Self {
        let plain = plain_of(name);
        // `Gbps` and `Gb/s` mean bits to those who write the letters with care.
        if name.contains("Gb/s") || name.contains("Gbps") {
            return Self { stem: plain, unit: "Gbit/s".into(), kind: Some(TimeOrRate::Rate) };
        }
        let ends = |(_, ending): &(&'static Unit, &&str)| {
            plain == **ending || plain.strip_suffix(**ending).is_some_and(|stem| stem.ends_with('_'))
        };
        let endings = UNITS.iter().flat_map(|unit| unit.endings.iter().map(move |ending| (unit, ending)));
        // `images_s` ends in `s` as well.
        let unit = endings.filter(ends).max_by_key(|(_, ending)| ending.len());
        let slash = by_slash(name);
        let per_second = PER_SECOND.iter().find_map(|ending| plain.strip_suffix(ending));
        match (unit, slash, per_second) {
            (Some((unit, ending)), slash, _)
                if unit.kind == TimeOrRate::Rate
                    || (per_second.is_none() && !matches!(slash, Some((_, TimeOrRate::Rate)))) =>
            {
                let stem = plain[..plain.len() - ending.len()].trim_matches('_').to_string();
                // A column that is called `seconds` is the time itself.
                let stem = if stem.is_empty() { plain.clone() } else { stem };
                Self { stem, unit: unit.name.to_string(), kind: Some(unit.kind) }
            }
            (_, Some((unit, kind)), _) => Self { stem: plain, unit, kind: Some(kind) },
            (_, _, Some(items)) => {
                let item = items.rsplit('_').next().unwrap_or(items);
                let unit = foreign::name(&format!("{item}/s"));
                Self { stem: items.to_string(), unit, kind: Some(TimeOrRate::Rate) }
            }
            _ => {
                let is_time = says(&plain, TIMES);
                let is_other = says(&plain, NO_RATES);
                let is_rate = !is_time && !is_other && says(&plain, RATES);
                Self { stem: plain, unit: String::new(), kind: is_rate.then_some(TimeOrRate::Rate) }
            }
        }
    }

    /// Whether the name is that of a kernel, which in a table of Triton's `perf_report` is the header of a rate.
    pub fn is_provider(&self) -> bool {
        says(&self.stem, PROVIDERS)
    }

    /// Whether it describes the scatter of another column.
    pub fn is_scatter(&self) -> bool {
        says(&self.stem, SCATTER)
    }

    /// Whether the values are forecast and not measured.
    pub fn is_forecast(&self) -> bool {
        says(&self.stem, FORECASTS)
    }

    /// Whether the name is a usual one of a time, or may mean one.
    pub fn is_time(&self) -> bool {
        self.may_be(TimeOrRate::Time) || STEP_TIMES.contains(&&self.stem[..])
    }

    /// Whether the name may mean the measured time or rate, although it is not a usual name.
    pub fn may_be(&self, kind: TimeOrRate) -> bool {
        let says = match (self.kind, kind) {
            (Some(said), wanted) => said == wanted,
            (None, TimeOrRate::Time) => says(&self.stem, TIMES),
            (None, TimeOrRate::Rate) => false,
        };
        says && !self.is_scatter()
    }
}

/// Whether one of the `words` is among those of `stem`, or several of them in a row.
fn says(stem: &str, words: &[&str]) -> bool {
    words.iter().any(|word| format!("_{stem}_").contains(&format!("_{word}_")))
}

/// The unit by a slash, or the word `per`, between what is counted and what for: of a rate `t/s`, `Mops/sec`, `ops/ms`; of a time `ms/op`, `s/it`,
/// and of physics `time/s`.
fn by_slash(name: &str) -> Option<(String, TimeOrRate)> {
    let name = brackets(name).map_or(name, |(_, inside)| inside).trim();
    let (above, below) = name.rsplit_once('/').or_else(|| name.rsplit_once(" per "))?;
    let above = above.trim().rsplit([' ', '_', '(', '[']).next().unwrap_or(above);
    let time = |word: &str| {
        let word = word.trim().to_lowercase();
        let is_own = |unit: &&Unit| unit.kind == TimeOrRate::Time && unit.endings.contains(&&word[..]);
        let unit = UNITS.iter().find(is_own).map(|unit| unit.name);
        if word == "second" { Some("s") } else { unit }
    };
    match (time(above), time(below)) {
        (_, Some(below)) if TIMES.contains(&&above.to_lowercase()[..]) || above == "t" && below != "s" => {
            Some((below.to_string(), TimeOrRate::Time))
        }
        (_, Some(below)) if !above.is_empty() => Some((foreign::name(&format!("{above}/{below}")), TimeOrRate::Rate)),
        (Some(above), None) => Some((above.to_string(), TimeOrRate::Time)),
        _ => None,
    }
}

/// What stands before the last pair of brackets of a name, and in it.
fn brackets(name: &str) -> Option<(&str, &str)> {
    let name = name.trim();
    let inside = name.strip_suffix([')', ']'])?;
    let at = inside.rfind(['(', '['])?;
    Some((&inside[..at], &inside[at + 1..]))
}

fn plain_of(name: &str) -> String {
    let letters = name.to_lowercase();
    letters
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}

/// `batchSize` and `SamplesPerSec` with blanks between their words.
fn apart(name: &str) -> String {
    let mut apart = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && apart.ends_with(char::is_lowercase) {
            apart.push(' ');
        }
        apart.push(letter);
    }
    apart
}

/// What an x counts, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The column's name.
    pub column: String,
    /// The title of an axis: `Batch size`, `Number of tokens`, or the column's name.
    pub title: String,
    /// One more of it: `example`, `token`, `unit of M`.
    pub item: String,
}

/// What a column holds, if it holds no measured values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Batch,
    Tokens,
    Length,
    /// An amount of work of another kind.
    Size,
    /// No amount of work: the x if there is no size, else a key that distinguishes series.
    Setting,
}

/// The usual names of each kind, in order of preference.
pub(super) const NAMES: &[(Kind, &str)] = &[
    (
        Kind::Batch,
        "batch_size batchsize batch bs mini_batch_size minibatch_size mini_batch micro_batch_size microbatch_size \
         micro_batch mbs global_batch_size gbs n_batch nbatch num_batch b train_batch_size local_batch_size \
         per_device_batch_size batches n_seqs num_seqs max_num_seqs bsz batch_sz batch_per_gpu batch_per_device",
    ),
    (Kind::Tokens, "num_tokens n_tokens ntokens tokens token_count total_tokens number_of_tokens"),
    (
        Kind::Length,
        "seq_len seqlen seq_length sequence_length context_length context_len prompt_len prompt_length input_len \
         input_length context_size ctx_len ctx_tokens ctx_size sequence seq prompt_tokens max_seq_len max_length \
         kv_length",
    ),
    (
        Kind::Size,
        "size m n k matrix_size problem_size message_size num_elements elements numel dim bytes data_set \
         dataset_size working_set footprint shape length len ctx context n_ctx n_kv kv kv_len n_depth depth \
         n_prompt n_gen prompt hidden hidden_size hidden_dim width height image_size resolution dims dimension \
         rows cols columns side nnz message msg_size buffer_size block_size tile_size payload chunk_size pp tg \
         isl osl input_size vector_size array_size msgsize buffer chunk seqlen_q seqlen_k points particles atoms \
         records entries items n_items nelem nx nrhs channels in_channels d_model frames num_frames \
         matrix_dimension stride n_samples num_samples n_examples num_examples n_images num_images n_rows \
         num_rows",
    ),
    (
        Kind::Setting,
        "threads n_threads num_threads nthreads thread_count workers num_workers concurrency max_concurrency \
         clients users connections streams gpus n_gpus num_gpus ngpu devices nodes ranks processes procs cores tp \
         tp_size world_size beams heads n_heads num_heads layers request_rate qd queue_depth ubatch n_ubatch \
         parallel n_parallel num_prompts num_requests requests concurrent_requests concurrent_users num_clients \
         vus parallelism iodepth numjobs qdepth gpu_count num_cores omp_num_threads num_experts num_layers \
         n_layer",
    ),
];

/// The kind of that usual name.
fn kind_of(name: &str) -> Option<Kind> {
    NAMES.iter().find(|(_, names)| names.split(' ').any(|own| own == name)).map(|(kind, _)| *kind)
}

/// How other names of sizes end, and other names of batch sizes.
const SIZE_ENDS: &[&str] = &["_size", "_length", "_len", "_tokens", "_dim", "_bytes", "_elements", "_points"];
const BATCH_ENDS: &[&str] = &["_batch", "_bs", "_bsz", "_batch_size", "_batchsize"];
/// How columns of bytes end, and the unit.
const BYTES: &[(&str, &str)] = &[
    ("_bytes", "bytes"),
    ("_kb", "kB"),
    ("_mb", "MB"),
    ("_gb", "GB"),
    ("_kib", "KiB"),
    ("_mib", "MiB"),
    ("_gib", "GiB"),
];
/// The name of a size without its unit, and without the prefixes of other tools: `Sequence length [tokens]`, `Param: dim`.
fn bare(column: &str) -> String {
    // `run - name` of W&B, `params.name` of JSON.
    let column = column.rsplit(" - ").next().unwrap_or(column);
    let column = column.rsplit_once('.').map_or(column, |(_, name)| name);
    let plain = plain_of(
        brackets(column).map(|(before, _)| before).filter(|before| !before.trim().is_empty()).unwrap_or(column),
    );
    const BEFORE: &[&str] = &[
        "param_",
        "params_",
        "parameter_",
        "config_",
        "arg_",
        "args_",
        "axis_",
        "input_",
        "total_",
        "number_of_",
        "no_of_",
    ];
    let stripped = BEFORE.iter().find_map(|before| plain.strip_prefix(before)).unwrap_or(&plain);
    let amount = BYTES
        .iter()
        .find_map(|(end, _)| stripped.strip_suffix(end))
        .or(stripped.strip_suffix("_b"))
        .unwrap_or(stripped);
    let apart = plain_of(&apart(column));
    [&plain[..], stripped, amount, &apart]
        .into_iter()
        .find(|name| kind_of(name).is_some())
        .unwrap_or(amount)
        .to_string()
}

impl Size {
    /// The size that a column counts, if it is used as x.
    pub fn of(column: &str) -> Self {
        let (title, item) = match kind_of(&bare(column)) {
            Some(Kind::Batch) => ("Batch size".to_string(), "example".to_string()),
            Some(Kind::Tokens) => ("Number of tokens".to_string(), "token".to_string()),
            Some(Kind::Length) => ("Sequence length".to_string(), "token".to_string()),
            _ => (foreign::name(column), foreign::name(&format!("unit of {column}"))),
        };
        Self { column: column.to_string(), title, item }
    }

    /// What it counts of the work of a step, in the plural: `examples`, `tokens`, `MB`. `None` where twice the size is not twice the work, as of a
    /// side of a matrix, or of a sequence's length, which attention takes squared.
    pub fn counted(&self) -> Option<String> {
        let plain = plain_of(&self.column);
        let bytes = || BYTES.iter().find(|(end, _)| plain == end[1..] || is_size(&plain) && plain.ends_with(end));
        match kind_of(&plain) {
            Some(Kind::Batch) => Some("examples".to_string()),
            Some(Kind::Tokens) => Some("tokens".to_string()),
            _ => bytes().map(|(_, unit)| (*unit).to_string()),
        }
    }

    /// Whether it counts bytes.
    pub fn is_bytes(&self) -> bool {
        self.counted().is_some_and(|counted| BYTES.iter().any(|(_, unit)| *unit == counted))
    }

    /// Whether it is a batch size.
    pub fn is_batch(&self) -> bool {
        is_batch_size(&self.column)
    }
}

/// Whether a column's name is that of a size other than a batch's.
pub fn is_size(column: &str) -> bool {
    matches!(kind_of(&bare(column)), Some(Kind::Tokens | Kind::Length | Kind::Size))
}

/// Whether a column's name ends like the name of a size, although it is not a usual one. `peak_bytes` is a measured value, not a size.
pub(super) fn may_be_size(column: &str) -> bool {
    let bare = bare(column);
    const MEASURED: &[&str] = &["mem", "memory", "peak", "allocated", "reserved", "vram", "rss", "free", "used"];
    let is_measured = says(&bare, MEASURED);
    SIZE_ENDS.iter().any(|end| bare.ends_with(end)) && !is_measured && !is_batch_size(column)
}

/// Whether a column's name is that of a batch size.
pub fn is_batch_size(column: &str) -> bool {
    let bare = bare(column);
    kind_of(&bare) == Some(Kind::Batch) || BATCH_ENDS.iter().any(|end| bare.ends_with(end))
}

/// How usual a name of the batch size is; the least is the most usual.
pub(super) fn batch_rank(column: &str) -> Option<usize> {
    let bare = bare(column);
    NAMES[0].1.split(' ').position(|name| name == bare)
}

/// Whether a column's name is that of a setting.
pub fn is_setting(column: &str) -> bool {
    kind_of(&bare(column)) == Some(Kind::Setting)
}

/// Names of the time under which others write it, in order of preference.
pub(super) const STEP_TIMES: &[&str] = &[
    "step_time",
    "time",
    "batch_time",
    "iteration_time",
    "iter_time",
    "train_time",
    "latency",
    "duration",
    "elapsed",
    "wall_time",
    "real",
    "seconds",
    "mean",
    "median",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> (String, String, Option<TimeOrRate>) {
        let Reading { stem, unit, kind } = Reading::of(name);
        (stem, unit, kind)
    }

    #[test]
    fn times_are_read_with_their_units() {
        for (name, stem, unit) in [
            ("Time (ms)", "time", "ms"),
            ("latency_us", "latency", "us"),
            ("seconds", "seconds", "s"),
            ("step_time_s", "step_time", "s"),
            ("elapsed [ns]", "elapsed", "ns"),
        ] {
            assert_eq!(read(name), (stem.to_string(), unit.to_string(), Some(TimeOrRate::Time)), "{name}");
        }
        assert_eq!(read("time"), ("time".to_string(), String::new(), None));
    }

    #[test]
    fn a_forecast_says_so_in_its_name() {
        let forecasts = ["forecast_time_s", "Predicted time (ms)", "step_time_s", "broadcast_ms"]
            .map(|name| Reading::of(name).is_forecast());
        assert_eq!(forecasts, [true, true, false, false]);
    }

    #[test]
    fn rates_are_read_with_their_units() {
        for (name, unit) in [
            ("gbps", "GB/s"),
            ("GB/s", "GB/s"),
            ("Bandwidth (GB/s)", "GB/s"),
            ("Throughput [Gb/s]", "Gbit/s"),
            ("triton_tflops", "TFLOP/s"),
            ("TFLOP/s", "TFLOP/s"),
            ("gflops", "GFLOP/s"),
            ("images_per_s", "images/s"),
            ("images/sec", "images/s"),
            ("tokens_per_second", "tokens/s"),
            ("walks_per_s", "walks/s"),
            ("tok/s", "tokens/s"),
            ("throughput", ""),
            ("bus_bandwidth", ""),
        ] {
            let found = Reading::of(name);
            assert_eq!((found.unit.as_str(), found.kind), (unit, Some(TimeOrRate::Rate)), "{name}");
        }
        assert_eq!(unit("GiB/s").map(|unit| (unit.base, unit.factor)), Some(("B/s", 1_073_741_824.0)));
    }

    #[test]
    fn only_sizes_that_count_work_have_a_rate() {
        let counted = ["Batch Size", "num_tokens", "message_size_bytes", "size (MB)", "bytes"]
            .map(|name| Size::of(name).counted());
        assert_eq!(counted.map(Option::unwrap_or_default), ["examples", "tokens", "bytes", "MB", "bytes"]);
        assert!(["M", "size", "seq_len", "price_mb"].iter().all(|name| Size::of(name).counted().is_none()));
    }

    #[test]
    fn sizes_are_named_in_words() {
        let words = |column: &str| {
            let size = Size::of(column);
            (size.title, size.item)
        };
        assert_eq!(words("Batch Size"), ("Batch size".to_string(), "example".to_string()));
        assert_eq!(words("num_tokens"), ("Number of tokens".to_string(), "token".to_string()));
        assert_eq!(words("M"), ("M".to_string(), "unit of M".to_string()));
        assert!(["M", "N", "n", "size", "seq_len", "size (MB)", "message_size_bytes"].iter().all(|name| is_size(name)));
        assert!(!["batch_size", "name", "kernel", "time_ms"].iter().any(|name| is_size(name)));
    }
}
