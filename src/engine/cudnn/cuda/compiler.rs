//! NVRTC: from the source of kernels to code for one GPU.
//!
//! The code is SASS for exactly this architecture, so that the driver has nothing to compile and may be older than
//! NVRTC, whose PTX it would not understand. Where NVRTC does not know the architecture, it is PTX for the newest one
//! that NVRTC knows.

use std::ffi::{CString, c_char};

use super::api::nvrtc as sys;

use super::status;
use crate::engine::cudnn::element::Element;
use crate::error::{Error, Result};

/// What NVRTC compiles for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileTarget {
    /// 90 for compute capability 9.0.
    pub architecture: u32,
    /// Machine code for the GPU; else PTX, which the driver compiles when it is loaded.
    pub native: bool,
}

impl CompileTarget {
    /// For a GPU of architecture `gpu`, by an NVRTC that knows `supported`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where NVRTC knows only newer ones.
    pub fn choose(gpu: u32, supported: &[u32]) -> Result<Self> {
        if supported.contains(&gpu) {
            return Ok(Self { architecture: gpu, native: true });
        }
        match supported.iter().copied().filter(|known| *known < gpu).max() {
            Some(architecture) => Ok(Self { architecture, native: false }),
            None => {
                let oldest = supported.iter().min().map_or("none".into(), u32::to_string);
                let what =
                    format!("NVRTC no longer compiles for sm_{gpu}; the oldest architecture that it knows is {oldest}");
                Err(Error::device(what).hint("install an older NVRTC: pip install nvidia-cuda-nvrtc-cu12"))
            }
        }
    }

    /// NVRTC's option, and the name in the cache.
    pub fn name(self) -> String {
        format!("{}_{}", if self.native { "sm" } else { "compute" }, self.architecture)
    }
}

/// The architectures that NVRTC compiles for, oldest first.
pub fn supported_architectures() -> Result<Vec<u32>> {
    let mut count = 0;
    // SAFETY: it writes one int.
    status::nvrtc("count its architectures", unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) })?;
    let mut architectures = vec![0_i32; usize::try_from(count).unwrap_or(0)];
    // SAFETY: it writes `count` ints.
    let answer = unsafe { sys::nvrtcGetSupportedArchs(architectures.as_mut_ptr()) };
    status::nvrtc("name its architectures", answer)?;
    Ok(architectures.into_iter().filter_map(|number| u32::try_from(number).ok()).collect())
}

/// Compiles kernels for an element type. The result is an image for cuModuleLoadData: an ELF file, or PTX with a zero at
/// its end.
pub fn compile(name: &str, source: &str, element: Element, target: CompileTarget) -> Result<Vec<u8>> {
    let doing = format!("compile {name} for {} and {}", target.name(), element.name());
    let text =
        |text: &str| CString::new(text).map_err(|_| Error::engine(format!("a zero byte in the source of {name}")));
    let program = NvrtcProgram::new(&text(source)?, &text(&format!("{name}.cu"))?)?;
    let options = options(element, target).into_iter().map(|option| text(&option)).collect::<Result<Vec<CString>>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let count = i32::try_from(pointers.len()).unwrap_or(0);
    // SAFETY: the program lives; `count` strings that end with a zero.
    let answer = unsafe { sys::nvrtcCompileProgram(program.0, count, pointers.as_ptr()) };
    status::nvrtc(&doing, answer).map_err(|error| error.with(program.log().trim_end()))?;
    match target.native {
        true => program.output(&doing, sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN),
        false => program.output(&doing, sys::nvrtcGetPTXSize, sys::nvrtcGetPTX),
    }
}

/// The options of a compilation; they are part of the cache's key.
pub fn options(element: Element, target: CompileTarget) -> Vec<String> {
    vec![
        format!("--gpu-architecture={}", target.name()),
        "--std=c++17".into(),
        // Profilers can then name the source line.
        "--generate-line-info".into(),
        format!("--define-macro=ELEMENT_{}", element.name().to_uppercase()),
    ]
}

struct NvrtcProgram(sys::nvrtcProgram);

impl NvrtcProgram {
    fn new(source: &CString, name: &CString) -> Result<Self> {
        let mut program = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: two strings that end with a zero, copied by NVRTC; no headers.
        let answer =
            unsafe { sys::nvrtcCreateProgram(&raw mut program, source.as_ptr(), name.as_ptr(), 0, none, none) };
        status::nvrtc("take a source", answer)?;
        Ok(Self(program))
    }

