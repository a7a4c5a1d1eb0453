# A small convolutional network in PyTorch, a training step on the processor.
#   batchstep run examples/own/torch_cnn.py --batch-size 1..=70
import torch
from torch import nn

model = nn.Sequential(
    *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(64 * 8 * 8, 256), nn.ReLU(), nn.Linear(256, 10)),
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def step(batch_size):
    x, y = torch.rand(batch_size, 3, 32, 32), torch.randint(10, (batch_size,))

    def run():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return run, model
