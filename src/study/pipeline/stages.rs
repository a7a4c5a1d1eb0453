//! Each stage by itself: a number of threads do nothing else for a while, and the work that they complete is counted.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::files::{Buffer, Files};
use super::scheduling::{Clocks, thread_delay};
use super::storage_bytes;
use crate::data::loader::{Loader, Options};
use crate::data::{Examples, Image, Labelled, Normal};
use crate::device::counters::thread_time;
use crate::engine::train::{Batch, Trainer};
use crate::error::{Error, Result};
use crate::network::Shape;

/// Images that the transform works on in turn: few, so that they stay in a core's cache, where decoding leaves them.
const IN_TURN: usize = 4;
/// Different images that are decoded in turn: so many that the processor's branch predictor does not learn their codes by heart.
const VARIED: usize = 64;
/// Contents of files that are held for decoding, at most, beyond the first few.
const HELD_BYTES: usize = 8 << 20;
/// Examples of an epoch of the loader by itself.
const MANY: usize = 100_000;

/// What was done in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    pub threads: usize,
    pub images: u64,
    pub elapsed_s: f64,
    /// Processor time of all threads.
    pub cpu_s: f64,
    /// The time in which a thread was ready and had no core, the mean of the threads; `None` of more than the stage's own threads.
    pub delay_s: Option<f64>,
    /// Bytes of the files that were read.
    pub file_bytes: u64,
    /// Bytes that came from the storage device meanwhile; `None` where the kernel does not say.
    pub storage_bytes: Option<u64>,
}

impl Done {
    /// Both together: what another while added.
    pub fn and(self, more: Self) -> Self {
        let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        Self {
            threads: self.threads,
            images: self.images + more.images,
            elapsed_s: self.elapsed_s + more.elapsed_s,
            cpu_s: self.cpu_s + more.cpu_s,
            delay_s: sum(self.delay_s, more.delay_s),
            file_bytes: self.file_bytes + more.file_bytes,
            storage_bytes: self.storage_bytes.zip(more.storage_bytes).map(|(a, b)| a + b),
        }
    }
}

/// Runs `work` on `threads` threads for `seconds`: each is given its first image, and takes every `threads`-th one.
///
/// # Errors
/// The first one of `work`, which gives the bytes that it read.
fn for_a_while<W>(threads: usize, seconds: f64, make: impl Fn() -> W + Sync) -> Result<Done>
where
    W: FnMut(usize) -> Result<usize>,
{
    let barrier = Barrier::new(threads + 1);
    let limit = Duration::from_secs_f64(seconds);
    // What one thread did, with its beginning and its end.
    let one = |thread: usize| -> Result<(Instant, Instant, Done)> {
        // The first image pays for memory and for cold caches. A thread that panics on it must still reach the barrier: otherwise the other
        // threads, and the thread that waits for them, would wait forever.
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut work = make();
            let first = work(thread);
            (work, first)
        }));
        barrier.wait();
        let (mut work, first) = begun.map_err(|_| died())?;
        first?;
        let (cpu, delay, start) = (thread_time(), thread_delay(), Instant::now());
        let (mut index, mut done) = (thread, Done::default());
        while done.images == 0 || start.elapsed() < limit {
            index += threads;
            done.file_bytes += work(index)? as u64;
            done.images += 1;
        }
        let end = Instant::now();
        done.cpu_s = thread_time() - cpu;
        done.delay_s = Some((thread_delay() - delay) / threads as f64);
        Ok((start, end, done))
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let one = &one;
                    move || one(thread)
                })
            })
            .collect();
        barrier.wait();
        let stored = storage_bytes();
        // All of them: the scope itself panics over one that has died and was not asked for.
        let shares: Vec<Result<_>> =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err(died()))).collect();
        let shares = shares.into_iter().collect::<Result<Vec<_>>>()?;
        // By the threads' own clocks: this one may get a core later than they do.
        let (first, last) = (shares.iter().map(|share| share.0).min(), shares.iter().map(|share| share.1).max());
        let elapsed_s = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        let storage_bytes = storage_bytes().zip(stored).map(|(after, before)| after.saturating_sub(before));
        let done = shares.into_iter().map(|(.., done)| done).reduce(Done::and).unwrap_or_default();
        Ok(Done { threads, elapsed_s, storage_bytes, ..done })
    })
}

