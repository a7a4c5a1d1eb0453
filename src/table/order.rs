//! A table put in order before its columns are looked at.

use super::cell::{is_missing, is_number};
use super::grid::Grid;
use super::layout::Record;
use super::{Hints, pattern, wide};

impl Grid {
    /// Moves units from a separate column behind the values, sizes from headers into rows, and numbers from names into columns.
    pub fn in_order(mut self) -> Self {
        self.fill_down();
        self.join_units();
        self.name_units();
        self.drop_aggregates();
        self.per_iteration();
        self.name_llama();
        wide::melt(&mut self);
        pattern::derive(&mut self);
        self
    }

    /// Copies a text down to the empty rows below it: merged cells are written only in their first row.
    fn fill_down(&mut self) {
        for column in 0..self.names.len() {
            let is_text = !self.cells(column).any(is_number);
            let is_merged = self.cells(column).next().is_some_and(|first| !is_missing(first));
            // A text that is written twice in a row is not merged: an empty cell beside it is a value of its own.
            let cells: Vec<&str> = self.cells(column).collect();
            let is_repeated = cells.windows(2).any(|pair| !pair[0].is_empty() && pair[0] == pair[1]);
            if !is_text || !is_merged || is_repeated || !cells.contains(&"") {
                continue;
            }
            let mut last = String::new();
            for field in self.rows.iter_mut().filter_map(|row| row.fields.get_mut(column)) {
                match field.is_empty() {
                    true => field.clone_from(&last),
                    false => last.clone_from(field),
                }
            }
        }
    }

    /// JMH and criterion write the unit of a score in a column beside it.
    fn join_units(&mut self) {
        const UNITS: &[&str] = &["unit", "units", "time_unit", "score unit", "scoreunit"];
        const VALUES: &[&str] = &["sample_measured_value", "score", "real_time", "value", "mean", "time", "measured"];
        let column = |name: &&str| self.names.iter().position(|own| own.to_lowercase() == **name);
        let find = |names: &[&str]| names.iter().find_map(column);
        let (Some(unit), Some(value)) = (find(UNITS), find(VALUES)) else { return };
        for row in &mut self.rows {
            let unit = row.fields.get(unit).cloned().unwrap_or_default();
            if let Some(value) = row.fields.get_mut(value).filter(|value| is_number(value) && !unit.is_empty()) {
                value.push_str(&format!(" {unit}"));
            }
        }
    }

    /// pytest-benchmark writes the unit in the name of another column, `Name (time in us)`.
    fn name_units(&mut self) {
        const TIMES: &[&str] = &["Min", "Max", "Mean", "StdDev", "Median", "IQR"];
        let unit = |name: &String| Some(name.split_once(" (time in ")?.1.strip_suffix(')')?.to_string());
        let Some((at, unit)) = self.names.iter().enumerate().find_map(|(at, name)| Some((at, unit(name)?))) else {
            return;
        };
        self.names[at] = "Name".to_string();
        for name in self.names.iter_mut().filter(|name| TIMES.contains(&&name[..])) {
            name.push_str(&format!(" ({unit})"));
        }
    }

    /// Google Benchmark prints means and complexities below the repetitions that they are of.
    fn drop_aggregates(&mut self) {
        const AGGREGATES: &[&str] = &["_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS", "_max", "_min"];
        let name = self.column("Benchmark").filter(|_| self.column("CPU").is_some());
        let Some(name) = name.or(self.column("name").filter(|_| self.column("real_time").is_some())) else { return };
        let is_aggregate =
            |row: &Record| row.fields.get(name).is_some_and(|own| AGGREGATES.iter().any(|end| own.ends_with(end)));
        // Where only they were written, the means.
        let is_mean = |row: &Record| row.fields.get(name).is_some_and(|own| own.ends_with("_mean"));
        match self.rows.iter().all(is_aggregate) {
            true => self.rows.retain(is_mean),
            false => self.rows.retain(|row| !is_aggregate(row)),
        }
    }

    /// criterion's raw.csv has the time of many iterations in a row; hyperfine's CSV does not say that its times are seconds.
    fn per_iteration(&mut self) {
        if let (Some(time), Some(count), Some(size)) =
            (self.column("sample_measured_value"), self.column("iteration_count"), self.column("value"))
        {
            for row in &mut self.rows {
                let Some((number, unit)) = row.fields[time].split_once(' ') else { continue };
                let (Ok(number), Ok(count)) = (number.parse::<f64>(), row.fields[count].parse::<f64>()) else {
                    continue;
                };
                row.fields[time] = format!("{} {unit}", number / count);
            }
            (self.names[time], self.names[size]) = ("time".to_string(), "size".to_string());
            self.hints = Hints { x: &["size", "function (number)", "group (number)"], y: &["time"] };
        }
        let is_hyperfine =
            ["command", "mean", "stddev", "median", "user", "system"].iter().all(|name| self.column(name).is_some());
        if let Some(mean) = self.column("mean").filter(|_| is_hyperfine) {
            self.names[mean] = "mean_s".to_string();
        }
    }

    /// llama-bench names its tests `pp512`, `tg128`, and with a depth `pp512 @ d4096`, which it leaves out where it is 0.
    fn name_llama(&mut self) {
        let (Some(test), Some(_)) = (self.column("test"), self.column("t/s")) else { return };
        self.hints = Hints { x: &["test (number)"], y: &["t/s"] };
        if self.cells(test).any(|cell| cell.contains(" @ d")) {
            let bare = |cell: &&mut String| !cell.contains(" @ d");
            self.rows
                .iter_mut()
                .filter_map(|row| row.fields.get_mut(test))
                .filter(bare)
                .for_each(|cell| cell.push_str(" @ d0"));
        }
    }
}
