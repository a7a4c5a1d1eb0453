//! A training that PyTorch feeds with its own DataLoader.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;

use super::Connection;
use crate::engine::train::{EpochTrainer, OwnEpoch, Score};
use crate::engine::worker;
use crate::error::Result;

/// A training that is prepared in the PyTorch process.
#[derive(Debug)]
pub(super) struct TorchTraining {
    pub id: u64,
    pub connection: Rc<RefCell<Connection>>,
}

impl TorchTraining {
    fn ask<T: DeserializeOwned>(&self, request: &serde_json::Value) -> Result<T> {
        let mut connection = self.connection.borrow_mut();
        let patience = connection.worker.patience.epoch;
        let answer = connection.ask(request, patience)?;
        worker::read(answer, "PyTorch answered something else")
    }
}

/// The answer, as `Training.epoch` of the Python program writes it.
#[derive(Deserialize)]
struct Epoch {
    #[serde(flatten)]
    epoch: OwnEpoch,
    /// Texts, because JSON cannot represent NaN as a number.
    losses: Vec<String>,
}

#[derive(Deserialize)]
struct Evaluated {
    examples: usize,
    correct: usize,
    loss: String,
}

impl EpochTrainer for TorchTraining {
    fn epoch(&mut self, epoch: usize, steps: Option<usize>) -> Result<OwnEpoch> {
        let Epoch { epoch, losses } =
            self.ask(&json!({"do": "epoch", "id": self.id, "epoch": epoch, "steps": steps}))?;
        Ok(OwnEpoch { losses: losses.iter().map(|loss| loss.parse().unwrap_or(f64::NAN)).collect(), ..epoch })
    }

    fn evaluate(&mut self) -> Result<Score> {
        let Evaluated { examples, correct, loss } = self.ask(&worker::about(self.id, "evaluate"))?;
        Ok(Score { examples, correct, loss: loss.parse().unwrap_or(f64::NAN) })
    }

    fn reset(&mut self) -> Result<()> {
        self.ask::<IgnoredAny>(&worker::about(self.id, "restart")).map(drop)
    }
}

impl Drop for TorchTraining {
    /// Waits until the memory is released and the workers have ended.
    fn drop(&mut self) {
        self.connection.borrow_mut().worker.release(self.id);
    }
}
