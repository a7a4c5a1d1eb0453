//! Why a boundary is not a jump.

use std::fmt;

/// Standard errors by which a jump must stand out in its own neighbourhood. By chance this happens about once in two
/// thousand, and in 1 % of usual series at the boundary that stands out most.
pub(crate) const LOCAL_Z: f64 = 3.5;

/// Why a boundary is not a jump. Sizes are in standard errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rejection {
    /// The size relative to the step time is too small.
    BelowSmallestJump {
        relative: f64,
    },
    /// In units to which the times are rounded.
    Rounded {
        units: f64,
    },
    BelowThreshold {
        size: f64,
        needed: f64,
    },
    /// The staircase has a step here, but the lines through its neighbours do not confirm it.
    OfThePeriodAlone {
        local: f64,
    },
    /// There are too few good points on one side; if the step belongs to a staircase, too few of its other steps are
    /// confirmed.
    NearTheEnd,
    /// An autoregressive process explains it equally well.
    CorrelatedErrors,
    /// The curve returns after `points` points: they were disturbed.
    Returns {
        points: usize,
    },
    /// Several other changes nearby are about as large, and are not jumps either.
    Rough {
        count: usize,
    },
    /// The curve changes from point to point by as much as the step, so that the step's size depends on the shape of
    /// the curve.
    TooSteep,
    /// The lines on both sides meet between the two x: a bend.
    Bend,
    /// The interval of its size has zero in it.
    SizeUnknown,
    /// x was measured in ascending order, and the passes differ by so much that `errors` standard errors are not enough.
    PassesDiffer {
        errors: f64,
    },
    /// The lines through its neighbours show a smaller step.
    NotAmongNeighbours {
        local: f64,
    },
    /// It is there by the clock, `relative` to the time before it, and absent in processor time: other programs held up the steps.
    OtherPrograms {
        relative: f64,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowSmallestJump { relative } => {
                write!(f, "{:.2} % is below the smallest jump that counts", 100.0 * relative)
            }
            Self::Rounded { units } => write!(f, "{units:.1} units of the last digit: rounding makes such steps"),
            Self::BelowThreshold { size, needed } => {
                write!(f, "{size:.1} standard errors, and {needed:.1} are needed over all boundaries")
            }
            Self::OfThePeriodAlone { local } => {
                write!(f, "the period has a step here, its neighbours do not: {local:.1} standard errors there")
            }
            Self::Bend => f.write_str("the lines on both sides meet between the two sizes: the curve bends there"),
            Self::NearTheEnd => f.write_str("too near the end to be confirmed"),
            Self::CorrelatedErrors => f.write_str("errors that neighbours share explain it as well"),
            Self::Returns { points } => {
                let plural = if *points == 1 { "point" } else { "points" };
                write!(f, "the curve returns after {points} {plural}, which were disturbed")
            }
            Self::Rough { count } => write!(f, "{count} other changes nearby are about as large and no jumps"),
            Self::TooSteep => f.write_str("the curve is too steep here to decide"),
            Self::SizeUnknown => f.write_str("its neighbours disagree by so much that its size may be zero"),
            Self::PassesDiffer { errors } => {
                write!(f, "measured in order of size, and the passes differ: {errors:.1} standard errors between them")
            }
            Self::NotAmongNeighbours { local } if *local < 0.0 => {
                f.write_str("its neighbours show a change the other way")
            }
            Self::NotAmongNeighbours { local } if *local < LOCAL_Z => {
                write!(f, "does not stand out among its neighbours: {local:.1} standard errors there")
            }
            Self::NotAmongNeighbours { .. } => f.write_str("its neighbours show less than a third of it"),
            Self::OtherPrograms { .. } => {
                f.write_str("only by the clock: absent in processor time, so other programs made it")
            }
        }
    }
}
