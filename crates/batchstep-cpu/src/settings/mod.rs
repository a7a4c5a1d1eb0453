//! How a training step is executed: every choice that an experiment can hold still or vary.
//!
//! [`AXES`] is the one place that knows which axes there are. The reader and the writer of specs, the plan, the columns of
//! `steps.parquet`, the grouping of series and the tables of engines side by side all go by it: a new axis is an entry here, and
//! what the engines make of it.

mod arguments;
mod axis;
pub mod command;
mod grid;
mod named;
pub mod own;
mod text;

pub use arguments::{is_name, members};
pub use axis::{Axis, Domain, Role, Value};
use axis::{Setting, settings};
pub use grid::Grid;
pub use named::named;
pub use text::Text;

named! {
    /// What executes the step.
    EngineName {
        /// On a GPU PyTorch, or `cudnn` where that is missing or lacks a setting; else `cpu`.
        Auto = "auto",
        /// Our kernels on the CPU.
        Cpu = "cpu",
        /// candle's own tensors, autograd and optimizers.
        Candle = "candle",
        /// The fast GPU engine.
        Cudnn = "cudnn",
        /// PyTorch in its own process.
        Torch = "torch",
        /// A known truth: planted jumps, drift and noise.
        Synthetic = "synthetic",
        /// A person's own step, in a process of Python.
        Python = "python",
    }
}

impl EngineName {
    /// What `auto` may become; the first that can run here.
    pub const AUTOMATIC: [Self; 2] = [Self::Cudnn, Self::Cpu];

    /// Whether it runs steps of which nothing is known but their arguments. It has no setting but those that name it.
    pub fn is_own(self) -> bool {
        self == Self::Python
    }

    /// The engines that run the networks of this program or of a spec.
    pub fn of_networks() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|engine| !engine.is_own())
    }
}

impl Optimizer {
    /// The scalars of state that it keeps for each parameter.
    pub fn state_copies(self) -> usize {
        match self {
            Self::Sgd => 0,
            Self::Momentum | Self::RmsProp => 1,
            Self::Adam | Self::AdamW => 2,
        }
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
        /// Mean over batch and outputs of the cross-entropy of each output's logistic function by itself.
        BinaryCrossEntropy = "binary_cross_entropy",
    }
}

