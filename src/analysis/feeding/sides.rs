//! What rate loader and training reach together, from what each gives alone and beside the other one.
//!
//! Both sides share cores, caches, memory and the scheduler, so each takes longer for an image while the other works. How much longer is
//! measured: both at once, each on data of its own, so that neither waits for the other. In the pipeline one side is the bottleneck and works all
//! the time; the other one works for a share of the time, and slows the bottleneck for that share (hypothesis: in proportion to it). With
//! seconds for an image of the bottleneck alone (a) and beside the other (a'), of the other side beside the bottleneck (b'):
//!
//! ```text
//! share of the time in which the other side works    u = X b'
//! seconds for an image of the bottleneck              1 / X = a + u (a' - a)
//! hence                                               b' (a' - a) X^2 + a X - 1 = 0
//! ```
//!
//! The bottleneck is the side with the longer time beside the other: where a' = b' the two cases agree, X = 1 / a'. Nothing is fitted.

/// Seconds for an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    pub alone_s: f64,
    /// While the other side works all the time.
    pub beside_s: f64,
}

/// Both sides of a pipeline with workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sides {
    pub loader: Side,
    pub training: Side,
    /// Processor time for an image, of both.
    pub cpu_s: f64,
}

/// What the two sides reach together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shared {
    /// Images in a second.
    pub rate: f64,
    /// Whether the training works all the time, or the loader.
    pub training_is_busy: bool,
    /// Seconds for an image of the side that works all the time, over what it takes alone.
    pub slowed: f64,
}

/// The rate of both together; `None` where a time is not positive.
///
/// ```
/// use batchstep::analysis::feeding::sides::{Side, Sides, rate};
/// // The loader takes 2 ms for an image, and 3 ms while the training works; the training 1 ms, whatever the loader does.
/// let (loader, training) = (Side { alone_s: 2e-3, beside_s: 3e-3 }, Side { alone_s: 1e-3, beside_s: 1e-3 });
/// // By hand: 1e-6 X^2 + 2e-3 X - 1 = 0 has the root 1000 (sqrt(2) - 1).
/// let found = rate(&Sides { loader, training, cpu_s: 3e-3 }).unwrap();
/// assert!((found.rate - 414.213562).abs() < 1e-6 && !found.training_is_busy);
/// ```
pub fn rate(sides: &Sides) -> Option<Shared> {
    let Sides { loader, training, .. } = *sides;
    if [loader, training].iter().any(|side| !(side.alone_s > 0.0 && side.beside_s > 0.0)) {
        return None;
    }
    let training_is_busy = training.beside_s >= loader.beside_s;
    let (busy, other) = if training_is_busy { (training, loader) } else { (loader, training) };
    // Noise may make a side faster beside the other.
    let square = other.beside_s * (busy.beside_s - busy.alone_s);
    let root = (busy.alone_s.powi(2) + 4.0 * square).max(0.0).sqrt();
    // The root of the quadratic that stays finite without a square.
    let rate = 2.0 / (busy.alone_s + root);
    Some(Shared { rate, training_is_busy, slowed: 1.0 / (rate * busy.alone_s) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow oracle: one batch after the other through a buffer of three, event by event. A side's batch gets on at one speed while the
    /// other side works and at another while it rests.
    fn simulated(sides: &Sides) -> f64 {
        let (buffer, batches) = (3, 4000);
        let (mut ready, mut done, mut now) = (0usize, 0usize, 0.0f64);
        // What is left of the batch under way, 0 to 1; the training has none at first.
        let (mut made, mut taken) = (1.0f64, None::<f64>);
        while done < batches {
            if taken.is_none() && ready > 0 {
                (ready, taken) = (ready - 1, Some(1.0));
            }
            let (loads, trains) = (ready < buffer, taken.is_some());
            let speed = |side: Side, works: bool, other: bool| match (works, other) {
                (false, _) => 0.0,
                (true, true) => 1.0 / side.beside_s,
                (true, false) => 1.0 / side.alone_s,
            };
            let (load, train) = (speed(sides.loader, loads, trains), speed(sides.training, trains, loads));
            let until = |left: f64, speed: f64| if speed > 0.0 { left / speed } else { f64::INFINITY };
            let step = until(made, load).min(taken.map_or(f64::INFINITY, |left| until(left, train)));
            now += step;
            made -= step * load;
            taken = taken.map(|left| left - step * train);
            if made < 1e-9 {
                (made, ready) = (1.0, ready + 1);
            }
            if taken.is_some_and(|left| left < 1e-9) {
                (taken, done) = (None, done + 1);
            }
        }
        done as f64 / now
    }

    #[test]
    fn the_rate_is_that_of_a_simulated_pipeline_whose_sides_slow_each_other() {
        let side = |alone_s, beside_s| Side { alone_s, beside_s };
        for (loader, training) in [
            (side(2.0, 3.0), side(1.0, 1.0)),
            (side(2.0, 3.0), side(1.0, 2.0)),
            (side(0.5, 1.0), side(1.0, 1.5)),
            (side(1.0, 1.0), side(4.0, 4.0)),
            (side(1.0, 2.0), side(1.0, 2.0)),
            (side(0.2, 0.9), side(1.0, 1.1)),
        ] {
            let sides = Sides { loader, training, cpu_s: 1.0 };
            let found = rate(&sides).expect("known");
            let ratio = simulated(&sides) / found.rate;
            assert!((ratio - 1.0).abs() < 0.01, "{sides:?}: {found:?}, {ratio}");
        }
    }

    #[test]
    fn sides_that_do_not_disturb_each_other_reach_the_slower_ones_rate() {
        let side = |seconds| Side { alone_s: seconds, beside_s: seconds };
        let found = rate(&Sides { loader: side(0.25), training: side(0.5), cpu_s: 0.75 });
        assert_eq!(found, Some(Shared { rate: 2.0, training_is_busy: true, slowed: 1.0 }));
        assert_eq!(rate(&Sides { loader: side(0.0), training: side(0.5), cpu_s: 0.5 }), None);
    }
}
