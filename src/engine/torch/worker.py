"""Executes batchstep's training steps with PyTorch; the other end of src/engine/torch/process.rs.

One line of JSON comes in on stdin for each request, one line goes out on stdout for each answer, and nothing else does:
whatever PyTorch prints goes to stderr. A network comes as data and becomes an nn.Module whose forward pass is straight code,
so that neither eager PyTorch nor torch.compile pays for an interpreter. PyTorch gets its best everywhere: in-place
rectifiers, class indices in place of one-hot targets, fused or foreach optimizers, no counters in batch norm, its own
dropout.

It ends with its stdin.
"""

import gc
import inspect
import json
import math
import os
import re
import sys
import time


def private_pipes():
    """Takes the pipes for this file alone: prints of libraries and of child processes must not get between the answers."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return os.fdopen(requests, encoding="utf-8"), os.fdopen(answers, "w", encoding="utf-8")


def end_with_parent():
    """On Linux: a parent that is killed takes this process along, also in the middle of a step."""
    try:
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (AttributeError, OSError):
        pass


REQUESTS, ANSWERS = private_pipes()
end_with_parent()
# `python -c` puts the working folder first, where anything may be called torch.py.
sys.path[:] = [path for path in sys.path if path]


class Refusal(Exception):
    """An error for batchstep to report: the kind, and one clause."""

    def __init__(self, kind, what):
        super().__init__(what)
        self.kind = kind


# The counter-based numbers of src/random.rs.

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
PARAMETERS, INPUTS, TARGETS = 1, 2, 3


def mix(word):
    """SplitMix64's output function."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return word ^ (word >> 31)


def stream(seed, purpose, *parts):
    """The key of a stream of numbers."""
    key = mix(seed + GOLDEN & WORD)
    for part in (purpose, *parts):
        key = mix(key + part & WORD)
    return key


def signed(word):
    return word - (1 << 64) if word >> 63 else word


def tensor_mix(word):
    """The same on a tensor of int64: its products wrap, and its right shifts have to lose the sign."""
    word = (word ^ (word >> 30 & (1 << 34) - 1)).mul_(signed(0xBF58476D1CE4E5B9))
    word = (word ^ (word >> 27 & (1 << 37) - 1)).mul_(signed(0x94D049BB133111EB))
    return word ^ (word >> 31 & (1 << 33) - 1)


def fill_uniform(flat, key, limit=None):
    """Uniform on [0, 1), or on [-limit, limit), in pieces that stay in a cache, or on a GPU keep it busy."""
    piece = 1 << 16 if flat.device.type == "cpu" else 1 << 22
    for start in range(0, flat.numel(), piece):
        part = flat[start : start + piece]
        index = torch.arange(start + 1, start + 1 + part.numel(), device=flat.device)
        word = tensor_mix(index.mul_(signed(GOLDEN)).add_(signed(key)))
        part.copy_(word >> 40 & (1 << 24) - 1).mul_(2.0**-24)
        if limit is not None:
            part.mul_(2.0).sub_(1.0).mul_(limit)


# The code of a network, generated from its description.


def write_forward(network, loss, training=True):
    """The text of `forward(self, x0, targets)`, which gives the loss; without training the output, with running statistics."""
    layers = network["layers"]
    uses = [0] * len(layers)
    last_use = {}
    for number, layer in enumerate(layers):
        for source in layer["sources"]:
            uses[source] += 1
            last_use[source] = number
    lines = ["def forward(self, x0, targets):"]
    for number, layer in enumerate(layers[1:], 1):
        own = [uses[source] == 1 and may_be_overwritten(layers[source]) for source in layer["sources"]]
        lines.append(f"    x{number} = {expression(number, layer, own, training)}")
        gone = [f"x{source}" for source in dict.fromkeys(layer["sources"]) if source and last_use[source] == number]
        if gone:
            lines.append(f"    del {', '.join(gone)}")
    if not training:
        return "\n".join([*lines, f"    return x{len(layers) - 1}"]) + "\n"
    what = {
        "categorical_cross_entropy": "cross_entropy",
        "mean_squared_error": "mse_loss",
        "binary_cross_entropy": "binary_cross_entropy_with_logits",
    }[loss]
    lines.append(f"    return F.{what}(x{len(layers) - 1}, targets)")
    return "\n".join(lines) + "\n"


