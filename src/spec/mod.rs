//! The experiment spec: one strict TOML file, read into an [`Experiment`] in which every value is set and checked.
//!
//! Every list makes an axis; the product of the axes is the set of cells. Values that are not given take the defaults
//! documented on the fields below; [`Experiment::to_toml`] writes them all out.
//!
//! ```
//! use batchstep::spec::Experiment;
//! let experiment = Experiment::parse("version = 1\nname = \"a\"\n[model]\nname = \"vgg16\"", "a.toml")?;
//! assert_eq!(experiment.batch_sizes.len(), 70);
//! let error = Experiment::parse("version = 1\nname = \"a\"\n[model]\nnmae = \"vgg16\"", "a.toml").unwrap_err();
//! assert!(error.to_string().starts_with("a.toml:4: model.nmae: unknown key `nmae`"));
//! # Ok::<(), batchstep::error::Error>(())
//! ```

mod batch_sizes;
pub mod data;
mod decode;
pub(crate) mod encode;
pub(crate) mod keys;
mod layers;
pub mod library;
mod own;
pub mod plan;
pub mod prices;
mod section;
mod shard;
mod subject;
#[cfg(test)]
mod tests;
mod truth;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::engine::synthetic::Truth;
use crate::error::{Error, Kind, Result, nearest_beside};
use crate::kinds::StudyKind;
use crate::network::Shape;
use crate::network::custom::LayerSpec;
use crate::settings::own::OwnSteps;
use crate::settings::{AXES, EngineName, Examples, Grid, Value, named};
pub(crate) use decode::{Input, parse_as, refuse_many};
use keys::keys;
pub(crate) use section::Section;
pub use shard::{MAX_SHARDS, Shard, ShardBy};
pub use subject::Subject;
pub(crate) use subject::Usual;

/// The most cells an experiment may have; a typing error in a range would otherwise take all memory.
pub const MAX_CELLS: usize = 100_000;

/// The text of the spec in `path`, and what to call it in messages; if there is no such file, the program's own spec of that name.
///
/// # Errors
/// [`crate::error::Kind::Io`] where the file can't be read, [`crate::error::Kind::Spec`] where it is no text.
pub fn text_of(path: &Path) -> Result<(String, String)> {
    let bytes = match (std::fs::read(path), path.to_str().and_then(library::Included::named)) {
        (Ok(bytes), _) => bytes,
        (Err(error), Some(own)) if error.kind() == ErrorKind::NotFound => {
            return Ok((own.text.to_owned(), format!("the program's own {}", own.name)));
        }
        (Err(error), _) if error.kind() == ErrorKind::NotFound => {
            let own = || path.to_str().and_then(library::Included::nearest).map(str::to_owned);
            let near = nearest_beside(path).map(|near| near.display().to_string()).or_else(own);
            let near = near.map_or("check the path;".to_owned(), |near| format!("did you mean `{near}`?"));
            return Err(Error::new(Kind::Io, "there is no such file, and no such spec in the program")
                .at(path.display().to_string())
                .hint(format!("{near} `batchstep specs` lists the specs that the program has")));
        }
        (Err(error), _) => return Err(Error::io("read the spec", path, &error)),
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::spec("the spec is not UTF-8 text").at(path.display().to_string()))?;
    Ok((text, path.display().to_string()))
}

/// An experiment: what is varied, what is held still, how it is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Names the run directory: letters, digits, `-`, `_` and `.`.
    pub name: String,
    pub model: Model,
    /// The batch axis, ascending. Default: 1..=70, as in the study that found the jumps.
    pub batch_sizes: Vec<usize>,
    /// Notices about values that are easily misread, such as a range whose end is excluded.
    pub notices: Vec<String>,
    /// A/A control: every cell executes this batch size, whatever batch size it is named after. Default: none.
    pub executes: Option<usize>,
    pub engine: Engines,
    /// Every other axis, with the defaults of [`Settings`](crate::settings::Settings).
    pub grid: Grid,
    /// Default: 1e-4.
    pub learning_rate: f64,
    /// Default: uniform.
    pub examples: Examples,
    pub measure: Measure,
    /// The known truth that the synthetic engine plays; given exactly where that engine is named.
    pub synthetic: Option<Truth>,
    /// The user's own steps; given exactly if the engine runs the user's files.
    pub own: Option<OwnSteps>,
}

/// The networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Axis: names of built-in networks; or the one name of the custom network.
    pub names: Vec<String>,
    /// A network of the spec's own, where `[[model.layers]]` is given.
    pub layers: Option<Vec<LayerSpec>>,
    /// The shape of one example. Default: the network's own.
    pub input: Option<Shape>,
    /// The number of classes, or of outputs. Default: the network's own.
    pub classes: Option<usize>,
}

/// The engines.
#[derive(Clone, Debug, PartialEq)]
pub struct Engines {
    /// Axis. Default: auto.
    pub name: Vec<EngineName>,
    /// The engines of `name` that are left out of the run, with a notice, if they cannot be opened; never all of them. Default: none.
    pub optional: Vec<EngineName>,
    /// The source of the algorithms for `algorithms = "fixed"`; not an axis. Default: none.
    pub fixed_from: Option<FixedFrom>,
}

impl Model {
    /// Networks that are known by their names.
    fn named(names: Vec<String>) -> Self {
        Self { names, layers: None, input: None, classes: None }
    }
}

impl Engines {
    fn only(name: EngineName) -> Self {
        Self { name: vec![name], optional: Vec::new(), fixed_from: None }
    }
}

/// An earlier run, whose `layers.parquet` names the algorithm of every layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedFrom {
    /// The run directory.
    pub run: PathBuf,
    /// The batch size whose algorithms are taken, for all batch sizes. Default: the largest of that run.
    pub batch_size: Option<usize>,
}

