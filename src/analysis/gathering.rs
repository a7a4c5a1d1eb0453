//! From batches of rows to series, in bounded memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::columns::{Columns, NODE, OTHERS, STARTED, X_NAME};
use super::distinct::DistinctTexts;
use super::goal::{Asked, Visits};
use super::interference::{VisitKey, visit};
use super::measured_columns::MeasuredColumns;
use super::other_names::PEAK;
use super::{Gap, Measurement, Series, Size, is_null};
use crate::detect::Observation;
use crate::error::Result;
use crate::foreign;
use crate::random::{GOLDEN, mix};
use crate::store::Table;

/// Steps that are kept of all series together: at about 100 bytes each, some 0.2 GB.
pub(super) const MOST_STEPS: usize = 2_000_000;

/// Sizes of rows left out that are named.
const MOST_SIZES: usize = 8;
/// Sizes without a value that are kept of a combination of the keys' values; advice compares fewer.
const MOST_FAILED: usize = 4096;
/// A column of texts splits a table if the series have at least this many sizes each, on average.
const FEWEST_SIZES: usize = 3;

/// Rows of a file in which visits of the same number are the same visit.
const STRETCH: u64 = 4096;

#[derive(Default)]
pub(super) struct Gathering {
    columns: Columns,
    keys: Vec<(String, DistinctTexts)>,
    facts: Vec<(&'static str, DistinctTexts)>,
    nodes: DistinctTexts,
    index: HashMap<Vec<u32>, usize>,
    gathered: Vec<Gathered>,
    rows: u64,
    /// As [`Series::gaps`].
    gaps: Vec<Gap>,
    /// For each combination of the keys' values, the bits of the sizes of its rows without a value.
    failed: HashMap<Vec<u32>, BTreeSet<u64>>,
    kept: usize,
    most: usize,
    /// For a run: what its spec asks for, and the visits to each combination of the keys' values.
    asked: Option<Asked>,
    visits: HashMap<Vec<u32>, Visits>,
    /// As [`Series::others`].
    others: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Gathered {
    key: Vec<u32>,
    /// The cells of the plan that belong to it.
    cells: BTreeSet<i64>,
    /// For each fact its value, `None` once it has changed.
    facts: Vec<Option<u32>>,
    steps: Vec<(u64, Measurement)>,
    /// As [`Series::measured`].
    measured: Option<[f64; 2]>,
    /// The memory at the peak of each visit.
    peaks: BTreeMap<VisitKey, f64>,
    /// Only visits whose hash ends in at least this many zeros are kept.
    level: u32,
}

impl Gathering {
    /// Gathers at most `most` steps of all series together; `asked` is what the spec of a run asks for.
    pub fn new(columns: Columns, most: usize, asked: Option<Asked>) -> Self {
        let keys = columns.keys().into_iter().map(|name| (name, DistinctTexts::default())).collect();
        let facts = columns.facts().into_iter().map(|name| (name, DistinctTexts::default())).collect();
        Self { columns, keys, facts, most, asked, ..Self::default() }
    }

    pub fn wanted(&self) -> Vec<String> {
        self.columns.wanted().into_iter().map(str::to_string).collect()
    }

    pub fn take(&mut self, batch: &Table) -> Result<()> {
        let mut codes = |(name, names): &mut (String, DistinctTexts)| names.codes(name, &batch.distinct(name)?);
        let keys: Vec<Vec<u32>> = self.keys.iter_mut().map(&mut codes).collect::<Result<_>>()?;
        let mut codes = |(name, names): &mut (&str, DistinctTexts)| names.codes(name, &batch.distinct(name)?);
        let facts: Vec<Vec<u32>> = self.facts.iter_mut().map(&mut codes).collect::<Result<_>>()?;
        let nodes = if batch.has(NODE) { self.nodes.codes(NODE, &batch.distinct(NODE)?)? } else { Vec::new() };
        let rows = MeasuredColumns::read(batch, &self.columns)?;
        if batch.has(OTHERS) {
            for text in batch.distinct(OTHERS)?.distinct {
                let seen: BTreeMap<String, usize> = serde_json::from_str(&text).unwrap_or_default();
                for (name, processes) in seen {
                    let most = self.others.entry(name).or_default();
                    *most = processes.max(*most);
                }
            }
        }
        for row in 0..batch.rows() {
            let key: Vec<u32> = keys.iter().map(|codes| codes[row]).collect();
            let node = nodes.get(row).copied().filter(|node| !is_null(&self.nodes.texts[*node as usize]));
            if let (Some(asked), Some(block)) = (&self.asked, rows.block(row)) {
                let visits = self.visits.entry(key.clone()).or_default();
                visits.take(node, block, rows.place(row), rows.is_ok(row), asked.blocks());
            }
            let Some(mut measurement) = rows.measurement(row) else {
                self.note_gap(&rows, row, batch);
                self.note_failed(key, &rows, row);
                continue;
            };
            measurement.observation.node = node;
            let place = self.place(key, || facts.iter().map(|f| Some(f[row])));
            let series = &mut self.gathered[place];
            series.cells.extend(rows.cell(row));
            series.note_peak(&measurement.observation, rows.number(PEAK, row));
            series.measured = both(series.measured, rows.number(STARTED, row).map(|at| [at, at]));
            for (fact, codes) in series.facts.iter_mut().zip(&facts) {
                *fact = fact.filter(|value| *value == codes[row]);
            }
            // The place in the file distinguishes the visits of merged runs, which all begin at 0.
            let at = self.rows + row as u64;
            let hash = rows.number("visit", row).map_or(at, |visit| visit.to_bits() ^ scattered(at / STRETCH));
            let hash = scattered(hash);
            if hash.trailing_zeros() >= series.level {
                series.steps.push((hash, measurement));
                self.kept += 1;
            }
            if self.kept > self.most {
                self.thin();
            }
        }
        self.rows += batch.rows() as u64;
        Ok(())
    }

    /// Counts a row that holds no step, unless it says itself that it has none.
    fn note_gap(&mut self, rows: &MeasuredColumns, row: usize, batch: &Table) {
        if !rows.is_ok(row) {
            return;
        }
        let size = Some(rows.x[row]).filter(|x| x.is_finite());
        let column = if size.is_some() { &self.columns.y } else { &self.columns.x };
        let said = || batch.said(column, row).map(foreign::name);
        let place = self.gaps.iter().position(|gap| gap.column == *column).unwrap_or_else(|| {
            let first_line = batch.line(row);
            let (column, sizes) = (column.clone(), Vec::new());
            self.gaps.push(Gap { column, rows: 0, first_line, sizes, more_sizes: false, said: said() });
            self.gaps.len() - 1
        });
        let gap = &mut self.gaps[place];
        gap.rows += 1;
        match size.filter(|size| !gap.sizes.contains(size)) {
            Some(size) if gap.sizes.len() < MOST_SIZES => {
                gap.sizes.push(size);
                gap.sizes.sort_by(f64::total_cmp);
            }
            Some(_) => gap.more_sizes = true,
            None => {}
        }
        if gap.said.is_none() {
            gap.said = said();
        }
    }

    /// Keeps the size of a row without a value, whatever the row says of the reason.
    fn note_failed(&mut self, key: Vec<u32>, rows: &MeasuredColumns, row: usize) {
        if rows.y[row].is_finite() || !rows.x[row].is_finite() {
            return;
        }
        let sizes = self.failed.entry(key).or_default();
        if sizes.len() < MOST_FAILED {
            sizes.insert(rows.x[row].to_bits());
        }
    }

    fn place<F: Iterator<Item = Option<u32>>>(&mut self, key: Vec<u32>, facts: impl Fn() -> F) -> usize {
        let (next, gathered) = (self.gathered.len(), &mut self.gathered);
        *self.index.entry(key).or_insert_with_key(|key| {
            gathered.push(Gathered { key: key.clone(), facts: facts().collect(), ..Gathered::default() });
            next
        })
    }

    /// Leaves out half of the visits of the longest series.
    fn thin(&mut self) {
        let Some(longest) = self.gathered.iter_mut().max_by_key(|series| series.steps.len()) else { return };
        let before = longest.steps.len();
        longest.level += 1;
        let level = longest.level;
        longest.steps.retain(|(hash, _)| hash.trailing_zeros() >= level);
        self.kept -= before - longest.steps.len();
    }

    /// The series, once the last batch is in.
    pub fn series(mut self, path: &Path) -> Vec<Series> {
        let keys: Vec<String> = self.keys.iter().map(|(name, _)| name.clone()).collect();
        let splits = self.columns.splits(&keys, self.nodes.texts.len() > 1, |key| {
            self.keys[key].1.varies(&keys[key]) && !self.determines_x(key) && self.tells_apart(key)
        });
        let split = |key: &[u32]| -> Vec<u32> { splits.iter().map(|&at| key[at]).collect() };
        for (key, own) in std::mem::take(&mut self.visits) {
            self.visits.entry(split(&key)).or_default().join(own);
        }
        for (key, mut own) in std::mem::take(&mut self.failed) {
            self.failed.entry(split(&key)).or_default().append(&mut own);
        }
        let mut merged: Vec<Gathered> = Vec::new();
        let mut index: HashMap<Vec<u32>, usize> = HashMap::new();
        for mut series in std::mem::take(&mut self.gathered) {
            series.key = split(&series.key);
            match index.get(&series.key) {
                Some(&place) => merged[place].join(series),
                None => {
                    index.insert(series.key.clone(), merged.len());
                    merged.push(series);
                }
            }
        }
        // Stable, so that data without cells stays in the order of first appearance.
        merged.sort_by_key(|series| series.cells.first().copied().unwrap_or(i64::MAX));
        merged.into_iter().map(|series| self.finish(series, &splits, path)).collect()
    }

    /// Whether the key is another size and each of its values belongs to only one x, like the other side of a square matrix. Such a key
    /// would split the table into single points.
    fn determines_x(&self, key: usize) -> bool {
        if !self.columns.is_other_size(&self.keys[key].0) {
            return false;
        }
        let mut x_of: HashMap<u32, u64> = HashMap::new();
        self.gathered.iter().all(|series| {
            let mut x = series.steps.iter().map(|(_, step)| step.observation.x.to_bits());
            x.all(|x| *x_of.entry(series.key[key]).or_insert(x) == x)
        })
    }

    /// Whether a key that may split the table does: it differs at the same x, and its values have some sizes each.
    fn tells_apart(&self, key: usize) -> bool {
        if !self.columns.may_split(&self.keys[key].0) {
            return true;
        }
        let mut values: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        let mut sizes: BTreeSet<(u32, u64)> = BTreeSet::new();
        for series in &self.gathered {
            for (_, step) in &series.steps {
                let x = step.observation.x.to_bits();
                values.entry(x).or_default().insert(series.key[key]);
                sizes.insert((series.key[key], x));
            }
        }
        let count = sizes.iter().map(|(value, _)| *value).collect::<BTreeSet<_>>().len();
        values.values().any(|values| values.len() > 1) && sizes.len() >= FEWEST_SIZES * count
    }

    fn finish(&self, series: Gathered, splits: &[usize], path: &Path) -> Series {
        let named = |(&key, &code): (&usize, &u32)| {
            let (name, names) = &self.keys[key];
            (name.clone(), names.texts[code as usize].clone())
        };
        let mut facts = BTreeMap::new();
        for ((name, names), code) in self.facts.iter().zip(&series.facts) {
            let value = code.map(|code| names.texts[code as usize].as_str());
            if let Some(value) = value.filter(|value| !is_null(value)) {
                facts.insert(name.to_string(), foreign::name(value));
            }
        }
        let mut measurements: Vec<Measurement> = series.steps.into_iter().map(|(_, step)| step).collect();
        trust_cpu_clock(&mut measurements);
        let failed = self.failed.get(&series.key).into_iter().flatten();
        let mut failed: Vec<f64> = failed.map(|x| f64::from_bits(*x)).collect();
        failed.sort_by(f64::total_cmp);
        Series {
            source: path.display().to_string(),
            group: splits.iter().zip(&series.key).map(named).collect(),
            size: facts.get(X_NAME).map_or_else(|| self.columns.size(), |name| Size::of(name)),
            y: self.columns.y.clone(),
            kind: self.columns.kind,
            unit: self.columns.unit(),
            kept: 0.5f64.powi(series.level as i32),
            measurements,
            facts,
            cells: series.cells,
            nodes: self.nodes.texts.iter().map(|node| foreign::name(node)).collect(),
            peaks: least_peaks(&series.peaks),
            measured: series.measured,
            gaps: self.gaps.clone(),
            failed,
            others: self.others.clone(),
            notes: self.asked.iter().filter_map(Asked::note).collect(),
            goal: self.asked.as_ref().map(|asked| asked.goal(self.visits.get(&series.key))),
            ..Series::default()
        }
    }
}

/// For each x, the least peak of its visits.
fn least_peaks(visits: &BTreeMap<VisitKey, f64>) -> BTreeMap<u64, f64> {
    let mut least = BTreeMap::new();
    for ((x, ..), peak) in visits {
        least.entry(*x).and_modify(|least: &mut f64| *least = least.min(*peak)).or_insert(*peak);
    }
    least
}

impl Gathered {
    fn note_peak(&mut self, seen: &Observation, bytes: Option<f64>) {
        if let Some(bytes) = bytes {
            let peak = self.peaks.entry(visit(seen)).or_insert(bytes);
            *peak = peak.max(bytes);
        }
    }

    fn join(&mut self, mut other: Self) {
        self.level = self.level.max(other.level);
        self.steps.append(&mut other.steps);
        self.steps.retain(|(hash, _)| hash.trailing_zeros() >= self.level);
        self.cells.append(&mut other.cells);
        self.peaks.append(&mut other.peaks);
        self.measured = both(self.measured, other.measured);
        for (fact, other) in self.facts.iter_mut().zip(&other.facts) {
            *fact = fact.filter(|value| Some(*value) == *other);
        }
    }
}

/// The time from the begin of the earlier to the end of the later one.
fn both(first: Option<[f64; 2]>, second: Option<[f64; 2]>) -> Option<[f64; 2]> {
    [first, second].into_iter().flatten().reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
}

/// A CPU's clock distinguishes work from clock where it is a reading. A virtual machine gives its nominal clock whatever happens: a
/// clock that never moves says nothing, and then there is no verdict.
fn trust_cpu_clock(measurements: &mut [Measurement]) {
    let known = measurements.iter().any(|m| m.observation.clock_hz.is_some());
    let mut clocks = measurements.iter().map(|m| m.clock_hz);
    let first = clocks.next().flatten();
    if known || !clocks.any(|clock| clock.is_some() && clock != first) {
        return;
    }
    measurements.iter_mut().for_each(|m| m.observation.clock_hz = m.clock_hz);
}

/// A hash, so that the visits which are left out follow no pattern of their numbers.
fn scattered(visit: u64) -> u64 {
    mix(visit.wrapping_add(GOLDEN))
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::*;

    /// Two models, three batch sizes, `visits` visits of two steps each.
    fn gathered(visits: usize, most: usize) -> Vec<Series> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv");
        let mut text = "model,batch_size,visit,step_time_s\n".to_string();
        for visit in 0..visits {
            let model = if visit % 10 == 0 { "rare" } else { "common" };
            (0..2).for_each(|_| text.push_str(&format!("{model},{},{visit},0.5\n", visit % 3 + 1)));
        }
        std::fs::write(&path, text).expect("written");
        let names = Table::names(&path).expect("names");
        let columns = Columns::choose(&names, &Query::default()).expect("columns");
        let mut gathering = Gathering::new(columns, most, None);
        let wanted = gathering.wanted();
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        Table::scan(&path, &wanted, &mut |batch| gathering.take(&batch)).expect("read");
        gathering.series(&path)
    }

    #[test]
    fn an_axis_that_one_engine_has_splits_only_where_it_varies() {
        let labels = |second: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("a.csv");
            let rows =
                ["cpu,,", "torch,none,", &format!("torch,{second},")].map(|row| format!("mlp,{row}1,0.5\n")).concat();
            std::fs::write(&path, format!("model,engine,compile,batch_size,step_time_s\n{rows}")).expect("written");
            let found = super::super::series(&path, &Query::default()).expect("series");
            found.iter().map(Series::label).collect::<Vec<_>>()
        };
        assert_eq!(labels("none"), ["mlp, cpu", "mlp, torch"]);
        assert_eq!(labels("default"), ["mlp, cpu", "mlp, torch, none", "mlp, torch, default"]);
    }

    #[test]
    #[ignore = "slow"]
    fn a_large_table_is_thinned_by_whole_visits_and_the_longest_series_first() {
        let small = gathered(100, MOST_STEPS);
        assert_eq!(small.iter().map(|s| (s.measurements.len(), s.kept)).collect::<Vec<_>>(), [(20, 1.0), (180, 1.0)]);
        let series = gathered(20_000, 10_000);
        let total: usize = series.iter().map(|s| s.measurements.len()).sum();
        assert!((5_000..=10_000).contains(&total), "{total}");
        let (rare, common) = (&series[0], &series[1]);
        assert_eq!((rare.kept, rare.measurements.len()), (1.0, 4_000));
        // One in eight of 36,000 steps, at most; four standard deviations of a binomial count of visits.
        let expected = 36_000.0 * common.kept;
        assert!((common.measurements.len() as f64 - expected).abs() < 4.0 * 2.0 * (expected / 2.0).sqrt());
        assert!(common.measurements.len() % 2 == 0, "visits stay whole");
    }
}
