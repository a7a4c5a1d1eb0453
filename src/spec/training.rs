//! `kind = "training"`: whole epochs of a network on a data set, fed by a loader.
//!
//! ```
//! use batchstep::spec::Spec;
//! let text = "version = 1\nkind = \"training\"\nname = \"a\"\n[model]\nname = \"mnist_cnn\"\n[loader]\nworkers = [0, 2]";
//! let Spec::Training(training) = Spec::parse(text, "a.toml")? else { unreachable!() };
//! assert_eq!((training.batch_sizes, training.loader.workers), (vec![64], vec![0, 2]));
//! # Ok::<(), batchstep::error::Error>(())
//! ```

use super::data::Data;
use super::decode::{
    Input, Sweep, checked_name, distinct, read_engine, read_model, read_sweep, read_train, spec_error, time_limit,
};
use super::section::Section;
use super::{MAX_CELLS, Model, data, encode};
use crate::error::{Error, Result};
use crate::settings::{EngineName, Grid, named};
use crate::units::Seconds;

/// A study of whole epochs.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Names the run directory.
    pub name: String,
    /// `input` and `classes` follow from the data where they are not given.
    pub model: Model,
    /// Axis. Default: 64.
    pub batch_sizes: Vec<usize>,
    /// Notices about values that are easily misread.
    pub notices: Vec<String>,
    /// Axis. Default: cpu.
    pub engines: Vec<EngineName>,
    /// The engines that may be missing: one that cannot run here, or not on these data, is left out with a notice. Default: none.
    pub optional: Vec<EngineName>,
    /// The axes of the tables `train` and `engine`.
    pub grid: Grid,
    /// Default: 1e-4.
    pub learning_rate: f64,
    pub data: Data,
    pub loader: Loading,
    pub measure: Repetitions,
}

/// How batches are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Loading {
    /// Axis: threads (of PyTorch: processes) that make batches; 0: the training thread itself. Default: 0.
    pub workers: Vec<usize>,
    /// Axis: batches that each worker keeps ready; no meaning without workers. Default: 2.
    pub prefetch: Vec<usize>,
    /// A new order in each epoch. Default: true.
    pub shuffle: bool,
    /// Leaves out the last batch of an epoch where it is not whole. Default: false.
    pub drop_last: bool,
    /// Default: fail.
    pub on_error: OnError,
}

named! {
    /// What an example that cannot be read does.
    OnError {
        /// The cell fails, with the name of the file, and the run goes on with the others.
        Fail = "fail",
        /// The example is left out, counted, and named in a warning.
        Skip = "skip",
        /// The run ends.
        Stop = "stop",
    }
}

/// How often what is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Repetitions {
    /// Blocks: each visits every cell once. Default: 5.
    pub repetitions: usize,
    /// Epochs of a visit, from the initial parameters. Default: 1.
    pub epochs: usize,
    /// Steps at the start of each visit that are stored, flagged, and not counted; the network then starts again. Default: 20.
    pub warmup_steps: usize,
    /// Whether the test examples are classified after each epoch, outside its time. Default: true.
    pub evaluate: bool,
    /// Whether the processor's counters are read around each epoch. Default: true.
    pub counters: bool,
    /// No visit begins later than this many seconds after the start. Default: 2 h.
    pub time_limit_s: f64,
    /// Default: 1.
    pub seed: u64,
}

impl Training {
    /// The full resolved spec; parsing it again gives an equal training.
    pub fn to_toml(&self) -> String {
        write(self)
    }

    /// The number of cells.
    pub fn cell_count(&self) -> usize {
        let ways = self.engines.iter().map(|&engine| self.grid.count(engine)).fold(0, usize::saturating_add);
        let with_workers = self.loader.workers.iter().filter(|workers| **workers > 0).count();
        let loaders =
            self.loader.workers.len() - with_workers + with_workers.saturating_mul(self.loader.prefetch.len());
        [self.model.names.len(), self.batch_sizes.len(), loaders].into_iter().fold(ways, usize::saturating_mul)
    }
}

