//! Tests of the whole engine: against PyTorch, by what it learns, and by its promises about memory, seeds and settings.

mod learning;
mod promises;
mod pytorch;
#[path = "../../../../../../tests/fixtures/promises.rs"]
mod shared;

use std::sync::Arc;

use super::super::{Settings, Workload};
use crate::network::{Network, Shape};
use crate::settings::*;
use shared::{settings, workload};
