//! The CUDA source of the kernels, assembled from the prelude and the files of each operator: one module for each
//! operator and element type.

use super::element::Element;

/// An operator's kernels.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// The folder's name in [`super::op`], which is [`super::call::Kernel`]'s `operator`.
    pub name: &'static str,
    text: &'static str,
}

/// Operators by name, each with the files of its folder, one after the other.
macro_rules! operators {
    ($($name:literal: $($file:literal)+),* $(,)?) => {
        &[$(Operator { name: $name, text: concat!($(include_str!(concat!("op/", $name, "/", $file)), "\n"),+) }),*]
    };
}

/// Every operator that has kernels.
pub const OPERATORS: &[Operator] = operators![
    "advance": "kernel.cu",
    "batch_norm": "kernel.cu" "planes.cu" "planes_gradient.cu" "rows.cu" "rows_gradient.cu",
    "bias": "kernel.cu",
    "depthwise_conv2d": "kernel.cu" "forward.cu" "backward.cu" "weights.cu",
    "elementwise": "kernel.cu",
    "global_average_pool": "kernel.cu",
    "initial": "kernel.cu",
    "loss": "kernel.cu",
    "max_pool2d": "kernel.cu",
    "optimizer": "kernel.cu",
];

const PRELUDE: &str = include_str!("op/prelude.cuh");

impl Operator {
    pub fn by_name(name: &str) -> Option<&'static Self> {
        OPERATORS.iter().find(|operator| operator.name == name)
    }

    pub fn source(&self, element: Element) -> String {
        assemble(self.text, element)
    }

    /// The names of its kernels, in the order of the file.
    #[cfg(test)]
    pub fn kernels(&self) -> Vec<&'static str> {
        kernels(self.text)
    }
}

/// The prelude for `element`, and `text` after it.
pub(super) fn assemble(text: &str, element: Element) -> String {
    // Defined to 1, as the compiler's option of that name does: where both are given, the definitions agree.
    format!("#define ELEMENT_{} 1\n{PRELUDE}\n{text}", element.name().to_uppercase())
}

/// The name of each `KERNEL name(...)` that begins a line; launch bounds may stand before the name.
#[cfg(test)]
pub(super) fn kernels(text: &str) -> Vec<&str> {
    fn name(line: &str) -> Option<&str> {
        let rest = line.strip_prefix("KERNEL ")?.trim_start();
        let rest = match rest.strip_prefix("__launch_bounds__") {
            Some(bounds) => bounds.split_once(')')?.1.trim_start(),
            None => rest,
        };
        rest.split_once('(').map(|(name, _)| name.trim())
    }
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operator_has_two_kernels_of_one_name() {
        for operator in OPERATORS {
            let mut names = operator.kernels();
            assert!(!names.is_empty(), "{}", operator.name);
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}: {names:?}", operator.name);
        }
    }
}
