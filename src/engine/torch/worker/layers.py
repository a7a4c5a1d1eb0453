# The time of each layer, outside the steps that count.


class Watch:
    """Records when each layer begins and ends: forward by marks around it, backward by hooks on its output.

    Autograd computes the layers strictly in reverse, and calls the hook of a layer's output just before it computes
    that layer's gradients, including those of its parameters. So a layer lasts until the next hook. The moments come
    from the device's clock if there is one."""

    def __init__(self, device, parameters, has_parameters):
        self.clock, self.parameters, self.has_parameters = Clock(device), parameters, has_parameters
        self.begun, self.ended, self.arrived = {}, {}, []

    def begin(self, layer):
        self.begun[layer] = self.clock.now()

    def end(self, layer, x):
        self.ended[layer] = self.clock.now()
        if not self.parameters and not x.requires_grad and self.has_parameters(layer):
            # If the parameters take no gradient, the layers after the first still need one for their inputs.
            x = x.requires_grad_().clone()
        if x.requires_grad:
            x.register_hook(lambda _: self.arrived.append((layer, self.clock.now())))
        return x

    def forward(self):
        return {layer: self.clock.seconds(self.begun[layer], end) for layer, end in self.ended.items()}

    def backward(self, end):
        moments = [moment for _, moment in self.arrived[1:]] + [end]
        return {layer: self.clock.seconds(begin, end) for (layer, begin), end in zip(self.arrived, moments)}


class Layers:
    """Times the layers of a step: twice with all gradients, twice without those of the parameters, in turns."""

    TIMES = 2

    def __init__(self, step):
        self.step = step
        network = step.model.network
        self.has_parameters = lambda layer: any(p["trainable"] for p in network["layers"][layer]["parameters"])
        self.written = compile_source(write_forward(network, step.settings["loss"], watched=True))

    def times(self):
        """For each layer its number and its shortest times in seconds: forward, backward, and backward without its parameters."""
        rounds = [self.run(parameters) for _ in range(self.TIMES) for parameters in (True, False)]
        shortest = lambda found, layer: min((times[layer] for times in found if layer in times), default=None)
        forward, whole, data = [f for f, _ in rounds], [b for _, b in rounds[::2]], [b for _, b in rounds[1::2]]
        layers = range(1, len(self.step.model.network["layers"]))
        return [[layer, *(shortest(found, layer) for found in (forward, whole, data))] for layer in layers]

    def run(self, parameters):
        step = self.step
        watch = Watch(step.device, parameters, self.has_parameters)
        for parameter in step.model.parameters:
            parameter.requires_grad_(parameters)
        inputs, targets = step.feed.next()
        loss = step.loss(inputs, targets, lambda *given: self.written(*given, watch))
        step.backward(loss)
        end = watch.clock.now()
        step.synchronize()
        for parameter in step.model.parameters:
            parameter.requires_grad_(True)
        step.optimizer.zero_grad(set_to_none=True)
        return watch.forward(), watch.backward(end)
