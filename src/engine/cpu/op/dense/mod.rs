//! The fully connected layer: `x w^T + bias`, `x` N x I, `weight` O x I, `bias` O, as `torch.nn.functional.linear`.

pub mod cpu;
mod narrow;
mod sizes;
#[cfg(test)]
mod tests;

pub use narrow::suits as is_narrow;
pub use sizes::Sizes;
