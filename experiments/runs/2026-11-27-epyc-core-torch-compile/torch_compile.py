# Three dense layers, forward, compiled by torch.compile: DYNAMIC has each batch size compiled by itself ("no"), all by one piece of code ("yes"),
# or as torch.compile sees fit ("auto").
#   batchstep run examples/own/torch_compile.toml
import os

import torch
from torch import nn

model = nn.Sequential(nn.Linear(192, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).requires_grad_(False)
dynamic = {"auto": None, "yes": True, "no": False}[os.environ.get("DYNAMIC", "auto")]
compiled = torch.compile(model, dynamic=dynamic)


def step(batch_size):
    x = torch.rand(batch_size, 192)
    return lambda: compiled(x)
