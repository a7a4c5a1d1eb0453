//! The median over the steps of each cell.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Result;
use crate::stats::quantile::median;
use crate::store::Table;

/// The median over the counted steps of each cell, by cell number, of what `value` makes of the numbers in `columns`. Steps of which it
/// makes no finite number do not count. Empty where the steps of `path` lack one of the columns.
pub(super) fn cell_medians<const N: usize>(
    path: &Path,
    columns: [&str; N],
    value: fn([f64; N]) -> f64,
) -> Result<BTreeMap<i64, f64>> {
    let wanted: Vec<&str> = ["cell", "warmup"].into_iter().chain(columns).collect();
    let mut found: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    Table::scan(path, &wanted, &mut |batch| {
        if !wanted.iter().all(|name| batch.has(name)) {
            return Ok(());
        }
        let (cells, warmup) = (batch.numbers("cell")?, batch.texts("warmup")?);
        let numbers = columns.iter().map(|name| batch.numbers(name)).collect::<Result<Vec<_>>>()?;
        for (row, (cell, warmup)) in cells.into_iter().zip(warmup).enumerate() {
            let value = value(std::array::from_fn(|column| numbers[column][row]));
            if matches!(warmup.as_str(), "0" | "false") && value.is_finite() {
                found.entry(cell as i64).or_default().push(value);
            }
        }
        Ok(())
    })?;
    Ok(found.into_iter().map(|(cell, mut values)| (cell, median(&mut values))).collect())
}
