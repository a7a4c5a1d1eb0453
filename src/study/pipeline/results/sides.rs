//! The rate that loader and training reach together, from the rate of each by itself and beside the other; docs/pipeline.md ("The prediction") derives
//! both formulas. Nothing is fitted.
//!
//! One side is the bottleneck and works all the time: the one with the longer time beside the other. It takes a seconds for an image by itself and
//! a' beside the other side, which takes b' beside it:
//!
//! ```text
//! X = 1 / (a + b' (1 - a / a'))
//! ```
//!
//! If the training is the bottleneck, n of the workers are active on average, their number binomial. The training's rate v and a worker's time D are
//! straight lines between none, half and all workers, and their means satisfy
//!
//! ```text
//! n = v(n) D(n),   X = v(n)
//! ```

/// Seconds for an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideTimes {
    pub alone_s: f64,
    /// While the other side works all the time.
    pub beside_s: f64,
}

/// Both sides with fewer workers, at the same time: seconds for an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Half {
    pub workers: usize,
    pub loader_s: f64,
    pub training_s: f64,
}

/// Both sides of a pipeline with workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sides {
    pub workers: usize,
    pub loader: SideTimes,
    pub training: SideTimes,
    /// `None` with one worker.
    pub half: Option<Half>,
    /// Processor time of both sides for an image.
    pub cpu_s: f64,
}

/// What the two sides reach together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointRate {
    /// Images in a second.
    pub rate: f64,
    /// Whether the training works all the time, or the loader.
    pub training_is_busy: bool,
    /// Seconds for an image of the side that works all the time, over the seconds that it takes by itself.
    pub slowed: f64,
}

/// The rate of both together; `None` where a time is not positive.
///
/// ```
/// use batchstep::study::pipeline::results::sides::{SideTimes, Sides, rate};
/// // The loader takes 2 ms for an image, and 3 ms while the training works; the training 1 ms, whatever the loader does.
/// let (loader, training) = (SideTimes { alone_s: 2e-3, beside_s: 3e-3 }, SideTimes { alone_s: 1e-3, beside_s: 1e-3 });
/// // By hand: 1 / (2 ms + 1 ms (1 - 2 / 3)) = 3000 / 7.
/// let found = rate(&Sides { workers: 1, loader, training, half: None, cpu_s: 3e-3 }).unwrap();
/// assert!((found.rate - 428.571429).abs() < 1e-6 && !found.training_is_busy);
/// ```
pub fn rate(sides: &Sides) -> Option<JointRate> {
    let Sides { loader, training, .. } = *sides;
    if [loader, training].iter().any(|side| !(side.alone_s > 0.0 && side.beside_s > 0.0)) {
        return None;
    }
    let training_is_busy = training.beside_s >= loader.beside_s;
    // Noise may make a side faster beside the other; b' is at most a', so the sum stays positive.
    let rate = match training_is_busy {
        true => training_rate(sides),
        false => 1.0 / (loader.alone_s + training.beside_s * (1.0 - loader.alone_s / loader.beside_s)),
    };
    let busy = if training_is_busy { training } else { loader };
    Some(JointRate { rate, training_is_busy, slowed: 1.0 / (rate * busy.alone_s) })
}

/// The training while a number of workers are at work.
#[derive(Clone, Copy, Debug)]
struct Knot {
    workers: f64,
    /// Images of the training in a second.
    rate: f64,
    /// Seconds that one worker takes for an image.
    worker_s: f64,
}

