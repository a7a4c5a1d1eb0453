# A transformer of Hugging Face, with the length of its sequences and its way to compute attention as further axes.
#   batchstep run examples/own/bert.toml
#   batchstep run examples/own/bert.py --batch-size 1..=64 --set seq_len=128
import torch
from transformers import BertConfig, BertForSequenceClassification

device = "cuda" if torch.cuda.is_available() else "cpu"
model = BertForSequenceClassification(BertConfig()).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)


def step(batch_size, seq_len, attention="sdpa"):
    model.set_attn_implementation(attention)
    tokens = torch.randint(model.config.vocab_size, (batch_size, seq_len), device=device)
    labels = torch.zeros(batch_size, dtype=torch.long, device=device)

    def run():
        loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return run, model
