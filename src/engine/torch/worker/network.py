# The code of a network, generated from its description, and its parameters.


def write_forward(network, loss, training=True, watched=False):
    """The text of `forward(self, x0, targets)`, which returns the loss; without training it returns the output, computed with
    running statistics.

    With `watched`, the function also takes a `Watch` and reports to it when each layer begins and ends."""
    layers = network["layers"]
    uses = [0] * len(layers)
    last_use = {}
    for number, layer in enumerate(layers):
        for source in layer["sources"]:
            uses[source] += 1
            last_use[source] = number
    lines = [f"def forward(self, x0, targets{', watch' if watched else ''}):"]
    for number, layer in enumerate(layers[1:], 1):
        own = [uses[source] == 1 and may_be_overwritten(layers[source]) for source in layer["sources"]]
        line = f"    x{number} = {expression(number, layer, own, training)}"
        # A dropout that drops nothing is not counted as a layer.
        works = watched and line != f"    x{number} = x{layer['sources'][0]}"
        lines += [f"    watch.begin({number})", line, f"    x{number} = watch.end({number}, x{number})"] if works else [line]
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
        # Instead of F.batch_norm, which refuses one value for each channel; the other engines accept it.
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
    """PyTorch pads both sides of an axis equally; any difference is padded beforehand."""
    top, bottom, left, right = padding
    if top == bottom and left == right and symmetric:
        return x, (top, left)
    return f"F.pad({x}, {(left, right, top, bottom)}{value})", (0, 0)


def has(layer, name):
    return any(parameter["name"] == name for parameter in layer["parameters"])


def compile_source(text):
    """A function with its own code object: torch.compile keeps only a few compilations for each code object."""
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
        """Writes the values of crates/batchstep-cpu/src/engine/cpu/parameters.rs to the existing memory."""
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
            # CUDA graphs are chosen by the setting `launch`, where the whole step is one graph.
            mode = {"default": "default", "max-autotune": "max-autotune-no-cudagraphs"}[settings["compile"]]
            self.compiled[key] = torch.compile(compile_source(text), mode=mode, fullgraph=True, dynamic=False)
        return self.compiled[key]
