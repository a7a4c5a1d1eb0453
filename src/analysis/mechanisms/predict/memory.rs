//! Steps where a layer passes a limit of memory.

use std::collections::BTreeMap;

use super::amounts::{Amounts, PredictedStep};
use super::{Setup, batch, is_non_fused};
use crate::analysis::mechanisms::formulas::cpu::Blocking;
use crate::analysis::mechanisms::formulas::limit::{Workspace, overflowed, slower_at_most, workspace};
use crate::analysis::mechanisms::formulas::{KnownOperation, LayerSizes};
use crate::network::Direction;
use crate::settings::EngineName;
use crate::store::LayerRow;

/// Where the algorithm changes because the previous one would have needed more scratch memory than the limit allows.
/// `None` where the limit is not known, or there is no such place.
pub(super) fn no_longer_fits(setup: &Setup, rows: &[&LayerRow]) -> Option<Amounts> {
    let limit = setup.settings.workspace_limit.or(setup.machine.workspace_limit)? as f64;
    let mut steps = BTreeMap::new();
    for (at, pair) in rows.windows(2).enumerate() {
        let (before, behind) = (pair[0], pair[1]);
        if before.algorithm.is_none() || before.algorithm == behind.algorithm {
            continue;
        }
        let same = rows[..=at].iter().rev().take_while(|row| row.algorithm == before.algorithm);
        let taken = |row: &&LayerRow| Some(Workspace { batch: batch(row), bytes: row.workspace_bytes? as f64 });
        let mut known: Vec<Workspace> = same.filter_map(taken).collect();
        known.reverse();
        let Some(needed) = workspace(&known, batch(behind), is_non_fused(before)) else { continue };
        let took = known.last().map_or(0.0, |last| last.bytes);
        if took <= limit && needed > limit {
            let gigabytes = |bytes: f64| bytes / 1e9;
            let detail = format!(
                "{} {}: {:.2} GB of workspace at {}, about {:.2} GB at {}, and the limit is {:.2} GB",
                before.layer,
                before.direction,
                gigabytes(took),
                before.batch_size,
                gigabytes(needed),
                behind.batch_size,
                gigabytes(limit)
            );
            steps.insert(before.batch_size, PredictedStep { detail: Some(detail), ..PredictedStep::default() });
        }
    }
    (!steps.is_empty()).then_some(Amounts::Passed(steps))
}

/// Where the layer's inputs and outputs, each counted once, no longer fit into a cache that held them before. The most
/// that this can cost is that all of them come from memory at the rate of a copy. `None` where the caches or that rate
/// are not known, or there is no such place.
pub(super) fn overflows(setup: &Setup, rows: &[&LayerRow], level: &dyn Fn(i64) -> Option<f64>) -> Option<Amounts> {
    let rate = setup.machine.bytes_per_s?;
    let mut steps = BTreeMap::new();
    for pair in rows.windows(2) {
        let (before, behind) = (pair[0], pair[1]);
        let Some(cache) = overflowed(&setup.machine.caches, before.bytes, behind.bytes) else { continue };
        let Some(level) = level(before.batch_size) else { continue };
        let at_most = Some(slower_at_most(behind.bytes, rate) / level);
        let megabytes = |bytes: f64| bytes / 1e6;
        let detail = format!(
            "{} {}: {:.2} MB at {}, {:.2} MB at {}, and cache L{} has {:.2} MB",
            before.layer,
            before.direction,
            megabytes(before.bytes),
            before.batch_size,
            megabytes(behind.bytes),
            behind.batch_size,
            cache.level,
            megabytes(cache.bytes as f64)
        );
        steps.insert(before.batch_size, PredictedStep { at_most, detail: Some(detail), ..PredictedStep::default() });
    }
    (!steps.is_empty()).then_some(Amounts::Passed(steps))
}

/// Where the input gradient of a dense layer on the CPU engine reads the weights once more. The most that this can cost
/// is that they come from memory at the rate of a copy. `None` where that rate is not known, or there is no such place.
pub(super) fn readings(
    setup: &Setup,
    sizes: &LayerSizes,
    rows: &[&LayerRow],
    level: &dyn Fn(i64) -> Option<f64>,
) -> Option<Amounts> {
    let rate = setup.machine.bytes_per_s?;
    let weights = 4.0 * sizes.multiply_adds();
    let blocking = Blocking::from(setup.settings);
    let is_of_rows = setup.engine == EngineName::Cpu && sizes.product == KnownOperation::Dense;
    let mut steps = BTreeMap::new();
    for pair in rows.windows(2).filter(|_| is_of_rows) {
        let [before, behind] = [pair[0], pair[1]].map(|row| blocking.dense_readings(batch(row)));
        let Some(level) = level(pair[0].batch_size) else { continue };
        if pair[0].direction != Direction::BackwardData.name() || before == behind {
            continue;
        }
        let at_most = Some(slower_at_most((behind - before) as f64 * weights, rate) / level);
        let (layer, direction, at, next) = (&pair[0].layer, &pair[0].direction, pair[0].batch_size, pair[1].batch_size);
        let detail = format!(
            "{layer} {direction}: {:.2} MB of weights are read {before} times at {at}, {behind} times at {next}",
            weights / 1e6
        );
        steps.insert(at, PredictedStep { at_most, detail: Some(detail), ..PredictedStep::default() });
    }
    (!steps.is_empty()).then_some(Amounts::Passed(steps))
}
