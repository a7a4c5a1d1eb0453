# Data parallel training: DistributedDataParallel on one machine, a process for each copy of the network.

# How long a process waits for the others in a collective operation; batchstep gives up on a step sooner.
COLLECTIVE_S = 600


def open_store(port, is_first):
    """The store through which the processes meet, only on this machine; the first process opens it on a free port."""
    wait = datetime.timedelta(seconds=60)
    return torch.distributed.TCPStore("127.0.0.1", port, None, is_first, timeout=wait, wait_for_workers=False)


class Group:
    """The processes of a training that average their gradients."""

    def __init__(self, rank, processes, store, device):
        self.rank, self.processes, self.device = rank, processes, device
        # Without a name that resolves, gloo finds no interface; the processes are all on this machine.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        torch.distributed.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=store,
            rank=rank,
            world_size=processes,
            timeout=datetime.timedelta(seconds=COLLECTIVE_S),
        )

    def end(self):
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()

    def mean(self, value):
        """The mean over all processes of a float that each one has."""
        total = torch.tensor([value], dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(total)
        return total.item() / self.processes


def parallel(module, forward, device, hook):
    """DistributedDataParallel around `forward(module, inputs, targets)`; gradients are averaged by `hook`."""

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, inputs, targets):
            return forward(self.module, inputs, targets)

    ids = [device.index] if device.type == "cuda" else None
    # Gradients lie in the buffers in which they are averaged, which saves a copy of each.
    ddp = torch.nn.parallel.DistributedDataParallel(Whole(), device_ids=ids, gradient_as_bucket_view=True)
    ddp.register_comm_hook(None, hook)
    return ddp


class Spans:
    """Records when the all-reduces of a step ran: by the GPU's clock, or by the host's if there is no GPU."""

    def __init__(self, device):
        self.clock, self.spans = Clock(device), []

    def begin(self):
        self.start, self.spans = self.clock.now(), []

    def seconds(self):
        """The time during which at least one all-reduce ran."""
        since = lambda moment: self.clock.seconds(self.start, moment)
        total, until = 0.0, 0.0
        for begun, ended in sorted((since(begun), since(ended)) for begun, ended in self.spans):
            total += max(0.0, ended - max(begun, until))
            until = max(until, ended)
        return total


class ParallelStep(Step):
    """One process's part of a step of several processes: its own examples, and the mean of all processes' gradients."""

    def __init__(self, model, batch_size, settings, group, first):
        super().__init__(model, batch_size, settings, group.device, first)
        self.group, self.spans = group, Spans(group.device)
        ddp = parallel(model.module, self.forward, group.device, self.average)
        self.forward = lambda module, inputs, targets: ddp(inputs, targets)
        # After the first step the order in which gradients become ready is known, and the buckets are made again
        # accordingly.
        self.spans.begin()
        self.warm_up(2)
        self.restart()

    def average(self, state, bucket):
        begun = self.spans.clock.now()
        gradients = bucket.buffer().div_(self.group.processes)
        reduced = torch.distributed.all_reduce(gradients, async_op=True).get_future()

        def done(future):
            self.spans.spans.append((begun, self.spans.clock.now()))
            return future.value()[0]

        return reduced.then(done)

    def run(self):
        torch.distributed.barrier()
        self.spans.begin()
        times = super().run()
        loss = self.group.mean(float(times["loss"]))
        return times | {"allreduce_s": self.spans.seconds(), "loss": repr(loss)}
