//! `kind = "pipeline"`: what feeds a training, stage by stage and together.
//!
//! ```
//! use batchstep::spec::Spec;
//! let text = "version = 1\nkind = \"pipeline\"\nname = \"a\"\n[model]\nname = \"mnist_cnn\"\n[loader]\nworkers = [0, 2]";
//! let Spec::Pipeline(pipeline) = Spec::parse(text, "a.toml")? else { unreachable!() };
//! assert_eq!((pipeline.data.sizes, pipeline.loader.workers), (vec![128], vec![0, 2]));
//! # Ok::<(), batchstep::error::Error>(())
//! ```

use std::path::PathBuf;

use super::decode::{
    Input, Sweep, checked_name, distinct, read_engine, read_model, read_sweep, read_train, spec_error, time_limit,
};
use super::section::{Field, Section};
use super::training::OnError;
use super::{MAX_CELLS, Model, encode};
use crate::error::{Error, Result};
use crate::settings::{EngineName, Grid, named};
use crate::units::Seconds;

/// A study of the input pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Names the run directory.
    pub name: String,
    /// Its `input` follows from the images: three channels of their size.
    pub model: Model,
    /// Axis. Default: 32.
    pub batch_sizes: Vec<usize>,
    /// Notices about values that are easily misread.
    pub notices: Vec<String>,
    /// Axis. Default: cpu; `auto` is the GPU's where there is one.
    pub engines: Vec<EngineName>,
    /// The engines that may be missing: one that cannot run here is left out with a notice. Default: none.
    pub optional: Vec<EngineName>,
    /// The axes of the tables `train` and `engine`.
    pub grid: Grid,
    /// Default: 1e-4.
    pub learning_rate: f64,
    pub data: Images,
    pub loader: Feeding,
    pub measure: Windows,
}

/// The images, which the program makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Images {
    /// Where they are made, in a folder of their own that is removed at the end. Default: the run directory.
    pub folder: Option<PathBuf>,
    /// Files of each format and size. Default: 256.
    pub images: usize,
    /// Axis: pixels of a side. Default: 128.
    pub sizes: Vec<usize>,
    /// Axis. Default: all three.
    pub formats: Vec<Format>,
    /// Axis. Default: both.
    pub caches: Vec<Cache>,
    /// So many files of each format and size are cut to half their length, to see what `on_error` does. Default: 0.
    pub damaged: usize,
}

named! {
    /// How an image is stored.
    Format {
        /// Its bytes, height x width x 3, without a header.
        Raw = "raw",
        Png = "png",
        /// With quality 90.
        Jpeg = "jpeg",
    }
}

named! {
    /// Where a file is when it is read.
    Cache {
        /// In the page cache: it was read before.
        Warm = "warm",
        /// On the storage device.
        Cold = "cold",
    }
}

/// How batches are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Feeding {
    /// Axis: threads that make batches; 0: the training thread itself. Default: 0, 1, 2, 4.
    pub workers: Vec<usize>,
    /// Batches that each worker keeps ready. Default: 2.
    pub prefetch: usize,
    /// Default: fail.
    pub on_error: OnError,
}

/// How long and how often is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// Blocks: each visits every cell once. Default: 3.
    pub repetitions: usize,
    /// Seconds of each stage by itself. Default: 0.1.
    pub stage_time_s: f64,
    /// Seconds of all stages together. Default: 0.5.
    pub together_time_s: f64,
    /// No visit begins later than this many seconds after the start. Default: 30 min.
    pub time_limit_s: f64,
    /// Default: 1.
    pub seed: u64,
}

impl Pipeline {
    /// The full resolved spec; parsing it again gives an equal study.
    pub fn to_toml(&self) -> String {
        write(self)
    }

    /// The number of cells.
    pub fn cell_count(&self) -> usize {
        let ways = self.engines.iter().map(|&engine| self.grid.count(engine)).fold(0, usize::saturating_add);
        let data = &self.data;
        let axes = [
            self.model.names.len(),
            self.batch_sizes.len(),
            data.sizes.len(),
            data.formats.len(),
            data.caches.len(),
            self.loader.workers.len(),
        ];
        axes.into_iter().fold(ways, usize::saturating_mul)
    }
}

