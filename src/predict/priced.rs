//! Rows with the time, the energy and the price of a whole training.

use super::Row;
use crate::predict::model::Estimate;
use crate::predict::model::cost::{self, Choice, Job, JobOption, Limits};
use crate::spec::prices::{Offer, Prices};

/// A row, and the training with it; without a job there are no epochs, without prices no money.
#[derive(Clone, Debug, PartialEq)]
pub struct Priced {
    pub row: Row,
    pub epoch: Option<Estimate>,
    pub total: Option<Estimate>,
    /// The energy of the whole training, where the device's power was measured.
    pub energy_j: Option<f64>,
    pub offer: Option<Offer>,
    pub usd: Option<f64>,
}

impl Priced {
    /// The network, its settings and the device.
    pub fn called(&self) -> String {
        let row = &self.row;
        let settings = if row.settings.is_empty() { String::new() } else { format!(", {}", row.settings) };
        format!("{}{settings} on {}", row.model, row.device)
    }
}

/// Prices the rows. Epochs are made of typical steps, not of the fastest.
pub fn priced(rows: Vec<Row>, job: Option<Job>, prices: Option<&Prices>) -> Vec<Priced> {
    let price = |row: Row| {
        let (batch, typical) = (row.batch_size as f64, row.step.times(row.slowdown));
        let total = job.map(|job| job.total(batch, typical));
        let offer = prices.and_then(|prices| prices.of(&row.device)).cloned();
        Priced {
            epoch: job.map(|job| job.epoch(batch, typical)),
            energy_j: total.zip(row.power_w).map(|(total, power)| total.seconds * power),
            usd: total.zip(offer.as_ref()).map(|(total, offer)| total.seconds / 3600.0 * offer.usd_per_hour),
            total,
            offer,
            row,
        }
    };
    rows.into_iter().map(price).collect()
}

impl Priced {
    pub fn per_example(&self) -> f64 {
        self.row.step.seconds / self.row.batch_size as f64
    }
}

/// The rows of one network on one device with one set of settings, by their places; in order.
pub fn groups(rows: &[Priced]) -> Vec<Vec<&Priced>> {
    let same = |Priced { row: a, .. }: &Priced, Priced { row: b, .. }: &Priced| {
        a.device == b.device && a.engine == b.engine && a.model == b.model && a.settings == b.settings
    };
    rows.chunk_by(same).map(|group| group.iter().collect()).collect()
}

/// The row with the least time for an example, which on one device is the least money.
pub fn cheapest<'a>(rows: &[&'a Priced]) -> Option<&'a Priced> {
    rows.iter().copied().min_by(|a, b| a.per_example().total_cmp(&b.per_example()))
}

/// The same among those just before a jump.
pub fn before_jump<'a>(rows: &[&'a Priced]) -> Option<&'a Priced> {
    let before: Vec<&Priced> = rows.iter().copied().filter(|priced| priced.row.before_jump).collect();
    cheapest(&before)
}

pub fn choice(rows: &[Priced], limits: Limits) -> Option<Choice> {
    let option = |(place, row): (usize, &Priced)| Some((place, JobOption { total: row.total?, usd: row.usd }));
    cost::choice(rows.iter().enumerate().filter_map(option), limits)
}

#[cfg(test)]
mod tests {
    use super::super::{Basis, Place};
    use super::*;

    fn row(device: &str, power_w: Option<f64>) -> Row {
        Row {
            device: device.to_owned(),
            engine: "cudnn".to_owned(),
            model: "vgg16".to_owned(),
            settings: String::new(),
            batch_size: 50,
            step: Estimate::around(0.09, 0.1),
            slowdown: 10.0 / 9.0,
            basis: Basis::Curve { place: Place::Measured, runs: 1, repeated: false },
            power_w,
            before_jump: false,
            reported: None,
        }
    }

    // 1,000 examples in batches of 50 are 20 steps of 0.1 s, 36 times: 72 s, at 250 W 18 kJ, at $3.60 an hour 7.2 cents.
    #[test]
    fn energy_and_money_match_a_hand_calculation_if_power_and_price_are_known() {
        let text = "version = 1\nread = \"2026-01-01\"\n[[offer]]\nname = \"x\"\ndevice = \"T4\"\nusd_per_hour = 3.6\nsource = \"a test\"\n";
        let prices = Prices::parse(text, "prices.toml").unwrap();
        let job = Some(Job { examples: 1000.0, epochs: 36.0 });
        let rows = priced(vec![row("Tesla T4", Some(250.0)), row("Tesla K80", None)], job, Some(&prices));
        let near = |value: Option<f64>, expected: f64| value.is_some_and(|value| (value / expected - 1.0).abs() < 1e-9);
        assert!(near(rows[0].energy_j, 18_000.0) && near(rows[0].usd, 0.072), "{:?}", rows[0]);
        assert!(rows[1].total == rows[0].total && rows[1].energy_j.is_none() && rows[1].usd.is_none());
    }
}
