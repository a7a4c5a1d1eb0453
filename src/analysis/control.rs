//! A/A controls: how often this method reports a jump on this machine when there is none.
//!
//! An A/A run (`[sweep] executes = 8`) executes one batch size under the name of every batch size, so each jump found in it
//! is a false alarm. One run is one series, which either has a jump or not. But its visits can be relabelled: if the visits of
//! each block exchange their names at random, the result is another A/A run of the same machine at the same time. The rate is
//! the share of relabelled runs, including the original, in which a jump is found (a permutation test; Pesarin & Salmaso 2010).
//!
//! The answer is stored as `aa.json` in the run directory. Another run on the same device with the same engine takes the
//! newest control that lies in its own folder or in a folder beside it (`results/aa` for `results/vgg16`), keeps a copy, and
//! shows its rate on charts and in `jumps.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::analysis::{Analysed, Series};
use crate::detect::{Observation, Settings, detect};
use crate::error::Result;
use crate::os::atomic;
use crate::random::Rng;
use crate::store::files;

/// Runs that the visits are dealt to, the original included.
pub const LABELLINGS: u32 = 200;

/// The version of the document.
const VERSION: u32 = 2;

/// The result of an A/A run for one engine on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    pub run_id: String,
    pub engine: String,
    pub device_name: String,
    pub model: String,
    /// The batch size that every cell executed.
    pub executes: u32,
    /// Cells of the run, each named after another batch size.
    pub cells: usize,
    /// Jumps found in the original run.
    pub jumps: usize,
    /// Labellings that were tried, and those in which a jump was found.
    pub labellings: u32,
    pub alarms: u32,
    /// The rate that the detector was set to.
    pub false_positive_rate: f64,
    /// Seconds since 1970.
    pub measured: u64,
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    controls: Vec<Control>,
}

impl Control {
    /// The share of labellings with a false alarm.
    pub fn rate(&self) -> f64 {
        f64::from(self.alarms) / f64::from(self.labellings.max(1))
    }

    /// What a series that is an A/A run says; `None` for every other.
    pub fn of(series: &Series) -> Option<Self> {
        let fact = |name: &str| series.facts.get(name).cloned().unwrap_or_default();
        if series.early().is_some() {
            return None;
        }
        // Intervals say nothing here.
        let settings = Settings { resamples: 0, ..Settings::default() };
        let executes = series.facts.get("executed_batch_size")?.parse::<f64>().ok()? as u32;
        let observations = series.observations();
        let names: BTreeSet<u64> = observations.iter().map(|seen| seen.x.to_bits()).collect();
        let (jumps, alarms) = alarms(&observations, &settings).filter(|_| names.len() > 1)?;
        Some(Self {
            run_id: fact("run_id"),
            engine: fact("engine"),
            device_name: fact("device_name"),
            model: fact("model"),
            executes,
            cells: names.len(),
            jumps,
            labellings: LABELLINGS,
            alarms,
            false_positive_rate: settings.false_positive_rate,
            measured: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        })
    }

    pub fn speaks_for(&self, series: &Series) -> bool {
        let same = |name: &str, value: &String| series.facts.get(name) == Some(value);
        same("engine", &self.engine) && same("device_name", &self.device_name)
    }
}

/// The rate for a series, from the newest control that speaks for it.
pub fn rate(controls: &[Control], series: &Series) -> Option<f64> {
    let fitting = controls.iter().filter(|control| control.speaks_for(series));
    fitting.max_by_key(|control| control.measured).map(Control::rate)
}

/// The controls in a run's folder and in the folders beside it; `path` is the folder or a file in it. What can't be read is
/// no control.
pub fn near(path: &Path) -> Vec<Control> {
    let Some(folder) = (if path.is_dir() { Some(path) } else { path.parent() }) else { return Vec::new() };
    let parent = folder.canonicalize().ok().and_then(|folder| folder.parent().map(Path::to_path_buf));
    let beside = parent.and_then(|parent| parent.read_dir().ok()).into_iter().flatten();
    let folders = beside.filter_map(|entry| Some(entry.ok()?.path()));
    folders.chain([folder.to_path_buf()]).flat_map(|folder| read(&folder.join(files::CONTROL))).collect()
}

fn read(path: &Path) -> Vec<Control> {
    let document = std::fs::read_to_string(path).ok().and_then(|text| serde_json::from_str::<Document>(&text).ok());
    document.filter(|document| document.version == VERSION).map_or(Vec::new(), |document| document.controls)
}

/// The controls that apply to the run in `path`: its own series, where it is an A/A run itself, and otherwise the controls
/// near it that were made with the engine and the device of one of its series.
pub fn applicable(path: &Path, found: &[Analysed], is_control: bool) -> Vec<Control> {
    if is_control {
        return found.iter().filter_map(|found| Control::of(&found.series)).collect();
    }
    let mut controls: Vec<Control> = Vec::new();
    for control in near(path) {
        if found.iter().any(|found| control.speaks_for(&found.series)) && !controls.contains(&control) {
            controls.push(control);
        }
    }
    controls
}

