# The batch, and its copy to the device.


def peaks(count, device):
    """Points of a square grid on [-3, 3]^2, row by row, and the heights of the surface `peaks` there: crates/batchstep-cpu/src/network/data.rs."""
    side = math.isqrt(count - 1) + 1
    number = torch.arange(count, device=device)
    points = torch.stack((number % side, number // side), 1).double().mul_(6.0).div_(max(side - 1, 1)).sub_(3.0).float()
    x, y = points.double().unbind(1)
    first = 3.0 * (1.0 - x) * (1.0 - x) * (-x * x - (y + 1.0) * (y + 1.0)).exp()
    second = 10.0 * (x / 5.0 - x * x * x - y * y * y * y * y) * (-x * x - y * y).exp()
    third = (-(x + 1.0) * (x + 1.0) - y * y).exp() / 3.0
    return points, (first - second - third).float().unsqueeze(1)


class Feed:
    """Gives each step its batch, with the numbers of crates/batchstep-cpu/src/engine/cpu/data.rs, but class indices instead of one-hot targets.
    Each of several processes begins at its own example, so that together they have the numbers of one process with the
    whole batch."""

    def __init__(self, network, batch_size, settings, device, static, first=0):
        self.path, self.device, self.static, self.first = settings["data"], device, static, first
        self.batch = peaks(batch_size, device) if settings["examples"] == "peaks" else self.random(network, batch_size, settings)
        if self.path != "resident":
            pin = self.path in ("pinned", "prefetch")
            self.host = tuple(tensor.cpu().pin_memory() if pin else tensor.cpu().clone() for tensor in self.batch)
        if self.path == "prefetch":
            self.begin_prefetch()

    def random(self, network, batch_size, settings):
        first = self.first
        inputs = self.uniform(stream(settings["seed"], INPUTS, 0, 0), (batch_size, *network["input"]))
        if settings["layout"] == "nhwc" and inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        key = stream(settings["seed"], TARGETS, 0, 0)
        if settings["loss"] == "categorical_cross_entropy":
            (classes,) = network["output"]
            words = (mix(key + (example + 1) * GOLDEN & WORD) for example in range(first, first + batch_size))
            targets = torch.tensor([word % classes for word in words], device=self.device)
        else:
            targets = self.uniform(key, (batch_size, *network["output"]))
        return inputs, targets

    def uniform(self, key, dims):
        values = torch.empty(dims, device=self.device)
        each = values[0].numel() if dims[0] else 0
        fill_uniform(values.view(-1), key, first=self.first * each)
        return values

    def begin_prefetch(self):
        """Two buffers; the second stream fills one while the step reads the other."""
        self.buffers = [tuple(torch.empty_like(tensor) for tensor in self.batch) for _ in range(2)]
        self.copied = [torch.cuda.Event(), torch.cuda.Event()]
        self.stream, self.slot = torch.cuda.Stream(), 0
        self.fill(0)

    def fill(self, slot):
        # The step that read this buffer ended synchronised, so nothing reads it any more.
        with torch.cuda.stream(self.stream):
            for to, of in zip(self.buffers[slot], self.host):
                to.copy_(of, non_blocking=True)
            self.copied[slot].record(self.stream)

    def next(self):
        if self.path in ("pageable", "pinned"):
            for to, of in zip(self.batch, self.host):
                to.copy_(of, non_blocking=self.path == "pinned")
        if self.path != "prefetch":
            return self.batch
        ready, self.slot = self.slot, 1 - self.slot
        torch.cuda.current_stream().wait_event(self.copied[ready])
        self.fill(self.slot)
        if not self.static:
            return self.buffers[ready]
        # A captured step reads the memory that it was captured with.
        for to, of in zip(self.batch, self.buffers[ready]):
            to.copy_(of, non_blocking=True)
        return self.batch