fn died() -> Error {
    Error::data("a thread of this stage died over an image")
}

/// Sound images of a set, in memory, for the stages that read nothing.
#[derive(Debug)]
pub struct Loaded {
    contents: Vec<ImageContent>,
    /// The images of the first contents.
    images: Vec<Image>,
}

/// A file's contents.
#[derive(Debug)]
struct ImageContent {
    /// Its place in the set.
    index: usize,
    bytes: Vec<u8>,
}

impl Loaded {
    /// The first sound images of the files.
    ///
    /// # Errors
    /// The error of the last file, if none is sound.
    pub fn new(files: &Files) -> Result<Self> {
        let mut buffer = Buffer::default();
        let mut loaded = Self { contents: Vec::new(), images: Vec::new() };
        let (mut held, mut last) = (0, None);
        for index in 0..files.paths.len() {
            let read = files.contents(index, &mut buffer).map(<[u8]>::to_vec);
            match read.and_then(|bytes| Ok((files.decode(index, &bytes)?, bytes))) {
                Ok((image, bytes)) => {
                    held += bytes.len();
                    loaded.contents.push(ImageContent { index, bytes });
                    if loaded.images.len() < IN_TURN {
                        loaded.images.push(image);
                    }
                }
                Err(error) => last = Some(error),
            }
            let count = loaded.contents.len();
            if count == VARIED || count >= IN_TURN && held > HELD_BYTES {
                break;
            }
        }
        if loaded.contents.is_empty() {
            return Err(last.unwrap_or_else(|| Error::data("no image can be opened")));
        }
        Ok(loaded)
    }

    fn content(&self, index: usize) -> &ImageContent {
        &self.contents[index % self.contents.len()]
    }

    /// An image, and the content that it was decoded from.
    fn image(&self, index: usize) -> (&Image, &ImageContent) {
        let place = index % self.images.len();
        (&self.images[place], &self.contents[place])
    }
}

/// How a stage is measured.
#[derive(Clone, Copy, Debug)]
pub struct While {
    pub threads: usize,
    pub seconds: f64,
}

/// Read: the contents of the files, one after the other.
pub fn read(files: &Files, during: While) -> Result<Done> {
    for_a_while(during.threads, during.seconds, || {
        let mut buffer = Buffer::default();
        move |index| Ok(black_box(files.contents(index, &mut buffer)?).len())
    })
}

/// Decode: contents in memory to pixels.
pub fn decode(files: &Files, loaded: &Loaded, during: While) -> Result<Done> {
    for_a_while(during.threads, during.seconds, || {
        |index| {
            let content = loaded.content(index);
            drop(black_box(files.decode(content.index, &content.bytes)?));
            Ok(0)
        }
    })
}

/// Transform: pixels to the planes of the network's input, normalised, into the memory of a batch.
pub fn transform(files: &Files, loaded: &Loaded, batch: usize, during: While) -> Result<Done> {
    let each = files.shape().count();
    let normal = Normal::symmetric(files.shape().channels());
    for_a_while(during.threads, during.seconds, || {
        let (mut planes, mut memory) = (vec![0; each], vec![0.0f32; batch * each]);
        let (normal, mut place) = (&normal, 0);
        move |index| {
            let (image, content) = loaded.image(index);
            files.planes(content.index, image, &mut planes)?;
            normal.apply(&planes, &mut memory[place * each..][..each]);
            place = (place + 1) % batch;
            black_box(&memory);
            Ok(0)
        }
    })
}

