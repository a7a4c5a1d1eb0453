//! cuDNN's descriptors, as far as the engine reads them back: two configurations of engines for every operation, and
//! the sizes of the older calls.

use std::ffi::{c_int, c_void};

use cudarc::cudnn::sys::{cudnnBackendAttributeName_t as Name, cudnnMathType_t};

use super::{device::work, put};

/// Room for the values of an attribute.
pub struct AttributeValues {
    pub count: *mut i64,
    pub elements: *mut c_void,
}

/// Configurations that heuristics propose.
const CONFIGURATIONS: i64 = 2;

pub unsafe fn attribute(descriptor: usize, name: Name, values: &mut AttributeValues) -> u32 {
    let place = super::device(|device| device.places.get(&descriptor).copied().unwrap_or_default());
    let keep = |descriptor, place| super::device(|device| device.places.insert(descriptor, place));
    let AttributeValues { count, elements } = *values;
    // SAFETY: the elements have the type of the attribute, and there is room for as many as are given here.
    unsafe {
        let number = |value: i64| put(elements.cast(), value) | put(count, 1);
        match name {
            Name::CUDNN_ATTR_ENGINEHEUR_RESULTS => {
                for place in 0..CONFIGURATIONS {
                    keep(*elements.cast::<usize>().add(place as usize), place);
                }
                put(count, CONFIGURATIONS)
            }
            Name::CUDNN_ATTR_ENGINECFG_ENGINE => {
                keep(*elements.cast::<usize>(), place);
                put(count, 1)
            }
            Name::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES => put(count, 1),
            Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE => put(elements.cast::<i32>(), 4) | put(count, 1),
            Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE => number(2),
            // None: products of float32 numbers.
            Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE => put(count, 0),
            // CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, or none.
            Name::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE => match place < super::device(|device| device.compiled) {
                true => put(elements.cast::<i32>(), 0) | put(count, 1),
                false => put(count, 0),
            },
            Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX => number(10 + place),
            Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE => number(4096),
            other => panic!("{other:?} is not recorded"),
        }
    }
}

/// A convolution on the stream that cuDNN was set to.
pub fn execute(handle: usize) -> u32 {
    super::device(|device| {
        let stream = device.cudnn_stream.get(&handle).copied().unwrap_or_default();
        device.cudnn_streams.push(stream);
    });
    work("recorded_convolution", false)
}

pub fn set_stream(handle: usize, stream: usize) -> u32 {
    super::device(|device| device.cudnn_stream.insert(handle, stream));
    0
}

pub fn keep(descriptor: usize, numbers: &[c_int]) -> u32 {
    super::device(|device| device.numbers.insert(descriptor, numbers.to_vec()));
    0
}

pub fn keep_math(descriptor: usize, math: cudnnMathType_t) -> u32 {
    super::device(|device| device.math.insert(descriptor, math as u32));
    0
}

pub unsafe fn math(descriptor: usize, out: *mut cudnnMathType_t) -> u32 {
    let math = super::device(|device| device.math[&descriptor]);
    // SAFETY: it was set as such a value.
    unsafe { put(out, std::mem::transmute::<u32, cudnnMathType_t>(math)) }
}

/// cudnnGetConvolution2dForwardOutputDim: 1 + (input + 2 padding - kernel) / stride, without dilation.
pub unsafe fn output(descriptors: [usize; 3], out: [*mut c_int; 4]) -> u32 {
    let [convolution, input, filter] =
        descriptors.map(|descriptor| super::device(|device| device.numbers[&descriptor].clone()));
    let along = |at: usize| 1 + (input[2 + at] + 2 * convolution[at] - filter[2 + at]) / convolution[2 + at];
    let sizes = [input[0], filter[0], along(0), along(1)];
    for (out, size) in out.into_iter().zip(sizes) {
        // SAFETY: as the caller says.
        unsafe { put(out, size) };
    }
    0
}
