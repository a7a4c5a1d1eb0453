//! Which shape comes out of an operation, and which shapes may go in.

use std::fmt;

use super::layer::{BatchNorm, Conv2d, Dense, Extent, MaxPool2d, Operation, Padding, Shape};
use crate::error::{Error, Result};

/// The most scalars one tensor may hold for one example. Far beyond any memory; below it no count overflows.
pub(super) const MOST_SCALARS: usize = 1 << 40;

impl Shape {
    /// The number of scalars, saturating.
    pub fn count(&self) -> usize {
        match *self {
            Self::Maps { channels, height, width } => channels.saturating_mul(height).saturating_mul(width),
            Self::Flat(features) => features,
        }
    }

    /// The channels of maps, the features of a flat vector: what a batch norm normalises one by one.
    pub fn channels(&self) -> usize {
        match *self {
            Self::Maps { channels, .. } => channels,
            Self::Flat(features) => features,
        }
    }

    /// Height and width of maps; 1 x 1 of features.
    pub fn extent(&self) -> Extent {
        match *self {
            Self::Maps { height, width, .. } => Extent { height, width },
            Self::Flat(_) => Extent::square(1),
        }
    }
}

impl fmt::Display for Shape {
    /// `3x224x224`, or `1000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Maps { channels, height, width } => write!(f, "{channels}x{height}x{width}"),
            Self::Flat(features) => write!(f, "{features}"),
        }
    }
}

impl Operation {
    /// The operation in the words of the spec's `type` key. A depthwise convolution is `conv2d` here: only
    /// [`super::Network::operation_name`] knows the number of channels that go in.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Conv2d(_) => "conv2d",
            Self::BatchNorm(_) => "batch_norm",
            Self::Relu => "relu",
            Self::Relu6 => "relu6",
            Self::MaxPool2d(_) => "max_pool2d",
            Self::GlobalAveragePool => "global_average_pool",
            Self::Flatten => "flatten",
            Self::Dense(_) => "dense",
            Self::Dropout { .. } => "dropout",
            Self::Add => "add",
        }
    }

    /// The shape that comes out where `sources` go in, in their order.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where the operation's numbers make no sense (a stride of 0, a dropout rate of 1), where
    /// there are too few or too many sources, or where they have the wrong shape. An input too small for a window
    /// carries no remedy yet: only the caller, which builds the network, knows whether to enlarge the input or to change the layer.
    pub fn output(&self, sources: &[Shape]) -> Result<Shape> {
        self.check_numbers()?;
        if let Self::Add = self {
            return sum_of(sources);
        }
        let &[source] = sources else {
            let what = format!("{} takes one source, and gets {}", self.name(), sources.len());
            return Err(Error::spec(what).hint("name one layer in `from`; only `add` takes two"));
        };
        match self {
            Self::Conv2d(conv) => conv.output(source),
            Self::MaxPool2d(pool) => pool.output(source),
            Self::GlobalAveragePool => Ok(Shape::Flat(maps(self.name(), source)?)),
            Self::Flatten => maps(self.name(), source).map(|_| Shape::Flat(source.count())),
            Self::Dense(dense) => match source {
                Shape::Flat(_) => Ok(Shape::Flat(dense.out_features)),
                Shape::Maps { .. } => Err(Error::spec(format!("dense takes a flat vector, and gets maps of {source}"))
                    .hint("put a `flatten` or a `global_average_pool` before it")),
            },
            _ => Ok(source),
        }
    }

    /// Refuses the numbers that no shape can make right.
    fn check_numbers(&self) -> Result<()> {
        let refuse = |what: String, hint: &str| Err(Error::spec(what).hint(hint));
        match *self {
            Self::Conv2d(Conv2d { kernel, stride, .. }) | Self::MaxPool2d(MaxPool2d { kernel, stride, .. })
                if kernel.height.min(kernel.width).min(stride.height).min(stride.width) == 0 =>
            {
                refuse(format!("{} has a kernel or a stride of 0", self.name()), "use at least 1")
            }
            Self::Dense(Dense { out_features: 0, .. }) => refuse("dense has no output".into(), "use at least 1"),
            Self::BatchNorm(BatchNorm { epsilon, momentum })
                if !(epsilon > 0.0 && epsilon.is_finite() && (0.0..=1.0).contains(&momentum)) =>
            {
                let what = format!("batch_norm has epsilon {epsilon} and momentum {momentum}");
                refuse(what, "epsilon must be positive, momentum between 0 and 1")
            }
            Self::Dropout { rate } if !(0.0..1.0).contains(&rate) => {
                refuse(format!("dropout has the rate {rate}"), "the rate is at least 0 and less than 1")
            }
            _ => Ok(()),
        }
    }
}

