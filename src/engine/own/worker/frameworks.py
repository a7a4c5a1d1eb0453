# The frameworks that a file may use. Each class knows its device, how to wait for the device, its compilations and its peak memory.

import ctypes


class Framework:
    """One that the file has imported. One that computes nothing, or that has waited when it returns, needs none of this."""

    # Whether it is computing beside the program, so that there is something to wait for.
    is_ahead = False
    # Where it computes, if not on a processor: `cuda:0`.
    device = None
    # Whether a result has to be given back to be waited for.
    needs_result = False
    # Whether a device that has run out of memory is of no more use to this process.
    keeps_memory = False

    def __init__(self, module):
        self.module = module

    def look(self):
        """What it is doing may become known only once a step has run."""

    def wait(self, result):
        """Until it has computed what it was given."""

    def settle(self):
        """Until it has computed everything."""
        self.wait(None)

    def facts(self):
        return {}

    def compilations(self):
        return 0

    def allow(self, cells):
        """Makes it compile for as many sets of arguments as there are."""

    def events(self):
        return None

    def begin_visit(self):
        pass

    def begin_memory(self):
        pass

    def peak_memory(self):
        return None

    def give_back(self, all_of_it):
        """Memory that it keeps for later."""


class Torch(Framework):
    """PyTorch. A GPU that it sees and does not use is left alone."""

    def look(self):
        torch = self.module
        accelerator = getattr(torch, "accelerator", None)
        self.synchronize = getattr(accelerator, "synchronize", torch.cuda.synchronize)
        if torch.cuda.is_initialized():
            self.device = f"cuda:{torch.cuda.current_device()}"
            in_use = getattr(torch._C, "_cuda_hasPrimaryContext", lambda number: number == torch.cuda.current_device())
            self.numbers = [number for number in range(torch.cuda.device_count()) if in_use(number)]
        elif accelerator is not None and not self.is_of_cuda() and accelerator.is_available():
            kind = accelerator.current_accelerator().type
            is_used = getattr(getattr(torch, kind, None), "is_initialized", lambda: True)()
            self.device, self.numbers = kind if is_used else None, []
        self.is_ahead = self.device is not None

    def is_of_cuda(self):
        version = getattr(self.module, "version", None)
        return bool(getattr(version, "cuda", None) or getattr(version, "hip", None))

    def cuda(self):
        return self.module.cuda if self.device and self.device.startswith("cuda") else None

    def wait(self, result):
        if self.device is None:
            return
        if len(self.numbers) < 2:
            return self.synchronize()
        for number in self.numbers:
            self.module.cuda.synchronize(number)

    def facts(self):
        cuda = self.cuda()
        if cuda is None:
            return {}
        properties = cuda.get_device_properties(cuda.current_device())
        named = {"device_name": properties.name, "pci_bus_id": bus_address(properties)}
        return {**named, "multiprocessors": properties.multi_processor_count}

    def compilations(self):
        dynamo = sys.modules.get("torch._dynamo.utils")
        return dynamo.counters["stats"]["unique_graphs"] if dynamo else 0

    def allow(self, cells):
        """Beyond a limit torch.compile lets a function run as it is. The limit can be set once something has been compiled."""
        config = sys.modules.get("torch._dynamo.config")
        limits = {"recompile_limit": 1, "cache_size_limit": 1, "accumulated_recompile_limit": 64, "accumulated_cache_size_limit": 64}
        for name, functions in limits.items():
            least = (cells + 8) * functions
            if getattr(config, name, least) < least:
                setattr(config, name, least)

    def events(self):
        """Two marks on the stream of a step; one that runs on several GPUs has no one stream."""
        cuda = self.cuda()
        return [cuda.Event(enable_timing=True) for _ in range(2)] if cuda and len(self.numbers) < 2 else None

    def begin_memory(self):
        if self.cuda():
            self.cuda().reset_peak_memory_stats()

    def peak_memory(self):
        return self.cuda().max_memory_allocated() if self.cuda() else None

    def give_back(self, all_of_it):
        """To ask for it again makes the next visit's first steps slow. But another process may need it."""
        cuda = self.cuda()
        if cuda and (all_of_it or cuda.memory_reserved() > cuda.get_device_properties(cuda.current_device()).total_memory / 4):
            cuda.empty_cache()


