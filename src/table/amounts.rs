//! The usual names of sizes and settings, and what they count.

use super::names::{apart, brackets, plain_of, says};
use crate::foreign;

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

#[cfg(test)]
mod tests {
    use super::*;

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