pub(super) fn read(mut spec: Section, origin: &str) -> Result<Training> {
    let version = spec.get("version");
    let name = spec.get("name");
    let model = spec.section("model")?;
    let sweep = spec.section("sweep")?;
    let train = spec.section("train")?;
    let engine = spec.section("engine")?;
    let data = spec.section("data")?;
    let loader = spec.section("loader")?;
    let measure = spec.section("measure")?;
    let name = checked_name(version, name, spec.finish(), origin)?;
    let mut grid = Grid::default();
    let engine_given = engine.is_some();
    let engine = read_engine(engine, &mut grid)?;
    if engine.fixed_from.is_some() || engine.name.contains(&EngineName::Synthetic) {
        let what = "a training has neither the engine `synthetic` nor `fixed_from`";
        return Err(Error::spec(what).at(origin).hint("use the engines `cpu`, `candle`, `torch`, `cudnn`"));
    }
    let engines = if engine_given { engine.name } else { vec![EngineName::Cpu] };
    let learning_rate = read_train(train, &engines, &mut grid)?;
    let Some(model) = model else {
        return Err(spec_error(origin, "model.name", "[model]\n        name = \"mnist_cnn\""));
    };
    let model = read_model(model, Input::FromData)?;
    let given = sweep.is_some();
    let Sweep { batch_sizes, executes, notices } = read_sweep(sweep)?;
    if executes.is_some() {
        return Err(Error::spec("`executes` belongs to sweeps: a training has no A/A control").at(origin));
    }
    let training = Training {
        name,
        model,
        batch_sizes: if given { batch_sizes } else { vec![64] },
        notices,
        engines,
        optional: engine.optional,
        grid,
        learning_rate,
        data: data::read(data)?,
        loader: read_loader(loader)?,
        measure: read_measure(measure)?,
    };
    if training.cell_count() > MAX_CELLS {
        let what = format!("the axes make {} cells, more than {MAX_CELLS}", training.cell_count());
        return Err(Error::spec(what).at(origin).hint("shorten an axis, or make two specs of it"));
    }
    Ok(training)
}

fn read_loader(section: Option<Section>) -> Result<Loading> {
    let mut loader =
        Loading { workers: vec![0], prefetch: vec![2], shuffle: true, drop_last: false, on_error: OnError::Fail };
    let Some(mut section) = section else { return Ok(loader) };
    if let Some(field) = section.get("workers") {
        loader.workers = distinct(&field, |field| field.count(0, 1024))?;
    }
    if let Some(field) = section.get("prefetch") {
        loader.prefetch = distinct(&field, |field| field.count(1, 1024))?;
    }
    if let Some(field) = section.get("shuffle") {
        loader.shuffle = field.boolean()?;
    }
    if let Some(field) = section.get("drop_last") {
        loader.drop_last = field.boolean()?;
    }
    if let Some(field) = section.get("on_error") {
        loader.on_error = field.choice(OnError::NAMES, OnError::from_name)?;
    }
    section.finish()?;
    Ok(loader)
}

fn read_measure(section: Option<Section>) -> Result<Repetitions> {
    let mut measure = Repetitions {
        repetitions: 5,
        epochs: 1,
        warmup_steps: 20,
        evaluate: true,
        counters: true,
        time_limit_s: 7200.0,
        seed: 1,
    };
    let Some(mut section) = section else { return Ok(measure) };
    if let Some(field) = section.get("repetitions") {
        measure.repetitions = field.count(1, 100_000)?;
    }
    if let Some(field) = section.get("epochs") {
        measure.epochs = field.count(1, 100_000)?;
    }
    if let Some(field) = section.get("warmup_steps") {
        measure.warmup_steps = field.count(0, 1_000_000)?;
    }
    if let Some(field) = section.get("evaluate") {
        measure.evaluate = field.boolean()?;
    }
    if let Some(field) = section.get("counters") {
        measure.counters = field.boolean()?;
    }
    if let Some(field) = section.get("time_limit") {
        measure.time_limit_s = time_limit(&field)?;
    }
    if let Some(field) = section.get("seed") {
        measure.seed = field.integer(0, i64::MAX as u64)?;
    }
    section.finish()?;
    Ok(measure)
}

fn write(training: &Training) -> String {
    use encode::{axes, batch_size, line, list, optional, quoted, section};
    let mut out = format!("version = 1\nkind = \"training\"\nname = {:?}\n", training.name);
    encode::network(&mut out, &training.model);
    section(&mut out, "sweep");
    batch_size(&mut out, &training.batch_sizes);
    section(&mut out, "train");
    axes(&mut out, &training.grid, "train");
    line(&mut out, "learning_rate", format!("{:?}", training.learning_rate));
    section(&mut out, "engine");
    line(&mut out, "name", list(training.engines.iter().map(quoted)));
    optional(&mut out, &training.optional);
    axes(&mut out, &training.grid, "engine");
    data::write(&mut out, &training.data);
    let loader = &training.loader;
    let counts = |values: &[usize]| list(values.iter().map(usize::to_string));
    section(&mut out, "loader");
    line(&mut out, "workers", counts(&loader.workers));
    line(&mut out, "prefetch", counts(&loader.prefetch));
    line(&mut out, "shuffle", loader.shuffle);
    line(&mut out, "drop_last", loader.drop_last);
    line(&mut out, "on_error", quoted(loader.on_error));
    let measure = &training.measure;
    section(&mut out, "measure");
    line(&mut out, "repetitions", measure.repetitions);
    line(&mut out, "epochs", measure.epochs);
    line(&mut out, "warmup_steps", measure.warmup_steps);
    line(&mut out, "evaluate", measure.evaluate);
    line(&mut out, "counters", measure.counters);
    line(&mut out, "time_limit", quoted(Seconds(measure.time_limit_s)));
    line(&mut out, "seed", measure.seed);
    out
}