class Jax(Framework):
    """JAX, Flax, Equinox, Keras on JAX. It computes beside the program on processors too."""

    keeps_memory = True

    def __init__(self, module):
        super().__init__(module)
        self.compiled, self.peak = 0, 0
        monitoring = getattr(module, "monitoring", None)
        if monitoring is not None:
            monitoring.register_event_duration_secs_listener(self.heard)

    def heard(self, name, seconds, **_):
        self.compiled += name == "/jax/core/compile/backend_compile_duration"

    def look(self):
        """Others import it for their own reasons. It is asked for its devices once it has them: it takes most of a GPU's memory then."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        self.is_ahead = self.needs_result = getattr(bridge, "backends_are_initialized", lambda: True)()
        if self.is_ahead and hasattr(self.module, "devices"):
            self.first = self.module.devices()[0]
            kind = {"gpu": "cuda", "rocm": "cuda"}.get(self.first.platform, self.first.platform)
            self.device = None if kind == "cpu" else f"{kind}:{self.first.id}"

    def wait(self, result):
        self.module.block_until_ready(result)

    def settle(self):
        self.module.block_until_ready(getattr(self.module, "live_arrays", list)())

    def facts(self):
        return {"device_name": self.first.device_kind} if self.device else {}

    def compilations(self):
        return self.compiled

    def begin_visit(self):
        self.peak = self.peak_so_far()

    def peak_memory(self):
        """Its peak never falls: what it was at this size is known where it rose in this visit."""
        peak = self.peak_so_far()
        return peak if peak > self.peak else None

    def peak_so_far(self):
        return (self.first.memory_stats() or {}).get("peak_bytes_in_use", 0) if self.device else 0


class TensorFlow(Framework):
    """TensorFlow, Keras on TensorFlow. On processors it has computed what it gives."""

    keeps_memory = True

    def look(self):
        context = getattr(sys.modules.get("tensorflow.python.eager.context"), "context", None)
        # To ask for its devices before it has begun would make it begin.
        begun = getattr(context(), "_initialized", True) if context else True
        others = [device for device in self.module.config.list_physical_devices() if device.device_type != "CPU"] if begun else []
        self.device = {"GPU": "cuda:0"}.get(others[0].device_type, others[0].device_type.lower()) if others else None
        self.is_ahead = self.device is not None

    def wait(self, result):
        if self.device is not None:
            self.module.test.experimental.sync_devices()

    def begin_memory(self):
        if self.device == "cuda:0":
            self.module.config.experimental.reset_memory_stats("GPU:0")

    def peak_memory(self):
        return self.module.config.experimental.get_memory_info("GPU:0")["peak"] if self.device == "cuda:0" else None


class Mlx(Framework):
    """MLX computes what is asked for, and nothing before."""

    is_ahead = needs_result = True

    def look(self):
        self.device = "mps" if "gpu" in str(self.module.default_device()) else None

    def wait(self, result):
        self.module.eval(result)

    def begin_memory(self):
        getattr(self.module, "reset_peak_memory", lambda: None)()

    def peak_memory(self):
        return getattr(self.module, "get_peak_memory", lambda: None)()


class CuPy(Framework):
    is_ahead = True
    device = "cuda:0"

    def wait(self, result):
        self.module.cuda.Device().synchronize()


class Driver(Framework):
    """CUDA's own driver, for whatever else computes on a GPU in this process."""

    def __init__(self):
        super().__init__(None)
        self.contexts = []

    def is_loaded(self):
        """One that nobody has loaded is not loaded for this."""
        try:
            self.module = self.module or ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        except (AttributeError, OSError):
            return False
        return True

    def look(self):
        count = ctypes.c_int()
        if self.is_loaded() and self.module.cuDeviceGetCount(ctypes.byref(count)) == 0:
            held = {number for number, _ in self.contexts}
            begun = [number for number in range(count.value) if number not in held and self.is_active(number)]
            self.contexts += [(number, self.context(number)) for number in begun]
        self.device = f"cuda:{self.contexts[0][0]}" if self.contexts else None
        self.is_ahead = bool(self.contexts)

    def is_active(self, number):
        flags, active = ctypes.c_uint(), ctypes.c_int()
        status = self.module.cuDevicePrimaryCtxGetState(number, ctypes.byref(flags), ctypes.byref(active))
        return status == 0 and active.value == 1

    def context(self, number):
        context = ctypes.c_void_p()
        self.done("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        return context

    def wait(self, result):
        for _, context in self.contexts:
            self.done("cuCtxPushCurrent_v2", context)
            try:
                self.done("cuCtxSynchronize")
            finally:
                self.module.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def done(self, name, *arguments):
        status = getattr(self.module, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} failed with CUDA's error {status}" + (", out of memory" if status == 2 else ""))

    def facts(self, number=0):
        """Of a GPU; nothing where the driver is not loaded."""
        if not self.is_loaded():
            return {}
        name, address, multiprocessors = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32), ctypes.c_int()
        if self.module.cuDeviceGetName(name, 256, number) != 0:
            return {}
        self.module.cuDeviceGetPCIBusId(address, 32, number)
        self.module.cuDeviceGetAttribute(ctypes.byref(multiprocessors), 16, number)
        found = {"device_name": name.value.decode(errors="replace"), "pci_bus_id": address.value.decode(errors="replace").lower()}
        return {**found, "multiprocessors": multiprocessors.value}


class Resident(Framework):
    """The memory of this process, where the system tells its peak, and lets it begin anew."""

    def __init__(self):
        super().__init__(None)
        self.is_known = False

    def begin_memory(self):
        try:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            self.is_known = True
        except OSError:
            self.is_known = False

    def peak_memory(self):
        if not self.is_known:
            return None
        with open("/proc/self/status", "rb") as file:
            found = re.search(rb"VmHWM:\s*(\d+)", file.read())
        return int(found[1]) << 10 if found else None


