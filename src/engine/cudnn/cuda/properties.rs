//! The properties of a GPU, as the driver reports them.

use std::ffi::{CStr, c_char, c_int};

use super::api::driver as sys;
use sys::CUdevice_attribute as Attribute;

use super::status;
use crate::device::cuda::libraries::{Libraries, Library};
use crate::error::{Error, Result};

/// The oldest GPUs that the engine supports: Turing, such as the T4.
pub const OLDEST: (u32, u32) = (7, 5);

/// A GPU and the libraries that are used with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Its number in CUDA's order, for this process.
    pub ordinal: u32,
    /// `NVIDIA H200`.
    pub name: String,
    pub compute_capability: (u32, u32),
    pub multiprocessors: u32,
    /// All memory of the device.
    pub total_bytes: u64,
    pub l2_bytes: u64,
    /// The shared memory that one block may request.
    pub shared_bytes_per_block: u64,
    /// `0000:3b:00.0`, in lower case, as in the folders of the Linux kernel.
    pub pci_bus_id: String,
    /// `None` where the driver does not report it.
    pub memory_clock_hz: Option<u64>,
    pub memory_bus_bits: Option<u32>,
    /// The newest CUDA version that the driver supports.
    pub driver_cuda: (u32, u32),
    /// As the libraries report them: `9.19.0`.
    pub cudnn: Option<String>,
    pub cublaslt: Option<String>,
    pub nvrtc: Option<String>,
}

impl Properties {
    /// Whether tensor cores multiply bfloat16, and float32 numbers as tf32: since Ampere.
    pub fn has_tf32_and_bf16(&self) -> bool {
        self.compute_capability >= (8, 0)
    }

    /// The memory's nominal rate: two transfers of the bus's width in each clock cycle.
    pub fn memory_bytes_per_s(&self) -> Option<f64> {
        Some(2.0 * self.memory_clock_hz? as f64 * f64::from(self.memory_bus_bits?) / 8.0)
    }

    /// `cuDNN 9.19.0, cuBLASLt 13.1.0, NVRTC 13.0, a driver for CUDA 13.0`.
    pub fn software(&self) -> String {
        let (major, minor) = self.driver_cuda;
        let libraries = [("cuDNN", &self.cudnn), ("cuBLASLt", &self.cublaslt), ("NVRTC", &self.nvrtc)];
        let version =
            |(name, version): (&str, &Option<String>)| format!("{name} {}, ", version.as_deref().unwrap_or("?"));
        format!("{}a driver for CUDA {major}.{minor}", libraries.map(version).concat())
    }

    /// `90` for 9.0, as NVRTC's architectures are written.
    pub fn architecture(&self) -> u32 {
        self.compute_capability.0 * 10 + self.compute_capability.1
    }

    /// Fails where the GPU is older than [`OLDEST`].
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`], naming what it lacks.
    pub fn suffices(&self) -> Result<()> {
        if self.compute_capability >= OLDEST {
            return Ok(());
        }
        let (major, minor) = self.compute_capability;
        let lacks = if self.compute_capability < (7, 0) { "tensor cores, and " } else { "" };
        let what = format!(
            "the GPU engine cannot run on {}: its compute capability is {major}.{minor}, and 7.5 is the oldest that it is \
             made for; the GPU lacks {lacks}the support of cuDNN 9 and CUDA 13",
            self.name
        );
        Err(Error::device(what).hint("run with `--device cpu`, or use a PyTorch that supports this GPU"))
    }

    /// Reads them from the driver; CUDA must be initialised.
    pub(super) fn read(ordinal: u32, device: sys::CUdevice, libraries: &Libraries) -> Result<Self> {
        let number = |attribute: Attribute| attribute_of(device, attribute);
        let some = |attribute: Attribute| number(attribute).ok().filter(|value| *value > 0);
        let version = |library: Library| libraries.get(library).and_then(|found| found.version.clone());
        let mut total = 0_usize;
        // SAFETY: it writes one size_t.
        status::driver("report the size of the GPU's memory", unsafe {
            sys::cuDeviceTotalMem_v2(&raw mut total, device)
        })?;
        let mut driver = 0;
        // SAFETY: it writes one int.
        status::driver("report its version", unsafe { sys::cuDriverGetVersion(&raw mut driver) })?;
        let driver = u32::try_from(driver).unwrap_or(0);
        Ok(Self {
            ordinal,
            // SAFETY: it writes at most `length` bytes to `text`, which holds as many.
            name: text("name the GPU", |text, length| unsafe { sys::cuDeviceGetName(text, length, device) })?,
            compute_capability: (
                number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            total_bytes: total as u64,
            l2_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            shared_bytes_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?.into(),
            // SAFETY: as above.
            pci_bus_id: text("report the GPU's address on the PCI bus", |text, length| unsafe {
                sys::cuDeviceGetPCIBusId(text, length, device)
            })?
            .to_ascii_lowercase(),
            // The driver gives kHz.
            memory_clock_hz: some(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).map(|khz| u64::from(khz) * 1000),
            memory_bus_bits: some(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
            driver_cuda: (driver / 1000, driver % 1000 / 10),
            cudnn: version(Library::Cudnn),
            cublaslt: version(Library::CublasLt),
            nvrtc: version(Library::Nvrtc),
        })
    }
}

fn attribute_of(device: sys::CUdevice, attribute: Attribute) -> Result<u32> {
    let mut value: c_int = 0;
    // SAFETY: it writes one int.
    let answer = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
    status::driver("report a property of the GPU", answer)?;
    u32::try_from(value)
        .map_err(|_| Error::engine(format!("the CUDA driver reports {value} for a property of the GPU")))
}

/// A string that the driver writes into a buffer of a given length.
fn text(doing: &str, call: impl Fn(*mut c_char, c_int) -> sys::CUresult) -> Result<String> {
    let mut buffer = [0_u8; 256];
    status::driver(doing, call(buffer.as_mut_ptr().cast(), 256))?;
    Ok(CStr::from_bytes_until_nul(&buffer).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str, compute_capability: (u32, u32)) -> Properties {
        Properties {
            ordinal: 0,
            name: name.into(),
            compute_capability,
            multiprocessors: 80,
            total_bytes: 16 << 30,
            l2_bytes: 6 << 20,
            shared_bytes_per_block: 64 << 10,
            pci_bus_id: "0000:3b:00.0".into(),
            memory_clock_hz: None,
            memory_bus_bits: None,
            driver_cuda: (13, 0),
            cudnn: None,
            cublaslt: None,
            nvrtc: None,
        }
    }

    #[test]
    fn a_t4_is_old_enough_and_a_v100_is_not() {
        assert!(gpu("Tesla T4", (7, 5)).suffices().is_ok());
        let error = gpu("Tesla V100", (7, 0)).suffices().unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::Device);
        assert!(error.to_string().contains("Tesla V100: its compute capability is 7.0"), "{error}");
        assert!(gpu("GTX 1080", (6, 1)).suffices().unwrap_err().to_string().contains("tensor cores"));
    }

    #[test]
    fn tf32_and_bf16_begin_with_ampere() {
        let (turing, ampere, hopper) = (gpu("T4", (7, 5)), gpu("A100", (8, 0)), gpu("H200", (9, 0)));
        assert_eq!([&turing, &ampere, &hopper].map(Properties::has_tf32_and_bf16), [false, true, true]);
        assert_eq!((turing.architecture(), hopper.architecture(), gpu("B200", (10, 0)).architecture()), (75, 90, 100));
    }
}
