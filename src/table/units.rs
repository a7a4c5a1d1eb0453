//! The units that columns of times and rates are given in.

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

/// The unit of that name.
pub fn unit(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.name == name)
}
