//! Compares the copy of the batch over the PCIe link with the jumps: how much of each jump could the copy cause?
//!
//! The 2022 study blamed the 16 lanes of its link for steps of 16 images. A link stripes every packet over all of its
//! lanes, byte by byte (PCI Express Base Specification 3.0, 4.2.2.1), so a lane does not carry whole examples. A copy
//! takes its bytes divided by the link's rate, so each further example adds the same time. Where the steps copy their
//! batches, the measured times of the copies say what they add. Where no time was measured, the bytes of the whole
//! batch divided by the link's rate are the most that they could add.

use std::collections::BTreeMap;

use super::Setup;
use crate::analysis::Series;
use crate::detect::Findings;
use crate::network::Network;
use crate::settings::DataPath;

/// Bytes of a float32, the type of the inputs.
const SCALAR: u64 = 4;

/// A link with its width and generation in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    pub lanes: u32,
    pub generation: u32,
}

impl Link {
    /// The link of the GPUs of the 2022 study and of most servers of its time.
    pub const SIXTEEN_OF_GENERATION_3: Self = Self { lanes: 16, generation: 3 };

    /// The most bytes per second in one direction: transfers per second and lane, less the line code (8b/10b, from
    /// generation 3 on 128b/130b, from 6 on 242 bytes of 256). Packet headers take another 5 to 20 %. `None` for a
    /// generation that does not exist.
    ///
    /// ```
    /// use batchstep::analysis::mechanisms::copying::Link;
    /// // 8 GT/s x 128/130 / 8 bits x 16 lanes
    /// assert_eq!((Link { lanes: 16, generation: 3 }.rate().unwrap() / 1e6).round(), 15_754.0);
    /// ```
    pub fn rate(self) -> Option<f64> {
        let (transfers, coded) = match self.generation {
            1 => (2.5e9, 8.0 / 10.0),
            2 => (5.0e9, 8.0 / 10.0),
            3 => (8.0e9, 128.0 / 130.0),
            4 => (16.0e9, 128.0 / 130.0),
            5 => (32.0e9, 128.0 / 130.0),
            6 => (64.0e9, 242.0 / 256.0),
            _ => return None,
        };
        Some(transfers * coded / 8.0 * f64::from(self.lanes))
    }
}

/// What the copies of a series' batches have to do with its jumps.
#[derive(Clone, Debug, PartialEq)]
pub struct Copying {
    pub data: DataPath,
    pub example_bytes: u64,
    pub link: Option<Link>,
    pub jumps: Vec<Copied>,
    pub period: Option<f64>,
    pub copies: Vec<CopyTime>,
}

impl Copying {
    pub fn period_is_lanes(&self) -> bool {
        self.link.zip(self.period).is_some_and(|(link, period)| f64::from(link.lanes) == period)
    }

    /// The copies at up to `each` batch sizes on either side of a jump.
    pub fn around(&self, jump: &Copied, each: usize) -> &[CopyTime] {
        let before = self.copies.partition_point(|copy| copy.batch_size <= jump.after);
        &self.copies[before.saturating_sub(each)..(before + each).min(self.copies.len())]
    }
}

/// The copy of the batch in a step, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyTime {
    pub batch_size: f64,
    pub seconds: f64,
    /// Bytes of the inputs divided by that time.
    pub bytes_per_s: f64,
}

/// The copies beside a jump.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copied {
    pub after: f64,
    pub next: f64,
    /// The size of the jump in seconds.
    pub size_s: f64,
    /// The time that the whole next batch takes at the link's rate.
    pub batch_s: Option<f64>,
    /// How much longer the copy takes at `next` than at `after`; both were measured.
    pub longer_s: Option<f64>,
}

/// A copy causes a jump where it accounts for at least this part of it.
const MOST: f64 = 0.5;

impl Copied {
    /// Whether bytes divided by bandwidth fit the jump's size: the copy grows there by at least half of the jump or,
    /// where that was not measured, copying the whole batch takes at least that long. `None` where neither is known.
    pub fn fits(&self) -> Option<bool> {
        let part =
            self.longer_s.map(|longer| longer / self.size_s).or(self.batch_s.map(|all| all / self.size_s.abs()))?;
        Some(part >= MOST)
    }
}

pub fn example_bytes(network: &Network) -> u64 {
    network.input().count() as u64 * SCALAR
}

/// `times` are the median seconds of the copy of the batch, by cell number. `None` where no link between the data and the device is known, as on a CPU.
pub fn of(series: &Series, findings: &Findings, setup: Setup, times: &BTreeMap<i64, f64>) -> Option<Copying> {
    let fact = |name: &str| series.facts.get(name)?.parse::<f64>().ok().filter(|n| *n >= 1.0).map(|n| n as u32);
    let link = fact("pcie_link_width").zip(fact("pcie_link_generation"));
    let link = link.map(|(lanes, generation)| Link { lanes, generation });
    let second = series.seconds_per_unit()?;
    if link.is_none() && !series.cells.iter().any(|cell| times.contains_key(cell)) {
        return None;
    }
    let data = setup.settings.data;
    let example_bytes = example_bytes(setup.network);
    // The cells of a series lie in the plan in the order of its batch sizes.
    let cell_of = |point: usize| {
        let all = series.cells.len() == findings.points.len();
        series.cells.iter().nth(point).filter(|_| all)
    };
    let copied = |jump: &crate::detect::Jump| {
        let at = findings.points.iter().position(|point| point.x == jump.after)?;
        let next = findings.points.get(at + 1)?.x;
        let time = |point: usize| times.get(cell_of(point)?).copied();
        Some(Copied {
            after: jump.after,
            next,
            size_s: jump.size * second,
            batch_s: link.and_then(Link::rate).map(|rate| next * example_bytes as f64 / rate),
            longer_s: time(at).zip(time(at + 1)).map(|(before, after)| after - before),
        })
    };
    let jumps = findings.jumps.iter().filter_map(copied).collect();
    let period = findings.period.as_ref().map(|period| period.value);
    let copy = |(place, point): (usize, &crate::detect::Point)| {
        let seconds = *times.get(cell_of(place)?)?;
        let bytes_per_s = point.x * example_bytes as f64 / seconds;
        Some(CopyTime { batch_size: point.x, seconds, bytes_per_s })
    };
    let copies = findings.points.iter().enumerate().filter_map(copy).filter(|copy| copy.bytes_per_s.is_finite());
    Some(Copying { data, example_bytes, link, jumps, period, copies: copies.collect() })
}

