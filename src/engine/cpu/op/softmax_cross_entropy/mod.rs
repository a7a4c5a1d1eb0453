//! The mean over the batch of `-sum over classes of target * ln(softmax(logits))`, a scalar, as
//! `torch.nn.functional.cross_entropy` with probabilities for targets. Both are N x K; targets need not sum to 1.

pub mod cpu;
#[cfg(test)]
mod tests;
