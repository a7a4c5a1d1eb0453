//! What distinguishes the series of a study.

use crate::settings::AXES;
use crate::store::AxisValues;

/// The columns of a row that may tell its series from another.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub engine: &'a str,
    pub device: &'a str,
    pub model: &'a str,
    pub axes: AxisValues,
}

/// What differs between the rows of a study.
pub struct Varied {
    pub engine: bool,
    device: bool,
    model: bool,
    /// Places of axes.
    axes: Vec<usize>,
}

impl Varied {
    pub fn of<'a>(rows: impl Iterator<Item = Origin<'a>> + Clone) -> Self {
        let first = rows.clone().next();
        let any = |differs: &dyn Fn(&Origin, &Origin) -> bool| {
            first.is_some_and(|first| rows.clone().any(|row| differs(&first, &row)))
        };
        let differs = |place: &usize| {
            // An axis that an engine does not have makes no difference between cells of that engine.
            let of_engine = |row: &Origin| rows.clone().find(|other| other.engine == row.engine);
            rows.clone().any(|row| of_engine(&row).is_some_and(|other| other.axes.get(*place) != row.axes.get(*place)))
        };
        Self {
            engine: any(&|a, b| a.engine != b.engine),
            device: any(&|a, b| a.device != b.device),
            model: any(&|a, b| a.model != b.model),
            axes: (0..AXES.len()).filter(differs).collect(),
        }
    }

    /// The name of a row's series: `torch, threads 1`. `engine`: whether it begins with the engine.
    pub fn name(&self, row: Origin, engine: bool) -> String {
        let mut parts = Vec::new();
        parts.extend(engine.then(|| row.engine.to_owned()));
        parts.extend(self.device.then(|| row.device.to_owned()));
        parts.extend(self.model.then(|| row.model.to_owned()));
        for &place in &self.axes {
            let value = row.axes.get(place).map(|value| value.to_string()).unwrap_or_default();
            parts.extend(AXES[place].annotation(&value));
        }
        parts.join(", ")
    }
}
