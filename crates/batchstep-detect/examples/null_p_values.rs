//! Series without a jump: how often is one reported, and are the p-values uniform?
//!
//! ```text
//! cargo run --release --example null_p_values [SERIES [kinds | shapes | rates | held-out FIRST]]
//! ```
//!
//! `kinds` are several curves with several kinds of noise, 70 batch sizes each; `shapes` the families of `batchstep_detect::shapes` that have
//! series without a jump, of 20 to 2,048 points, mostly one value each, the held-out ones only as a sum. For each: the share of SERIES (400 where not said) with a reported jump,
//! which is to be at most the stated 1 %, with the 95 % interval of Wilson (1927); Kolmogorov and Smirnov's distance of their p-values from the
//! uniform distribution; and the shares of these at or below 0.01, 0.05, 0.10 and 0.50. Chance passes a distance of
//! 1.36 / sqrt(SERIES) in 5 % of families. `rates` makes the table of `detect/rates.rs`: the same series, the kinds with and without the order of their measurements, and only families for
//! development, summed up by what a series is; `held-out` sums up the other families, at seeds from FIRST on.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use batchstep_detect::detect::{AlarmRate, Class, Observation, Settings, class, detect};
use batchstep_detect::random::Rng;
use batchstep_detect::shapes::Family;

type Function = fn(f64) -> f64;

/// Step times against the batch size, none with a jump.
const CURVES: [(&str, Function); 8] = [
    ("line", |x| 0.01 + 0.0008 * x),
    ("power 0.7", |x| 0.01 + 0.002 * x.powf(0.7)),
    ("power 1.3", |x| 0.01 + 0.0005 * x.powf(1.3)),
    ("kink", |x| 0.02 + 0.001 * (x - 30.0).max(0.0)),
    ("weak kink", |x| 0.02 + 0.0006 * x + 0.0001 * (x - 30.0).max(0.0)),
    ("soft kink", |x| 0.01 + 0.001 * (1.0 + ((x - 20.0) / 3.0).exp()).ln()),
    ("start-up", |x| 0.02 + 0.0005 * x + 0.01 * (-x / 4.0).exp()),
    ("teeth", |x| 0.01 + 0.0008 * x + if x % 2.0 == 1.0 { 0.003 } else { 0.0 }),
];

#[derive(Clone, Copy)]
enum Scatter {
    Normal,
    /// Student's t with three degrees of freedom.
    HeavyTails,
    /// One in twenty is slow by three to nine standard deviations.
    Spikes,
    /// Exponential, as waiting is.
    Skewed,
    /// Six times as large at the largest batch size as at the smallest.
    Growing,
    /// A level of its own, of 2 %, for each block.
    Blocks,
    /// Half of a standard deviation of a first-order process along x, correlation 0.5, shared by all repetitions.
    Correlated,
}

const KINDS: [(&str, Scatter, u32); 10] = [
    ("normal", Scatter::Normal, 1),
    ("normal", Scatter::Normal, 3),
    ("normal", Scatter::Normal, 12),
    ("heavy tails", Scatter::HeavyTails, 1),
    ("heavy tails", Scatter::HeavyTails, 12),
    ("spikes", Scatter::Spikes, 3),
    ("skewed", Scatter::Skewed, 1),
    ("blocks", Scatter::Blocks, 5),
    ("growing", Scatter::Growing, 5),
    ("correlated", Scatter::Correlated, 12),
];

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(400), |count| count.parse())?;
    let asked = std::env::args().nth(2);
    let wanted = |name: &str| asked.as_deref().is_none_or(|asked| asked == name);
    println!("                            series   a jump          95 %      KS <=0.01 <=0.05 <=0.10 <=0.50");
    if wanted("kinds") {
        kinds(count);
    }
    if wanted("shapes") {
        shapes(count);
    }
    if asked.as_deref() == Some("rates") {
        rates(count);
    }
    if asked.as_deref() == Some("held-out") {
        held_out(count, std::env::args().nth(3).ok_or("held-out needs the first seed")?.parse()?);
    }
    Ok(())
}

fn rates(count: u64) {
    let mut all: Vec<Series> = Vec::new();
    for (_, noise, reps) in KINDS {
        for (place, (_, curve)) in (0..).zip(CURVES) {
            for i in 0..count {
                let seed = 1_000_000 * place + 10_000 * u64::from(reps) + i;
                let plain = series(curve, noise, reps, seed);
                if reps > 1 && !matches!(noise, Scatter::Blocks) {
                    all.push((in_blocks(&plain, reps, seed), i));
                }
                all.push((plain, i));
            }
        }
    }
    for family in Family::all().filter(|family| has_none(family) && family.for_development()) {
        all.extend((0..count).map(|i| (family.series(2 * i + 1).observations, i)));
    }
    print(all);
}

fn held_out(count: u64, first: u64) {
    let families = Family::all().filter(|family| has_none(family) && !family.for_development());
    print(families.flat_map(|family| {
        let seeds: Vec<u64> = (first..).filter(|seed| family.is_quiet(*seed)).take(count as usize).collect();
        seeds.into_iter().map(move |seed| (family.series(seed).observations, seed))
    }));
}

fn has_none(family: &Family) -> bool {
    family.with_quiet && family.series(1).changes.is_empty()
}

/// A series, and a seed for its detection.
type Series = (Vec<Observation>, u64);

