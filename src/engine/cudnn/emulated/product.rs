//! Convolutions and matrix products by the reference engine: products of the stored values, summed in float64, rounded once at
//! the end. (What a library does before, such as rounding the factors to tf32, is not reproduced here.)

use super::memory::EmulatedMemory;
use super::order::{from_nchw, to_nchw};
use crate::engine::cudnn::call::{Convolution, ConvolutionKind, ConvolutionTask, Epilogue, Gemm, Product, Slice};
use crate::engine::cudnn::cuda::convolution::weights;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::numbers::{Number, narrowed, widened};
use crate::engine::reference::array::Array;
use crate::engine::reference::convolution::{forward, input_gradient, weight_gradient};
use crate::engine::reference::dense;
use crate::network::{Conv2d, Extent, Padding, Shape};

/// Executes a convolution.
///
/// # Panics
/// Where a slice does not have the size that the convolution says.
pub fn convolution(memory: &mut EmulatedMemory, convolution: &Convolution, task: &ConvolutionTask) {
    let Convolution { element, input, output, kernel, stride, padding, groups, .. } = *convolution;
    checked(convolution);
    let planes = |slice, maps: FeatureMaps| {
        let FeatureMaps { batch, channels, height, width, .. } = maps;
        let values = to_nchw(&numbers(memory, slice, element, maps.count()), maps);
        Array { batch, channels, height, width, values }
    };
    let kernels = |slice| planes(slice, weights(convolution)).values;
    let Extent { height, width } = padding;
    let padding = Padding { top: height, bottom: height, left: width, right: width };
    let conv = Conv2d { out_channels: output.channels, kernel, stride, padding, groups, bias: false };
    let ConvolutionTask { kind, x, w, y, bias } = *task;
    match kind {
        ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => {
            let FeatureMaps { channels, height, width, .. } = output;
            let bias = bias.map(|bias| numbers(memory, bias, element, channels));
            let shape = Shape::Maps { channels, height, width };
            let mut sums = forward(&planes(x, input), &kernels(w), bias.as_deref(), &conv, shape).values;
            if kind == ConvolutionKind::ForwardBiasRelu {
                sums.iter_mut().for_each(|y| *y = relu(*y));
            }
            memory.write(y, element, &stored(&sums, output));
        }
        ConvolutionKind::BackwardData => {
            let FeatureMaps { batch, channels, height, width, .. } = input;
            let zeros = Array::zeros(batch, Shape::Maps { channels, height, width });
            let sums = input_gradient(&zeros, &kernels(w), &planes(y, output), &conv).values;
            memory.write(x, element, &stored(&sums, input));
        }
        ConvolutionKind::BackwardWeights => {
            let sums = weight_gradient(&planes(x, input), &planes(y, output), &conv);
            memory.write(w, element, &stored(&sums, weights(convolution)));
        }
    }
}

