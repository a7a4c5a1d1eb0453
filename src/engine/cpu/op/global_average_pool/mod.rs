//! The mean of each feature map: N x C x H x W to N x C, as `torch.mean(x, (2, 3))`.

pub mod cpu;
#[cfg(test)]
mod tests;