fn print(all: impl IntoIterator<Item = Series>) {
    let mut by_class: BTreeMap<Class, Vec<Series>> = BTreeMap::new();
    all.into_iter().for_each(|series| by_class.entry(class(&series.0)).or_default().push(series));
    for (class, series) in by_class {
        println!("{:>34} {}", format!("{class:?}"), Counts::of(series.into_iter()));
    }
}

/// The same values, each repetition a block in a random order.
fn in_blocks(steps: &[Observation], reps: u32, seed: u64) -> Vec<Observation> {
    let mut rng = Rng::new(0xb10c_0000 + seed);
    let sizes = steps.len() / reps as usize;
    let mut seen = Vec::with_capacity(steps.len());
    for block in 0..reps {
        let mut order: Vec<usize> = (0..sizes).collect();
        rng.shuffle(&mut order);
        for size in order {
            let step = steps[size * reps as usize + block as usize];
            seen.push(Observation { block: Some(block), order: Some(seen.len() as f64), ..step });
        }
    }
    seen
}

fn kinds(count: u64) {
    for (noise_name, noise, reps) in KINDS {
        let mut all = Counts::default();
        for (place, (curve_name, curve)) in (0..).zip(CURVES) {
            let seed = |i: u64| 1_000_000 * place + 10_000 * u64::from(reps) + i;
            let counts = Counts::of((0..count).map(|i| (series(curve, noise, reps, seed(i)), i)));
            println!("{:>34} {counts}", format!("{noise_name}, {reps} each, {curve_name}"));
            all.join(counts);
        }
        println!("{:>34} {all}", format!("{noise_name}, {reps} each, all"));
    }
}

/// Odd seeds are those without a jump. Families whose series then still have a pattern of steps are left out.
fn shapes(count: u64) {
    let [mut all, mut held_out] = [(); 2].map(|()| Counts::default());
    for family in Family::all().filter(has_none) {
        let counts = Counts::of((0..count).map(|i| (family.series(2 * i + 1).observations, i)));
        if family.for_development() {
            println!("{:>34} {counts}", family.name);
            all.join(counts);
        } else {
            held_out.join(counts);
        }
    }
    println!("{:>34} {held_out}", "held-out families");
    all.join(held_out);
    println!("{:>34} {all}", "all");
}

/// What was found in series without a jump.
#[derive(Default)]
struct Counts {
    series: u32,
    alarms: u32,
    p_values: Vec<f64>,
}

impl Counts {
    fn of(all: impl Iterator<Item = Series>) -> Self {
        let mut counts = Self::default();
        for (observations, seed) in all {
            let findings = detect(&observations, &Settings { seed, ..Settings::default() });
            counts.series += 1;
            counts.alarms += u32::from(!findings.jumps.is_empty());
            counts.p_values.extend(findings.p_value);
        }
        counts
    }

    fn join(&mut self, other: Self) {
        self.series += other.series;
        self.alarms += other.alarms;
        self.p_values.extend(other.p_values);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = AlarmRate { alarms: self.alarms, series: self.series };
        let [low, high] = rate.interval().map(|share| 100.0 * share);
        let interval = format!("{low:.1} to {high:.1}");
        let Self { series, alarms, .. } = self;
        write!(
            f,
            "{:>6.1} % {interval:>13}  {} ({alarms} of {series})",
            100.0 * rate.share(),
            row(self.p_values.clone())
        )
    }
}

fn series(curve: Function, noise: Scatter, reps: u32, seed: u64) -> Vec<Observation> {
    let mut rng = Rng::new(0x5eed_0000_0000 + seed);
    let sigma = [0.003, 0.01, 0.03][(seed % 3) as usize];
    let levels: Vec<f64> = (0..reps).map(|_| 0.02 * rng.normal()).collect();
    let (mut process, mut steps) = (0.0, Vec::new());
    for x in (1..=70).map(f64::from) {
        process = 0.5 * process + rng.normal();
        for rep in 0..reps {
            let error = match noise {
                Scatter::Normal => sigma * rng.normal(),
                Scatter::HeavyTails => sigma * rng.student(),
                Scatter::Spikes if rng.uniform() < 0.05 => sigma * (3.0 + 6.0 * rng.uniform()),
                Scatter::Spikes => sigma * rng.normal(),
                Scatter::Skewed => sigma * (-(1.0 - rng.uniform()).ln() - 1.0),
                Scatter::Growing => sigma * (0.3 + 1.5 * x / 70.0) * rng.normal(),
                Scatter::Blocks => sigma * rng.normal() + levels[rep as usize],
                Scatter::Correlated => sigma * (rng.normal() + 0.5 * process),
            };
            let block = matches!(noise, Scatter::Blocks).then_some(rep);
            steps.push(Observation { block, ..Observation::new(x, curve(x) * error.exp()) });
        }
    }
    steps
}

/// Distance and shares.
fn row(mut found: Vec<f64>) -> String {
    found.sort_by(f64::total_cmp);
    let count = found.len() as f64;
    let distance = |(i, p): (usize, &f64)| (p - i as f64 / count).abs().max((p - (i + 1) as f64 / count).abs());
    let farthest = found.iter().enumerate().map(distance).fold(0.0, f64::max);
    let shares = [0.01, 0.05, 0.1, 0.5].map(|level| found.iter().filter(|p| **p <= level).count() as f64 / count);
    let shares: Vec<String> = shares.iter().map(|share| format!("{share:>6.3}")).collect();
    format!("{farthest:>6.3} {}", shares.join(" "))
}