def may_be_overwritten(layer):
    """Whether the layer's own backward pass works without its output."""
    return layer["type"] in ("conv2d", "batch_norm", "dense", "add")


def expression(number, layer, own, training):
    kind, (x, *more) = layer["type"], [f"x{source}" for source in layer["sources"]]
    parameter = lambda name: f"self.{name}_{number}" if has(layer, name) else "None"
    if kind == "conv2d":
        x, padding = padded(x, layer["padding"], "")
        weight, bias = parameter("weight"), parameter("bias")
        return f"F.conv2d({x}, {weight}, {bias}, {tuple(layer['stride'])}, {padding}, 1, {layer['groups']})"
    if kind == "batch_norm":
        # Not F.batch_norm, which refuses one value for each channel; the other engines do not.
        tensors = ", ".join(parameter(name) for name in ("gamma", "beta", "running_mean", "running_variance"))
        numbers = f"{1 - layer['momentum']!r}, {layer['epsilon']!r}"
        return f"torch.batch_norm({x}, {tensors}, {training}, {numbers}, torch.backends.cudnn.enabled)"
    if kind == "relu":
        return f"F.relu({x}, inplace={own[0]})"
    if kind == "relu6":
        return f"F.relu6({x}, inplace={own[0]})"
    if kind == "max_pool2d":
        kernel = layer["kernel"]
        fits = all(2 * side <= size for side, size in zip(layer["padding"][::2], kernel))
        x, padding = padded(x, layer["padding"], ", value=-torch.inf", fits)
        return f"F.max_pool2d({x}, {tuple(kernel)}, {tuple(layer['stride'])}, {padding})"
    if kind == "global_average_pool":
        return f"{x}.mean((2, 3))"
    if kind == "flatten":
        return f"{x}.flatten(1)"
    if kind == "dense":
        return f"F.linear({x}, {parameter('weight')}, {parameter('bias')})"
    if kind == "dropout":
        return f"F.dropout({x}, {layer['rate']!r})" if layer["rate"] and training else x
    if kind == "add":
        (y,) = more
        if own[0] and x != y:
            return f"{x}.add_({y})"
        return f"{y}.add_({x})" if own[1] and x != y else f"{x} + {y}"
    raise Refusal("spec", f"the torch engine has no operation `{kind}`")


def padded(x, padding, value, symmetric=True):
    """PyTorch pads both sides of an axis alike; what differs is padded beforehand."""
    top, bottom, left, right = padding
    if top == bottom and left == right and symmetric:
        return x, (top, left)
    return f"F.pad({x}, {(left, right, top, bottom)}{value})", (0, 0)


def has(layer, name):
    return any(parameter["name"] == name for parameter in layer["parameters"])


def compile_source(text):
    """A function of its own code object: torch.compile keeps a few compilations for each, and refuses more."""
    names = {"torch": torch, "F": torch.nn.functional}
    exec(compile(text, "<network>", "exec"), names)
    return names["forward"]


