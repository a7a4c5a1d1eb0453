# What one step runs inside: a GPU's kernels, or a processor's operators, as a framework's profiler sees them, outside the steps that count.

import glob
import gzip
import tempfile


def own_seconds(events):
    """For each event of one thread its time without that of the events inside it, in seconds."""
    open_, inside = [], {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while open_ and open_[-1]["ts"] + open_[-1]["dur"] <= event["ts"]:
            open_.pop()
        if open_:
            inside[id(open_[-1])] = inside.get(id(open_[-1]), 0.0) + event["dur"]
        open_.append(event)
    return [(event, max(0.0, event["dur"] - inside.get(id(event), 0.0)) * 1e-6) for event in events]


def launch_of(event):
    """Blocks of a launch, and threads of a block. PyTorch gives them as lists, XLA in a text: `regs:32 grid:80,1,1 block:256,1,1`."""
    given = event.get("args", {})
    details = dict(part.split(":", 1) for part in str(given.get("kernel_details", "")).split() if ":" in part)
    sizes = lambda name: given.get(name) or ([int(size) for size in details[name].split(",")] if name in details else None)
    return sizes("grid"), sizes("block")


def kernels_of(trace):
    """The kernels of a trace in Chrome's format, as PyTorch's and JAX's profilers write it, the longest together first: name, grid and block where they ran on a
    GPU, shapes where they are operators of a processor, how often, and seconds in all. Where there is any kernel of a GPU, operators are left out: they wait for it."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "dur" in event]
    kernels = [event for event in events if str(event.get("cat", "")).lower() == "kernel" or "kernel_details" in event.get("args", {})]
    if kernels:
        timed = [(event, event["dur"] * 1e-6) for event in kernels]
    else:
        threads = {}
        for event in events:
            # PyTorch's operators, and XLA's, which a thread may run inside one another.
            if event.get("cat") == "cpu_op" or "hlo_op" in event.get("args", {}):
                threads.setdefault((event.get("pid"), event.get("tid")), []).append(event)
        timed = [pair for thread in threads.values() for pair in own_seconds(thread)]
    found = {}
    for event, seconds in timed:
        grid, block = launch_of(event) if kernels else (None, None)
        shapes = None if kernels else event.get("args", {}).get("Input Dims")
        shapes = None if shapes is None else json.dumps([shape for shape in shapes if shape], separators=(",", ":"))
        parts = {"name": event["name"], "grid": grid, "block": block, "shapes": shapes}
        row = found.setdefault(json.dumps(parts), {**parts, "count": 0, "seconds": 0.0})
        row["count"] += 1
        row["seconds"] += seconds
    return sorted(found.values(), key=lambda row: -row["seconds"])


def by_torch(run, wait, folder):
    torch = sys.modules["torch"]
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
        wait(run())
    profiler.export_chrome_trace(os.path.join(folder, "step.trace.json"))


def by_jax(run, wait, folder):
    # Calls of Python would be most of the trace.
    options = sys.modules["jax"].profiler.ProfileOptions()
    options.python_tracer_level = 0
    with sys.modules["jax"].profiler.trace(folder, profiler_options=options):
        wait(run())


def traced(profile, run, wait):
    """The trace of one step."""
    with tempfile.TemporaryDirectory() as folder:
        profile(run, wait, folder)
        [path] = glob.glob(os.path.join(folder, "**", "*.trace.json*"), recursive=True)
        with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
            return json.load(file)


def profiled(run, wait):
    """What a step runs inside, by the first of the frameworks that sees anything; of each kernel the shortest time of three steps, as the first step of a
    profiler starts the profiler's own libraries too."""
    for framework, profile in (("torch", by_torch), ("jax", by_jax)):
        if framework not in sys.modules:
            continue
        shortest = {}
        for row in (row for _ in range(3) for row in kernels_of(traced(profile, run, wait))):
            key = json.dumps({name: row[name] for name in ("name", "grid", "block", "shapes")})
            if key not in shortest or row["seconds"] < shortest[key]["seconds"]:
                shortest[key] = row
        if shortest:
            return sorted(shortest.values(), key=lambda row: -row["seconds"])
    return []
