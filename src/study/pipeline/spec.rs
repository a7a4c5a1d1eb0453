//! `kind = "pipeline"`: what feeds a training, stage by stage and together.
//!
//! ```
//! use batchstep::study::Spec;
//! let text = "version = 1\nkind = \"pipeline\"\nname = \"a\"\n[model]\nname = \"mnist_cnn\"\n[loader]\nworkers = [0, 2]";
//! let Spec::Pipeline(pipeline) = Spec::parse(text, "a.toml")? else { unreachable!() };
//! assert_eq!((pipeline.data.sizes, pipeline.loader.workers), (vec![128], vec![0, 2]));
//! # Ok::<(), batchstep::error::Error>(())
//! ```

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::settings::{EngineName, named};
use crate::spec::keys::{Table, count, keys, list, name, path, seed, time, time_limit};
use crate::spec::{Input, Section, Subject, Usual, refuse_many};
use crate::study::Study;
use crate::study::training::spec::OnError;

/// A study of the input pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// The networks' `input` follows from the images: three channels of their size. Default: a batch size of 32.
    pub subject: Subject,
    pub data: Images,
    pub loader: Loading,
    pub measure: Windows,
}

keys! {
    /// The images, which the program makes.
    Images in "data" {
        /// Where they are made, in a folder of their own that is removed at the end. Default: the run directory.
        folder: Option<PathBuf> = None, "folder", path().optional();
        /// Files of each format and size. Default: 256.
        images: usize = 256, "images", count(1, 1 << 20);
        /// Axis: pixels of a side. Default: 128.
        sizes: Vec<usize> = vec![128], "size", list(count(1, 4096));
        /// Axis. Default: all three.
        formats: Vec<Format> = Format::ALL.to_vec(), "format", list(name(Format::NAMES, Format::from_name));
        /// Axis. Default: both.
        caches: Vec<Cache> = Cache::ALL.to_vec(), "cache", list(name(Cache::NAMES, Cache::from_name));
        /// The number of files of each format and size that are cut to half their length, to see what `on_error` does. Default: 0.
        damaged: usize = 0, "damaged", count(0, 1 << 20);
    }
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

keys! {
    /// How batches are made.
    Loading in "loader" {
        /// Axis: threads that make batches; 0: the training thread itself. Default: 0, 1, 2, 4.
        workers: Vec<usize> = vec![0, 1, 2, 4], "workers", list(count(0, 1024));
        /// Batches that each worker keeps ready. Default: 2.
        prefetch: usize = 2, "prefetch", count(1, 1024);
        /// Default: fail.
        on_error: OnError = OnError::Fail, "on_error", name(OnError::NAMES, OnError::from_name);
    }
}

keys! {
    /// How long and how often is measured.
    Windows in "measure" {
        /// Blocks: each visits every cell once. Default: 3.
        repetitions: usize = 3, "repetitions", count(1, 100_000);
        /// Seconds of each stage by itself. Default: 0.1.
        stage_time_s: f64 = 0.1, "stage_time", time(1e-3, 600.0, WINDOW);
        /// Seconds of all stages together. Default: 0.5.
        together_time_s: f64 = 0.5, "together_time", time(1e-3, 600.0, WINDOW);
        /// No visit begins later than this many seconds after the start. Default: 30 min.
        time_limit_s: f64 = 1800.0, "time_limit", time_limit();
        /// Default: 1.
        seed: u64 = 1, "seed", seed();
    }
}

const WINDOW: &str = "a time from \"1ms\" to \"10min\", such as \"100ms\"";

/// An engine that our loader feeds.
const USUAL: Usual = Usual {
    kind: Pipeline::KIND,
    model: None,
    input: Input::FromData,
    batch_size: 32,
    learning_rate: 1e-4,
    settings: &[],
    refused: &[EngineName::Torch, EngineName::Synthetic],
};

impl Pipeline {
    /// Reads the keys of a spec.
    pub(crate) fn of(mut spec: Section, origin: &str) -> Result<Self> {
        let (mut data, loader, measure) = (spec.section("data")?, spec.section("loader")?, spec.section("measure")?);
        let damaged = data.as_mut().and_then(|data| data.get("damaged"));
        let pipeline = Self {
            subject: Subject::read(spec, &USUAL, origin)?,
            data: Images::read(data)?,
            loader: Loading::read(loader)?,
            measure: Windows::read(measure)?,
        };
        if pipeline.subject.model.input.is_some() {
            return Err(Error::spec("the network's `input` follows from the images")
                .at(origin)
                .hint("leave `input` out of [model]; `size` in [data] sets it"));
        }
        if let Some(field) = damaged {
            field.count(0, pipeline.data.images - 1)?;
        }
        refuse_many(pipeline.cell_count(), origin)?;
        Ok(pipeline)
    }

    /// The number of cells.
    pub fn cell_count(&self) -> usize {
        let Images { sizes, formats, caches, .. } = &self.data;
        self.subject.cell_count(&[sizes.len(), formats.len(), caches.len(), self.loader.workers.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Spec;
    use crate::study::tests::read_back;

    fn parse(body: &str) -> Result<Pipeline> {
        let body = format!("[model]\nname = \"mnist_cnn\"\n{body}");
        crate::study::tests::parse("pipeline", &body, Pipeline::of)
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
        read_back(bodies.map(parse), Spec::Pipeline);
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
        assert!(
            refusal("[data]\nimages = 4\ndamaged = 4")
                .contains("t.toml:8: data.damaged: expected a whole number from 0 to 3")
        );
        assert!(refusal("[measure]\nstage_time = \"0s\"").contains("\"100ms\""));
        assert!(
            refusal("[engine]\nname = \"torch\"").contains("the engines that can: `auto`, `cpu`, `candle`, `cudnn`")
        );
        assert!(
            refusal("[engine]\nname = \"cudnn\"\nalgorithms = \"fixed\"\nfixed_from = \"results/a\"")
                .contains("a pipeline has no `fixed_from`")
        );
        assert!(refusal("[loader]\nwrokers = 2").contains("did you mean `workers`?"));
    }
}
