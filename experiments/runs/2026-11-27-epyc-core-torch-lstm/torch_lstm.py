# A training step of an LSTM in PyTorch, two layers of 128, sequences of 32, with oneDNN's LSTM or ATen's.
#   batchstep run examples/own/torch_lstm.toml
import os

import torch
from torch import nn

torch.backends.mkldnn.set_flags(os.environ.get("ONEDNN", "1") == "1")
lstm, head = nn.LSTM(64, 128, 2, batch_first=True), nn.Linear(128, 10)
optimizer = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=1e-3)


def step(batch_size):
    x, y = torch.rand(batch_size, 32, 64), torch.randint(10, (batch_size,))

    def run():
        loss = nn.functional.cross_entropy(head(lstm(x)[0][:, -1]), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return run
