//! Warnings that several kinds of study have.

use crate::report::Warning;
use crate::store::Stored;
use crate::units::human;

/// That cells failed, with the first line of the first of their messages.
pub fn failed<R: Stored>(messages: &[String]) -> Option<Warning> {
    let first = messages.first()?.lines().next().unwrap_or_default();
    let message = format!("{} failed: {first}", human::counted(messages.len() as u64, "cell"));
    let remedy = format!("the reasons are in the column `error` of {}", R::SHELF.table);
    Some(Warning::OfStudy { message, remedy })
}

/// That the loss was infinite or not a number in this many epochs.
pub fn not_finite(epochs: usize) -> Option<Warning> {
    let message = format!("the loss was not a finite number in {}", human::counted(epochs as u64, "epoch"));
    let remedy =
        "lower `learning_rate` in [train]; the times stand, but computing with NaN can take other paths".into();
    (epochs > 0).then_some(Warning::OfStudy { message, remedy })
}

/// `was` or `were`.
pub fn were(number: usize) -> &'static str {
    if number == 1 { "was" } else { "were" }
}
