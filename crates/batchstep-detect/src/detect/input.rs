//! The input of a detection: observations and settings.

/// Fewest distinct x on which a jump is judged.
pub const FEWEST_POINTS: usize = 8;

/// One measured step. `y` is in seconds, or any other unit: the method does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    pub x: f64,
    pub y: f64,
    /// Position in the run.
    pub order: Option<f64>,
    /// The pass over all x in which it was measured.
    pub block: Option<u32>,
    /// The clock while it was measured.
    pub clock_hz: Option<f64>,
    /// The machine that measured it: its place among [`Settings::nodes`].
    pub node: Option<u32>,
}

impl Observation {
    /// A value without further facts.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, order: None, block: None, clock_hz: None, node: None }
    }
}

/// The settings of a detection.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Probability that a jump is reported in a series without one.
    pub false_positive_rate: f64,
    /// The confidence of all intervals.
    pub confidence: f64,
    /// The number of bootstrap resamples for intervals, and the most draws for the series' p-value.
    pub resamples: usize,
    pub seed: u64,
    /// Jumps smaller than this share of the level are not reported.
    pub smallest_jump: f64,
    /// The names of the machines, where several measured a series.
    pub nodes: Vec<String>,
    /// Whether y is a rate, so that x / y may be the time of one step.
    pub is_rate: bool,
    /// Numbers of the hardware that a period may be related to.
    pub hardware: HardwareNumbers,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            false_positive_rate: 0.01,
            confidence: 0.95,
            resamples: 1000,
            seed: 1,
            smallest_jump: 0.003,
            nodes: Vec::new(),
            is_rate: false,
            hardware: HardwareNumbers::default(),
        }
    }
}

/// Numbers of a machine's hardware. `None` where one is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardwareNumbers {
    /// Streaming multiprocessors of the GPU.
    pub multiprocessors: Option<u32>,
    /// Lanes of the PCIe link.
    pub link_width: Option<u32>,
    /// Threads of a CPU engine.
    pub threads: Option<u32>,
}