#[cfg(test)]
mod tests {
    use super::super::Spec;
    use super::*;

    fn parse(body: &str) -> Result<Training> {
        let text = format!("version = 1\nkind = \"training\"\nname = \"t\"\n[model]\nname = \"mnist_cnn\"\n{body}");
        match Spec::parse(&text, "t.toml")? {
            Spec::Training(training) => Ok(*training),
            _ => Err(Error::spec("another kind")),
        }
    }

    fn refusal(body: &str) -> String {
        parse(body).expect_err("refused").to_string()
    }

    #[test]
    fn the_resolved_spec_reads_back_the_same() {
        let bodies = [
            "",
            "[loader]\nworkers = [0, 1, 2]\nprefetch = [1, 4]\ndrop_last = true\non_error = \"skip\"",
            "[data]\nsource = \"images\"\ntrain = \"a\"\ntest = \"b\"\nmean = [0.1, 0.2, 0.3]\nsd = 0.5",
            "[data]\nsource = \"parquet\"\npath = \"mnist\"\nlabel = \"fine_label\"",
            "[data]\nsource = \"parquet\"\ntrain = \"a/train-*.parquet\"\ntest = \"b\"\nimage = \"img\"",
            "[data]\nsource = \"digits\"\nexamples = 100\ntest_examples = 0\n[engine]\nname = [\"cpu\", \"torch\"]\nthreads = [1, 2]",
            "[engine]\nname = [\"cpu\", \"cudnn\"]\noptional = \"cudnn\"",
            "[sweep]\nbatch_size = [64, 512]\n[measure]\nrepetitions = 2\ntime_limit = \"90s\"\ncounters = false\nseed = 9",
        ];
        for body in bodies {
            let training = parse(body).expect("valid");
            let text = training.to_toml();
            assert_eq!(Spec::parse(&text, "again.toml").expect(&text), Spec::Training(Box::new(training)), "{text}");
        }
    }

    #[test]
    fn the_prefetch_depth_makes_no_cells_without_workers() {
        let training =
            parse("[sweep]\nbatch_size = [64, 128]\n[loader]\nworkers = [0, 1, 2]\nprefetch = [1, 4]").expect("valid");
        assert_eq!(training.cell_count(), 2 * (1 + 2 * 2));
    }

    #[test]
    fn what_has_no_meaning_in_a_training_is_refused_with_its_place() {
        assert!(refusal("[data]\nsource = \"minst\"").contains("did you mean `mnist`?"));
        assert!(refusal("[data]\nsource = \"idx\"").contains("needs `path`"));
        assert!(refusal("[data]\nsource = \"images\"").contains("needs `train`"));
        assert!(refusal("[data]\nsource = \"parquet\"").contains("needs `path`"));
        assert!(refusal("[data]\nsource = \"parquet\"\npath = \"a\"\ntest = \"b\"").contains("and not both"));
        assert!(refusal("[data]\nsource = \"images\"\ntrain = \"a\"\nlabel = \"b\"").contains("belong to"));
        assert!(refusal("[data]\nsource = \"digits\"\npath = \"x\"").contains("no path: the digits are drawn"));
        assert!(refusal("[measure]\nsmallest_jump = \"1%\"").contains("t.toml:7: measure.smallest_jump: unknown key"));
        assert!(refusal("[sweep]\nexecutes = 3").contains("no A/A control"));
        assert!(refusal("[loader]\nworker = 2").contains("did you mean `workers`?"));
        assert!(refusal("[loader]\nprefetch = 0").contains("from 1 to 1024"));
        let sweep =
            Spec::parse("version = 1\nkind = \"trianing\"\nname = \"t\"", "t.toml").expect_err("refused").to_string();
        assert!(sweep.contains("none of: sweep, training, pipeline, fit"), "{sweep}");
    }
}
