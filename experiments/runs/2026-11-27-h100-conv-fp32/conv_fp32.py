# The third convolution of VGG16's third block, forward, in float32: 256 channels on 56x56 maps. CHOICE says who chooses cuDNN's algorithm:
# its heuristics, as PyTorch does by itself; a measurement of all at each size (cudnn.benchmark); or its heuristics where TF32 is allowed.
#   batchstep run conv_fp32.py --batch-size 1..=52 --env CHOICE=heuristics,benchmark,tf32
import os

import torch

choice = os.environ.get("CHOICE", "heuristics")
torch.backends.cudnn.benchmark = choice == "benchmark"
torch.backends.cudnn.allow_tf32 = choice == "tf32"
layer = torch.nn.Conv2d(256, 256, 3, padding=1, device="cuda").requires_grad_(False)


def step(batch_size):
    x = torch.rand(batch_size, 256, 56, 56, device="cuda")
    return lambda: layer(x)
