//! Why the jumps: which layers step where the whole step does.

use super::{Block, Column, Document, Table};
use crate::analysis::causes::{Cause, Explanation, LayerStep, SideExecution};
use crate::units::human;

/// Layers of one jump that have a line of their own.
const MOST_LAYERS: usize = 6;
/// Jumps of one series that are explained; the others are in the JSON.
const MOST_JUMPS: usize = 8;

/// The explanations of one series' jumps: those with layers each with its table, the others in a line for all of a kind; empty for none.
pub fn causes(label: &str, explanations: &[Explanation]) -> Document {
    let (shown, bare): (Vec<&Explanation>, Vec<&Explanation>) = explanations.iter().partition(|one| has_table(one));
    let mut document = Document::default();
    shown.iter().take(MOST_JUMPS).for_each(|one| document.append(self::one(label, one)));
    if shown.len() > MOST_JUMPS {
        let more = human::counted((shown.len() - MOST_JUMPS) as u64, "jump");
        document.append(Block::Text(format!("{more} more of {label}: `--format json` has them all")).into());
    }
    // A line for each kind of having nothing to show.
    for kind in [(true, true), (true, false), (false, true), (false, false)] {
        let of_kind: Vec<&&Explanation> =
            bare.iter().filter(|one| (one.together.is_some(), one.timed) == kind).collect();
        match of_kind[..] {
            [] => {}
            [only] => document.append(one(label, only)),
            [first, ..] => {
                let after: Vec<String> = of_kind.iter().map(|one| human::batch_size(one.after)).collect();
                let place = format!("Why {label} jumps after {}", human::listed(&after));
                let nothing = if first.together.is_some() {
                    Block::Heading(format!("{place}: no single layer's step stands out")).into()
                } else {
                    unmeasured(&place, first)
                };
                document.append(nothing);
            }
        }
    }
    document
}

fn has_table(explanation: &Explanation) -> bool {
    match explanation.together {
        Some(_) => explanation.layers.iter().any(|cause| cause.step.is_some()),
        None => !explanation.layers.is_empty(),
    }
}

fn one(label: &str, explanation: &Explanation) -> Document {
    let place = format!("Why {label} jumps after {}", human::batch_size(explanation.after));
    let Some(together) = explanation.together else { return unmeasured(&place, explanation) };
    let stepping: Vec<&Cause> = explanation.layers.iter().filter(|cause| cause.step.is_some()).collect();
    let jump = human::signed(explanation.size_s, "s");
    let all = format!("{place}: all layers together step by {} of {jump}", stepped(together));
    if stepping.is_empty() {
        return Block::Heading(format!("{all}; no single layer's step stands out")).into();
    }
    table(all, &stepping, true)
}

/// Where the layers' steps are not known: what changes there nevertheless.
fn unmeasured(place: &str, explanation: &Explanation) -> Document {
    let timing = match explanation.timed {
        true => "too few batch sizes lie beside it to measure the layers' steps",
        false => "`layers = true` in [measure] would measure the layers' times",
    };
    if explanation.layers.is_empty() {
        return Block::Heading(format!("{place}: no layer changes its algorithm there; {timing}")).into();
    }
    let layers: Vec<&Cause> = explanation.layers.iter().collect();
    table(format!("{place}: what changes there; {timing}"), &layers, false)
}

/// The first layers in a table, with their steps if these are `measured`, and how many layers have no line of their own.
fn table(heading: String, layers: &[&Cause], measured: bool) -> Document {
    let waved = layers.iter().any(|cause| !waves(cause).is_empty());
    let [layer, direction, step, algorithm_of, waves_of] =
        ["layer", "direction", "step", "algorithm", "waves"].map(Column::left);
    let mut table = Table::new([layer, direction, step, Column::right("of the jump"), algorithm_of, waves_of]);
    for cause in layers.iter().take(MOST_LAYERS) {
        let [step, share] =
            cause.step.map(|step| [stepped(step), format!("{:.0} %", 100.0 * step.share)]).unwrap_or_default();
        table.row([cause.layer.clone(), cause.direction.clone(), step, share, algorithm(cause), waves(cause)]);
    }
    table.keep(|heading| match heading {
        "step" | "of the jump" => measured,
        "waves" => waved,
        _ => true,
    });
    let mut document = Document::of_table(heading, table);
    if layers.len() > MOST_LAYERS {
        document.text(format!("and {} more", human::counted((layers.len() - MOST_LAYERS) as u64, "layer")));
    }
    document
}

