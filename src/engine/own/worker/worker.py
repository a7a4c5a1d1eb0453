# The requests to a user's own step, and the timing of its steps.
#
# There are three lifetimes: values at the top of the file live as long as the process; values that `step` makes live as long as a visit; the function
# that `step` returns runs once for each step and is timed.


def loss_of(result):
    """Where a step gives one number, or a mapping or an object with `loss`, or a tuple that begins with one of these: that number."""
    try:
        for _ in range(3):
            if isinstance(result, dict):
                result = result["loss"]
            elif isinstance(result, (tuple, list)):
                result = result[0]
            else:
                result = getattr(result, "loss", result)
        # A whole number of a library is a class or an index.
        if isinstance(result, (str, bytes, bool)) or "float" not in str(getattr(result, "dtype", "float")):
            return None
        return float(result.item() if hasattr(result, "item") else result)
    except Exception:
        return None


class OwnStep:
    """What `step` gave for one set of arguments."""

    def __init__(self, run, model, arguments, frameworks):
        self.run, self.model, self.arguments, self.frameworks = run, model, arguments, frameworks
        self.repeats = 1

    def first(self):
        """One step that does not count; its time."""
        begun = time.perf_counter()
        result = self.run()
        self.frameworks.wait(result)
        return result, time.perf_counter() - begun

    def once(self):
        """The times and counts of one step, and its loss. What is read beside the clocks is read outside them."""
        frameworks, run, repeats = self.frameworks, self.run, self.repeats
        wait, events, compiled = frameworks.wait, frameworks.events, frameworks.compilations()
        before, start = WITNESS.read(), time.perf_counter()
        if events:
            events[0].record()
        for _ in range(repeats - 1):
            run()
        result = run()
        if events:
            events[1].record()
        queued = time.perf_counter()
        wait(result)
        end, after = time.perf_counter(), WITNESS.read()
        share = lambda count: count / repeats
        times = {
            "step_s": share(end - start),
            "gpu_s": share(events[0].elapsed_time(events[1]) / 1e3) if events else None,
            "enqueue_s": share(queued - start) if frameworks.on_device else None,
            "forward_s": None,
            "backward_s": None,
            "optimizer_s": None,
            "peak_memory_bytes": None,
            "compilations": frameworks.compilations() - compiled,
            "repeats": repeats,
        }
        return times | WITNESS.between(before, after, repeats), result


