# The step.


def make_optimizer(parameters, settings, device):
    """torch.optim's class with the defaults of crates/batchstep-cpu/src/engine/cpu/optimizer, in the fastest form available here."""
    name = settings["optimizer"]
    kind = {"sgd": "SGD", "momentum": "SGD", "rmsprop": "RMSprop", "adam": "Adam", "adamw": "AdamW"}[name]
    make = getattr(torch.optim, kind)
    known = inspect.signature(make).parameters
    options = {"lr": settings["learning_rate"]}
    if name == "momentum":
        options["momentum"] = 0.9
    if "fused" in known:
        options["fused"] = True
    elif device.type == "cuda":
        options["foreach"] = True
    if settings["launch"] == "graph" and "capturable" in known:
        options["capturable"] = True
    return make(parameters, **options)


class Timer:
    """Seconds between marks: by the device's clock if there is one, else by the host's."""

    def __init__(self, device, names):
        self.names = names
        make = lambda: torch.cuda.Event(enable_timing=True)
        self.events = [make() for _ in range(len(names) + 1)] if device.type == "cuda" else None
        self.times = [0.0] * (len(names) + 1)

    def mark(self, number):
        if self.events:
            self.events[number].record()
        else:
            self.times[number] = time.perf_counter()

    def seconds(self, first, last):
        if self.events:
            return self.events[first].elapsed_time(self.events[last]) / 1e3
        return self.times[last] - self.times[first]

    def phases(self):
        return {name: self.seconds(number, number + 1) for number, name in enumerate(self.names) if name}


class Step:
    """One prepared training step; its batch begins at example `first` of the data."""

    def __init__(self, model, batch_size, settings, device, first=0):
        self.equip(model, batch_size, settings, device)
        model.reset(settings["seed"])
        torch.manual_seed(settings["seed"])
        captured = settings["launch"] == "graph"
        self.feed = Feed(model.network, batch_size, settings, device, static=captured, first=first)
        # The scaler reads the device's verdict on the host unless the optimizer is fused: then the update stays outside.
        self.captures_update = self.scaler is None or "fused" in self.optimizer.defaults
        names = ["step"] if captured else ["h2d" if self.moves_data() else None, "forward", "backward", "optimizer"]
        self.timer = Timer(device, names)
        compiled = settings["compile"] != "none"
        begun = time.perf_counter()
        if captured:
            self.capture()
        elif compiled:
            self.warm_up(2)
            self.restart()
        self.synchronize()
        # A captured step that is compiled is compiled while it is captured.
        name = "capture_s" if captured else "compile_s"
        self.setup = {name: time.perf_counter() - begun} if captured or compiled else {}

    def equip(self, model, batch_size, settings, device):
        """With all that a step needs but its batch."""
        self.settings, self.device, self.model = settings, device, model
        self.graph = None
        self.arm()
        self.forward = model.forward(batch_size, settings)
        self.optimizer = make_optimizer(model.parameters, settings, device)
        self.cast = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(settings["precision"])
        self.scaler = torch.amp.GradScaler(device.type) if settings["precision"] == "fp16" else None

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def moves_data(self):
        # A prefetched batch is copied by another stream, during the step before.
        return self.settings["data"] in ("pageable", "pinned")

    def arm(self):
        """Sets the switches that PyTorch keeps for the whole process."""
        tf32 = self.settings["precision"] == "tf32"
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = self.settings["algorithms"] == "autotune"

    def loss(self, inputs, targets, forward=None):
        forward = forward or self.forward
        if self.cast is None:
            return forward(self.model.module, inputs, targets)
        # Each weight is read once, so there is nothing to cache; and a captured step must not cache.
        with torch.autocast(self.device.type, self.cast, cache_enabled=False):
            return forward(self.model.module, inputs, targets)

    def backward(self, loss):
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def update(self):
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()

    def warm_up(self, steps):
        for _ in range(steps):
            self.eager()

    def restart(self):
        """Goes back to the first step, in the memory that a captured step uses."""
        self.model.reset(self.settings["seed"]) if self.graph is None else self.rewind()
        for state in self.optimizer.state.values():
            for value in state.values():
                if torch.is_tensor(value):
                    value.zero_()

    def rewind(self):
        gradients = [parameter.grad for parameter in self.model.parameters]
        self.model.reset(self.settings["seed"])
        for parameter, gradient in zip(self.model.parameters, gradients):
            parameter.grad = gradient

    def capture(self):
        """One CUDA graph of forward, backward and update, by the recipe in PyTorch's notes on CUDA graphs."""
        inputs, targets = self.feed.batch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.backward(self.loss(inputs, targets))
                self.update()
                self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.loss(inputs, targets)
            self.backward(loss)
            if self.captures_update:
                self.update()
        self.graph, self.captured_loss = graph, loss.detach()
        self.restart()

    def eager(self):
        mark = self.timer.mark
        mark(0)
        inputs, targets = self.feed.next()
        mark(1)
        loss = self.loss(inputs, targets)
        mark(2)
        self.backward(loss)
        mark(3)
        self.update()
        self.optimizer.zero_grad(set_to_none=True)
        mark(4)
        return loss.detach()

    def replay(self):
        self.timer.mark(0)
        self.feed.next()
        self.graph.replay()
        if not self.captures_update:
            self.update()
        self.timer.mark(1)
        return self.captured_loss

    def once(self):
        return self.eager() if self.graph is None else self.replay()

    def layers(self):
        """The layers' times. A compiled or captured step counts as one piece."""
        if self.settings["compile"] != "none" or self.graph is not None:
            return []
        self.arm()
        return Layers(self).times()

    def run(self):
        self.arm()
        cuda = self.device.type == "cuda"
        # Waits only for the stream of the step: the copy of the next step's batch is not part of this step.
        finish = torch.cuda.current_stream().synchronize if cuda else lambda: None
        finish()
        WITNESS.look()
        before, start = WITNESS.read(), time.perf_counter()
        loss = self.once()
        queued = time.perf_counter()
        finish()
        end, after = time.perf_counter(), WITNESS.read()
        times = {"step_s": end - start, "gpu_s": None, "enqueue_s": None, "allreduce_s": None}
        if cuda:
            times |= {"gpu_s": self.timer.seconds(0, len(self.timer.names)), "enqueue_s": queued - start}
        if self.graph is None:
            times |= {f"{name}_s": seconds for name, seconds in self.timer.phases().items()}
        # As text, because JSON cannot represent NaN as a number.
        return times | WITNESS.between(before, after) | {"loss": repr(loss.item())}
