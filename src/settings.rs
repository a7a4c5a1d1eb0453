//! How a training step is executed: every choice an experiment can hold still or vary.

use std::fmt;

/// Defines an enum whose variants have one stable name each, used in specs, Parquet, JSON and messages alike.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of that stable name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// What executes the step.
    EngineName {
        /// `cudnn` where there is a GPU that it can drive, else `cpu`.
        Auto = "auto",
        /// Our kernels on the CPU.
        Cpu = "cpu",
        /// The fast GPU engine.
        Cudnn = "cudnn",
        /// PyTorch in its own process.
        Torch = "torch",
        /// A known truth: planted jumps, drift and noise.
        Synthetic = "synthetic",
    }
}

named! {
    /// The optimizer; its update rule and defaults are PyTorch's of the same name.
    Optimizer {
        Sgd = "sgd",
        /// SGD with momentum 0.9.
        Momentum = "momentum",
        RmsProp = "rmsprop",
        Adam = "adam",
        AdamW = "adamw",
    }
}

named! {
    /// The loss, a mean over the batch.
    Loss {
        /// Softmax and cross-entropy against one-hot targets.
        CategoricalCrossEntropy = "categorical_cross_entropy",
        /// Mean over batch and features of the squared difference.
        MeanSquaredError = "mean_squared_error",
    }
}

named! {
    /// The arithmetic of convolutions and matrix products.
    Precision { Fp32 = "fp32", Tf32 = "tf32", Bf16 = "bf16", Fp16 = "fp16" }
}

named! {
    /// The order of a feature map's axes in memory.
    Layout { Nchw = "nchw", Nhwc = "nhwc" }
}

named! {
    /// How the batch reaches the device.
    DataPath {
        /// It lies there already; nothing is copied.
        Resident = "resident",
        /// Copied in each step from ordinary host memory.
        Pageable = "pageable",
        /// Copied in each step from page-locked host memory.
        Pinned = "pinned",
        /// Copied by a second stream while the step before computes.
        Prefetch = "prefetch",
    }
}

named! {
    /// How the algorithm of each convolution is chosen.
    Algorithms { Heuristic = "heuristic", Autotune = "autotune", Fixed = "fixed" }
}

named! {
    /// How the step's work is given to the device.
    Launch { Eager = "eager", Graph = "graph" }
}

named! {
    /// Whether PyTorch compiles the network (`torch.compile`); the other engines have nothing to compile.
    Compile { None = "none", Default = "default", MaxAutotune = "max-autotune" }
}

/// Everything about a step but its network and its batch size.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub optimizer: Optimizer,
    pub learning_rate: f64,
    pub loss: Loss,
    pub precision: Precision,
    pub layout: Layout,
    pub data: DataPath,
    pub algorithms: Algorithms,
    /// [`Compile::None`] on every engine but `torch`.
    pub compile: Compile,
    pub launch: Launch,
    /// The most bytes of scratch memory that a convolution may use; `None`: the engine's default.
    pub workspace_limit: Option<u64>,
    /// With 2, a GPU computes the gradients of weights on a stream of their own, beside those of the maps; with 1, as
    /// PyTorch does, each call waits for the one before. 1 on every engine but `cudnn`.
    pub streams: usize,
    /// Whether the phases of a step are timed on the device; without, it notes the step's two ends alone.
    pub phases: bool,
    /// Threads of a CPU engine; `None`: all cores the process may use.
    pub threads: Option<usize>,
    /// Seeds parameters, data and dropout.
    pub seed: u64,
}

/// What a spec that names none of them gets.
impl Default for Settings {
    fn default() -> Self {
        Self {
            optimizer: Optimizer::RmsProp,
            learning_rate: 1e-4,
            loss: Loss::CategoricalCrossEntropy,
            precision: Precision::Tf32,
            layout: Layout::Nchw,
            data: DataPath::Resident,
            algorithms: Algorithms::Heuristic,
            compile: Compile::None,
            launch: Launch::Eager,
            workspace_limit: None,
            streams: 1,
            phases: true,
            threads: None,
            seed: 1,
        }
    }
}
