# The requests of batchstep's own networks.
#
# A network comes as data and becomes an nn.Module whose forward pass is straight code, so that neither eager PyTorch nor
# torch.compile pays for an interpreter. PyTorch gets its best everywhere: in-place rectifiers, class indices instead of
# one-hot targets, fused or foreach optimizers, no counters in batch norm, its own dropout.


class Worker(Holder):
    REQUESTED = ("open", "prepare", "host", "join", "train", "step", "work", "layers", "kernels", "epoch", "evaluate", "restart", "release")
    ERRORS = Exception

    def __init__(self):
        self.device = None
        self.models = {}
        self.steps = {}
        self.group = None
        self.frozen = False

    def open(self, request):
        """Chooses the device; this is the first request."""
        wanted = request["device"]
        available = torch.cuda.is_available()
        if wanted == "auto":
            wanted = "cuda:0" if available else "cpu"
        if wanted != "cpu" and not available:
            built = f"was built for CUDA {torch.version.cuda}" if torch.version.cuda else "was built without CUDA"
            raise Refusal("device", f"PyTorch {torch.__version__} sees no GPU; it {built}")
        self.device = torch.device(wanted)
        answer = {"torch": torch.__version__, "device": wanted, "gpus": torch.cuda.device_count() if available else 0}
        answer["distributed"] = torch.distributed.is_available()
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
        if self.group is not None and request.get("first") is not None:
            model = Model(network, settings["layout"], self.device)
            step = ParallelStep(model, request["batch_size"], settings, self.group, request["first"])
        else:
            model = self.model(network, settings["layout"])
            step = Step(model, request["batch_size"], settings, self.device)
        self.steps[request["id"]] = step
        self.synchronize()
        return step.setup

    def host(self, request):
        """The first process opens the store where all processes of a group meet; the others get its port."""
        self.leave()
        self.store = open_store(0, True)
        return {"port": self.store.port}

    def join(self, request):
        """Makes this process a member of a group; all members have to do this at the same time."""
        store = self.store if request["rank"] == 0 else open_store(request["port"], False)
        self.leave()
        self.group = Group(request["rank"], request["processes"], store, self.device)
        return {}

    def leave(self):
        if self.group is not None:
            self.group.end()
        self.group = None

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

    def model(self, network, layout):
        """The model kept for that network, or a new one if a step is using it."""
        key = json.dumps(network) + layout
        model = self.models.get(key)
        if model is None or any(step.model is model for step in self.steps.values()):
            model = self.models[key] = Model(network, layout, self.device)
        return model

    def step(self, request):
        return self.held(request).run()

    def work(self, request):
        """Steps that do not count, while clock and power are read."""
        step = self.held(request)
        step.arm()
        for _ in range(request["count"]):
            step.once()
        self.synchronize()
        return {}

    def layers(self, request):
        return self.held(request).layers()

    def kernels(self, request):
        step = self.held(request)
        step.arm()
        return profiled(step.once, lambda loss: self.synchronize())

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
            # Modules that PyTorch imports at its start and at its first step stay loaded. Scanning them takes a tenth
            # of a second, ten times as long as a visit to a small network.
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

    def failure(self, request, error):
        print(f"{request}: {type(error).__name__}: {error}", file=sys.stderr)
        return {"kind": kind_of(error), "what": first_line(error)}


def main():
    global torch
    try:
        import torch
        import torch.distributed
        import torch.nn.functional
        import torch.utils.data
    except Exception as error:
        REQUESTS.readline()
        return send({"error": {"kind": "device", "what": f"{sys.executable} cannot import torch: {error}"}})
    serve(Worker())


if __name__ == "__main__":
    main()
