//! The arguments of a kernel as cuLaunchKernel takes them: an array of pointers, each to one value.
//!
//! Source: cuLaunchKernel in the CUDA driver API, `kernelParams`. The driver copies each value during the call, with the
//! size that the compiled kernel says.

use std::ffi::c_void;

use super::placement::Placement;
use crate::engine::cudnn::call::Arg;
use crate::error::Result;

/// The values and pointers to them, built once and passed at every launch.
#[derive(Debug)]
pub(super) struct Arguments {
    /// One value in each, from its first byte on. Boxed, since the pointers point here.
    _values: Box<[[u8; 8]]>,
    pointers: Vec<*mut c_void>,
    sizes: Vec<usize>,
}

impl Arguments {
    /// The arguments with every slice replaced by its address.
    pub fn new(args: &[Arg], placement: &Placement) -> Result<Self> {
        let encoded: Vec<(usize, [u8; 8])> = args.iter().map(|arg| encode(arg, placement)).collect::<Result<_>>()?;
        let sizes = encoded.iter().map(|(size, _)| *size).collect();
        let mut values: Box<[[u8; 8]]> = encoded.into_iter().map(|(_, value)| value).collect();
        let pointers = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        Ok(Self { _values: values, pointers, sizes })
    }

    /// For `kernelParams`; the driver only reads through it.
    pub fn pointers(&self) -> *mut *mut c_void {
        self.pointers.as_ptr().cast_mut()
    }

    /// The bytes of each argument.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }
}

/// The bytes of a value, and the value from the first byte on.
fn encode(arg: &Arg, placement: &Placement) -> Result<(usize, [u8; 8])> {
    let short = |bytes: [u8; 4]| (4, [bytes[0], bytes[1], bytes[2], bytes[3], 0, 0, 0, 0]);
    Ok(match *arg {
        Arg::Read(slice) | Arg::Write(slice) | Arg::Update(slice) => (8, placement.resolve(slice)?.to_ne_bytes()),
        Arg::Null => (8, [0; 8]),
        Arg::I32(value) => short(value.to_ne_bytes()),
        Arg::F32(value) => short(value.to_ne_bytes()),
        Arg::I64(value) => (8, value.to_ne_bytes()),
        Arg::U64(value) => (8, value.to_ne_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::call::Slice;

    /// What a kernel with parameters of these types would see.
    fn read<T: Copy>(arguments: &Arguments, index: usize) -> T {
        // SAFETY: every value has 8 bytes, which is the largest T here.
        unsafe { (*arguments.pointers().add(index)).cast::<T>().read_unaligned() }
    }

    #[test]
    fn every_argument_is_found_through_its_pointer() {
        let placement = Placement::in_arena(0x7f12_3400_0000, &[(0, 1024), (4096, 64)]);
        let slice = Slice::new(1, 16, 8);
        let args = [
            Arg::I32(-7),
            Arg::Read(slice),
            Arg::F32(0.1),
            Arg::Null,
            Arg::I64(-(1 << 40)),
            Arg::U64(0x9E37_79B9_7F4A_7C15),
            Arg::Write(Slice::new(0, 0, 1024)),
            Arg::Update(slice),
        ];
        let arguments = Arguments::new(&args, &placement).unwrap();
        assert_eq!(arguments.sizes(), [4, 8, 4, 8, 8, 8, 8, 8]);
        assert_eq!((read::<i32>(&arguments, 0), read::<f32>(&arguments, 2)), (-7, 0.1));
        let [large, key] = [-(1_i64 << 40) as u64, 0x9E37_79B9_7F4A_7C15];
        let expected = [0x7f12_3400_1010, 0, large, key, 0x7f12_3400_0000, 0x7f12_3400_1010];
        assert_eq!([1, 3, 4, 5, 6, 7].map(|index| read::<u64>(&arguments, index)), expected);
    }

    #[test]
    fn the_pointers_stay_right_when_the_arguments_move() {
        let placement = Placement::in_arena(0, &[]);
        let made: Vec<Arguments> = (0..100)
            .map(|i| Arguments::new(&[Arg::I32(i), Arg::I64(i64::from(i) << 33)], &placement).unwrap())
            .collect();
        for (i, arguments) in (0..).zip(&made) {
            assert_eq!((read::<i32>(arguments, 0), read::<i64>(arguments, 1)), (i, i64::from(i) << 33));
        }
    }
}