keys! {
    /// How it is measured.
    Measure in "measure" {
        /// Default: 3 and 30.
        blocks: Blocks = Blocks { min: 3, max: 30 }, "blocks", decode::blocks();
        /// Default: jumps; cells in an A/A run and in ascending order, which need every block to be complete.
        decide: Decide = Decide::Jumps, "decide", keys::name(Decide::NAMES, Decide::from_name);
        /// Steps that count in each visit, after warm-up. Default: auto; 5 where `decide` is cells.
        steps_per_visit: StepsPerVisit = StepsPerVisit::Auto, "steps_per_visit", decode::steps_per_visit();
        /// The smallest jump, relative to the step time, that the run must be able to see. Default: 1 %.
        smallest_jump: f64 = 0.01, "smallest_jump", keys::share(1e-5, 1.0);
        /// No visit begins later than this many seconds after the start. Default: 30 min.
        time_limit_s: f64 = 1800.0, "time_limit", keys::time_limit();
        /// Whether a GPU notes the ends of a step's phases, between its two ends. Two runs, one without, show what it costs.
        /// Default: true.
        phases: bool = true, "phases", keys::flag();
        /// Whether the device time of each layer is measured as well, outside the steps that count: in the first ten visits to a cell, of
        /// which the shortest is stored. Default: false.
        layers: bool = false, "layers", keys::flag();
        /// Whether the processor's and the kernel's counters are read around each step, outside its time. Default: false.
        counters: bool = false, "counters", keys::flag();
        /// A visit that takes longer is given up, and its cell left out. Default: 10 min.
        visit_limit_s: f64 = 600.0, "visit_limit", keys::time_limit();
        /// In which order a block walks its cells. Default: random.
        order: Order = Order::Random, "order", keys::name(Order::NAMES, Order::from_name);
        /// Seeds the plan, the parameters, the data and the analysis. Default: 1.
        seed: u64 = 1, "seed", keys::seed();
        /// The part that is measured, where the experiment is divided among machines. Default: none.
        shard: Option<Shard> = None, "shard", decode::shard().optional();
    }
}

/// Visits to a cell: each gets at least `min` (4 where jumps are decided), and all together at most `max` times the number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    pub min: usize,
    pub max: usize,
}

/// Complete blocks before the first decision on jumps: with fewer, scales and the common factor are guesses.
pub const FIRST_BLOCKS: usize = 4;

impl Measure {
    /// The blocks at the start that visit every cell.
    pub fn complete_blocks(&self) -> usize {
        let first = if self.decide == Decide::Jumps { FIRST_BLOCKS } else { 1 };
        self.blocks.min.max(first).min(self.blocks.max)
    }
}

/// Steps that count in each visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepsPerVisit {
    /// 5 in the first block; from then on one step of warm-up, and as many as the first block shows to be best ([`crate::measure::visit_length`]).
    Auto,
    Fixed(usize),
}

impl StepsPerVisit {
    /// The default for the first block.
    pub const FIRST: usize = 5;
}

named! {
    /// What a run must know before it ends.
    Decide {
        /// At every boundary between two batch sizes, whether there is a jump of `smallest_jump` or more. After the first blocks only the
        /// cells that an open boundary needs are visited.
        Jumps = "jumps",
        /// The step time of every cell, to a quarter of `smallest_jump`. Each block visits all cells that are less precise.
        Cells = "cells",
    }
}

named! {
    /// In which order a block visits its cells.
    Order {
        /// A fresh random order for each block.
        Random = "random",
        /// Along the batch axis, as other tools do. It exists to show the cost of this order: any disturbance of the machine during
        /// the sweep looks like a jump.
        Ascending = "ascending",
    }
}

impl Experiment {
    /// Reads and checks the spec in `path`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] where the file can't be read, [`crate::error::Kind::Spec`] with file, line, key,
    /// what was expected and the nearest valid key where its contents are refused.
    pub fn read(path: &Path) -> Result<Self> {
        let (text, origin) = text_of(path)?;
        Self::parse(&text, &origin)
    }

    /// The most threads that the processes of a step have together, where the spec says how many each has.
    pub fn most_threads(&self) -> Option<usize> {
        let most = |key: &str| {
            let axis = AXES.iter().find(|axis| axis.key == key)?;
            let count = |value: &Value| if let Value::Count(count) = value { Some(*count) } else { None };
            self.grid.values(axis).iter().map(count).collect::<Option<Vec<usize>>>()?.into_iter().max()
        };
        Some(most("threads")? * most("processes")?)
    }

    /// Reads and checks a spec's text; `origin` names it in messages.
    ///
    /// # Errors
    /// As [`Experiment::read`].
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        parse_as(text, origin, |kind, section| match kind {
            StudyKind::Sweep => Self::of(section, origin),
            kind => Err(Error::spec(format!("this spec is a {kind}, and a sweep is needed here")).at(origin)),
        })
    }

    /// The truth that the synthetic engine plays here: every shard is another machine.
    pub fn truth(&self) -> Option<Truth> {
        let truth = self.synthetic.as_ref()?;
        Some(self.measure.shard.map_or_else(|| truth.clone(), |shard| truth.of_machine(shard.number)))
    }

    /// The full resolved spec; parsing it again gives an equal experiment.
    pub fn to_toml(&self) -> String {
        encode::toml(self, None)
    }

    /// The same for a file in `folder`: its paths are relative to the folder.
    pub fn to_toml_in(&self, folder: &Path) -> String {
        encode::toml(self, Some(folder))
    }

    /// What is swept: `batch_size`, or another argument of a step.
    pub fn x(&self) -> &str {
        self.own.as_ref().map_or(OwnSteps::BATCH_SIZE, |own| &own.x)
    }
}
