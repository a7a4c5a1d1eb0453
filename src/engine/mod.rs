//! The engines that execute training steps. [`batchstep_cpu`] says what an engine is and has those that need nothing but a processor, [`cpu`] and
//! [`reference`]; here are the others, and the choice between all of them.

pub mod automatic;
pub mod candle;
pub mod contact;
pub mod cudnn;
mod device_choice;
pub mod open;
pub mod own;
#[cfg(test)]
pub(crate) mod refusing;
pub mod synthetic;
pub mod torch;
pub mod worker;

pub use batchstep_cpu::engine::*;
