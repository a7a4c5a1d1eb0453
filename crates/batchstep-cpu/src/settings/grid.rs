//! The product of the axes.

use std::collections::{BTreeMap, BTreeSet};

use super::{AXES, Axis, EngineName, Settings, Value};

/// The values that an experiment gives to its axes; an axis that it does not name has only its default.
#[derive(Clone, Debug)]
pub struct Grid {
    values: BTreeMap<&'static str, Vec<Value>>,
    /// The axes that the experiment names.
    named: BTreeSet<&'static str>,
    /// Values that one engine lacks on this machine while others have them.
    lacking: Vec<(EngineName, &'static str, Value)>,
}

impl Default for Grid {
    fn default() -> Self {
        let values = AXES.iter().map(|axis| (axis.key, vec![axis.default_value()])).collect();
        Self { values, named: BTreeSet::new(), lacking: Vec::new() }
    }
}

/// Two grids of the same values make the same cells, whether a default was named or not.
impl PartialEq for Grid {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values && self.lacking == other.lacking
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

    /// Whether an engine can run all of it: it has every axis of which the experiment asks for more than the default. A stored spec names the
    /// defaults too.
    pub fn is_of(&self, engine: EngineName) -> bool {
        AXES.iter().all(|axis| axis.is_of(engine) || *self.values(axis) == [axis.default_value()])
    }

    pub fn values(&self, axis: &Axis) -> &[Value] {
        self.values.get(axis.key).map_or(&[], Vec::as_slice)
    }

    /// Leaves out the cells of one engine with this value.
    pub fn leave_out(&mut self, engine: EngineName, axis: &Axis, value: Value) {
        self.lacking.push((engine, axis.key, value));
    }

    /// The values of an axis for one engine; only the default if the engine does not have the axis.
    fn values_of(&self, engine: EngineName, axis: &Axis) -> Vec<Value> {
        if !axis.is_of(engine) {
            return vec![axis.default_value()];
        }
        let lacks = |value: &&Value| self.lacking.contains(&(engine, axis.key, **value));
        self.values(axis).iter().filter(|value| !lacks(value)).copied().collect()
    }

    /// The settings of one engine's cells, the last axis innermost: the product of the axes that it has, and the values of
    /// `common` for everything that is not an axis.
    pub fn settings(&self, engine: EngineName, common: &Settings) -> Vec<Settings> {
        let mut all = vec![common.clone()];
        for axis in &AXES {
            let values = self.values_of(engine, axis);
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
        let lengths = AXES.iter().map(|axis| self.values_of(engine, axis).len());
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
    use super::super::{Domain, Layout, Text};
    use super::*;

    fn axis(key: &str) -> &'static Axis {
        AXES.iter().find(|axis| axis.key == key).expect("an axis")
    }

    #[test]
    fn defaults_that_are_named_ask_for_no_other_engine() {
        let mut grid = Grid::default();
        grid.set(axis("winograd"), vec![axis("winograd").default_value()]);
        grid.set(axis("compile"), vec![Value::Name("default")]);
        assert!(grid.is_of(EngineName::Torch) && !grid.is_of(EngineName::Cudnn));
        grid.set(axis("winograd"), vec![Value::Name("never")]);
        assert!(!grid.is_of(EngineName::Torch));
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
    fn a_value_that_one_engine_lacks_is_left_out_only_of_its_cells() {
        let mut grid = Grid::default();
        let [nchw, nhwc] = ["nchw", "nhwc"].map(Value::Name);
        grid.set(axis("layout"), vec![nchw, nhwc]);
        grid.leave_out(EngineName::Cpu, axis("layout"), nhwc);
        assert_eq!((grid.count(EngineName::Cpu), grid.count(EngineName::Torch)), (1, 2));
        let cells = grid.settings(EngineName::Cpu, &Settings::default());
        assert_eq!(cells.iter().map(|cell| cell.layout).collect::<Vec<_>>(), [Layout::Nchw]);
    }

    #[test]
    fn every_axis_sets_its_value_and_does_not_change_others() {
        for axis in &AXES {
            let mut settings = Settings::default();
            assert!(["train", "engine", "sweep"].contains(&axis.table) && axis.meaning.ends_with('.'));
            assert!((axis.default_value() != Value::Unset) == axis.unset.is_empty(), "{}", axis.key);
            (axis.set)(&mut settings, Value::Name("no value of any axis"));
            assert_eq!(settings, Settings::default(), "{}", axis.key);
            let other = match axis.domain {
                Domain::Names(names) => Value::Name(names[names.len() - 1]),
                Domain::Count { high, .. } => Value::Count(high),
                Domain::Bytes => Value::Bytes(7),
                Domain::Text => Value::Text(Text::new("{\"a\":1}")),
            };
            (axis.set)(&mut settings, other);
            assert_eq!((axis.get)(&settings), other, "{}", axis.key);
        }
    }
}