class Model:
    """A network's parameters in one layout, which all cells of that network share, and its compiled forward passes."""

    def __init__(self, network, layout, device):
        self.network, self.device = network, device
        self.module = torch.nn.Module()
        self.compiled = {}
        order = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}[layout]
        for number, layer in enumerate(network["layers"]):
            for parameter in layer["parameters"]:
                name, dims = f"{parameter['name']}_{number}", parameter["dims"]
                tensor = torch.empty(dims, device=device)
                if len(dims) == 4:
                    tensor = tensor.to(memory_format=order)
                if parameter["trainable"]:
                    self.module.register_parameter(name, torch.nn.Parameter(tensor))
                else:
                    self.module.register_buffer(name, tensor)

    @property
    def parameters(self):
        return list(self.module.parameters())

    def reset(self, seed):
        """The values of src/engine/cpu/parameters.rs, in the memory that they have."""
        with torch.no_grad():
            for index, layer in enumerate(self.network["layers"]):
                for number, parameter in enumerate(layer["parameters"]):
                    tensor = getattr(self.module, f"{parameter['name']}_{index}")
                    if parameter["name"] == "weight":
                        self.fill_glorot(tensor, stream(seed, PARAMETERS, index, number))
                    else:
                        tensor.fill_(1.0 if parameter["name"] in ("gamma", "running_variance") else 0.0)
                    tensor.grad = None

    def fill_glorot(self, weight, key):
        window = 1
        for side in weight.shape[2:]:
            window *= side
        limit = torch.tensor((6.0 / (window * (weight.shape[0] + weight.shape[1]))) ** 0.5, dtype=torch.float32)
        values = torch.empty(weight.numel(), device=self.device)
        fill_uniform(values, key, limit.item())
        weight.copy_(values.view(weight.shape))

    def forward(self, batch_size, settings):
        """The forward pass as a function of module, inputs and targets; compiled once for each cell."""
        text = write_forward(self.network, settings["loss"])
        if settings["compile"] == "none":
            return compile_source(text)
        key = (batch_size, *(settings[name] for name in ("loss", "precision", "algorithms", "compile")))
        if key not in self.compiled:
            # CUDA graphs are the setting `launch`, and there the whole step is one.
            mode = {"default": "default", "max-autotune": "max-autotune-no-cudagraphs"}[settings["compile"]]
            self.compiled[key] = torch.compile(compile_source(text), mode=mode, fullgraph=True, dynamic=False)
        return self.compiled[key]


# The batch, and its copy to the device.


