# A training that feeds itself.


class Examples:
    """Bytes and labels mapped from files. A batch is read at once, and decoded and normalised in the worker that reads it.
    This is the fastest way for a dataset of tensors; reading example by example would cost more than the network."""

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
    """Whole epochs through a DataLoader: persistent workers, whole batches from each, and as many prefetched batches as requested."""

    def __init__(self, model, batch_size, settings, device, feed):
        self.equip(model, batch_size, settings, device)
        self.test = Examples(feed["test"], feed) if feed["test"] else None
        train = Examples(feed["train"], feed)
        # A separate generator: the loader draws from its own generator too, with workers at another moment than
        # without.
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
        losses, examples, wait, compute = [], 0, 0.0, 0.0
        finish()
        start = time.perf_counter()
        self.generator.manual_seed(self.settings["seed"] + epoch)
        batches = iter(self.loader)
        while steps is None or len(losses) < steps:
            asked = time.perf_counter()
            batch = next(batches, None)
            begun = time.perf_counter()
            wait += begun - asked
            if batch is None:
                break
            inputs, targets = (self.place(tensor) for tensor in batch)
            loss = self.loss(inputs, targets)
            self.backward(loss)
            self.update()
            self.optimizer.zero_grad(set_to_none=True)
            compute += time.perf_counter() - begun
            losses.append(loss.detach())
            examples += len(targets)
        finish()
        end = time.perf_counter()
        user, system = (after - then for after, then in zip(self.processor_times(), before))
        losses = [repr(loss.item()) for loss in losses]
        times = {"epoch_s": end - start, "wait_s": wait, "user_s": user, "system_s": system}
        # On a GPU the step has only been queued by then, and waiting for it would change the measurement.
        times["compute_s"] = None if cuda else compute
        return times | {"examples": examples, "losses": losses}

    def processor_times(self):
        """Seconds in user space and in the kernel, of this process and its workers."""
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