/// With its standard error.
fn stepped(step: LayerStep) -> String {
    human::with_error(step.size_s, step.standard_error_s, "s")
}

fn algorithm(cause: &Cause) -> String {
    let name = |side: &SideExecution| side.algorithm.clone().unwrap_or_else(|| "unknown".to_owned());
    match cause.changes_algorithm() {
        true => format!("{} -> {}", name(&cause.before), name(&cause.behind)),
        false => format!("{}, the same", name(&cause.before)),
    }
}

fn waves(cause: &Cause) -> String {
    match (cause.before.waves, cause.behind.waves) {
        (Some(before), Some(behind)) => format!("{before:.2} -> {behind:.2}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Style;

    fn cause(layer: &str, size_s: Option<f64>, algorithms: [&str; 2], waves: Option<[f64; 2]>) -> Cause {
        let side = |at: usize| SideExecution {
            algorithm: Some(algorithms[at].into()),
            kernel: None,
            waves: waves.map(|both| both[at]),
        };
        let step = size_s.map(|size_s| LayerStep { size_s, standard_error_s: 2e-5, share: size_s / 5e-3 });
        Cause { layer: layer.into(), direction: "forward".into(), step, before: side(0), behind: side(1) }
    }

    #[test]
    fn jumps_without_a_layer_share_a_line() {
        let bare = |after: f64| Explanation {
            after,
            next: after + 1.0,
            size_s: 5e-3,
            layers: Vec::new(),
            timed: false,
            together: None,
        };
        let text = causes("mlp", &[bare(6.0), bare(12.0), bare(18.0)]).render(&Style::PLAIN);
        assert_eq!(text.matches("Why mlp").count(), 1, "{text}");
        assert!(text.starts_with("Why mlp jumps after 6, 12 and 18: no layer changes its algorithm there"), "{text}");
    }

    #[test]
    fn each_layer_has_its_step_its_share_and_its_changes() {
        let layers = vec![
            cause("block1_conv2", Some(3e-3), ["graph:eng58"; 2], Some([1.94, 2.06])),
            cause("block2_conv1", Some(1e-3), ["graph:eng28", "graph:eng30"], None),
            cause("block2_conv2", None, ["graph:eng28", "graph:eng30"], None),
        ];
        let together = Some(LayerStep { size_s: 4.5e-3, standard_error_s: 1e-4, share: 0.9 });
        let explanation = Explanation { after: 32.0, next: 33.0, size_s: 5e-3, layers, timed: true, together };
        let text = causes("vgg16", &[explanation]).render(&Style::PLAIN);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(lines[0], "Why vgg16 jumps after 32: all layers together step by +4.50 ± 0.10 ms of +5.00 ms");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(lines[3]), "block1_conv2 forward +3.000 ± 0.020 ms 60 % graph:eng58, the same 1.94 -> 2.06");
        assert_eq!(words(lines[4]), "block2_conv1 forward +1.000 ± 0.020 ms 20 % graph:eng28 -> graph:eng30");
        // A change of algorithm that costs nothing is not a cause.
        assert_eq!(lines.len(), 5, "{text}");
    }

    #[test]
    fn untimed_layers_are_listed_by_their_changes() {
        let layers = vec![cause("conv", None, ["graph:eng28", "graph:eng30"], None)];
        let explanation = Explanation { after: 16.0, next: 17.0, size_s: 5e-3, layers, timed: false, together: None };
        let text = causes("vgg16", std::slice::from_ref(&explanation)).render(&Style::PLAIN);
        assert!(text.contains("what changes there") && text.contains("graph:eng28 -> graph:eng30"), "{text}");
        let few = Explanation { timed: true, ..explanation.clone() };
        let text = causes("vgg16", &[few]).render(&Style::PLAIN);
        assert!(text.contains("too few batch sizes") && !text.contains("layers = true"), "{text}");
        let text = causes("vgg16", &[Explanation { layers: Vec::new(), ..explanation }]).render(&Style::PLAIN);
        assert!(text.contains("no layer changes its algorithm there") && text.contains("layers = true"), "{text}");
        assert_eq!(causes("vgg16", &[]).render(&Style::PLAIN), "");
    }
}