/// The rate of a training that is busy all the time, and whose loader keeps up.
fn training_rate(sides: &Sides) -> f64 {
    let knot = |workers: usize, rate: f64, loader_s: f64| Knot {
        workers: workers as f64,
        rate,
        worker_s: workers as f64 * loader_s,
    };
    let all = knot(sides.workers, 1.0 / sides.training.beside_s, sides.loader.beside_s);
    let usable = |half: &Half| half.workers < sides.workers && half.loader_s > 0.0 && half.training_s > 0.0;
    let half = sides.half.filter(usable).map(|half| knot(half.workers, 1.0 / half.training_s, half.loader_s));
    let none = Knot { workers: 0.0, rate: 1.0 / sides.training.alone_s, worker_s: half.unwrap_or(all).worker_s };
    let knots: Vec<Knot> = [Some(none), half, Some(all)].into_iter().flatten().collect();
    let at = |workers: usize| {
        let workers = workers as f64;
        let place = knots.iter().position(|knot| workers <= knot.workers).unwrap_or(knots.len() - 1).max(1);
        let (low, high) = (knots[place - 1], knots[place]);
        let share = (workers - low.workers) / (high.workers - low.workers);
        let between = |low: f64, high: f64| low + share * (high - low);
        Knot { workers, rate: between(low.rate, high.rate), worker_s: between(low.worker_s, high.worker_s) }
    };
    // The mean over the number of workers at work, if each of them works for a share of the time.
    let mean = |share: f64| {
        let mut sum = Knot { workers: share * all.workers, rate: 0.0, worker_s: 0.0 };
        for working in 0..=sides.workers {
            let (weight, knot) = (binomial(sides.workers, working, share), at(working));
            sum.rate += weight * knot.rate;
            sum.worker_s += weight * knot.worker_s;
        }
        sum
    };
    // No worker is too few, and all of them are enough.
    let (mut few, mut enough) = (0.0, 1.0);
    for _ in 0..60 {
        let share = 0.5 * (few + enough);
        let middle = mean(share);
        if middle.workers < middle.rate * middle.worker_s { few = share } else { enough = share }
    }
    mean(enough).rate
}