/// Batch: the loader's own work, which is its order, its queue and the hand-over, on examples of one byte in memory.
pub fn batch(options: Options, during: While) -> Result<Done> {
    let still = Labelled { name: "one byte".to_owned(), pixels: vec![0; MANY], labels: vec![0; MANY] };
    let examples = Arc::new(Examples::new(Box::new(still), Normal::symmetric(1), Shape::Flat(1)));
    let workers = if options.workers == 0 { 0 } else { during.threads };
    let mut loader = Loader::new(examples, Options { workers, ..options })?;
    loader.begin(0);
    counted(during, || match loader.next_batch()? {
        Some(batch) => Ok(batch.labels.len() as u64),
        None => {
            loader.begin(1);
            Ok(0)
        }
    })
}

/// Counts the images that `work` makes for that long or a little longer, and the processor time of the whole process meanwhile.
pub fn counted(during: While, mut work: impl FnMut() -> Result<u64>) -> Result<Done> {
    let (clocks, start) = (Clocks::now(), Instant::now());
    let mut done = Done { threads: during.threads, ..Done::default() };
    while done.images == 0 || start.elapsed().as_secs_f64() < during.seconds {
        done.images += work()?;
    }
    done.elapsed_s = start.elapsed().as_secs_f64();
    done.cpu_s = Clocks::now().since(clocks).own_s;
    Ok(done)
}

/// What the training thread does with a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Consumed {
    /// Into the engine's memory.
    pub copy: Done,
    pub step: Done,
}

/// A batch that lies ready.
#[derive(Clone, Debug)]
pub struct Ready {
    pub inputs: Vec<f32>,
    pub labels: Vec<u32>,
}

impl Ready {
    pub fn batch(&self) -> Batch<'_> {
        Batch { inputs: &self.inputs, labels: &self.labels }
    }
}

/// Copy and step: the trainer takes the ready batches in turn. The first step does not count.
pub fn step(trainer: &mut dyn Trainer, batches: &[Ready], during: While) -> Result<Consumed> {
    let mut in_turn = batches.iter().cycle();
    let mut next = || in_turn.next().ok_or_else(|| Error::data("no batch is ready"));
    trainer.step(next()?.batch())?;
    let (clocks, start) = (Clocks::now(), Instant::now());
    let (mut images, mut copy_s) = (0, 0.0);
    while images == 0 || start.elapsed().as_secs_f64() < during.seconds {
        let batch = next()?;
        copy_s += trainer.step(batch.batch())?.h2d_s.unwrap_or(0.0);
        images += batch.labels.len() as u64;
    }
    let elapsed_s = start.elapsed().as_secs_f64();
    let cpu_s = Clocks::now().since(clocks).training_s;
    // The copy is delayed as often as the step is, and computes as much of its time. A GPU times it by a clock of its own.
    let copy = (copy_s / elapsed_s).min(1.0);
    let part = |share: f64| Done {
        threads: during.threads,
        images,
        elapsed_s: elapsed_s * share,
        cpu_s: cpu_s * share,
        ..Done::default()
    };
    Ok(Consumed { copy: part(copy), step: part(1.0 - copy) })
}

impl Consumed {
    /// Copy and step as one.
    pub fn whole(self) -> Done {
        let Self { copy, step } = self;
        Done { images: step.images, ..copy.and(step) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In vain if the others waited for the dead thread: the test would never end.
    #[test]
    fn a_decoder_that_dies_over_the_first_image_ends_the_stage_with_an_error() {
        let dies = |image: usize| if image == 1 { panic!("the decoder of this test") } else { Ok(1) };
        let error = for_a_while(3, 0.001, || dies).expect_err("refused").to_string();
        assert_eq!(error, "a thread of this stage died over an image");
        let later = |image: usize| if image > 3 { panic!("the decoder of this test") } else { Ok(1) };
        // Each thread dies over its second or third image, long before this time is over.
        assert!(for_a_while(3, 60.0, || later).is_err());
    }
}
