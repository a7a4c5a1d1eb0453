//! What a step computes.

use std::sync::Arc;

use super::Network;
use crate::settings::Settings;

/// The work of one cell of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub network: Arc<Network>,
    pub batch_size: usize,
    pub settings: Settings,
}
