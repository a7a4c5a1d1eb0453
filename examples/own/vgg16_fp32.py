# torchvision's VGG16 in strict float32, a training step with RMSprop.
#   batchstep run examples/own/vgg16_fp32.py --batch-size 10..=36
import torch
from torchvision.models import vgg16

torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
model = vgg16(num_classes=1000).cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)


def step(batch_size):
    x = torch.rand(batch_size, 3, 224, 224, device="cuda")
    y = torch.randint(1000, (batch_size,), device="cuda")

    def run():
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return run, model
