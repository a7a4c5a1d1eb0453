# ResNet50 of torchvision, a training step.
#   batchstep run examples/own/resnet50.py --batch-size 1..=128
import torch
from torchvision.models import resnet50

device = "cuda" if torch.cuda.is_available() else "cpu"
model = resnet50().to(device, memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)


def step(batch_size, amp=True):
    x = torch.rand(batch_size, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    y = torch.randint(1000, (batch_size,), device=device)

    def run():
        with torch.autocast(device, torch.bfloat16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return run, model
