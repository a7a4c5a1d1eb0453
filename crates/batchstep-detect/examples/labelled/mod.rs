//! Measured curves of others with labels by eye (`tests/fixtures/curves`), and a detector's findings compared with them.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use batchstep_detect::{Findings, Observation};

/// A curve and what an eye saw in it.
pub struct Curve {
    pub name: String,
    pub number: u32,
    pub observations: Vec<Observation>,
    /// The last x before each unmistakable jump, and whether y rises.
    pub jumps: Vec<(f64, bool)>,
    /// Places that count either way.
    pub doubtful: Vec<f64>,
    /// The number whose multiples differ.
    pub pattern: Option<f64>,
}

/// Curves with an even number judge the detector, and are seen in sums only.
impl Curve {
    pub fn is_held_out(&self) -> bool {
        self.number.is_multiple_of(2)
    }
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/curves")
}

/// All curves, by number.
pub fn read(folder: &Path) -> Result<Vec<Curve>, Box<dyn Error>> {
    let labels = std::fs::read_to_string(folder.join("labels.csv"))?;
    let mut files: HashMap<&str, HashMap<String, Vec<Observation>>> = HashMap::new();
    let mut curves = Vec::new();
    for line in labels.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [name, number, file, _, _, jumps, doubtful, pattern] = cells[..] else {
            return Err(format!("eight columns expected: {line}").into());
        };
        if !files.contains_key(file) {
            files.insert(file, values(&folder.join(file).with_extension("csv"))?);
        }
        let observations = files.get_mut(file).and_then(|curves| curves.remove(name));
        curves.push(Curve {
            name: name.to_owned(),
            number: number.parse()?,
            observations: observations.ok_or_else(|| format!("{file} has no {name}"))?,
            jumps: jumps.split_whitespace().map(jump).collect::<Result<_, _>>()?,
            doubtful: doubtful.split_whitespace().map(str::parse).collect::<Result<_, _>>()?,
            pattern: Some(pattern).filter(|p| !p.is_empty()).map(str::parse).transpose()?,
        });
    }
    Ok(curves)
}

fn jump(cell: &str) -> Result<(f64, bool), Box<dyn Error>> {
    let (after, sign) = cell.split_once(':').ok_or_else(|| format!("x:+ or x:- expected: {cell}"))?;
    Ok((after.parse()?, sign == "+"))
}

fn values(path: &Path) -> Result<HashMap<String, Vec<Observation>>, Box<dyn Error>> {
    let mut curves: HashMap<String, Vec<Observation>> = HashMap::new();
    for line in std::fs::read_to_string(path)?.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [curve, x, y] = cells[..] else { return Err(format!("three columns expected: {line}").into()) };
        curves.entry(curve.to_owned()).or_default().push(Observation::new(x.parse()?, y.parse()?));
    }
    Ok(curves)
}

/// What the detector said of one curve.
#[derive(Default)]
pub struct Judged {
    /// Labelled jumps, found at their place and with their sign.
    pub hits: Vec<f64>,
    /// Labelled jumps that were found one x beside, and not at their place.
    pub near: Vec<f64>,
    /// Labelled jumps whose place was found with the other sign.
    pub wrong: Vec<f64>,
    pub missed: Vec<f64>,
    /// Findings at a doubtful place.
    pub doubtful: Vec<f64>,
    /// All other findings.
    pub extra: Vec<f64>,
}

pub fn judge(curve: &Curve, findings: &Findings) -> Judged {
    let mut judged = Judged::default();
    let place = |x: f64| findings.points.iter().position(|p| p.x == x);
    let mut used = vec![false; findings.jumps.len()];
    let mut open = Vec::new();
    for &(after, up) in &curve.jumps {
        match findings.jumps.iter().position(|j| j.after == after) {
            Some(k) => {
                used[k] = true;
                if (findings.jumps[k].size > 0.0) == up { judged.hits.push(after) } else { judged.wrong.push(after) }
            }
            None => open.push((after, up)),
        }
    }
    for (after, up) in open {
        let beside = |x: f64| place(x).zip(place(after)).is_some_and(|(a, b)| a.abs_diff(b) == 1);
        let found = (0..used.len()).find(|&k| {
            let jump = &findings.jumps[k];
            !used[k] && (jump.size > 0.0) == up && beside(jump.after)
        });
        match found {
            Some(k) => {
                used[k] = true;
                judged.near.push(after);
            }
            None => judged.missed.push(after),
        }
    }
    for (jump, _) in findings.jumps.iter().zip(used).filter(|(_, used)| !used) {
        let is_doubtful = curve.doubtful.contains(&jump.after);
        if is_doubtful { judged.doubtful.push(jump.after) } else { judged.extra.push(jump.after) }
    }
    judged
}

/// Sums over curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub curves: usize,
    pub labelled: usize,
    pub hits: usize,
    pub near: usize,
    pub wrong: usize,
    pub missed: usize,
    pub doubtful: usize,
    pub extra: usize,
    pub smooth: usize,
    /// Smooth curves with a finding at a place that is not doubtful.
    pub alarmed: usize,
    /// Findings at such places of smooth curves.
    pub alarms: usize,
    /// Curves with a pattern, those of them whose pattern was found, and patterns that no label has.
    pub patterns: usize,
    pub patterns_found: usize,
    pub patterns_extra: usize,
}

impl Sums {
    /// Adds what was said of one curve.
    pub fn take(&mut self, curve: &Curve, findings: &Findings, judged: &Judged) {
        let found = |pattern: f64| findings.multiples.iter().any(|m| m.of == pattern);
        self.curves += 1;
        self.labelled += curve.jumps.len();
        self.hits += judged.hits.len();
        self.near += judged.near.len();
        self.wrong += judged.wrong.len();
        self.missed += judged.missed.len();
        self.doubtful += judged.doubtful.len();
        self.extra += judged.extra.len();
        if curve.jumps.is_empty() {
            self.smooth += 1;
            self.alarmed += usize::from(!judged.extra.is_empty());
            self.alarms += judged.extra.len();
        }
        self.patterns += usize::from(curve.pattern.is_some());
        self.patterns_found += usize::from(curve.pattern.is_some_and(found));
        self.patterns_extra += findings.multiples.iter().filter(|m| Some(m.of) != curve.pattern).count();
    }
}
