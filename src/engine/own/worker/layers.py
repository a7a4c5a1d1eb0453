# The time of each module of a model, outside the steps that count.

import collections


def is_compiled(model):
    """Whether torch.compile has made it one piece, or parts of it."""
    made = any(type(module).__module__.startswith("torch._dynamo") for module in model.modules())
    return made or any(getattr(module, "_compiled_call_impl", None) is not None for module in model.modules())


def tensors(output):
    """The tensors of what a module gives, which may be a tuple, a mapping, or a class of either."""
    if hasattr(output, "register_hook"):
        return [output]
    parts = output.values() if hasattr(output, "values") else output if isinstance(output, (tuple, list)) else ()
    return [tensor for part in parts for tensor in tensors(part)]


class Passage:
    """One step in which each module without children tells when it begins and ends: forward by hooks around it, backward by hooks on
    what it gives.

    Autograd comes to the output of a module just before it computes that module's gradients, so backward a module lasts until the next is
    come to; what runs between two modules counts with the one before. A module that is called several times has the sum."""

    def __init__(self, modules, clock):
        self.modules, self.clock = modules, clock
        self.begun, self.spans, self.arrived, self.end = {}, [], [], None

    def before(self, module, _):
        self.begun[module] = self.clock.now()

    def after(self, module, _, output):
        if module in self.begun:
            self.spans.append((module, self.begun.pop(module), self.clock.now()))
        for tensor in tensors(output)[:1]:
            if tensor.requires_grad:
                tensor.register_hook(lambda _: self.arrived.append((module, self.clock.now())))

    def update(self, *_):
        """The optimizer begins, where there is one: the backward pass is over."""
        self.end = self.end or self.clock.now()

    def run(self, run, wait):
        hooks = [hook for m in self.modules for hook in (m.register_forward_pre_hook(self.before), m.register_forward_hook(self.after))]
        optimizer = sys.modules.get("torch.optim.optimizer")
        if hasattr(optimizer, "register_optimizer_step_pre_hook"):
            hooks.append(optimizer.register_optimizer_step_pre_hook(self.update))
        try:
            result = run()
            self.update()
            wait(result)
        finally:
            for hook in hooks:
                hook.remove()

    def forward(self):
        times = collections.defaultdict(float)
        for module, begin, end in self.spans:
            times[module] += self.clock.seconds(begin, end)
        return times

    def backward(self):
        times = collections.defaultdict(float)
        moments = [moment for _, moment in self.arrived[1:]] + [self.end]
        for (module, begin), end in zip(self.arrived, moments):
            times[module] += self.clock.seconds(begin, end)
        return times


class WaitingClock:
    """The host's time where the device has no events to ask: each moment waits for it."""

    def __init__(self, wait):
        self.wait = wait

    def now(self):
        self.wait(None)
        return time.perf_counter()

    def seconds(self, first, last):
        return last - first


class Layers:
    """Times the modules of a model in two steps; the shorter time of each counts."""

    TIMES = 2

    def __init__(self, model, frameworks):
        self.model, self.wait = model, frameworks.wait
        self.names = {module: name for name, module in model.named_modules() if not list(module.children())}
        self.clock = frameworks.clock()

    def times(self, run):
        passages = [Passage(self.names, self.clock) for _ in range(self.TIMES)]
        for passage in passages:
            passage.run(run, self.wait)
        forward, backward = [passage.forward() for passage in passages], [passage.backward() for passage in passages]
        shortest = lambda found, module: min((times[module] for times in found if module in times), default=None)
        rows = ((name or type(m).__name__, type(m).__name__, shortest(forward, m), shortest(backward, m)) for m, name in self.names.items())
        # A layer that the step does not call has no time.
        return [dict(zip(("layer", "operation", "forward_s", "backward_s"), row)) for row in rows if row[2] is not None]
