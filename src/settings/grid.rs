//! The product of the axes.

use std::collections::{BTreeMap, BTreeSet};

use super::{AXES, Axis, EngineName, Settings, Value};

/// The values that an experiment gives to its axes; one that it does not name has its default alone.
#[derive(Clone, Debug)]
pub struct Grid {
    values: BTreeMap<&'static str, Vec<Value>>,
    /// The axes that the experiment names.
    named: BTreeSet<&'static str>,
}

impl Default for Grid {
    fn default() -> Self {
        let values = AXES.iter().map(|axis| (axis.key, vec![axis.default_value()])).collect();
        Self { values, named: BTreeSet::new() }
    }
}

/// Two grids of the same values make the same cells, whether a default was named or not.
impl PartialEq for Grid {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Grid {
    /// Gives an axis its values; there is at least one.
    pub fn set(&mut self, axis: &Axis, values: Vec<Value>) {
        self.values.insert(axis.key, values);
        self.named.insert(axis.key);
    }

    /// Whether the experiment names this axis; if not, its value is the default.
    pub fn is_named(&self, axis: &Axis) -> bool {
        self.named.contains(axis.key)
    }

    pub fn values(&self, axis: &Axis) -> &[Value] {
        self.values.get(axis.key).map_or(&[], Vec::as_slice)
    }

    /// The settings of one engine's cells, the last axis innermost: the product of the axes that it has, and the values of
    /// `common` for all that is no axis.
    pub fn settings(&self, engine: EngineName, common: &Settings) -> Vec<Settings> {
        let mut all = vec![common.clone()];
        for axis in &AXES {
            let default = [axis.default_value()];
            let values = if axis.is_of(engine) { self.values(axis) } else { &default };
            let with = |settings: &Settings, value| {
                let mut settings = settings.clone();
                (axis.set)(&mut settings, value);
                settings
            };
            all = all.iter().flat_map(|settings| values.iter().map(|&value| with(settings, value))).collect();
        }
        all
    }

    /// How many settings [`Grid::settings`] gives.
    pub fn count(&self, engine: EngineName) -> usize {
        let lengths = AXES.iter().filter(|axis| axis.is_of(engine)).map(|axis| self.values(axis).len());
        lengths.fold(1, usize::saturating_mul)
    }
}

impl Settings {
    /// These settings, with the default for every axis that `engine` does not have.
    pub fn of(&self, engine: EngineName) -> Self {
        let mut settings = self.clone();
        for axis in AXES.iter().filter(|axis| !axis.is_of(engine)) {
            (axis.set)(&mut settings, axis.default_value());
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(key: &str) -> &'static Axis {
        AXES.iter().find(|axis| axis.key == key).expect("an axis")
    }

    #[test]
    fn an_axis_of_one_engine_makes_no_cells_of_the_others_twice() {
        let mut grid = Grid::default();
        grid.set(axis("compile"), vec![Value::Name("none"), Value::Name("default")]);
        grid.set(axis("threads"), vec![Value::Count(1), Value::Count(2), Value::Unset]);
        for (engine, count) in [(EngineName::Torch, 6), (EngineName::Cpu, 3), (EngineName::Auto, 3)] {
            assert_eq!(grid.count(engine), count);
            let all = grid.settings(engine, &Settings::default());
            assert_eq!(all.len(), count);
            assert!(all.iter().enumerate().all(|(i, settings)| !all[..i].contains(settings)));
        }
    }

    #[test]
    fn every_axis_sets_what_it_gets_and_leaves_values_of_others_alone() {
        for axis in &AXES {
            let mut settings = Settings::default();
            assert!(["train", "engine"].contains(&axis.table) && axis.meaning.ends_with('.'));
            assert!((axis.default_value() != Value::Unset) == axis.unset.is_empty(), "{}", axis.key);
            (axis.set)(&mut settings, Value::Name("no value of any axis"));
            assert_eq!(settings, Settings::default(), "{}", axis.key);
            let other = match axis.domain {
                super::super::Domain::Names(names) => Value::Name(names[names.len() - 1]),
                super::super::Domain::Count { high, .. } => Value::Count(high),
                super::super::Domain::Bytes => Value::Bytes(7),
            };
            (axis.set)(&mut settings, other);
            assert_eq!((axis.get)(&settings), other, "{}", axis.key);
        }
    }
}