/// As PyTorch's, it preserves a NaN.
fn relu(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

fn checked(convolution: &Convolution) {
    let Convolution { input, output, kernel, stride, padding, groups, .. } = *convolution;
    let size = |size, kernel, stride, padding| (size + 2 * padding - kernel) / stride + 1;
    assert_eq!(output.height, size(input.height, kernel.height, stride.height, padding.height), "{convolution:?}");
    assert_eq!(output.width, size(input.width, kernel.width, stride.width, padding.width), "{convolution:?}");
    assert_eq!((input.batch, input.layout), (output.batch, output.layout), "{convolution:?}");
    assert!(input.channels % groups == 0 && output.channels % groups == 0, "{convolution:?}");
}

/// Executes a matrix product.
///
/// # Panics
/// Where a slice does not have the size that the product says.
pub fn gemm(memory: &mut EmulatedMemory, gemm: &Gemm) {
    let Product { element, m, n, k, transpose_a, transpose_b, .. } = gemm.product;
    let (a, b) = (numbers(memory, gemm.a, element, m * k), numbers(memory, gemm.b, element, k * n));
    let b = if transpose_b { f64::transposed(&b, n, k) } else { b };
    let a = if transpose_a { f64::transposed(&a, k, m) } else { a };
    // The gradient of a dense layer's input is the product of the output's gradient and the weights.
    let rows = Array { batch: m, channels: k, height: 1, width: 1, values: a };
    let mut c = dense::input_gradient(&Array::zeros(m, Shape::Flat(n)), &b, &rows).values;
    if let Epilogue::Bias(bias) | Epilogue::BiasRelu(bias) = gemm.epilogue {
        let bias = numbers(memory, bias, element, n);
        c.chunks_mut(n).for_each(|c| c.iter_mut().zip(&bias).for_each(|(c, bias)| *c += bias));
    }
    if matches!(gemm.epilogue, Epilogue::BiasRelu(_)) {
        c.iter_mut().for_each(|c| *c = relu(*c));
    }
    memory.write(gemm.c, element, &narrowed(&c));
}

fn numbers(memory: &EmulatedMemory, slice: Slice, element: Element, count: usize) -> Vec<f64> {
    assert_eq!(slice.bytes, count * element.bytes(), "{slice:?} for {count} {element:?}");
    widened(&memory.read(slice, element))
}

/// The sums in float32, in the order of the layout.
fn stored(sums: &[f64], maps: FeatureMaps) -> Vec<f32> {
    from_nchw(&narrowed(sums), maps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::element::Math;
    use crate::settings::Layout;

    /// `torch.nn.functional.conv2d(x, w, stride=(2, 1), padding=(1, 0), groups=2)` of x = arange(1 x 4 x 3 x 4) and
    /// w = arange(2 x 2 x 2 x 2), and its gradients for dy = arange(1 x 2 x 2 x 3) + 1; torch 2.15.0.
    #[test]
    fn a_convolution_and_its_gradients_match_pytorch() {
        let y = [166., 184., 202., 464., 492., 520., 1574., 1624., 1674., 3472., 3564., 3656.];
        let dx = [
            2., 7., 12., 9., 0., 4., 5., 6., 8., 22., 27., 18., 6., 19., 32., 21., 16., 40., 49., 30., 24., 58., 71.,
            42.,
        ];
        let dw = [77., 92., 145., 166.];
        for layout in [Layout::Nchw, Layout::Nhwc] {
            let input = FeatureMaps { batch: 1, channels: 4, height: 3, width: 4, layout };
            let output = FeatureMaps { batch: 1, channels: 2, height: 2, width: 3, layout };
            let (element, math) = (Element::F32, Math::Fp32);
            let (kernel, stride, padding, groups) = (Extent::square(2), Extent::new(2, 1), Extent::new(1, 0), 2);
            let case = Convolution { element, math, input, output, kernel, stride, padding, groups };
            let range = |count: usize, from: usize| (from..from + count).map(|i| i as f64).collect::<Vec<_>>();
            let mut memory = EmulatedMemory::new();
            let mut put = |values: Vec<f64>, maps| memory.tensor(element, &stored(&values, maps));
            let (x, w) = (put(range(48, 0), input), put(range(16, 0), weights(&case)));
            let (dy, bias) = (
                put(range(12, 1), output),
                put(vec![-1000.0, 1.0], FeatureMaps { batch: 1, height: 1, width: 1, ..output }),
            );
            let (y_at, dx_at, dw_at) =
                (memory.empty(element, 12), memory.empty(element, 48), memory.empty(element, 16));
            let mut run = |kind, [x, w, y]: [Slice; 3], at, maps| {
                let bias = (kind == ConvolutionKind::ForwardBiasRelu).then_some(bias);
                convolution(&mut memory, &case, &ConvolutionTask { kind, x, w, y, bias });
                to_nchw(&numbers(&memory, at, element, FeatureMaps::count(&maps)), maps)
            };
            assert_eq!(run(ConvolutionKind::Forward, [x, w, y_at], y_at, output), y);
            let rectified = run(ConvolutionKind::ForwardBiasRelu, [x, w, y_at], y_at, output);
            assert_eq!(rectified[..6], [0.0; 6]);
            assert_eq!(rectified[6], y[6] + 1.0);
            assert_eq!(run(ConvolutionKind::BackwardData, [dx_at, w, dy], dx_at, input)[..24], dx);
            assert_eq!(run(ConvolutionKind::BackwardWeights, [x, dw_at, dy], dw_at, weights(&case))[..4], dw);
        }
    }

    /// By hand: [[1, 2], [3, 4]] [[5, 6], [7, 8]] = [[19, 22], [43, 50]].
    #[test]
    fn a_matrix_product_takes_its_factors_either_way_round() {
        for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut memory = EmulatedMemory::new();
            let (element, math) = (Element::Bf16, Math::Half);
            let a = memory.tensor(element, if transpose_a { &[1., 3., 2., 4.] } else { &[1., 2., 3., 4.] });
            let b = memory.tensor(element, if transpose_b { &[5., 7., 6., 8.] } else { &[5., 6., 7., 8.] });
            let (bias, c) = (memory.tensor(element, &[-20.0, 1.0]), memory.empty(element, 4));
            let product = Product { element, math, m: 2, n: 2, k: 2, transpose_a, transpose_b };
            let mut run = |epilogue| {
                gemm(&mut memory, &Gemm { product, a, b, c, epilogue });
                memory.read(c, element)
            };
            assert_eq!(run(Epilogue::Nothing), [19.0, 22.0, 43.0, 50.0]);
            assert_eq!(run(Epilogue::Bias(bias)), [-1.0, 23.0, 23.0, 51.0]);
            assert_eq!(run(Epilogue::BiasRelu(bias)), [0.0, 23.0, 23.0, 51.0]);
        }
    }
}