impl Conv2d {
    fn output(&self, source: Shape) -> Result<Shape> {
        let channels = maps("conv2d", source)?;
        let Self { out_channels, groups, .. } = *self;
        if out_channels == 0 {
            return Err(Error::spec("conv2d has no output channels").hint("use at least 1"));
        }
        if groups == 0 || channels % groups != 0 || out_channels % groups != 0 {
            let what =
                format!("conv2d cannot split {channels} input and {out_channels} output channels into {groups} groups");
            return Err(Error::spec(what).hint("`groups` must divide both"));
        }
        let Extent { height, width } = windows("conv2d", source, self.kernel, self.stride, self.padding)?;
        Ok(Shape::Maps { channels: out_channels, height, width })
    }
}

impl MaxPool2d {
    fn output(&self, source: Shape) -> Result<Shape> {
        let channels = maps("max_pool2d", source)?;
        let Padding { top, bottom, left, right } = self.padding;
        if top.max(bottom) >= self.kernel.height || left.max(right) >= self.kernel.width {
            // A window that contains only padding would give minus infinity.
            let what = format!("max_pool2d pads as much as its {} window or more", self.kernel);
            return Err(Error::spec(what).hint("use less padding, or a larger kernel"));
        }
        let Extent { height, width } = windows("max_pool2d", source, self.kernel, self.stride, self.padding)?;
        Ok(Shape::Maps { channels, height, width })
    }
}

/// The channels of maps; refuses a flat vector.
fn maps(operation: &str, source: Shape) -> Result<usize> {
    match source {
        Shape::Maps { channels, .. } => Ok(channels),
        Shape::Flat(features) => Err(Error::spec(format!(
            "{operation} takes maps (channels x height x width), and gets a flat vector of {features}"
        ))
        .hint("put it before the `flatten` or the `global_average_pool`, or take it out")),
    }
}

fn sum_of(sources: &[Shape]) -> Result<Shape> {
    match *sources {
        [left, right] if left == right => Ok(left),
        [left, right] => Err(Error::spec(format!("add takes two equal shapes, and gets {left} and {right}"))
            .hint("bring both to one shape, for instance with a 1x1 `conv2d`")),
        _ => Err(Error::spec(format!("add takes two sources, and gets {}", sources.len()))
            .hint("name both, as in `from = [\"left\", \"right\"]`")),
    }
}

