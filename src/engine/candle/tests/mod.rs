//! Tests of the whole engine: against the reference, against PyTorch, and of its promises.

mod promises;
mod pytorch;
mod reference;
#[path = "../../../../tests/fixtures/promises.rs"]
mod shared;

use std::sync::Arc;

use super::super::{Engine, Settings, Workload};
use super::CandleEngine;
use crate::network::{Network, Shape};
use crate::settings::*;
use shared::{settings, workload};
