//! Why a clock is below its maximum, as stable names.
//!
//! A GPU's names follow the bits of `nvmlDeviceGetCurrentClocksEventReasons` (nvml.h, `nvmlClocksEventReason*`). A CPU
//! has two further names: [`CPU_THERMAL`] and [`CPU_QUOTA`].

pub const NONE: &str = "none";
/// The processor package was throttled because of heat since the previous reading
/// (`/sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count`).
pub const CPU_THERMAL: &str = "cpu_thermal";
/// The control group's processor quota stopped the process since the previous reading (`nr_throttled` in `cpu.stat`).
pub const CPU_QUOTA: &str = "cpu_quota";

/// Bit, name, and whether the reason slows a step down. An idle GPU and clocks set by a person are states, not
/// disturbances.
const REASONS: [(u64, &str, bool); 9] = [
    (0x001, "gpu_idle", false),
    (0x002, "applications_clocks_setting", false),
    (0x004, "sw_power_cap", true),
    (0x008, "hw_slowdown", true),
    (0x010, "sync_boost", true),
    (0x020, "sw_thermal_slowdown", true),
    (0x040, "hw_thermal_slowdown", true),
    (0x080, "hw_power_brake_slowdown", true),
    (0x100, "display_clock_setting", false),
];

/// The names of NVML's bits, joined by `|`; a bit that this version does not know is written `bit_9`.
pub fn names(bits: u64) -> String {
    let named = |bit: u32| REASONS.iter().find(|reason| reason.0 == 1 << bit).map(|reason| reason.1.to_string());
    join((0..u64::BITS).filter(|bit| bits >> bit & 1 == 1).map(|bit| named(bit).unwrap_or(format!("bit_{bit}"))))
}

/// Names joined by `|`, or [`NONE`].
pub(crate) fn join<S: Into<String>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<String> = names.into_iter().map(Into::into).collect();
    if names.is_empty() { NONE.to_string() } else { names.join("|") }
}

/// True where one of the reasons slows a step: power, heat, a brake, a quota, or a reason not known to be harmless.
pub fn slows(reasons: &str) -> bool {
    let harmless = |name: &str| name == NONE || REASONS.iter().any(|reason| reason.1 == name && !reason.2);
    reasons.split('|').any(|name| !harmless(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Bits as nvml.h of CUDA 13 defines them: HwThermalSlowdown 0x40, HwPowerBrakeSlowdown 0x80, DisplayClockSetting 0x100.
    #[test]
    fn every_bit_has_its_name_and_its_weight() {
        assert_eq!(names(0x1c1), "gpu_idle|hw_thermal_slowdown|hw_power_brake_slowdown|display_clock_setting");
        assert!(slows(&names(0x1c1)));
        assert!(!slows(&names(0x103)));
        assert_eq!(
            (names(1 << 9), names(0), names(0x44)),
            ("bit_9".into(), "none".into(), "sw_power_cap|hw_thermal_slowdown".into())
        );
        assert!(!slows("none") && !slows("gpu_idle") && slows("gpu_idle|sw_power_cap"));
        assert!(slows("bit_9") && slows(CPU_QUOTA) && slows(CPU_THERMAL));
    }
}
