//! Why an installed driver gives no GPU: the codes of `cuInit` and `cuDeviceGetCount`, with a remedy for each.
//!
//! The names and meanings are those of `CUresult` in cuda.h. The remedies come from NVIDIA's documentation (fabric
//! manager, forward compatibility, MPS) and from what solved the same code for others.

use std::ffi::c_int;

use cudarc::driver::sys::CUresult as Code;

/// CUDA_ERROR_NO_DEVICE: an answer, not a failure.
pub const NO_DEVICE: c_int = Code::CUDA_ERROR_NO_DEVICE as c_int;

/// The refusal of an installed driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One clause, with the code.
    pub what: String,
    /// What to do.
    pub remedy: String,
    /// The commands for it, in order; none if commands cannot do it.
    pub commands: &'static [&'static str],
}

struct Known {
    code: Code,
    what: &'static str,
    remedy: &'static str,
    commands: &'static [&'static str],
}

const KNOWN: [Known; 16] = [
    Known {
        code: Code::CUDA_ERROR_OUT_OF_MEMORY,
        what: "it has no memory left for this process",
        remedy: "end what else runs on the GPU (`nvidia-smi` lists it), or raise the container's memory limit",
        commands: &[],
    },
    Known {
        code: Code::CUDA_ERROR_STUB_LIBRARY,
        what: "libcuda.so.1 is the CUDA toolkit's stub, which programs are linked with, and no driver",
        remedy: "take the toolkit's `stubs` folder out of LD_LIBRARY_PATH, or install the NVIDIA driver; in a container, start it with \
                 `--gpus all`",
        commands: &[],
    },
    Known {
        code: Code::CUDA_ERROR_DEVICE_UNAVAILABLE,
        what: "another process has the GPU for itself (exclusive mode), or no process may use it (prohibited mode)",
        remedy: "end the other process (`nvidia-smi` lists it), or allow several: `sudo nvidia-smi -c DEFAULT`",
        commands: &["nvidia-smi", "sudo nvidia-smi -c DEFAULT"],
    },
    Known {
        code: Code::CUDA_ERROR_INVALID_DEVICE,
        what: "CUDA_VISIBLE_DEVICES names a GPU that is not there, or a GPU is in MIG mode and has no instance",
        remedy: "compare CUDA_VISIBLE_DEVICES with the list of `nvidia-smi -L`",
        commands: &["nvidia-smi -L", "echo \"$CUDA_VISIBLE_DEVICES\""],
    },
    Known {
        code: Code::CUDA_ERROR_DEVICE_NOT_LICENSED,
        what: "the virtual GPU (vGPU) has no licence",
        remedy: "see `nvidia-smi -q | grep -i license`, and configure the licence server in /etc/nvidia/gridd.conf",
        commands: &["nvidia-smi -q | grep -i license"],
    },
    Known {
        code: Code::CUDA_ERROR_ECC_UNCORRECTABLE,
        what: "the GPU's memory has an error that cannot be corrected",
        remedy: "reset the GPU (`sudo nvidia-smi --gpu-reset`) or reboot; if it comes back, the GPU is defective: `nvidia-smi -q -d ECC`",
        commands: &["sudo nvidia-smi --gpu-reset", "nvidia-smi -q -d ECC"],
    },
    Known {
        code: Code::CUDA_ERROR_OPERATING_SYSTEM,
        what: "a call of the operating system failed: this process may not open the GPU's device files, or they are missing",
        remedy: "look at `ls -l /dev/nvidia*`; create them with `sudo nvidia-modprobe -u -c=0`; in a container, start it with `--gpus all`",
        commands: &["ls -l /dev/nvidia*", "sudo nvidia-modprobe -u -c=0"],
    },
    Known {
        code: Code::CUDA_ERROR_NOT_PERMITTED,
        what: "this process may not use the GPU",
        remedy: "look at `ls -l /dev/nvidia*` and at the groups of this user",
        commands: &["ls -l /dev/nvidia*", "id"],
    },
    Known {
        code: Code::CUDA_ERROR_SYSTEM_NOT_READY,
        what: "the GPUs are joined by NVSwitch, and the fabric manager that sets it up is not running",
        remedy: "sudo systemctl enable --now nvidia-fabricmanager (its version must be the driver's); `nvidia-smi -q | grep -A2 Fabric` \
                 shows the state",
        commands: &["sudo systemctl enable --now nvidia-fabricmanager", "nvidia-smi -q | grep -A2 Fabric"],
    },
    Known {
        code: Code::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
        what: "libcuda.so.1 and the driver in the kernel are of different versions, as after an update without a reboot",
        remedy: "reboot; in a container, restart it, and take a `cuda-compat` package or a copied libcuda.so.1 out of the image",
        commands: &["sudo reboot"],
    },
    Known {
        code: Code::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
        what: "libcuda.so.1 is of a forward-compatibility package, which this GPU does not support: only data-centre GPUs do",
        remedy: "take the `cuda-compat` folder out of LD_LIBRARY_PATH (or uninstall the package), or install a newer driver",
        commands: &[],
    },
    Known {
        code: Code::CUDA_ERROR_MPS_CONNECTION_FAILED,
        what: "the Multi-Process Service (MPS) does not answer",
        remedy: "start it (`nvidia-cuda-mps-control -d`), or unset CUDA_MPS_PIPE_DIRECTORY to do without",
        commands: &["nvidia-cuda-mps-control -d"],
    },
    Known {
        code: Code::CUDA_ERROR_MPS_SERVER_NOT_READY,
        what: "the server of the Multi-Process Service (MPS) is not ready",
        remedy: "wait a moment and try again, or stop it: `echo quit | nvidia-cuda-mps-control`",
        commands: &["echo quit | nvidia-cuda-mps-control"],
    },
    Known {
        code: Code::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
        what: "the Multi-Process Service (MPS) serves as many processes as it can",
        remedy: "end another process on the GPU",
        commands: &[],
    },
    Known {
        code: Code::CUDA_ERROR_NOT_SUPPORTED,
        what: "the driver does not support CUDA on this system",
        remedy: "`nvidia-smi` shows the driver; a virtual machine needs the whole GPU passed through, or a vGPU profile with CUDA",
        commands: &[],
    },
    Known {
        code: Code::CUDA_ERROR_UNKNOWN,
        what: "an unknown error, as after waking from sleep, or where the module nvidia_uvm is not loaded",
        remedy: "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm; else reboot (`sudo dmesg | grep -i nvrm` shows the cause)",
        commands: &["sudo modprobe -r nvidia_uvm", "sudo modprobe nvidia_uvm"],
    },
];