def peaks(batch_size, device):
    """Points of a square grid on [-3, 3]^2, row by row, and the heights of the surface `peaks` there: src/engine/data.rs."""
    side = math.isqrt(batch_size - 1) + 1
    number = torch.arange(batch_size, device=device)
    points = torch.stack((number % side, number // side), 1).double().mul_(6.0).div_(max(side - 1, 1)).sub_(3.0).float()
    x, y = points.double().unbind(1)
    first = 3.0 * (1.0 - x) * (1.0 - x) * (-x * x - (y + 1.0) * (y + 1.0)).exp()
    second = 10.0 * (x / 5.0 - x * x * x - y * y * y * y * y) * (-x * x - y * y).exp()
    third = (-(x + 1.0) * (x + 1.0) - y * y).exp() / 3.0
    return points, (first - second - third).float().unsqueeze(1)


class Feed:
    """Gives each step its batch: src/engine/cpu/data.rs with its numbers, but class indices for one-hot targets."""

    def __init__(self, network, batch_size, settings, device, static):
        self.path, self.device, self.static = settings["data"], device, static
        self.batch = peaks(batch_size, device) if settings["examples"] == "peaks" else self.random(network, batch_size, settings)
        if self.path != "resident":
            pin = self.path in ("pinned", "prefetch")
            self.host = tuple(tensor.cpu().pin_memory() if pin else tensor.cpu().clone() for tensor in self.batch)
        if self.path == "prefetch":
            self.begin_prefetch()

    def random(self, network, batch_size, settings):
        inputs = self.uniform(stream(settings["seed"], INPUTS, 0, 0), (batch_size, *network["input"]))
        if settings["layout"] == "nhwc" and inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        key = stream(settings["seed"], TARGETS, 0, 0)
        if settings["loss"] == "categorical_cross_entropy":
            (classes,) = network["output"]
            words = (mix(key + (example + 1) * GOLDEN & WORD) for example in range(batch_size))
            targets = torch.tensor([word % classes for word in words], device=self.device)
        else:
            targets = self.uniform(key, (batch_size, *network["output"]))
        return inputs, targets

    def uniform(self, key, dims):
        values = torch.empty(dims, device=self.device)
        fill_uniform(values.view(-1), key)
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


# The step.


def make_optimizer(parameters, settings, device):
    """torch.optim's class with the defaults of src/engine/cpu/optimizer, in the fastest form that it has here."""
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
    """Seconds between marks: of the device where there is one, else of the host."""

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
    """One prepared training step."""

    def __init__(self, model, batch_size, settings, device):
        self.settings, self.device, self.model = settings, device, model
        self.graph = None
        self.arm()
        model.reset(settings["seed"])
        torch.manual_seed(settings["seed"])
        self.forward = model.forward(batch_size, settings)
        captured = settings["launch"] == "graph"
        self.feed = Feed(model.network, batch_size, settings, device, static=captured)
        self.optimizer = make_optimizer(model.parameters, settings, device)
        self.cast = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(settings["precision"])
        self.scaler = torch.amp.GradScaler(device.type) if settings["precision"] == "fp16" else None
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

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def moves_data(self):
        # The copy of a prefetched batch is another stream's work, and lies in the step before.
        return self.settings["data"] in ("pageable", "pinned")

    def arm(self):
        """The switches that PyTorch keeps for the whole process."""
        tf32 = self.settings["precision"] == "tf32"
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = self.settings["algorithms"] == "autotune"

    def loss(self, inputs, targets):
        if self.cast is None:
            return self.forward(self.model.module, inputs, targets)
        # Each weight is read once, so there is nothing to cache; and a captured step may not.
        with torch.autocast(self.device.type, self.cast, cache_enabled=False):
            return self.forward(self.model.module, inputs, targets)

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
        """Back to the first step, in the memory that a captured step knows."""
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

    def run(self):
        self.arm()
        cuda = self.device.type == "cuda"
        run = self.replay if self.graph is not None else self.eager
        # The stream of the step alone: a batch on its way for the next step is not part of this one.
        finish = torch.cuda.current_stream().synchronize if cuda else lambda: None
        finish()
        start = time.perf_counter()
        loss = run()
        queued = time.perf_counter()
        finish()
        end = time.perf_counter()
        times = {"step_s": end - start, "gpu_s": None, "enqueue_s": None}
        if cuda:
            times |= {"gpu_s": self.timer.seconds(0, len(self.timer.names)), "enqueue_s": queued - start}
        if self.graph is None:
            times |= {f"{name}_s": seconds for name, seconds in self.timer.phases().items()}
        # As text, since JSON has no number for what is not a number.
        return times | {"loss": repr(loss.item())}


# A training that feeds itself.


class Examples:
    """Bytes and labels mapped from files. A batch is read at once, decoded and normalised in the worker that reads it: what a
    dataset of tensors makes at its best, where reading example by example would cost more than the network."""

    def __init__(self, part, feed):
        count, shape = part["count"], feed["shape"]
        size = count
        for extent in shape:
            size *= extent
        pixels = torch.from_file(part["pixels"], shared=False, size=size, dtype=torch.uint8)
        self.pixels = pixels.view(count, *shape)
        self.labels = torch.from_file(part["labels"], shared=False, size=count, dtype=torch.uint8).long()
        mean, sd = (torch.tensor(feed[name], dtype=torch.float32).view(-1, 1, 1) for name in ("mean", "sd"))
        self.scale, self.shift = 1 / (255 * sd), -mean / sd

    def __len__(self):
        return len(self.labels)

    def __getitems__(self, indices):
        index = torch.tensor(indices)
        return self.pixels[index].float().mul_(self.scale).add_(self.shift), self.labels[index]

    def __getitem__(self, index):
        inputs, labels = self.__getitems__([index])
        return inputs[0], labels[0]


class Training(Step):
    """Whole epochs through a DataLoader: persistent workers, whole batches from each, as many ready as asked for."""

    def __init__(self, model, batch_size, settings, device, feed):
        self.settings, self.device, self.model = settings, device, model
        self.graph = None
        self.arm()
        self.forward = model.forward(batch_size, settings)
        self.optimizer = make_optimizer(model.parameters, settings, device)
        self.cast = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(settings["precision"])
        self.scaler = torch.amp.GradScaler(device.type) if settings["precision"] == "fp16" else None
        self.test = Examples(feed["test"], feed) if feed["test"] else None
        train = Examples(feed["train"], feed)
        # A generator of its own: the loader draws from its generator too, and with workers at another moment than without.
        self.generator = torch.Generator()
        shuffled = torch.utils.data.RandomSampler(train, generator=self.generator)
        workers = feed["workers"]
        # A forked worker shares the mapped files; the other ways to start one would have to import this program.
        ways = {"persistent_workers": True, "prefetch_factor": feed["prefetch"], "multiprocessing_context": "fork"}
        self.loader = torch.utils.data.DataLoader(
            train,
            batch_size=batch_size,
            sampler=shuffled if feed["shuffle"] else None,
            drop_last=feed["drop_last"],
            num_workers=workers,
            collate_fn=lambda batch: batch,
            generator=torch.Generator().manual_seed(settings["seed"]),
            pin_memory=device.type == "cuda",
            **(ways if workers else {}),
        )
        self.begin()

    def begin(self):
        self.restart()
        torch.manual_seed(self.settings["seed"])

    def place(self, tensor):
        if self.device.type != "cpu":
            tensor = tensor.to(self.device, non_blocking=True)
        if self.settings["layout"] == "nhwc" and tensor.dim() == 4:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        return tensor

    def epoch(self, epoch, steps):
        self.arm()
        cuda = self.device.type == "cuda"
        finish = torch.cuda.synchronize if cuda else lambda: None
        before = self.processor_times()
        losses, examples, wait = [], 0, 0.0
        finish()
        start = time.perf_counter()
        self.generator.manual_seed(self.settings["seed"] + epoch)
        batches = iter(self.loader)
        while steps is None or len(losses) < steps:
            asked = time.perf_counter()
            batch = next(batches, None)
            wait += time.perf_counter() - asked
            if batch is None:
                break
            inputs, targets = (self.place(tensor) for tensor in batch)
            loss = self.loss(inputs, targets)
            self.backward(loss)
            self.update()
            self.optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())
            examples += len(targets)
        finish()
        end = time.perf_counter()
        user, system = (after - then for after, then in zip(self.processor_times(), before))
        losses = [repr(loss.item()) for loss in losses]
        times = {"epoch_s": end - start, "wait_s": wait, "user_s": user, "system_s": system}
        return times | {"examples": examples, "losses": losses}

    def processor_times(self):
        """Seconds in user space and in the kernel, of this process and of the workers that it has."""
        own = os.times()
        user, system = own.user, own.system
        workers = getattr(getattr(self.loader, "_iterator", None), "_workers", [])
        for worker in workers:
            try:
                with open(f"/proc/{worker.pid}/stat") as stat:
                    fields = stat.read().rsplit(") ", 1)[1].split()
            except OSError:
                continue
            tick = os.sysconf("SC_CLK_TCK")
            user, system = user + int(fields[11]) / tick, system + int(fields[12]) / tick
        return user, system

    def evaluate(self):
        forward = compile_source(write_forward(self.model.network, self.settings["loss"], training=False))
        correct, loss, count = 0, 0.0, len(self.test) if self.test else 0
        with torch.no_grad():
            for start in range(0, count, 500):
                inputs, targets = self.test.__getitems__(list(range(start, min(start + 500, count))))
                inputs, targets = self.place(inputs), targets.to(self.device)
                output = forward(self.model.module, inputs, None)
                correct += (output.argmax(1) == targets).sum().item()
                loss += torch.nn.functional.cross_entropy(output.double(), targets, reduction="sum").item()
        return {"examples": count, "correct": correct, "loss": repr(loss)}


# The requests.


class Worker:
    def __init__(self):
        self.device = None
        self.models = {}
        self.steps = {}
        self.frozen = False

    def open(self, request):
        """Chooses the device; the first request."""
        wanted = request["device"]
        available = torch.cuda.is_available()
        if wanted == "auto":
            wanted = "cuda:0" if available else "cpu"
        if wanted != "cpu" and not available:
            built = f"was built for CUDA {torch.version.cuda}" if torch.version.cuda else "was built without CUDA"
            raise Refusal("device", f"PyTorch {torch.__version__} sees no GPU; it {built}")
        self.device = torch.device(wanted)
        answer = {"torch": torch.__version__, "device": wanted}
        if self.device.type == "cuda":
            if self.device.index >= torch.cuda.device_count():
                raise Refusal("device", f"PyTorch sees {torch.cuda.device_count()} GPU, and no {wanted}")
            torch.cuda.set_device(self.device)
            answer["device_name"] = torch.cuda.get_device_name(self.device)
            answer["capability"] = torch.cuda.get_device_capability(self.device)
            properties = torch.cuda.get_device_properties(self.device)
            answer["pci_bus_id"] = bus_address(properties)
            answer["multiprocessors"] = properties.multi_processor_count
        self.threads = torch.get_num_threads()
        # Garbage collection would run in the middle of steps.
        gc.disable()
        return answer

    def prepare(self, request):
        network, settings = request["network"], request["settings"]
        torch.set_num_threads(settings["threads"] or self.threads)
        model = self.model(network, settings["layout"])
        step = self.steps[request["id"]] = Step(model, request["batch_size"], settings, self.device)
        self.synchronize()
        return step.setup

    def train(self, request):
        network, settings = request["network"], request["settings"]
        torch.set_num_threads(settings["threads"] or self.threads)
        model = self.model(network, settings["layout"])
        training = Training(model, request["batch_size"], settings, self.device, request["feed"])
        self.steps[request["id"]] = training
        self.synchronize()
        return {}

    def epoch(self, request):
        return self.held(request).epoch(request["epoch"], request["steps"])

    def evaluate(self, request):
        return self.held(request).evaluate()

    def restart(self, request):
        self.held(request).begin()
        return {}

    def held(self, request):
        step = self.steps.get(request["id"])
        if step is None:
            raise Refusal("engine", "this step was prepared by a process that has ended")
        return step

    def model(self, network, layout):
        """The one kept for that network, unless a step is using it."""
        key = json.dumps(network) + layout
        model = self.models.get(key)
        if model is None or any(step.model is model for step in self.steps.values()):
            model = self.models[key] = Model(network, layout, self.device)
        return model

    def step(self, request):
        return self.held(request).run()

    def release(self, request):
        step = self.steps.pop(request["id"], None)
        # Workers end when their loader's iterator does.
        if isinstance(step, Training):
            step.loader._iterator = None
        if step is not None:
            for parameter in step.model.parameters:
                parameter.grad = None
        del step
        self.tidy()
        if not self.frozen:
            # What PyTorch imports, at its start and at its first step, stays: to look through it takes a tenth of a second, ten times as long as a visit to a
            # small network.
            gc.freeze()
            self.frozen = True
        return {}

    def tidy(self):
        """Releases unused memory: another engine may need it next."""
        gc.collect()
        if self.device is not None and self.device.type == "cuda":
            torch.cuda.empty_cache()
            self.synchronize()

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def answer(self, line):
        request = json.loads(line)
        do = {name: getattr(self, name) for name in ("open", "prepare", "train", "step", "epoch", "evaluate", "restart", "release")}
        try:
            return {"ok": do[request["do"]](request)}
        except Refusal as refusal:
            failure = {"kind": refusal.kind, "what": str(refusal)}
        except Exception as error:
            failure = {"kind": kind_of(error), "what": first_line(error)}
            print(f"{request['do']}: {type(error).__name__}: {error}", file=sys.stderr)
        # The exception is released here, and with its traceback the memory of the failed step.
        self.tidy()
        return {"error": failure}


def bus_address(properties):
    """As NVML and sysfs write it; None where this PyTorch does not report it."""
    parts = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    return None if None in parts else "{:04x}:{:02x}:{:02x}.0".format(*parts)


def kind_of(error):
    out_of_memory = isinstance(error, (MemoryError, getattr(torch, "OutOfMemoryError", MemoryError)))
    reported = re.search(r"out of memory|can't allocate memory|ALLOC_FAILED|not enough memory", str(error))
    return "out_of_memory" if out_of_memory or reported else "engine"


def first_line(error):
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "without a word")
    return f"{type(error).__name__}: {text}"


def main():
    def send(answer):
        ANSWERS.write(json.dumps(answer) + "\n")
        ANSWERS.flush()

    global torch
    try:
        import torch
        import torch.nn.functional
        import torch.utils.data
    except Exception as error:
        REQUESTS.readline()
        return send({"error": {"kind": "device", "what": f"{sys.executable} cannot import torch: {error}"}})
    worker = Worker()
    for line in REQUESTS:
        send(worker.answer(line))


if __name__ == "__main__":
    main()
