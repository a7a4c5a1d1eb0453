//! The mean over batch and outputs of the cross-entropy between the target and the logistic function of the logits, as
//! `torch.nn.functional.binary_cross_entropy_with_logits`.

pub mod cpu;
#[cfg(test)]
mod tests;