pub(super) fn read(mut spec: Section, origin: &str) -> Result<Pipeline> {
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
    let (engines, optional) = match engine {
        None => (vec![EngineName::Cpu], Vec::new()),
        given => {
            let engine = read_engine(given, &mut grid)?;
            if engine.fixed_from.is_some() {
                return Err(Error::spec("a pipeline has no `fixed_from`").at(origin));
            }
            (engine.name, engine.optional)
        }
    };
    if engines.iter().any(|engine| matches!(engine, EngineName::Torch | EngineName::Synthetic)) {
        return Err(Error::spec("a pipeline is measured with an engine that our loader feeds")
            .at(origin)
            .hint("use the engines `auto`, `cpu`, `candle` and `cudnn`"));
    }
    let learning_rate = read_train(train, &engines, &mut grid)?;
    let Some(model) = model else {
        return Err(spec_error(origin, "model.name", "[model]\n        name = \"mnist_cnn\""));
    };
    let model = read_model(model, Input::FromData)?;
    if model.input.is_some() {
        return Err(Error::spec("the network's `input` follows from the images")
            .at(origin)
            .hint("leave `input` out of [model]; `size` in [data] sets it"));
    }
    let given = sweep.is_some();
    let Sweep { batch_sizes, executes, notices } = read_sweep(sweep)?;
    if executes.is_some() {
        return Err(Error::spec("`executes` belongs to sweeps: a pipeline has no A/A control").at(origin));
    }
    let pipeline = Pipeline {
        name,
        model,
        batch_sizes: if given { batch_sizes } else { vec![32] },
        notices,
        engines,
        optional,
        grid,
        learning_rate,
        data: read_data(data)?,
        loader: read_loader(loader)?,
        measure: read_measure(measure)?,
    };
    if pipeline.cell_count() > MAX_CELLS {
        let what = format!("the axes make {} cells, more than {MAX_CELLS}", pipeline.cell_count());
        return Err(Error::spec(what).at(origin).hint("shorten an axis, or make two specs of it"));
    }
    Ok(pipeline)
}

fn read_data(section: Option<Section>) -> Result<Images> {
    let mut data = Images {
        folder: None,
        images: 256,
        sizes: vec![128],
        formats: vec![Format::Raw, Format::Png, Format::Jpeg],
        caches: vec![Cache::Warm, Cache::Cold],
        damaged: 0,
    };
    let Some(mut section) = section else { return Ok(data) };
    data.folder = section.get("folder").map(|field| field.text()).transpose()?.map(PathBuf::from);
    if let Some(field) = section.get("images") {
        data.images = field.count(1, 1 << 20)?;
    }
    if let Some(field) = section.get("size") {
        data.sizes = distinct(&field, |field| field.count(1, 4096))?;
    }
    if let Some(field) = section.get("format") {
        data.formats = distinct(&field, |field| field.choice(Format::NAMES, Format::from_name))?;
    }
    if let Some(field) = section.get("cache") {
        data.caches = distinct(&field, |field| field.choice(Cache::NAMES, Cache::from_name))?;
    }
    if let Some(field) = section.get("damaged") {
        data.damaged = field.count(0, data.images.saturating_sub(1))?;
    }
    section.finish()?;
    Ok(data)
}

fn read_loader(section: Option<Section>) -> Result<Feeding> {
    let mut loader = Feeding { workers: vec![0, 1, 2, 4], prefetch: 2, on_error: OnError::Fail };
    let Some(mut section) = section else { return Ok(loader) };
    if let Some(field) = section.get("workers") {
        loader.workers = distinct(&field, |field| field.count(0, 1024))?;
    }
    if let Some(field) = section.get("prefetch") {
        loader.prefetch = field.count(1, 1024)?;
    }
    if let Some(field) = section.get("on_error") {
        loader.on_error = field.choice(OnError::NAMES, OnError::from_name)?;
    }
    section.finish()?;
    Ok(loader)
}