/// The probability that `some` of `all` happen, where each does with the probability `share`.
fn binomial(all: usize, some: usize, share: f64) -> f64 {
    let ways = (0..some).fold(1.0, |ways, k| ways * (all - k) as f64 / (k + 1) as f64);
    ways * share.powi(some as i32) * (1.0 - share).powi((all - some) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an image takes: a worker with the training at rest or at work, and the training, each by how many workers work.
    struct Times {
        worker: [[f64; 3]; 2],
        training: [f64; 3],
    }

    /// A slow oracle: batches of one image pass through a buffer of four, event by event. The speed of a batch depends on what else is working
    /// at that moment.
    fn simulated(workers: usize, times: &Times) -> f64 {
        let (buffer, images) = (4, 4000);
        let (mut ready, mut done, mut now) = (0usize, 0usize, 0.0f64);
        // What is left of the image under way.
        let (mut made, mut taken): (Vec<Option<f64>>, Option<f64>) = (vec![None; workers], None);
        while done < images {
            if taken.is_none() && ready > 0 {
                (ready, taken) = (ready - 1, Some(1.0));
            }
            for place in 0..workers {
                let under_way = made.iter().flatten().count();
                if made[place].is_none() && ready + under_way < buffer {
                    made[place] = Some(1.0);
                }
            }
            let count = made.iter().flatten().count();
            let worker_s = times.worker[usize::from(taken.is_some())][count];
            let lefts = made.iter().flatten().map(|left| left * worker_s);
            let step = lefts.chain(taken.map(|left| left * times.training[count])).fold(f64::INFINITY, f64::min);
            now += step;
            made.iter_mut().flatten().for_each(|left| *left -= step / worker_s);
            taken = taken.map(|left| left - step / times.training[count]);
            for left in made.iter_mut().filter(|left| left.is_some_and(|left| left < 1e-9)) {
                (*left, ready) = (None, ready + 1);
            }
            if taken.is_some_and(|left| left < 1e-9) {
                (taken, done) = (None, done + 1);
            }
        }
        done as f64 / now
    }

    fn sides(workers: usize, times: &Times) -> Sides {
        let loader = |busy: usize, workers: usize| times.worker[busy][workers] / workers as f64;
        let half = Half { workers: 1, loader_s: loader(1, 1), training_s: times.training[1] };
        Sides {
            workers,
            loader: SideTimes { alone_s: loader(0, workers), beside_s: loader(1, workers) },
            training: SideTimes { alone_s: times.training[0], beside_s: times.training[workers] },
            half: (workers > 1).then_some(half),
            cpu_s: 1.0,
        }
    }

    #[test]
    fn the_rate_matches_a_simulated_pipeline_whose_sides_slow_each_other() {
        for (workers, rest, work, training) in [
            (1, [2.0, 2.0], [3.0, 3.0], [1.0, 1.0]),
            (1, [2.0, 2.0], [3.0, 3.0], [1.0, 2.0]),
            (1, [0.5, 0.5], [1.0, 1.0], [1.0, 1.5]),
            (1, [1.0, 1.0], [1.0, 1.0], [4.0, 4.0]),
            (1, [1.0, 1.0], [2.0, 2.0], [1.0, 2.0]),
            (1, [0.2, 0.2], [0.9, 0.9], [1.0, 1.1]),
            // Two workers, whose second one takes the training's core.
            (2, [1.0, 1.1], [1.1, 1.3], [2.0, 2.1]),
            (2, [3.0, 3.3], [3.0, 4.0], [1.0, 1.2]),
        ] {
            let two = if workers == 2 { 6.0 } else { f64::NAN };
            let times = Times {
                worker: [[f64::NAN, rest[0], rest[1]], [f64::NAN, work[0], work[1]]],
                training: [training[0], training[1], two],
            };
            let sides = sides(workers, &times);
            let found = rate(&sides).expect("known");
            let ratio = simulated(workers, &times) / found.rate;
            // The simulation's times are regular, so that two workers meet less than by chance.
            let limit = if workers == 1 { 0.03 } else { 0.05 };
            assert!((ratio - 1.0).abs() < limit, "{sides:?}: {found:?}, {ratio}");
        }
    }

    #[test]
    fn workers_meet_by_chance() {
        // By hand: if two workers each work half of the time, at most one of them works for three quarters of it.
        assert_eq!([0, 1, 2].map(|some| binomial(2, some, 0.5)), [0.25, 0.5, 0.25]);
        // The training takes 1 s for an image, and 3 s while both of two workers work; a worker takes 1 s. With a share p of each:
        // X = 1 - p^2 + p^2 / 3 and 2 p = X, so 2 p^2 / 3 + 2 p - 1 = 0 and p = (sqrt(60) - 6) / 4.
        let side = |alone_s, beside_s| SideTimes { alone_s, beside_s };
        let half = Some(Half { workers: 1, loader_s: 1.0, training_s: 1.0 });
        let sides = Sides { workers: 2, loader: side(0.5, 0.5), training: side(1.0, 3.0), half, cpu_s: 1.0 };
        let found = rate(&sides).expect("known");
        let share = (60f64.sqrt() - 6.0) / 4.0;
        assert!((found.rate - 2.0 * share).abs() < 1e-9 && found.training_is_busy, "{found:?}");
    }

    #[test]
    fn sides_that_do_not_disturb_each_other_reach_the_slower_ones_rate() {
        let side = |seconds| SideTimes { alone_s: seconds, beside_s: seconds };
        let of = |loader, training| Sides {
            workers: 1,
            loader: side(loader),
            training: side(training),
            half: None,
            cpu_s: 0.5,
        };
        assert_eq!(rate(&of(0.25, 0.5)), Some(JointRate { rate: 2.0, training_is_busy: true, slowed: 1.0 }));
        assert_eq!(rate(&of(0.5, 0.25)).map(|shared| shared.training_is_busy), Some(false));
        assert_eq!(rate(&of(0.0, 0.5)), None);
    }
}
