//! The largest value of each window of N x C x H x W, as `torch.nn.functional.max_pool2d`; padding counts as minus
//! infinity, and a NaN wins. The gradient goes to the first maximum of a window in row-major order.

pub mod cpu;
#[cfg(test)]
mod tests;