/// How many windows fit, along height and width.
fn windows(operation: &str, source: Shape, kernel: Extent, stride: Extent, padding: Padding) -> Result<Extent> {
    let along = |extent: usize, before: usize, after: usize, size: usize, stride: usize| {
        let padded = extent.saturating_add(before).saturating_add(after);
        padded.checked_sub(size).map(|last| last / stride + 1).ok_or_else(|| {
            let padded = if padding == Padding::NONE { "" } else { ", even with its padding" };
            Error::spec(format!("{operation} gets {source}, too small for its {kernel} window{padded}"))
        })
    };
    let Extent { height, width } = source.extent();
    Ok(Extent {
        height: along(height, padding.top, padding.bottom, kernel.height, stride.height)?,
        width: along(width, padding.left, padding.right, kernel.width, stride.width)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: Shape = Shape::Maps { channels: 4, height: 9, width: 6 };

    fn refusal(operation: Operation, sources: &[Shape]) -> String {
        operation.output(sources).unwrap_err().to_string()
    }

    #[test]
    fn a_convolution_counts_its_windows_by_rows_and_columns() {
        // Rows: (9 + 1 + 0 - 3) / 2 + 1 = 4; columns: (6 + 0 + 2 - 2) / 3 + 1 = 3.
        let padding = Padding { top: 1, bottom: 0, left: 0, right: 2 };
        let conv = Conv2d { kernel: Extent::new(3, 2), stride: Extent::new(2, 3), padding, ..Conv2d::square(8, 1) };
        let output = Operation::Conv2d(conv).output(&[MAPS]).unwrap();
        assert_eq!(output, Shape::Maps { channels: 8, height: 4, width: 3 });
    }

    #[test]
    fn pooling_drops_the_rows_that_fill_no_window() {
        let output = Operation::MaxPool2d(MaxPool2d::square(2)).output(&[MAPS]).unwrap();
        assert_eq!(output, Shape::Maps { channels: 4, height: 4, width: 3 });
    }

    #[test]
    fn a_window_larger_than_the_map_is_refused() {
        let message = refusal(Conv2d::square(8, 7).into(), &[MAPS]);
        assert_eq!(message, "conv2d gets 4x9x6, too small for its 7x7 window");
        assert!(refusal(MaxPool2d::square(7).into(), &[MAPS]).contains("too small for its 7x7 window"));
    }

    #[test]
    fn shapes_of_the_wrong_kind_are_refused_with_a_remedy() {
        let dense = Dense { out_features: 3, bias: true };
        assert!(refusal(dense.into(), &[MAPS]).contains("`flatten`"));
        assert!(refusal(Operation::Flatten, &[Shape::Flat(5)]).contains("flat vector of 5"));
        assert!(refusal(Operation::Add, &[MAPS, Shape::Flat(216)]).contains("4x9x6 and 216"));
        assert!(refusal(Operation::Add, &[MAPS]).contains("gets 1"));
        assert!(refusal(Operation::Relu, &[MAPS, MAPS]).contains("gets 2"));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        let conv = Conv2d::square(8, 3);
        assert!(refusal(Conv2d { stride: Extent::new(0, 1), ..conv }.into(), &[MAPS]).contains("stride of 0"));
        assert!(
            refusal(MaxPool2d { stride: Extent::new(1, 0), ..MaxPool2d::square(2) }.into(), &[MAPS]).contains("stride")
        );
        assert!(refusal(Conv2d { groups: 3, ..conv }.into(), &[MAPS]).contains("3 groups"));
        assert!(refusal(Conv2d { groups: 0, ..conv }.into(), &[MAPS]).contains("0 groups"));
        assert!(refusal(Conv2d { out_channels: 0, ..conv }.into(), &[MAPS]).contains("no output channels"));
        let padding = Padding::all(2);
        assert!(refusal(MaxPool2d { padding, ..MaxPool2d::square(2) }.into(), &[MAPS]).contains("2x2 window or more"));
        assert!(refusal(Operation::Dropout { rate: 1.0 }, &[MAPS]).contains("rate 1"));
        assert!(refusal(BatchNorm { epsilon: f64::NAN, momentum: 0.9 }.into(), &[MAPS]).contains("NaN"));
        assert!(refusal(Dense { out_features: 0, bias: true }.into(), &[Shape::Flat(3)]).contains("no output"));
    }

    #[test]
    fn a_channel_count_beyond_every_memory_saturates() {
        let shape = Shape::Maps { channels: usize::MAX, height: 2, width: 2 };
        assert_eq!(shape.count(), usize::MAX);
    }
}
