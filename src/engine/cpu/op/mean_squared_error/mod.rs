//! The mean over batch and features of `(prediction - target)^2`, a scalar, as `torch.nn.functional.mse_loss`.

pub mod cpu;
#[cfg(test)]
mod tests;
