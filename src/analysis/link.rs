//! The PCIe link over a run. A link that trains down under load, or wakes up during a run, changes what a step costs.

use std::path::Path;

use crate::store::Table;

/// The width of the link from one place in the run on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    pub order: f64,
    /// In lanes; `None` where it could not be read.
    pub lanes: Option<f64>,
}

const ORDER: &str = "order";
const WIDTH: &str = "pcie_link_width";

/// The widths in the order of the run, one for each change; empty where `path` does not say them. They stand beside the result, so that a
/// file without them, or one that cannot be read twice, is no error.
pub fn widths(path: &Path) -> Vec<Width> {
    let mut readings: Vec<Width> = Vec::new();
    let scanned = Table::scan(path, &[ORDER, WIDTH], &mut |batch| {
        if !batch.has(ORDER) || !batch.has(WIDTH) {
            return Ok(());
        }
        for (order, lanes) in batch.numbers(ORDER)?.into_iter().zip(batch.numbers(WIDTH)?) {
            let lanes = Some(lanes).filter(|lanes| lanes.is_finite());
            if readings.last().map(|last| last.lanes) != Some(lanes) {
                readings.push(Width { order, lanes });
            }
        }
        Ok(())
    });
    if scanned.is_err() {
        return Vec::new();
    }
    readings.sort_by(|a, b| a.order.total_cmp(&b.order));
    readings
}

pub fn width_at(readings: &[Width], order: f64) -> Option<f64> {
    let after = readings.partition_point(|reading| reading.order <= order);
    after.checked_sub(1).and_then(|at| readings[at].lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_kept_and_each_holds_until_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("steps.csv");
        let text = "batch_size,order,pcie_link_width\n1,0,16\n2,1,16\n3,2,8\n4,3,8\n5,4,\n6,5,16\n";
        std::fs::write(&path, text).expect("writable");
        let readings = widths(&path);
        let expected = [(0.0, Some(16.0)), (2.0, Some(8.0)), (4.0, None), (5.0, Some(16.0))];
        assert_eq!(readings, expected.map(|(order, lanes)| Width { order, lanes }));
        assert_eq!(
            [1.0, 3.0, 4.5, 9.0].map(|order| width_at(&readings, order)),
            [Some(16.0), Some(8.0), None, Some(16.0)]
        );
        assert_eq!(width_at(&readings, -1.0), None);
        std::fs::write(&path, "batch_size,seconds\n1,2\n").expect("writable");
        assert_eq!(widths(&path), []);
    }
}
