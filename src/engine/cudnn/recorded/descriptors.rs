//! cuDNN's descriptors, as far as the engine reads them back: two configurations of engines for every operation, and
//! the sizes of the older calls.

use std::ffi::{c_int, c_void};

use cudarc::cudnn::sys::{cudnnBackendAttributeName_t as Name, cudnnMathType_t};

use super::{device, put, with};

/// Room for the values of an attribute.
pub struct AttributeValues {
    pub room: i64,
    pub count: *mut i64,
    pub elements: *mut c_void,
}

/// Configurations that heuristics propose.
const CONFIGURATIONS: i64 = 2;

pub unsafe fn attribute(descriptor: usize, name: Name, values: &mut AttributeValues) -> u32 {
    // SAFETY: the elements have the type of the attribute.
    unsafe {
        match name {
            Name::CUDNN_ATTR_ENGINEHEUR_RESULTS if values.room == 0 => put(values.count, CONFIGURATIONS),
            Name::CUDNN_ATTR_ENGINEHEUR_RESULTS => {
                for place in 0..CONFIGURATIONS {
                    let config = *values.elements.cast::<usize>().add(place as usize);
                    with(|recording| recording.device.places.insert(config, place));
                }
                put(values.count, CONFIGURATIONS)
            }
            Name::CUDNN_ATTR_ENGINECFG_ENGINE => {
                let engine = *values.elements.cast::<usize>();
                with(|recording| {
                    let places = &mut recording.device.places;
                    let place = places.get(&descriptor).copied().unwrap_or_default();
                    places.insert(engine, place);
                });
                put(values.count, 1)
            }
            Name::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES => put(values.count, 1),
            Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE => put(values.elements.cast::<i32>(), 4) | put(values.count, 1),
            Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE => put(values.elements.cast::<i64>(), 2) | put(values.count, 1),
            // None: products of float32 numbers.
            Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE => put(values.count, 0),
            Name::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE => {
                let compiles = with(|recording| {
                    let place = recording.device.places.get(&descriptor).copied().unwrap_or_default();
                    place < recording.device.compiled
                });
                match compiles {
                    // CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION.
                    true if values.room > 0 => put(values.elements.cast::<i32>(), 0) | put(values.count, 1),
                    true => put(values.count, 1),
                    false => put(values.count, 0),
                }
            }
            Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX => {
                let place = with(|recording| recording.device.places.get(&descriptor).copied().unwrap_or_default());
                put(values.elements.cast::<i64>(), 10 + place) | put(values.count, 1)
            }
            Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE => {
                put(values.elements.cast::<i64>(), 4096) | put(values.count, 1)
            }
            other => panic!("{other:?} is not recorded"),
        }
    }
}

/// A convolution on the stream that cuDNN was set to.
pub fn execute(handle: usize) -> u32 {
    with(|recording| {
        let device = &mut recording.device;
        let stream = device.cudnn_stream.get(&handle).copied().unwrap_or_default();
        device.cudnn_streams.push(stream);
    });
    device::work("recorded_convolution", false)
}

pub fn set_stream(handle: usize, stream: usize) -> u32 {
    with(|recording| recording.device.cudnn_stream.insert(handle, stream));
    0
}

pub fn keep(descriptor: usize, numbers: &[c_int]) -> u32 {
    with(|recording| recording.device.numbers.insert(descriptor, numbers.to_vec()));
    0
}

pub fn keep_math(descriptor: usize, math: cudnnMathType_t) -> u32 {
    with(|recording| recording.device.math.insert(descriptor, math as u32));
    0
}

pub unsafe fn math(descriptor: usize, out: *mut cudnnMathType_t) -> u32 {
    let math = with(|recording| recording.device.math[&descriptor]);
    // SAFETY: it was set as such a value.
    unsafe { put(out, std::mem::transmute::<u32, cudnnMathType_t>(math)) }
}

/// cudnnGetConvolution2dForwardOutputDim: 1 + (input + 2 padding - kernel) / stride, without dilation.
pub unsafe fn output(descriptors: [usize; 3], out: [*mut c_int; 4]) -> u32 {
    let [convolution, input, filter] =
        descriptors.map(|descriptor| with(|recording| recording.device.numbers[&descriptor].clone()));
    let along = |at: usize| 1 + (input[2 + at] + 2 * convolution[at] - filter[2 + at]) / convolution[2 + at];
    let sizes = [input[0], filter[0], along(0), along(1)];
    for (out, size) in out.into_iter().zip(sizes) {
        // SAFETY: as the caller says.
        unsafe { put(out, size) };
    }
    0
}
