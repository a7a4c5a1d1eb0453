# What one step runs: a GPU's kernels, or a processor's operators, by torch.profiler, outside the steps that count.

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


def kernels_of(trace):
    """The kernels of a trace in Chrome's format, as torch.profiler writes it, the longest together first: name, grid and block where they ran on a
    GPU, shapes where they are operators of a processor, how often, and seconds in all. Where there is any kernel of a GPU, operators are left out: they wait for it."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "dur" in event]
    kernels = [event for event in events if str(event.get("cat", "")).lower() == "kernel"]
    if kernels:
        timed = [(event, event["dur"] * 1e-6) for event in kernels]
    else:
        threads = {}
        for event in events:
            if event.get("cat") == "cpu_op":
                threads.setdefault((event.get("pid"), event.get("tid")), []).append(event)
        timed = [pair for thread in threads.values() for pair in own_seconds(thread)]
    found = {}
    for event, seconds in timed:
        given = event.get("args", {})
        shapes = given.get("Input Dims")
        parts = {
            "name": event["name"],
            "grid": given.get("grid"),
            "block": given.get("block"),
            "shapes": None if kernels or shapes is None else json.dumps([shape for shape in shapes if shape], separators=(",", ":")),
        }
        row = found.setdefault(json.dumps(parts), {**parts, "count": 0, "seconds": 0.0})
        row["count"] += 1
        row["seconds"] += seconds
    return sorted(found.values(), key=lambda row: -row["seconds"])


def profiled(run, wait):
    """The trace of one step in PyTorch. The step before it starts the profiler's own libraries."""
    torch = sys.modules["torch"]
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    for _ in range(2):
        with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
            wait(run())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)
