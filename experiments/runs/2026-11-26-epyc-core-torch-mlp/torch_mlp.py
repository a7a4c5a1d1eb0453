# Three dense layers in PyTorch, a training step on the processor.
#   batchstep run examples/own/torch_mlp.py --batch-size 1..=70
# Where other programs run, its threads wait for each other: OMP_NUM_THREADS=1 in the environment has it use one.
import torch
from torch import nn

model = nn.Sequential(nn.Linear(192, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def step(batch_size):
    x, y = torch.rand(batch_size, 192), torch.randint(512, (batch_size,))

    def run():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return run, model  # with the model, `[measure] layers = true` times its layers
