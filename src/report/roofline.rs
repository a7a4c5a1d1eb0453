//! How near the steps come to the device's peaks, as a table.

use super::{Document, Table};
use crate::analysis::roofline::Nearest;
use crate::units::human;

/// One line for each network, engine and precision; empty for none.
pub fn roofline(found: &[Nearest]) -> Document {
    if found.is_empty() {
        return Document::default();
    }
    let numbers = ["batch size", "arithmetic", "of a matrix product", "traffic, at least", "of a copy"];
    let mut table = Table::of(&["series"], &numbers);
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
    let mut document = Document::of_table("Nearest to what the device can do, as measured in this run", table);
    let above = || found.iter().filter(|one| one.arithmetic_share() > 1.0);
    if above().any(is_by_winograd) {
        document.text("above 100 %: FLOPs are those of the definition, of which Winograd's algorithm does a quarter");
    }
    if above().any(|one| !is_by_winograd(one)) {
        document.text(
            "above 100 %: the rate of the matrix product was measured in a busy moment and is too low; measure again \
             while nothing else uses the machine",
        );
    }
    document
}

/// Whether Winograd's algorithm can be why it is above 100 %. It does a quarter of the arithmetic, and no less.
fn is_by_winograd(one: &Nearest) -> bool {
    one.winograd && one.arithmetic_share() <= 4.0
}

fn share(share: f64, peak: &str) -> String {
    format!("{:.0} % of {peak}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Style;
    use crate::store::MeasuredPeaks;

    /// 203 % of a peak of 40 GFLOP/s.
    fn text(winograd: bool, times: f64) -> String {
        let peaks = MeasuredPeaks {
            engine: "cpu".into(),
            precision: "fp32".into(),
            threads: None,
            flops_per_s: 4e10,
            bytes_per_s: 1e10,
        };
        let (engine, model, precision) = ("cpu".into(), "three_dense".into(), "fp32".into());
        let (flops_per_s, bytes_per_s) = (4e10 * times, 1e9);
        let one = Nearest { engine, model, precision, batch_size: 70, flops_per_s, bytes_per_s, peaks, winograd };
        roofline(&[one]).render(&Style::PLAIN)
    }

    #[test]
    fn winograd_explains_only_layers_that_it_computed() {
        let dense = text(false, 2.03);
        assert!(dense.contains("203 % of 40.0 GFLOP/s") && dense.contains("busy moment"), "{dense}");
        assert!(!dense.contains("Winograd"), "{dense}");
        let convolution = text(true, 2.03);
        assert!(convolution.contains("Winograd's algorithm does a quarter"), "{convolution}");
        assert!(!convolution.contains("busy moment"), "{convolution}");
        // More than it can save.
        assert!(text(true, 4.2).contains("busy moment"));
        assert!(!text(false, 0.9).contains("above 100 %"));
    }
}
