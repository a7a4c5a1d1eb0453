//! The size from which Winograd's algorithm is faster for a convolution. It is measured once on each machine, for each
//! number of threads and precision.
//!
//! Where it has not been measured, [`WinogradThreshold::default`] applies, which was found on one processor. `layers.parquet` says
//! which algorithm a step used.

use std::time::{Duration, Instant};

use super::blocking::{Blocking, Factors};
use super::op::activation::Rectifier;
pub use super::op::conv2d::WinogradThreshold;
use super::op::conv2d::{Convolution, Gradients};
use super::op::filters::Filters;
use super::thread_team::Team;
use crate::network::{Conv2d, Padding, Shape};
use crate::os::cache::Cache;
use crate::settings::Winograd;

/// Channels of the two convolutions that are timed; their images are [`SIDE`] on a side.
const CHANNELS: [usize; 2] = [128, 512];
const SIDE: usize = 8;
/// Batch sizes at which they are timed. An image has four tiles, each of which saves three times its own multiplications.
const IMAGES: [usize; 9] = [1, 2, 3, 4, 6, 8, 12, 16, 24];
const SAVED_BY_AN_IMAGE: f64 = 12.0;
/// The least number of turns in which each way is timed, and for how long in all: the fastest counts.
const TURNS: usize = 5;
const TIME: Duration = Duration::from_millis(20);
/// The version of the timed kernels; to be raised when they change.
const VERSION: &str = "2";

impl WinogradThreshold {
    /// The threshold of this machine, from the cache or else measured with the team, which takes some seconds.
    pub fn of_machine(machine: &str, team: &Team, factors: Factors, cache: &Cache) -> Self {
        let key = key(machine, team.threads(), factors);
        if let Some(known) = cache.get(&key).and_then(|bytes| Self::read(&bytes)) {
            return known;
        }
        let measured =
            team.install(|| Self(CHANNELS.map(|channels| crossing(|images| is_faster(channels, images, factors)))));
        cache.put(&key, measured.written().as_bytes());
        measured
    }

    fn written(self) -> String {
        let Self([small, large]) = self;
        format!("{small} {large}")
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let numbers: Option<Vec<f64>> =
            std::str::from_utf8(bytes).ok()?.split(' ').map(|number| number.parse().ok()).collect();
        Some(Self(numbers?.try_into().ok()?)).filter(|Self(least)| least.iter().all(|least| *least >= 0.0))
    }
}

/// What a measurement depends on.
fn key(machine: &str, threads: usize, factors: Factors) -> [String; 6] {
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let version = env!("CARGO_PKG_VERSION");
    [VERSION, version, build, machine, &threads.to_string(), &format!("{factors:?}")].map(str::to_owned)
}

/// Half-way between the last batch size at which the algorithm is slower and the first of two consecutive sizes at
/// which it is faster; infinite where there are no such two.
fn crossing(is_faster: impl Fn(usize) -> bool) -> f64 {
    let (mut slower, mut first) = (0, None);
    for images in IMAGES {
        match (is_faster(images), first) {
            (true, Some(first)) => return 0.5 * (slower + first) as f64 * SAVED_BY_AN_IMAGE,
            (true, None) => first = Some(images),
            (false, _) => (slower, first) = (images, None),
        }
    }
    f64::INFINITY
}

/// Whether a convolution's forward pass and both gradients together take less time by Winograd's algorithm than by its
/// alternative.
fn is_faster(channels: usize, images: usize, factors: Factors) -> bool {
    let layer = Conv2d { padding: Padding::all(1), bias: false, ..Conv2d::square(channels, 3) };
    let input = Shape::Maps { channels, height: SIDE, width: SIDE };
    let at = |threshold: f64| {
        let convolution =
            Convolution::new(images, input, &layer, Winograd::Any, WinogradThreshold([threshold; 2])).ok()?;
        Some(convolution.cut(Blocking { factors, ..Blocking::default() }))
    };
    let (Some(winograd), Some(other)) = (at(0.0), at(f64::INFINITY)) else { return false };
    let numbers = |count: usize| (0..count).map(|i| (i * 7 % 11) as f32 * 0.1 - 0.5).collect::<Vec<_>>();
    let (x, weight) = (numbers(images * input.count()), numbers(channels * channels * 9));
    let (dy, mut y, mut dx, mut dw) = (x.clone(), x.clone(), x.clone(), weight.clone());
    let mut time = |convolution: &Convolution| {
        let start = Instant::now();
        convolution.forward(&x, Filters { weight: &weight, bias: None, rectifier: Rectifier::Identity }, &mut y);
        convolution.backward(&x, &weight, &dy, Gradients { x: Some(&mut dx), weight: Some(&mut dw) });
        start.elapsed()
    };
    // The first turn allocates the scratch memory.
    let _ = (time(&winograd), time(&other));
    let (begun, mut turns) = (Instant::now(), 0);
    let (mut ours, mut others) = (Duration::MAX, Duration::MAX);
    while turns < TURNS || begun.elapsed() < TIME {
        ours = ours.min(time(&winograd));
        others = others.min(time(&other));
        turns += 1;
    }
    ours < others
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A cache in which a machine's threshold is known.
    pub fn known(folder: &std::path::Path, machine: &str, threads: usize, threshold: &str) -> Cache {
        let home = folder.as_os_str().to_owned();
        let cache = Cache::of_user("switches", &move |name| (name == "XDG_CACHE_HOME").then(|| home.clone()));
        cache.put(&key(machine, threads, Factors::Exact), threshold.as_bytes());
        cache
    }

    // An image saves the multiplications of 12 tiles. Slower up to 3 images and faster from 4 on gives 42; slower up to
    // 4 and faster from 6 on gives 60. A size that is faster once may be chance.
    #[test]
    fn the_crossing_is_between_the_last_slower_size_and_the_first_of_two_faster_ones() {
        assert_eq!(crossing(|images| images >= 4), 42.0);
        assert_eq!(crossing(|images| images == 3 || images >= 6), 60.0);
        assert_eq!(crossing(|_| true), 6.0);
        assert!(crossing(|_| false).is_infinite() && crossing(|images| images == 24).is_infinite());
    }

    #[test]
    fn it_is_measured_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = known(folder.path(), "a processor", 1, "17 inf");
        let team = Team::new(1).expect("a team");
        let threshold = WinogradThreshold::of_machine("a processor", &team, Factors::Exact, &cache);
        assert_eq!(threshold, WinogradThreshold([17.0, f64::INFINITY]));
        for unreadable in ["", "17", "17 x", "-1 5", "NaN 3", "1 2 3"] {
            assert_eq!(WinogradThreshold::read(unreadable.as_bytes()), None, "{unreadable}");
        }
        assert_eq!(
            WinogradThreshold::read(WinogradThreshold::default().written().as_bytes()),
            Some(WinogradThreshold::default())
        );
    }
}