named! {
    /// What the numbers of a batch are.
    Examples {
        /// Uniform random numbers, or labels of equal probability.
        Uniform = "uniform",
        /// Points of a square, and the heights of the surface `peaks` there.
        Peaks = "peaks",
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

named! {
    /// Whether convolutions may use Winograd's algorithm.
    Winograd {
        /// Where the engine finds it faster.
        Any = "any",
        Never = "never",
        /// Only in its non-fused form: transforms and products are separate kernels.
        NonFused = "nonfused",
    }
}

named! {
    /// What the batch size means where several processes train together.
    Scaling {
        /// The examples of each process.
        Weak = "weak",
        /// The examples of all processes together.
        Strong = "strong",
    }
}

/// The enums are settings; what a table of axes needs of them follows from their names.
macro_rules! named_settings {
    ($($name:ident),+) => {$(
        impl Setting for $name {
            fn value(self) -> Value {
                Value::Name(self.name())
            }

            fn from_value(value: Value) -> Option<Self> {
                if let Value::Name(name) = value { Self::from_name(name) } else { None }
            }
        }
    )+};
}
named_settings!(Optimizer, Loss, Precision, Layout, DataPath, Algorithms, Launch, Compile, Winograd, Scaling);

settings! {
    axes {
        precision: Precision = Precision::Tf32, "train", "precision", Domain::Names(Precision::NAMES), Task;
        "The arithmetic of convolutions and matrix products, as in force: fp32, tf32, bf16, fp16."

        layout: Layout = Layout::Nchw, "train", "layout", Domain::Names(Layout::NAMES), Method;
        "The order of a feature map's axes in memory: nchw, nhwc."

        optimizer: Optimizer = Optimizer::RmsProp, "train", "optimizer", Domain::Names(Optimizer::NAMES), Task;
        "The update rule: sgd, momentum, rmsprop, adam, adamw."

        loss: Loss = Loss::CategoricalCrossEntropy, "train", "loss_name", Domain::Names(Loss::NAMES), Task;
        "The loss: categorical_cross_entropy, mean_squared_error, binary_cross_entropy."

        data: DataPath = DataPath::Resident, "train", "data", Domain::Names(DataPath::NAMES), Task;
        "How the batch reaches the device: resident, pageable, pinned, prefetch."

        algorithms: Algorithms = Algorithms::Heuristic, "engine", "algorithms", Domain::Names(Algorithms::NAMES), Method;
        "How the algorithm of each convolution is chosen: heuristic, autotune, fixed."

        launch: Launch = Launch::Eager, "engine", "launch", Domain::Names(Launch::NAMES), Method;
        "How the step's work is given to the device: eager, graph."

        compile: Compile = Compile::None, "engine", "compile", Domain::Names(Compile::NAMES), Method,
            engines &[EngineName::Torch];
        "Whether PyTorch compiles the network: none, default, max-autotune."

        threads: Option<usize> = None, "engine", "threads", Domain::Count { low: 1, high: 4096 }, Task,
            unset "all threads",
            engines &[EngineName::Cpu, EngineName::Candle, EngineName::Torch, EngineName::Synthetic];
        "Threads of an engine on the CPU; null: all cores that the process may use."

        processes: usize = 1, "engine", "processes", Domain::Count { low: 1, high: 1024 }, Method,
            engines &[EngineName::Torch];
        "Processes that train together, each with a copy of the network (DistributedDataParallel)."

        scaling: Scaling = Scaling::Weak, "engine", "scaling", Domain::Names(Scaling::NAMES), Method,
            engines &[EngineName::Torch];
        "With several processes, the batch size of each (weak) or of all together (strong)."

        workspace_limit: Option<u64> = None, "engine", "workspace_limit_bytes", Domain::Bytes, Method,
            unit "bytes", unset "the engine's", engines &[EngineName::Cudnn];
        "The most scratch memory of a convolution; null: the engine's own limit."

        streams: usize = 1, "engine", "streams", Domain::Count { low: 1, high: 2 }, Method,
            engines &[EngineName::Cudnn];
        "CUDA streams of a step: with 2, the gradients of weights run at the same time as those of the feature maps."

        winograd: Winograd = Winograd::Any, "engine", "winograd", Domain::Names(Winograd::NAMES), Method,
            engines &[EngineName::Cpu, EngineName::Cudnn];
        "Whether convolutions may use Winograd's algorithm: any, never, nonfused."

        batch_padding: usize = 1, "engine", "batch_padding", Domain::Count { low: 1, high: 4096 }, Method,
            engines &[EngineName::Cpu];
        "Products of dense layers and of Winograd's algorithm are computed for the batch padded to a multiple of this."

        product_columns: Option<usize> = None, "engine", "product_columns", Domain::Count { low: 1, high: 4096 }, Method,
            unset "all", engines &[EngineName::Cpu];
        "The most columns of such a product that one call of the CPU's matrix product computes; null: all."

        arguments: Text = Text::NONE, "sweep", "arguments", Domain::Text, Task, engines &[EngineName::Python];
        "The further arguments of a user's own step, as a JSON object; null for other engines."

        env: Text = Text::NONE, "engine", "env", Domain::Text, Method, engines &[EngineName::Python];
        "Environment variables of a user's own step, as a JSON object; null in it is a variable that is not set; null for other engines."
    }
    fixed {
        learning_rate: f64 = 1e-4;
        examples: Examples = Examples::Uniform;
        /// Whether the phases of a step are timed on the device; without, only the step's two ends are.
        phases: bool = true;
        /// Seeds parameters, data and dropout.
        seed: u64 = 1;
    }
}