fn read_measure(section: Option<Section>) -> Result<Windows> {
    let mut measure =
        Windows { repetitions: 3, stage_time_s: 0.1, together_time_s: 0.5, time_limit_s: 1800.0, seed: 1 };
    let Some(mut section) = section else { return Ok(measure) };
    if let Some(field) = section.get("repetitions") {
        measure.repetitions = field.count(1, 100_000)?;
    }
    if let Some(field) = section.get("stage_time") {
        measure.stage_time_s = window(&field)?;
    }
    if let Some(field) = section.get("together_time") {
        measure.together_time_s = window(&field)?;
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

fn window(field: &Field) -> Result<f64> {
    let read = |text: &str| Seconds::parse(text).map(|Seconds(time)| time).filter(|time| (1e-3..=600.0).contains(time));
    field.parsed("a time from \"1ms\" to \"10min\", such as \"100ms\"", read)
}

fn write(pipeline: &Pipeline) -> String {
    use encode::{axes, batch_size, line, list, optional, quoted, section};
    let mut out = format!("version = 1\nkind = \"pipeline\"\nname = {:?}\n", pipeline.name);
    encode::network(&mut out, &pipeline.model);
    section(&mut out, "sweep");
    batch_size(&mut out, &pipeline.batch_sizes);
    section(&mut out, "train");
    axes(&mut out, &pipeline.grid, "train");
    line(&mut out, "learning_rate", format!("{:?}", pipeline.learning_rate));
    section(&mut out, "engine");
    line(&mut out, "name", list(pipeline.engines.iter().map(quoted)));
    optional(&mut out, &pipeline.optional);
    axes(&mut out, &pipeline.grid, "engine");
    let data = &pipeline.data;
    let counts = |values: &[usize]| list(values.iter().map(usize::to_string));
    section(&mut out, "data");
    if let Some(folder) = &data.folder {
        line(&mut out, "folder", format!("{:?}", folder.display().to_string()));
    }
    line(&mut out, "images", data.images);
    line(&mut out, "size", counts(&data.sizes));
    line(&mut out, "format", list(data.formats.iter().map(quoted)));
    line(&mut out, "cache", list(data.caches.iter().map(quoted)));
    line(&mut out, "damaged", data.damaged);
    let loader = &pipeline.loader;
    section(&mut out, "loader");
    line(&mut out, "workers", counts(&loader.workers));
    line(&mut out, "prefetch", loader.prefetch);
    line(&mut out, "on_error", quoted(loader.on_error));
    let measure = &pipeline.measure;
    section(&mut out, "measure");
    line(&mut out, "repetitions", measure.repetitions);
    line(&mut out, "stage_time", quoted(Seconds(measure.stage_time_s)));
    line(&mut out, "together_time", quoted(Seconds(measure.together_time_s)));
    line(&mut out, "time_limit", quoted(Seconds(measure.time_limit_s)));
    line(&mut out, "seed", measure.seed);
    out
}

#[cfg(test)]
mod tests {
    use super::super::Spec;
    use super::*;

    fn parse(body: &str) -> Result<Pipeline> {
        let text = format!("version = 1\nkind = \"pipeline\"\nname = \"p\"\n[model]\nname = \"mnist_cnn\"\n{body}");
        match Spec::parse(&text, "p.toml")? {
            Spec::Pipeline(pipeline) => Ok(*pipeline),
            _ => Err(Error::spec("another kind")),
        }
    }

    #[test]
    fn the_resolved_spec_reads_back_the_same() {
        let bodies = [
            "",
            "[data]\nfolder = \"/mnt/disk\"\nimages = 10\nsize = [32, 64]\nformat = \"jpeg\"\ncache = \"cold\"\ndamaged = 2",
            "[loader]\nworkers = [1, 8]\nprefetch = 3\non_error = \"skip\"\n[measure]\nstage_time = \"20ms\"\nseed = 7",
            "[sweep]\nbatch_size = [16, 64]\n[engine]\nname = [\"cpu\", \"candle\"]\nthreads = [1, 2]",
            "[engine]\nname = [\"cpu\", \"cudnn\"]\noptional = \"cudnn\"",
            "[train]\nprecision = \"fp32\"\ndata = [\"pageable\", \"pinned\"]\n[engine]\nname = \"cudnn\"",
        ];
        for body in bodies {
            let first = parse(body).expect("valid");
            let again = match Spec::parse(&first.to_toml(), "again.toml").expect("valid") {
                Spec::Pipeline(pipeline) => *pipeline,
                _ => panic!("another kind"),
            };
            assert_eq!(again, first, "{}", first.to_toml());
        }
        // By hand: the defaults have 3 formats, 2 caches and 4 numbers of workers; then 2 x 2 x 2 of each.
        assert_eq!(
            (parse(bodies[0]).expect("valid").cell_count(), parse(bodies[3]).expect("valid").cell_count()),
            (24, 192)
        );
    }

    #[test]
    fn what_has_no_meaning_is_refused_with_its_place() {
        let refusal = |body: &str| parse(body).expect_err("refused").to_string();
        assert!(refusal("[data]\nformat = \"jpg\"").contains("did you mean `jpeg`?"));
        assert!(refusal("[data]\nimages = 4\ndamaged = 4").contains("from 0 to 3"));
        assert!(refusal("[measure]\nstage_time = \"0s\"").contains("\"100ms\""));
        assert!(refusal("[engine]\nname = \"torch\"").contains("use the engines `auto`, `cpu`, `candle` and `cudnn`"));
        assert!(
            refusal("[engine]\nname = \"cudnn\"\nalgorithms = \"fixed\"\nfixed_from = \"results/a\"")
                .contains("a pipeline has no `fixed_from`")
        );
        assert!(refusal("[loader]\nwrokers = 2").contains("did you mean `workers`?"));
    }
}
