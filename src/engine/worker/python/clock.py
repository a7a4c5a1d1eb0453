# The clock of the device, and its place.


class Clock:
    """Moments: events of a GPU, which it reaches when what was enqueued before them is done, else the host's time."""

    def __init__(self, device):
        self.cuda = sys.modules["torch"].cuda if device.type == "cuda" else None

    def now(self):
        if self.cuda is None:
            return time.perf_counter()
        event = self.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, first, last):
        """From one moment to another; on a GPU once both were reached."""
        return last - first if self.cuda is None else first.elapsed_time(last) / 1e3


def bus_address(properties):
    """As NVML and sysfs write it; None where this PyTorch does not report it."""
    parts = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    return None if None in parts else "{:04x}:{:02x}:{:02x}.0".format(*parts)