class Frameworks:
    """All that a file uses, as one."""

    KNOWN = {"torch": Torch, "jax": Jax, "tensorflow": TensorFlow, "mlx.core": Mlx, "cupy": CuPy}
    # Frameworks that compute, and libraries that use them.
    NAMES = (
        *("torch", "jax", "tensorflow", "mlx.core", "cupy", "triton", "keras", "flax", "equinox", "optax", "transformers", "diffusers", "timm"),
        *("torchvision", "accelerate", "lightning", "deepspeed", "onnxruntime", "vllm", "numba", "sklearn", "xgboost"),
    )

    def __init__(self, synchronize):
        """`synchronize`: the file's own way to wait, which is used alone."""
        self.synchronize = synchronize
        self.used, self.driver, self.resident = {}, Driver(), Resident()
        self.waits, self.wait_s = [], 0.0

    def look(self):
        for name, kind in self.KNOWN.items():
            module = sys.modules.get(name)
            if module is not None and name not in self.used:
                self.used[name] = kind(module)
        for framework in self.used.values():
            framework.look()
        on_device = [framework for framework in self.used.values() if framework.device]
        if not any(framework.device.startswith("cuda") for framework in on_device):
            self.driver.look()
            on_device += [self.driver] if self.driver.device else []
        self.on_device = on_device[0] if on_device else None
        ahead = [framework for framework in (*self.used.values(), self.driver) if framework.is_ahead]
        self.waits = [lambda _: self.synchronize()] if self.synchronize else [framework.wait for framework in ahead]
        self.needs_result = self.synchronize is None and next((name for name, one in self.used.items() if one.needs_result), None)
        # A file that waits in its own way may wait for less than these marks.
        self.events = self.on_device.events() if self.on_device and not self.synchronize else None

    def wait(self, result):
        for wait in self.waits:
            wait(result)

    def settle(self):
        """Until nothing is being computed any more."""
        if self.synchronize:
            return self.synchronize()
        for framework in (*self.used.values(), self.driver):
            if framework.is_ahead:
                framework.settle()

    def repeats(self, run):
        """How often a step is run between two waits, so that waiting for a device takes no more than a twentieth of that."""
        if self.on_device is None or "mlx.core" in self.used:
            return 1
        begun = time.perf_counter()
        result = run()
        self.wait(result)
        step_s, waits = time.perf_counter() - begun, []
        for _ in range(5):
            begun = time.perf_counter()
            self.wait(result)
            waits.append(time.perf_counter() - begun)
        wait_s = min(waits)
        return max(1, min(100, math.ceil(20 * wait_s / max(step_s - wait_s, 1e-6))))

    def open_device(self, file):
        """Where the file computes, as far as that can be told before its first step: a GPU that is mentioned is one that is used."""
        if self.on_device is None and "torch" in self.used and file.mentions(r"\bcuda\b|accelerator") and self.sees_gpu():
            return {"device": "cuda:0", **self.driver.facts()}
        if self.on_device is None:
            return {"device": "cpu"}
        device = self.on_device.device
        number = int(device.partition(":")[2] or 0)
        by_driver = self.driver.facts(number) if device.startswith("cuda") else {}
        return {"device": device, **by_driver, **{name: fact for name, fact in self.on_device.facts().items() if fact is not None}}

    def device(self):
        return self.on_device.device if self.on_device else "cpu"

    def clock(self):
        """For the times within a step."""
        if self.events:
            return Clock(sys.modules["torch"].device(self.on_device.device))
        return WaitingClock(self.wait)

    def sees_gpu(self):
        """Whether torch sees one that may be unused."""
        torch = self.used.get("torch")
        return torch is not None and torch.is_of_cuda() and torch.module.cuda.is_available()

    def begin_visit(self):
        for framework in self.used.values():
            framework.begin_visit()

    def memory(self):
        return self.on_device or self.resident

    def keeps_memory(self):
        return self.on_device is not None and self.on_device.keeps_memory

    def compilations(self):
        return sum(framework.compilations() for framework in self.used.values())

    def graphs(self):
        """Those that torch.compile has made."""
        return self.used["torch"].compilations() if "torch" in self.used else 0

    def allow(self, cells):
        for framework in self.used.values():
            framework.allow(cells)

    def give_back(self, all_of_it):
        for framework in self.used.values():
            framework.give_back(all_of_it)

    def version(self, file):
        """`torch 2.11.0, transformers 4.50`. JAX is imported by others too, which do without it."""
        names = [name for name in self.NAMES if name in sys.modules and (name != "jax" or self.used["jax"].is_ahead or file.mentions(r"\bjax\b"))]
        found = {name: getattr(sys.modules[name], "__version__", None) for name in names}
        numpy = getattr(sys.modules.get("numpy"), "__version__", None)
        found = found or ({"numpy": numpy} if numpy else {})
        return ", ".join(f"{name.partition('.')[0]} {version}".strip() for name, version in found.items() if version)
