# Only inference: the images of a request start in host memory, and their classes end there.
#   batchstep run examples/own/inference.py --batch-size 1..=64
import torch
from torchvision.models import mobilenet_v3_large

device = "cuda" if torch.cuda.is_available() else "cpu"
model = mobilenet_v3_large().eval().to(device)


@torch.inference_mode()
def classify(images):
    return model(images.to(device, non_blocking=True)).argmax(1).cpu()


def step(batch_size):
    images = torch.rand(batch_size, 3, 224, 224)
    return lambda: classify(images), model
