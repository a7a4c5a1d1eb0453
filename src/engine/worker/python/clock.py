# The clock of the device.


class Clock:
    """Moments: events of a GPU, which it reaches when what was enqueued before them is done, else the host's time."""

    def __init__(self, device):
        self.cuda = device.type == "cuda"

    def now(self):
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, first, last):
        """From one moment to another; on a GPU once both were reached."""
        return first.elapsed_time(last) / 1e3 if self.cuda else last - first
