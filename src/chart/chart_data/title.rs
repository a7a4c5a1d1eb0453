//! What a chart says first: what was measured, and where.

use std::path::Path;

use super::{executed, shared};
use crate::analysis::{Analysed, distinct};
use crate::foreign;

/// Models that a title names; of more it says how many there are.
const NAMED: usize = 4;

/// `Step time of vgg16 on NVIDIA H200`; for a table of another program, which has no models of ours, the name of its file.
pub(super) fn of(what: &str, source: &Path, found: &[Analysed]) -> String {
    match (subject(found), executed(found)) {
        (Some(subject), None) => format!("{what} of {subject}"),
        (Some(subject), Some(executed)) => {
            format!("A/A control: every cell runs batch size {executed} of {subject}")
        }
        (None, Some(executed)) => format!("{} (A/A control: every cell runs batch size {executed})", stem(source)),
        (None, None) => stem(source),
    }
}

/// The name of the run directory or the file.
fn stem(source: &Path) -> String {
    let name =
        source.file_stem().map_or_else(|| source.display().to_string(), |name| name.to_string_lossy().into_owned());
    foreign::name(&name)
}

/// The models, in their order, and the device where there is only one.
fn subject(found: &[Analysed]) -> Option<String> {
    let model = |Analysed { series, .. }: &Analysed| {
        series.facts.get("device")?;
        series.value("model").map(foreign::name)
    };
    let models: Vec<String> = found.iter().map(model).collect::<Option<_>>()?;
    let models = distinct(models.into_iter());
    let models = match models.len() {
        0 => return None,
        1..=NAMED => models.join(", "),
        many => format!("{many} models"),
    };
    Some(match shared(found, "device_name") {
        Some(device) => format!("{models} on {}", foreign::name(&device)),
        None => models,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::on_device;
    use super::*;
    use crate::analysis::Series;
    use crate::detect::Findings;

    fn measured(model: &str, device: &str) -> Analysed {
        let series = on_device(&[("model", model)], device);
        Analysed { series, findings: Findings::default() }
    }

    #[test]
    fn a_run_is_called_by_its_models_and_its_device_and_a_table_by_its_file() {
        let of = |found: &[Analysed]| of("Step time", Path::new("results/mine.csv"), found);
        let a = || measured("vgg16", "Tesla T4");
        assert_eq!(of(&[a()]), "Step time of vgg16 on Tesla T4");
        assert_eq!(of(&[a(), a(), measured("resnet50", "Tesla T4")]), "Step time of vgg16, resnet50 on Tesla T4");
        assert_eq!(of(&[a(), measured("vgg16", "NVIDIA H200")]), "Step time of vgg16");
        let many: Vec<_> = (0..5).map(|n| measured(&format!("net{n}"), "Tesla T4")).collect();
        assert_eq!(of(&many), "Step time of 5 models on Tesla T4");
        let theirs = Analysed { series: Series { facts: [].into(), ..a().series }, findings: Findings::default() };
        assert_eq!(of(&[theirs]), "mine");
        assert_eq!(of(&[]), "mine");
    }
}
