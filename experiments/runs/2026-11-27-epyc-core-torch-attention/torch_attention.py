# Attention in PyTorch by the length of the sequence: the fused operator, or its three steps one by one.
#   batchstep run examples/own/torch_attention.toml
import torch


def step(seq_len, attention="fused"):
    q, k, v = (torch.rand(4, 8, seq_len, 64) for _ in range(3))
    fused = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
    plain = lambda: torch.softmax(q @ k.transpose(-2, -1) / 8, -1) @ v
    run = torch.no_grad()({"fused": fused, "plain": plain}[attention])
    return run
