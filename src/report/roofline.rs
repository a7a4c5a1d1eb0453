//! How near the steps come to the device's peaks, as a table.

use super::{Column, Document, Table, human};
use crate::analysis::roofline::Nearest;

/// One line for each network, engine and precision; empty for none.
pub fn roofline(found: &[Nearest]) -> Document {
    let mut document = Document::default();
    if found.is_empty() {
        return document;
    }
    let mut table = Table::new([
        Column::left("series"),
        Column::right("batch size"),
        Column::right("arithmetic"),
        Column::right("of a matrix product"),
        Column::right("traffic, at least"),
        Column::right("of a copy"),
    ]);
    for one in found {
        table.row([
            format!("{}, {}, {}", one.model, one.engine, one.precision),
            human::batch_size(one.batch_size as f64),
            human::quantity(one.flops_per_s, "FLOP/s"),
            share(one.arithmetic_share(), &human::quantity(one.peaks.flops_per_s, "FLOP/s")),
            human::quantity(one.bytes_per_s, "B/s"),
            share(one.traffic_share(), &human::quantity(one.peaks.bytes_per_s, "B/s")),
        ]);
    }
    document.heading("Nearest to what the device can do, measured at the beginning of the run");
    document.table(table);
    if found.iter().any(|one| one.arithmetic_share() > 1.0) {
        document.text("above 100 %: FLOPs are those of the definition, of which Winograd's algorithm does a quarter");
    }
    document
}

fn share(share: f64, peak: &str) -> String {
    format!("{:.0} % of {peak}", 100.0 * share)
}