#[cfg(test)]
mod tests {
    use super::super::MachineMemory;
    use super::*;
    use crate::detect::{self, Observation};
    use crate::network::Shape;
    use crate::settings::{EngineName, Settings};

    /// VGG16 at 1 to 40 images of 3 x 224 x 224, at 10 ms per image and 4 ms more beyond 16, on a link of 16 lanes of
    /// generation 3.
    fn tried(data: DataPath, facts: &[(&str, &str)], times: &BTreeMap<i64, f64>) -> Option<Copying> {
        let input = Shape::Maps { channels: 3, height: 224, width: 224 };
        let network = Network::by_name("vgg16", input, 1000).expect("a network");
        let time = |x: f64| 0.005 + 0.01 * x + if x > 16.0 { 0.004 } else { 0.0 };
        let steps = (1..=40).map(f64::from).map(|x| Observation::new(x, time(x)).into()).collect();
        let facts = facts.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let series = Series { cells: (0..40).collect(), facts, ..Series::planted(Vec::new(), steps) };
        let settings = Settings { data, ..Settings::default() };
        let machine = MachineMemory::default();
        let setup = Setup { engine: EngineName::Cudnn, network: &network, settings: &settings, machine: &machine };
        of(&series, &series.find(&detect::Settings::default()), setup, times)
    }

    // By hand: 3 x 224 x 224 x 4 = 602,112 bytes; 17 of them over 15.754 GB/s take 0.6497 ms.
    #[test]
    fn a_copy_adds_at_most_a_batch_over_the_rate_of_the_link() {
        let sixteen = [("pcie_link_width", "16"), ("pcie_link_generation", "3")];
        let copying = tried(DataPath::Pageable, &sixteen, &BTreeMap::new()).expect("a link");
        assert_eq!((copying.example_bytes, copying.link), (602_112, Some(Link::SIXTEEN_OF_GENERATION_3)));
        let [jump] = copying.jumps[..] else { panic!("{copying:?}") };
        assert_eq!((jump.after, jump.next, jump.longer_s), (16.0, 17.0, None));
        assert!((jump.size_s - 0.004).abs() < 1e-4 && (jump.batch_s.unwrap() - 0.6497e-3).abs() < 1e-7, "{jump:?}");
        // Measured: each further image takes 50 us.
        let times = (0..40).map(|cell| (cell, 50e-6 * (cell + 1) as f64)).collect();
        let copying = tried(DataPath::Pageable, &sixteen, &times).expect("a link");
        let jump = copying.jumps[0];
        assert!((jump.longer_s.unwrap() - 50e-6).abs() < 1e-12);
        // 602,112 bytes in 50 us are 12.04 GB/s, at every batch size; 50 us are a negligible part of 4 ms.
        let around: Vec<f64> = copying.around(&jump, 2).iter().map(|copy| copy.batch_size).collect();
        assert_eq!((around, copying.copies.len(), jump.fits()), (vec![15.0, 16.0, 17.0, 18.0], 40, Some(false)));
        assert!(copying.copies.iter().all(|copy| (copy.bytes_per_s / 12.042_24e9 - 1.0).abs() < 1e-9));
    }

    #[test]
    fn a_copy_fits_a_jump_that_it_makes_the_most_of() {
        let jump = Copied { after: 16.0, next: 17.0, size_s: 4e-3, batch_s: Some(1e-3), longer_s: None };
        assert_eq!(jump.fits(), Some(false), "all 17 examples take a quarter of it");
        assert_eq!(Copied { longer_s: Some(3e-3), ..jump }.fits(), Some(true));
        assert_eq!(Copied { longer_s: Some(3e-3), size_s: -4e-3, ..jump }.fits(), Some(false), "it becomes shorter");
        assert_eq!(Copied { batch_s: None, ..jump }.fits(), None);
    }

    #[test]
    fn a_period_is_compared_with_the_lanes() {
        let sixteen = [("pcie_link_width", "16"), ("pcie_link_generation", "3")];
        let copying = tried(DataPath::Pageable, &sixteen, &BTreeMap::new()).expect("a link");
        assert!(!copying.period_is_lanes(), "one jump has no period");
        assert!(Copying { period: Some(16.0), ..copying.clone() }.period_is_lanes());
        assert!(!Copying { period: Some(12.0), ..copying }.period_is_lanes());
    }

    #[test]
    fn without_a_link_and_without_copies_there_is_nothing_to_say() {
        assert_eq!(tried(DataPath::Resident, &[], &BTreeMap::new()), None);
        assert_eq!(tried(DataPath::Resident, &[("pcie_link_width", "NaN")], &BTreeMap::new()), None);
    }
}
