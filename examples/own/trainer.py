# The step of Hugging Face's Trainer: its mixed precision, its accumulation, its optimizer.
#   batchstep run examples/own/trainer.py --batch-size 1..=64 --set seq_len=128
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

model = BertForSequenceClassification(BertConfig(num_hidden_layers=2))
trainer = Trainer(model, TrainingArguments(tempfile.mkdtemp(), report_to=[], use_cpu=not torch.cuda.is_available()))
trainer.create_optimizer()
trainer.current_gradient_accumulation_steps = 1  # which train() would set


def step(batch_size, seq_len=128):
    tokens = torch.randint(model.config.vocab_size, (batch_size, seq_len), device=trainer.args.device)
    batch = {"input_ids": tokens, "labels": torch.zeros(batch_size, dtype=torch.long, device=trainer.args.device)}

    def run():
        loss = trainer.training_step(model, batch)  # forward and backward, as the Trainer does them
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()
        return loss

    return run, model
