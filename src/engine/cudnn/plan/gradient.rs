//! The gradients of one output, from the layers that read it to the layer that computed it.

use super::PlanBuilder;
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::op::elementwise;

/// A gradient, and whether its reader may overwrite it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradient {
    pub slice: Slice,
    pub is_own: bool,
}

impl Gradient {
    /// A gradient with one reader.
    pub fn own(slice: Slice) -> Self {
        Self { slice, is_own: true }
    }

    /// A gradient with several readers.
    pub fn shared(slice: Slice) -> Self {
        Self { slice, is_own: false }
    }
}

impl PlanBuilder<'_> {
    /// The gradient of a layer's output as one buffer: gradients from several readers are added up. `None` where there
    /// are none.
    pub(super) fn gathered(&mut self, layer: usize) -> Option<Gradient> {
        let (one, other) = self.gathered_pair(layer)?;
        Some(match other {
            Some(other) => self.added(layer, one, other),
            None => one,
        })
    }

    /// The same, with the last addition left to the caller.
    pub(super) fn gathered_pair(&mut self, layer: usize) -> Option<(Gradient, Option<Gradient>)> {
        let mut all = std::mem::take(&mut self.gradients[layer]).into_iter();
        let mut one = all.next()?;
        let mut other = all.next();
        for next in all {
            if let Some(second) = other.replace(next) {
                one = self.added(layer, one, second);
            }
        }
        Some((one, other))
    }

    fn added(&mut self, layer: usize, one: Gradient, other: Gradient) -> Gradient {
        let (a, b) = (one.slice, other.slice);
        let y = match (one.is_own, other.is_own) {
            (true, _) => a,
            (_, true) => b,
            _ => self.gradient_of(layer),
        };
        self.launch([elementwise::add(self.element, a, b, y)]);
        Gradient::own(y)
    }

    /// Memory for a gradient that is computed element by element from another: the memory of the other one, where that
    /// may be overwritten.
    pub(super) fn in_place(&mut self, layer: usize, gradient: Gradient) -> Slice {
        if gradient.is_own { gradient.slice } else { self.gradient_of(layer) }
    }

    /// New memory for a gradient of a layer's output.
    pub(super) fn gradient_of(&mut self, layer: usize) -> Slice {
        self.maps_buffer(self.maps(layer))
    }
}
