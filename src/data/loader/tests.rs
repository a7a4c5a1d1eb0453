use std::path::PathBuf;

use super::*;
use crate::data::{Normal, Source};
use crate::network::Shape;

const EACH: usize = 4;

/// Examples whose bytes are their number; some cannot be read.
#[derive(Debug)]
struct Numbered {
    count: usize,
    damaged: Vec<usize>,
    dies: Option<usize>,
}

impl Source for Numbered {
    fn count(&self) -> usize {
        self.count
    }

    fn read(&self, index: usize, bytes: &mut [u8]) -> Result<u32> {
        // So that workers finish out of order.
        std::thread::sleep(std::time::Duration::from_micros((index as u64 * 7919) % 300));
        if self.damaged.contains(&index) {
            return Err(Error::data("the image cannot be read").at(self.name(index)));
        }
        assert!(self.dies != Some(index), "the reader of this test");
        bytes.fill(index as u8);
        Ok(index as u32 % 10)
    }

    fn name(&self, index: usize) -> String {
        PathBuf::from("train/7").join(format!("{index}.png")).display().to_string()
    }

    fn fingerprint(&self) -> u64 {
        0
    }
}

fn examples(source: Numbered) -> Arc<Examples> {
    let normal = Normal { mean: vec![0.0], sd: vec![1.0 / 255.0] };
    Arc::new(Examples::new(Box::new(source), normal, Shape::Flat(EACH)))
}

fn sound(count: usize) -> Arc<Examples> {
    examples(Numbered { count, damaged: Vec::new(), dies: None })
}

fn options(workers: usize, prefetch: usize) -> Options {
    Options { batch_size: 8, workers, prefetch, shuffle: true, drop_last: false, seed: 11, skip: false }
}

/// The batches of an epoch: numbers and labels.
fn epoch(loader: &mut Loader, epoch: usize) -> Vec<(Vec<f32>, Vec<u32>)> {
    loader.begin(epoch);
    let mut batches = Vec::new();
    while let Some(batch) = loader.next_batch().expect("a batch") {
        batches.push((batch.inputs.clone(), batch.labels.clone()));
    }
    assert!(loader.next_batch().expect("the end stays the end").is_none());
    batches
}

#[test]
fn the_batches_are_the_same_in_the_same_order_whatever_the_workers() {
    let data = sound(61);
    let mut alone = Loader::new(data.clone(), options(0, 1)).expect("a loader");
    let expected: Vec<_> = (0..2).map(|number| epoch(&mut alone, number)).collect();
    for (workers, prefetch) in [(1, 1), (1, 4), (2, 1), (3, 2), (7, 3)] {
        let mut loader = Loader::new(data.clone(), options(workers, prefetch)).expect("a loader");
        // A broken-off epoch leaves nothing behind.
        loader.begin(5);
        loader.next_batch().expect("a batch");
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(epoch(&mut loader, number), *expected, "{workers} workers, {prefetch} ahead");
        }
    }
}

#[test]
fn an_epoch_has_every_example_once_in_its_own_order() {
    let mut loader = Loader::new(sound(61), options(2, 2)).expect("a loader");
    let mut orders = Vec::new();
    for number in 0..2 {
        let batches = epoch(&mut loader, number);
        let sizes: Vec<usize> = batches.iter().map(|(_, labels)| labels.len()).collect();
        assert_eq!(sizes, [8, 8, 8, 8, 8, 8, 8, 5], "the last batch is what is left, as in PyTorch's DataLoader");
        let order: Vec<u32> =
            batches.iter().flat_map(|(inputs, _)| inputs.iter().step_by(EACH).map(|x| x.round() as u32)).collect();
        let labels: Vec<u32> = batches.iter().flat_map(|(_, labels)| labels.clone()).collect();
        assert!(order.iter().zip(labels).all(|(number, label)| number % 10 == label));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..61).collect::<Vec<u32>>());
        orders.push(order);
    }
    assert_ne!(orders[0], orders[1]);
    let whole = Options { drop_last: true, shuffle: false, ..options(1, 2) };
    let batches = epoch(&mut Loader::new(sound(61), whole).expect("a loader"), 0);
    assert_eq!(batches.len(), 7);
    assert_eq!(batches[6].0[0].round(), 48.0);
}

#[test]
fn a_damaged_example_is_an_error_that_names_its_file_or_is_left_out() {
    for workers in [0, 2] {
        let damaged = || examples(Numbered { count: 20, damaged: vec![3, 17], dies: None });
        let in_order = Options { shuffle: false, ..options(workers, 2) };
        let mut loader = Loader::new(damaged(), in_order).expect("a loader");
        loader.begin(0);
        let error = loader.next_batch().expect_err("example 3 is in the first batch").to_string();
        assert!(error.starts_with("train/7/3.png: the image cannot be read"), "{error}");
        let mut loader = Loader::new(damaged(), Options { skip: true, ..in_order }).expect("a loader");
        loader.begin(0);
        let batch = loader.next_batch().expect("goes on").expect("a batch");
        assert_eq!((batch.labels.as_slice(), batch.inputs.len()), ([0, 1, 2, 4, 5, 6, 7].as_slice(), 7 * EACH));
        assert!(batch.skipped.len() == 1 && batch.skipped[0].contains("3.png"));
        assert_eq!(epoch(&mut loader, 0).iter().map(|(_, labels)| labels.len()).sum::<usize>(), 18);
    }
}

#[test]
fn a_worker_that_dies_is_an_error_that_names_the_file() {
    for workers in [0, 2] {
        let data = examples(Numbered { count: 20, damaged: Vec::new(), dies: Some(5) });
        let mut loader = Loader::new(data, Options { shuffle: false, ..options(workers, 2) }).expect("a loader");
        loader.begin(0);
        let error = loader.next_batch().expect_err("example 5 is in the first batch").to_string();
        assert!(error.starts_with("train/7/5.png: a worker of the loader died"), "{error}");
        // The others go on.
        assert_eq!(loader.next_batch().expect("a batch").map(|batch| batch.labels.len()), Some(8));
    }
}
