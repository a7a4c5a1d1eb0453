//! Measuring: the host stopwatch, when warm-up ends, when a cell is known well enough, and what the clocks themselves cost.
//!
//! # How batchstep measures
//!
//! A step time is easy to read from a clock and hard to believe: the machine gets warm, changes its clock, serves others, and
//! is slow the first time it does anything. This is the method, and what it promises; [`crate::simulation`] counts how well it
//! keeps that, over a thousand simulated runs for each kind of trouble.
//!
//! **Blocks.** A cell is one combination of model, batch size and settings. A block visits every cell once, in a fresh random
//! order that follows from the seed ([`crate::plan`]); a run is several blocks. Whatever the machine does in the course of
//! the run falls on all batch sizes alike, and becomes scatter between blocks (Fisher 1935). Measured in order of the batch
//! size, the same is a trend or a jump of the curve, and no analysis can tell it from one.
//!
//! **A visit** runs steps until their times show no trend ([`warmup`]): its last `k` steps neither begin with one that stands
//! out (by 5 % and by five median absolute deviations), nor fall (Mann 1945, Kendall 1975, one-sided at 5 %). The steps
//! before those are warm-up. They are stored and flagged, as are outliers, and never dropped. After 3 k + 3 steps the visit
//! ends in any case and is reported as unsteady.
//!
//! **The estimate** of a cell is the median of its blocks' medians,
//!
//! ```text
//! m = median_b ( median_i  t_bi ),       interval  m +- t(n - 1; 0.975) s*,
//! ```
//!
//! with t_bi the i-th counted step of block b, n blocks, t Student's quantile, and s* the standard deviation of m over
//! resamples of whole blocks ([`precision`]; Efron & Tibshirani 1993, 12.4). Of five to nine blocks that interval is too wide,
//! and the one between interpolated order statistics is given ([`crate::stats::order`]; Hettmansperger & Sheather 1986). Steps of one visit share the state of the
//! machine, so blocks and not steps are the unit: 5 blocks of 5 steps are worth 5 values, not 25.
//!
//! **The stop rule.** A cell is left when its interval is narrower than a quarter of `smallest_jump`, relative to m, after two
//! blocks in a row, and one that had to be waited for is reported with a width half-way between its own and the one that was
//! waited for: a rule that stops at the first narrow interval stops most often when it is narrow by luck (Anscombe 1953, Chow & Robbins 1965). The reason is stored: `converged`, `budget`,
//! `out_of_memory`, `failed`.
//!
//! **Covariates** are read after each visit, outside the timed region and under load ([`crate::device`]). With the clock f,
//! t x f are cycles: a jump that is there in cycles is *work*, one that is excluded there is the *clock*'s, and what can't be
//! told stays *ambiguous* ([`crate::detect`], 9). A clock that never moves, as a virtual machine reports it, tells nothing.
//!
//! **Controls.** What the method promises of a machine is not what the machine does: an A/A run measures it
//! ([`crate::analysis::control`]). What measuring itself costs is calibrated in every run and reported, not subtracted
//! ([`calibration`]).
//!
//! **Limits.** A visit that outlasts `visit_limit` is given up ([`crate::run`]). Blocks can't help against a neighbour who
//! comes whenever one batch size is visited; the honesty chart shows every step in the order of the run for that reason.
//!
//! # References
//!
//! Anscombe 1953, Sequential estimation; Chow & Robbins 1965, On the asymptotic theory of fixed-width sequential confidence
//! intervals; Efron & Tibshirani 1993, An introduction to the bootstrap; Fisher 1935, The design of experiments; Hettmansperger &
//! Sheather 1986, Confidence intervals based on interpolated order statistics; Kendall 1975, Rank correlation methods; Mann 1945, Nonparametric tests against trend; Mytkowicz et al. 2009, Producing wrong data without
//! doing anything obviously wrong.

pub mod calibration;
pub mod precision;
pub mod stopwatch;
pub mod warmup;

pub use calibration::Calibration;
pub use precision::BlockMedian;
pub use stopwatch::Stopwatch;