/// Stores the controls with the run in `folder`; writes nothing if there are none.
///
/// # Errors
/// As [`atomic::write_text`].
pub fn keep(folder: &Path, controls: &[Control]) -> Result<()> {
    if controls.is_empty() {
        return Ok(());
    }
    atomic::write_text(&folder.join(files::CONTROL), &to_json(controls))
}

/// The document of some controls, as `aa.json` holds it.
pub fn to_json(controls: &[Control]) -> String {
    let document = Document { version: VERSION, controls: controls.to_vec() };
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// Jumps in the original run, and labellings with a jump; `None` without blocks, whose visits could be relabelled.
fn alarms(observations: &[Observation], settings: &Settings) -> Option<(usize, u32)> {
    let found = |observations: &[Observation]| detect(observations, settings).jumps.len();
    let mut blocks: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for seen in observations {
        let names = blocks.entry(seen.block?).or_default();
        if !names.contains(&seen.x.to_bits()) {
            names.push(seen.x.to_bits());
        }
    }
    let jumps = found(observations);
    let mut random = Rng::new(settings.seed);
    let mut alarms = u32::from(jumps > 0);
    for _ in 1..LABELLINGS {
        let mut deal: BTreeMap<(u32, u64), f64> = BTreeMap::new();
        for (block, names) in &blocks {
            let mut dealt = names.clone();
            random.shuffle(&mut dealt);
            deal.extend(names.iter().zip(dealt).map(|(name, dealt)| ((*block, *name), f64::from_bits(dealt))));
        }
        let renamed = |seen: &Observation| {
            let x = seen.block.and_then(|block| deal.get(&(block, seen.x.to_bits()))).copied();
            Observation { x: x.unwrap_or(seen.x), ..*seen }
        };
        let relabelled: Vec<Observation> = observations.iter().map(renamed).collect();
        alarms += u32::from(found(&relabelled) > 0);
    }
    Some((jumps, alarms))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An A/A run: `cells` names, 6 blocks of 3 steps, noise of 1 %, and what each name adds.
    fn series(cells: u32, adds: impl Fn(u32) -> f64) -> Series {
        let mut random = Rng::new(3);
        let steps: Vec<f64> = (1..=cells).flat_map(|x| [f64::from(x); 3]).collect();
        let time = |_, x: f64| 0.01 * (1.0 + adds(x as u32)) * (1.0 + 0.01 * random.normal());
        let facts = [("executed_batch_size", "8"), ("engine", "cpu"), ("device_name", "a CPU"), ("run_id", "aa-1")];
        let facts = facts.map(|(name, value)| (name.to_string(), value.to_string())).into();
        Series { source: "aa".into(), facts, ..Series::in_blocks(&[], 6, &steps, time) }
    }

    #[test]
    fn a_quiet_machine_has_few_alarms_and_they_stay_few_where_the_names_differ() {
        let control = Control::of(&series(30, |_| 0.0)).expect("an A/A run");
        assert_eq!((control.executes, control.cells, control.labellings), (8, 30, 200));
        // Stated: 1 %. Three standard deviations of a count of 2 above it are 6.
        assert!(control.alarms <= 6, "{}", control.alarms);
        // Cells that really differ are seen in the run as it was; dealing their visits anew hides it.
        let broken = Control::of(&series(30, |x| if x > 15 { 0.05 } else { 0.0 }));
        assert_eq!(broken.expect("an A/A run").jumps, 1);
    }

    #[test]
    fn a_control_is_found_beside_a_run_and_applies_only_to_its_own_machine() {
        let results = tempfile::tempdir().expect("a folder");
        for name in ["aa", "vgg16"] {
            std::fs::create_dir(results.path().join(name)).expect("a folder");
        }
        let mut control = Control::of(&series(9, |_| 0.0)).expect("an A/A run");
        (control.alarms, control.measured) = (10, 5);
        let newer = Control { alarms: 20, measured: 6, ..control.clone() };
        let foreign = Control { device_name: "another".into(), measured: 7, ..control.clone() };
        let text = to_json(&[newer, control, foreign]);
        std::fs::write(results.path().join("aa").join(files::CONTROL), text).expect("written");
        std::fs::write(results.path().join("vgg16").join(files::CONTROL), "damaged").expect("written");
        let found = near(&results.path().join("vgg16"));
        assert_eq!(found.len(), 3);
        assert_eq!(rate(&found, &series(9, |_| 0.0)), Some(0.1));
        let mut other = series(9, |_| 0.0);
        other.facts.insert("engine".into(), "torch".into());
        other.facts.remove("executed_batch_size");
        assert_eq!(Control::of(&other), None);
        assert_eq!(rate(&found, &other), None);
        let of_run = |series: Series| {
            let found = Analysed { series, findings: crate::detect::Findings::default() };
            applicable(&results.path().join("vgg16"), &[found], false)
        };
        assert_eq!(of_run(series(9, |_| 0.0)).len(), 2, "the control of another device does not apply");
        assert_eq!(of_run(other).len(), 0);
    }
}
