//! Steps where a layer passes a limit of memory.

use std::collections::BTreeMap;

use super::{Amounts, PredictedStep, Setup, batch, is_non_fused};
use crate::analysis::mechanisms::formulas::{KnownOperation, LayerSizes, WINOGRAD_BATCH};
use crate::analysis::mechanisms::machine::CacheLevel;
use crate::engine::cpu::blocking::Blocking;
use crate::network::Direction;
use crate::settings::EngineName;
use crate::store::LayerRow;

/// The steps between neighbouring rows that `step` finds; `None` where there is none.
fn passed<'a>(
    rows: &[&'a LayerRow],
    step: impl Fn(usize, [&'a LayerRow; 2]) -> Option<PredictedStep>,
) -> Option<Amounts> {
    let pairs = rows.windows(2).enumerate();
    let steps: BTreeMap<i64, PredictedStep> =
        pairs.filter_map(|(at, pair)| Some((pair[0].batch_size, step(at, [pair[0], pair[1]])?))).collect();
    (!steps.is_empty()).then_some(Amounts::Given(steps))
}

/// Where the algorithm changes because the previous one would have needed more scratch memory than the limit allows.
/// `None` where the limit is not known, or there is no such place.
pub(super) fn no_longer_fits(setup: &Setup, rows: &[&LayerRow]) -> Option<Amounts> {
    let limit = setup.settings.workspace_limit.or(setup.machine.workspace_limit)? as f64;
    passed(rows, |at, [before, behind]| {
        if before.algorithm.is_none() || before.algorithm == behind.algorithm {
            return None;
        }
        let same = rows[..=at].iter().rev().take_while(|row| row.algorithm == before.algorithm);
        let taken = |row: &&LayerRow| Some((batch(row), row.workspace_bytes? as f64));
        let mut known: Vec<(usize, f64)> = same.filter_map(taken).collect();
        known.reverse();
        let needed = workspace(&known, batch(behind), is_non_fused(before))?;
        let took = known.last().map_or(0.0, |(_, bytes)| *bytes);
        let gigabytes = |bytes: f64| bytes / 1e9;
        let detail = || {
            format!(
                "{} {}: {:.2} GB of workspace at {}, about {:.2} GB at {}, and the limit is {:.2} GB",
                before.layer,
                before.direction,
                gigabytes(took),
                before.batch_size,
                gigabytes(needed),
                behind.batch_size,
                gigabytes(limit)
            )
        };
        (took <= limit && needed > limit).then(|| PredictedStep { detail: Some(detail()), ..PredictedStep::default() })
    })
}

/// The bytes of scratch memory that an algorithm would need at `batch`, extrapolated from the batch sizes and bytes that it took before, `taken`,
/// ascending: along the line through the last two, or in proportion to the batch if there is only one. Non-fused Winograd keeps the transformed tiles
/// of the padded batch, so its memory is proportional to the padded batch. `None` where `taken` is empty.
fn workspace(taken: &[(usize, f64)], batch: usize, non_fused_winograd: bool) -> Option<f64> {
    let (last, bytes) = *taken.last()?;
    let padded = |batch: usize| batch.next_multiple_of(WINOGRAD_BATCH) as f64;
    Some(match taken {
        _ if non_fused_winograd => bytes * padded(batch) / padded(last.max(1)),
        [.., (before, fewer), _] if *before < last => {
            bytes + (bytes - fewer) / (last - before) as f64 * (batch as f64 - last as f64)
        }
        _ => bytes * batch as f64 / last.max(1) as f64,
    })
}

/// Where the layer's inputs and outputs, each counted once, no longer fit into a cache that held them before. The most
/// that this can cost is that all of them come from memory at the rate of a copy. `None` where the caches or that rate
/// are not known, or there is no such place.
pub(super) fn overflows(setup: &Setup, rows: &[&LayerRow], level: &dyn Fn(i64) -> Option<f64>) -> Option<Amounts> {
    let rate = setup.machine.bytes_per_s?;
    passed(rows, |_, [before, behind]| {
        let held = |cache: &&CacheLevel| before.bytes <= cache.bytes as f64 && behind.bytes > cache.bytes as f64;
        let cache = setup.machine.caches.iter().filter(held).max_by_key(|cache| cache.bytes)?;
        let at_most = Some(behind.bytes / rate / level(before.batch_size)?);
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
        Some(PredictedStep { at_most, detail: Some(detail), ..PredictedStep::default() })
    })
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
    if setup.engine != EngineName::Cpu || sizes.product != KnownOperation::Dense {
        return None;
    }
    passed(rows, |_, [before, behind]| {
        let [fewer, more] = [before, behind].map(|row| blocking.dense_readings(batch(row)));
        let LayerRow { layer, direction, batch_size: at, .. } = before;
        if *direction != Direction::BackwardData.name() || fewer == more {
            return None;
        }
        let at_most = Some((more - fewer) as f64 * weights / rate / level(*at)?);
        let detail = format!(
            "{layer} {direction}: {:.2} MB of weights are read {fewer} times at {at}, {more} times at {}",
            weights / 1e6,
            behind.batch_size
        );
        Some(PredictedStep { at_most, detail: Some(detail), ..PredictedStep::default() })
    })
}