    fn output(
        &self,
        doing: &str,
        size: unsafe fn(sys::nvrtcProgram, *mut usize) -> sys::nvrtcResult,
        get: unsafe fn(sys::nvrtcProgram, *mut c_char) -> sys::nvrtcResult,
    ) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: both are of the form (program, out); the buffer has the size that the first one reported.
        unsafe {
            status::nvrtc(doing, size(self.0, &raw mut bytes))?;
            let mut output = vec![0_u8; bytes];
            status::nvrtc(doing, get(self.0, output.as_mut_ptr().cast()))?;
            match output.is_empty() {
                true => Err(Error::engine(format!("NVRTC was to {doing}, and returned nothing")).no_kernels_fault()),
                false => Ok(output),
            }
        }
    }

    /// The compiler's log; empty where it is not available.
    fn log(&self) -> String {
        let log =
            self.output("return its log", sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog).unwrap_or_default();
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_string()
    }
}

impl Drop for NvrtcProgram {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = unsafe { sys::nvrtcDestroyProgram(&raw mut self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cuda::libraries::{self, Library};
    use crate::engine::cudnn::source::OPERATORS;

    const SOURCE: &str = r#"
        extern "C" __global__ void twice(float *x, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
        #ifdef ELEMENT_F32
            if (i < n) x[i] *= 2.0f;
        #endif
        }"#;

    #[test]
    fn the_target_is_the_gpu_itself_or_the_newest_before_it() {
        let known = [75, 80, 86, 89, 90];
        assert_eq!(CompileTarget::choose(90, &known).unwrap(), CompileTarget { architecture: 90, native: true });
        assert_eq!(CompileTarget::choose(103, &known).unwrap(), CompileTarget { architecture: 90, native: false });
        assert_eq!(CompileTarget::choose(87, &known).unwrap().name(), "compute_86");
        assert_eq!(CompileTarget::choose(75, &known).unwrap().name(), "sm_75");
        assert!(CompileTarget::choose(70, &known).unwrap_err().to_string().contains("sm_70"));
    }

    #[test]
    fn every_architecture_that_matters_gets_its_own_code() {
        if !libraries::is_loaded(Library::Nvrtc) {
            return;
        }
        let known = supported_architectures().unwrap();
        for gpu in [75, 80, 90] {
            let target = CompileTarget::choose(gpu, &known).unwrap();
            let image = compile("twice", SOURCE, Element::F32, target).unwrap();
            assert!(target.native && image.starts_with(b"\x7fELF"), "sm_{gpu}");
        }
    }

    /// NVRTC's assembler accepts every kernel: of a T4, an A100, an RTX 3090, an RTX 4090, an H100, and, where NVRTC knows them, a B200 and an RTX 5090.
    #[test]
    #[ignore = "takes minutes, with BATCHSTEP_LONG=1"]
    fn every_module_is_assembled_for_every_architecture() {
        if std::env::var_os("BATCHSTEP_LONG").is_none() || !libraries::is_loaded(Library::Nvrtc) {
            return;
        }
        let known = supported_architectures().unwrap();
        for architecture in [75, 80, 86, 89, 90, 100, 120].into_iter().filter(|at| *at <= 90 || known.contains(at)) {
            for (operator, element) in OPERATORS.iter().flat_map(|operator| Element::ALL.map(|one| (operator, one))) {
                let target = CompileTarget { architecture, native: true };
                let image = compile(operator.name, &operator.source(element), element, target);
                let image = image.unwrap_or_else(|error| panic!("{}: {error}", operator.name));
                assert!(image.starts_with(b"\x7fELF"), "{} for {}", operator.name, target.name());
            }
        }
    }

    #[test]
    fn ptx_ends_with_a_zero_as_the_driver_wants_it() {
        if !libraries::is_loaded(Library::Nvrtc) {
            return;
        }
        let target = CompileTarget { architecture: 75, native: false };
        let image = compile("twice", SOURCE, Element::F16, target).unwrap();
        let text = String::from_utf8_lossy(&image);
        assert!(text.contains(".target sm_75") && text.contains("twice") && image.ends_with(&[0]));
    }

    #[test]
    fn a_mistake_in_a_kernel_is_reported_with_its_line() {
        if !libraries::is_loaded(Library::Nvrtc) {
            return;
        }
        let target = CompileTarget { architecture: 90, native: true };
        let error =
            compile("wrong", "__global__ void f() {\n  x = 1;\n}", Element::F32, target).unwrap_err().to_string();
        assert!(error.contains("compile wrong for sm_90 and f32"), "{error}");
        assert!(error.contains("wrong.cu(2)") && error.contains("undefined"), "{error}");
    }
}
