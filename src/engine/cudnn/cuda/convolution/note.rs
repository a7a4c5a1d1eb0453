//! The numerical notes of the engines of cuDNN's graph API, and which engines a precision allows.
//!
//! Source: cudnnBackendNumericalNote_t in cudnn_graph.h. The meaning of the two notes of float32 engines was inferred
//! from cuDNN 9.28 for compute capability 9.0: engines with TENSOR_CORE and DOWN_CONVERT_INPUTS need a workspace for
//! 16-bit copies of their inputs, those with only TENSOR_CORE one for 32-bit copies. The first compute in fp16, the
//! second in tf32.

use crate::engine::cudnn::element::Math;
use crate::settings::Winograd;

/// A set of notes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Notes(u32);

/// By their numbers in cudnnBackendNumericalNote_t.
const NAMES: [&str; 10] = [
    "tensor_core",
    "down_convert_inputs",
    "reduced_precision_reduction",
    "fft",
    "nondeterministic",
    "winograd",
    "winograd_4x4",
    "winograd_6x6",
    "winograd_13x13",
    "strict_nan",
];

/// Whether an engine may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligibility {
    Allowed,
    /// Only where nothing else computes it; the math mode reports it.
    LastResort,
    Excluded,
}

impl Notes {
    pub const TENSOR_CORE: Self = Self(1 << 0);
    pub const DOWN_CONVERT_INPUTS: Self = Self(1 << 1);
    pub const REDUCED_PRECISION_REDUCTION: Self = Self(1 << 2);
    pub const NONDETERMINISTIC: Self = Self(1 << 4);
    /// WINOGRAD and the three notes of its tile.
    const WINOGRAD: Self = Self(0b1111 << 5);

    /// From cuDNN's numbers. A note of a newer cuDNN is kept as unknown.
    pub fn from_numbers(numbers: &[i32]) -> Self {
        numbers.iter().fold(Self(0), |notes, number| match u32::try_from(*number) {
            Ok(number) if number < 31 => Self(notes.0 | 1 << number),
            _ => Self(notes.0 | 1 << 31),
        })
    }

    /// Whether it contains all notes of `other`.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the setting allows an engine with these notes. No note distinguishes fused from non-fused kernels, so
    /// non-fused Winograd is left to the older calls, which name it. Which tile the notes mean is not documented
    /// either: on described GPUs (T4, A100; cuDNN 9.10) the workspace of engines with `winograd_4x4` does not grow with
    /// the batch, which is typical of fused kernels, whose tile of inputs is 4x4.
    pub fn is_allowed(self, winograd: Winograd) -> bool {
        match winograd {
            Winograd::Any => true,
            Winograd::Never => self.0 & Self::WINOGRAD.0 == 0,
            Winograd::NonFused => false,
        }
    }

    /// `tensor_core+winograd`; begins with `fma` where no tensor cores are used.
    pub fn math_mode(self) -> String {
        let mut names = if self.has(Self::TENSOR_CORE) { Vec::new() } else { vec!["fma".to_string()] };
        for bit in (0..32).filter(|bit| self.0 >> bit & 1 == 1) {
            // It says nothing about the arithmetic of finite numbers.
            let name = NAMES.get(bit).copied().filter(|name| *name != "strict_nan");
            let unknown = || (bit >= NAMES.len()).then(|| format!("note_{bit}"));
            names.extend(name.map(str::to_string).or_else(unknown));
        }
        names.join("+")
    }

    /// Two runs with the same seed must agree, so engines that are not deterministic are excluded. Strict float32
    /// multiplies float32 numbers, which excludes tensor cores. Winograd's and Fourier's transforms are allowed: they
    /// are float32 arithmetic in another order, and PyTorch's strict float32 has them too. tf32 must not become fp16,
    /// whose range is smaller. Sums are float32; an engine that sums in 16 bits is a last resort.
    pub fn eligibility(self, math: Math) -> Eligibility {
        if self.has(Self::NONDETERMINISTIC) || self.has(Self::DOWN_CONVERT_INPUTS) {
            return Eligibility::Excluded;
        }
        let reduced = self.has(Self::REDUCED_PRECISION_REDUCTION);
        match math {
            Math::Fp32 if reduced || self.has(Self::TENSOR_CORE) => Eligibility::Excluded,
            Math::Tf32 | Math::Half if reduced => Eligibility::LastResort,
            Math::Fp32 | Math::Tf32 | Math::Half => Eligibility::Allowed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(numbers: &[i32]) -> Notes {
        Notes::from_numbers(numbers)
    }

    /// Strict float32 uses no tensor cores; tf32 does, but never fp16; sums in sixteen bits are the last resort.
    #[test]
    fn a_precision_allows_the_engines_that_keep_to_it() {
        use Eligibility::{Allowed, Excluded, LastResort};
        for (numbers, [fp32, tf32, half]) in [
            (&[][..], [Allowed; 3]),
            (&[5, 6, 9], [Allowed; 3]),
            (&[0], [Excluded, Allowed, Allowed]),
            (&[0, 1], [Excluded; 3]),
            (&[1], [Excluded; 3]),
            (&[2], [Excluded, LastResort, LastResort]),
            (&[0, 2], [Excluded, LastResort, LastResort]),
            (&[4], [Excluded; 3]),
            (&[0, 4], [Excluded; 3]),
            (&[3, 4], [Excluded; 3]),
            (&[0, 2, 4], [Excluded; 3]),
        ] {
            for (math, expected) in [(Math::Fp32, fp32), (Math::Tf32, tf32), (Math::Half, half)] {
                assert_eq!(notes(numbers).eligibility(math), expected, "{numbers:?} {math:?}");
            }
        }
    }

    #[test]
    fn without_winograd_any_of_its_notes_excludes_an_engine() {
        let allowed = |numbers: &[i32]| Winograd::ALL.iter().map(|w| notes(numbers).is_allowed(*w)).collect::<Vec<_>>();
        assert_eq!(Winograd::ALL, [Winograd::Any, Winograd::Never, Winograd::NonFused]);
        for winograd in [&[5, 6][..], &[5], &[6], &[7], &[8], &[0, 5, 7]] {
            assert_eq!(allowed(winograd), [true, false, false], "{winograd:?}");
        }
        for other in [&[][..], &[0], &[3, 4], &[9]] {
            assert_eq!(allowed(other), [true, true, false], "{other:?}");
        }
    }

    #[test]
    fn the_math_mode_lists_the_notes() {
        assert_eq!(notes(&[]).math_mode(), "fma");
        assert_eq!(notes(&[9]).math_mode(), "fma");
        assert_eq!(notes(&[5, 0, 9]).math_mode(), "tensor_core+winograd");
        assert_eq!(notes(&[3]).math_mode(), "fma+fft");
        assert_eq!(notes(&[0, 12, 77]).math_mode(), "tensor_core+note_12+note_31");
    }
}