class Notes:
    """What a person should know at the end of a run."""

    def __init__(self):
        # By set of arguments in the order of their first visits: the set, and the graphs that torch.compile made for it.
        self.prepared = {}
        # Steps whose loss is not a number, with their arguments; and how many later losses were numbers again.
        self.diverged, self.finite_since = [], 0
        self.repeats, self.compiled, self.said = 1, 0, []

    def prepare(self, arguments, graphs):
        """A set of arguments that is visited for the first time."""
        self.prepared[json.dumps(arguments)] = (arguments, graphs)

    def step(self, arguments, times, loss):
        self.repeats = max(self.repeats, times["repeats"])
        self.compiled += times["compilations"] > 0
        if loss is not None and not math.isfinite(loss):
            self.diverged.append((arguments, loss))
        elif loss is not None and self.diverged:
            self.finite_since += 1

    def say(self, notice):
        if notice not in self.said:
            self.said.append(notice)

    def varied(self):
        """The arguments that have more than one value."""
        values = collections.defaultdict(set)
        for arguments, _ in self.prepared.values():
            for name, value in arguments.items():
                values[name].add(json.dumps(value))
        return [name for name, found in values.items() if len(found) > 1]

    def label(self, arguments):
        shown = self.varied() or list(arguments)[:1]
        return ", ".join(f"{name} {arguments[name]}" for name in shown if name in arguments)

    def graphs(self):
        """torch.compile takes the first size for the only one, and makes a graph for all others at the second."""
        prepared = list(self.prepared.values())
        graphs = sum(graphs for _, graphs in prepared)
        if not prepared or not 0 < graphs < len(prepared):
            return []
        first = prepared[0][0]
        sizes = "sizes" if len(self.varied()) < 2 else "sets of arguments"
        text = f"torch compiled {graphs} graph{'s' if graphs > 1 else ''} for {len(prepared)} {sizes}"
        # A batch of one has a graph of its own in any case.
        others = [arguments for arguments, made in prepared[1:] if made and next(iter(arguments.values())) != 1]
        if prepared[0][1] and others:
            shown = first[self.varied()[0]] if len(self.varied()) == 1 else self.label(first)
            text += f"; the first visited ({shown}) has its own: `dynamic=False` or `dynamic=True` in torch.compile treats all alike"
        return [text]

    def losses(self):
        if not self.diverged:
            return []
        arguments, loss = self.diverged[0]
        what = "NaN" if math.isnan(loss) else "infinite"
        label = self.label(arguments)
        steps = "1 step" if len(self.diverged) == 1 else f"{len(self.diverged)} steps"
        where = f"in {steps}, first at {label}" if self.finite_since else f"from the visit of {label} on"
        return [f"the loss is {what} {where}: the times still count; a smaller learning rate avoids it"]

    def all(self):
        notices = [*self.graphs(), *self.losses(), *self.said]
        if self.compiled:
            steps = "1 step that counts has" if self.compiled == 1 else f"{self.compiled} steps that count have"
            notices.append(f"{steps} compiled something, though a step of that size had run before: {'its time contains' if self.compiled == 1 else 'their times contain'} it")
        if self.repeats > 1:
            notices.append(f"short steps ran up to {self.repeats} times between two waits for the device; their times are the mean")
        return notices