impl Refusal {
    /// The refusal of a code; `text` is the driver's own description.
    pub fn of(code: c_int, text: &str) -> Self {
        match KNOWN.iter().find(|known| known.code as c_int == code) {
            Some(Known { code: name, what, remedy, commands }) => {
                let what = format!("{what} ({name:?}, {code})");
                Self { what, remedy: (*remedy).to_owned(), commands }
            }
            None => Self {
                what: format!("it reports \"{text}\" (CUDA error {code})"),
                remedy: "run `nvidia-smi` to see whether the driver works".to_owned(),
                commands: &["nvidia-smi"],
            },
        }
    }

    /// The refusal of a library that exists but that the loader does not load, with the loader's reason.
    pub fn unloadable(why: &str) -> Self {
        Self {
            what: format!("its libcuda.so.1 does not load: {why}"),
            remedy: "reinstall the NVIDIA driver; in a container, start it with `--gpus all`, and take copied or empty driver files out of \
                     the image"
                .to_owned(),
            commands: &["ldconfig -p | grep libcuda.so"],
        }
    }

    /// The refusal of a library that lacks a function which every driver has.
    pub fn lacking(why: String) -> Self {
        Self { what: why, remedy: "reinstall the NVIDIA driver".to_owned(), commands: &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code and its name, as cuda.h has them.
    #[test]
    fn a_known_code_is_given_with_its_name() {
        assert!(Refusal::of(802, "").what.ends_with(" is not running (CUDA_ERROR_SYSTEM_NOT_READY, 802)"));
    }

    #[test]
    fn an_unknown_code_is_given_in_the_drivers_own_words() {
        let refusal = Refusal::of(9999, "something new");
        assert_eq!(refusal.what, "it reports \"something new\" (CUDA error 9999)");
        assert!(refusal.remedy.contains("nvidia-smi"));
    }
}