class Worker(Holder):
    REQUESTED = ("open", "prepare", "step", "work", "layers", "kernels", "release", "summary")
    # A file that ends the program ends one visit.
    ERRORS = BaseException

    def __init__(self, function=None):
        # Given by a process that already has the function; otherwise the file defines it.
        self.function = function
        self.file = self.frameworks = None
        self.steps, self.repeats, self.notes = {}, {}, Notes()

    def open(self, request):
        """Imports the file; the first request."""
        # Garbage collection would run in the middle of steps.
        gc.disable()
        self.file = File(request["file"])
        self.file.load() if self.function is None else self.file.take(self.function)
        self.file.check(request["arguments"])
        self.frameworks = Frameworks(getattr(self.file.module, "synchronize", None))
        self.frameworks.look()
        files = self.file.files()
        python = ".".join(str(part) for part in sys.version_info[:3])
        unknown = {"device_name": None, "pci_bus_id": None, "multiprocessors": None}
        device = {**unknown, **self.frameworks.open_device(self.file)}
        return {"version": self.frameworks.version(self.file), "python": python, **device, "files": files}

    def prepare(self, request):
        arguments, key = request["arguments"], json.dumps(request["arguments"], sort_keys=True)
        frameworks, cells = self.frameworks, request.get("cells", 1)
        frameworks.begin_visit()
        frameworks.allow(cells)
        begun, compiled, graphs = time.perf_counter(), frameworks.compilations(), frameworks.graphs()
        step = OwnStep(*self.file.make(arguments), arguments, frameworks)
        compile_s = None
        if key not in self.repeats:
            compile_s = self.begin(step, cells)
            self.repeats[key] = frameworks.repeats(step.run)
            self.notes.prepare(arguments, frameworks.graphs() - graphs)
        step.repeats = self.repeats[key]
        frameworks.settle()
        self.steps[request["id"]] = step
        compilations = frameworks.compilations() - compiled
        answer = {"prepare_s": time.perf_counter() - begun, "compile_s": compile_s, "compilations": compilations}
        return {**answer, "has_layers": self.has_layers(step), "device": frameworks.device()}

    def begin(self, step, cells):
        """The first step of a size: what it compiles and chooses is done before the steps that count. The seconds that it took, where it compiled."""
        self.frameworks.look()
        self.frameworks.allow(cells)
        compiled = self.frameworks.compilations()
        result, seconds = step.first()
        # What it has just begun to use is known now, and has not been waited for.
        self.frameworks.look()
        self.check(result)
        self.frameworks.wait(result)
        return seconds if self.frameworks.compilations() > compiled else None

    def check(self, result):
        """A step has to have run when it returns; that of a framework which computes beside the program has to give its result."""
        if inspect.iscoroutine(result) or inspect.isgenerator(result):
            raise Refusal("spec", f"the step in {self.file.name} returned a {type(result).__name__}, which has not run anything yet")
        name = self.frameworks.needs_result
        if name and result is None:
            spelled = {"jax": "JAX", "mlx.core": "MLX"}[name]
            remedy = "`return` its result, so that it can be waited for"
            raise Refusal("spec", f"the step in {self.file.name} returns nothing, and {spelled} computes asynchronously: {remedy}")

    def step(self, request):
        step, memory, rows = self.held(request), self.frameworks.memory(), []
        memory.begin_memory()
        WITNESS.look()
        for _ in range(request.get("count", 1)):
            times, result = step.once()
            self.check(result)
            loss = loss_of(result)
            # The next step may need its memory.
            del result
            self.notes.step(step.arguments, times, loss)
            rows.append({**times, "loss": None if loss is None else repr(loss)})
        rows[-1]["peak_memory_bytes"] = memory.peak_memory()
        return {"steps": rows}

    def work(self, request):
        """Steps that do not count, while clock and power are read."""
        step = self.held(request)
        for _ in range(max(1, request["count"] // step.repeats)):
            result = step.run()
        self.frameworks.wait(result)
        return {}

    def is_module(self, model):
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(model, torch.nn.Module)

    def has_layers(self, step):
        if not self.is_module(step.model):
            return False
        # Hooks would have a function compiled anew that calls the model.
        return self.frameworks.graphs() == 0 and not is_compiled(step.model)

    def layers(self, request):
        step = self.held(request)
        if not self.has_layers(step):
            if self.is_module(step.model):
                self.notes.say("the model is compiled: its layers cannot be timed separately")
            return []
        times = Layers(step.model, self.frameworks).times(step.run)
        if not times:
            self.notes.say("the step calls none of the model's modules (a captured step calls none): its layers cannot be timed separately")
        return times

    def kernels(self, request):
        return profiled(self.held(request).run, self.frameworks.wait)

    def release(self, request):
        self.steps.pop(request["id"], None)
        self.collect()
        self.frameworks.give_back(False)
        return {}

    def summary(self, request):
        if self.frameworks.on_device is None and self.frameworks.sees_gpu():
            self.notes.say("torch sees a GPU, and the step does not use it")
        return {"notices": self.notes.all()}

    def collect(self):
        begun = time.perf_counter()
        gc.collect()
        if not self.steps and time.perf_counter() - begun > 1e-3:
            # What survives belongs to the file and its frameworks: to look through it again after each visit takes longer than a short visit.
            gc.freeze()

    def tidy(self):
        """After an error: what it needed is given back."""
        gc.collect()
        if self.frameworks is not None:
            self.frameworks.give_back(True)

    def failure(self, request, error):
        """What a person's code raised; anything that it can, it can. Of a person's process an interrupt is the person's."""
        if self.function is not None and isinstance(error, KeyboardInterrupt):
            raise error
        kind = kind_of(error)
        self.file.show(error)
        # JAX and TensorFlow keep what they have taken of a device: a process that begins anew has it all.
        spent = kind == "out_of_memory" and self.frameworks is not None and self.frameworks.keeps_memory()
        return {"kind": kind, "what": self.file.said(error), **({"spent": True} if spent else {})}


def main():
    os.register_at_fork(after_in_child=leave_to_parent)
    # What a step prints appears when it is printed.
    sys.stdout.reconfigure(line_buffering=True)
    serve(Worker())
    # At exit, libraries look for leaked objects, and would report all frozen ones.
    gc.unfreeze()


if __name__ == "__main__":
    main()
