//! What a run will do, before it does it.

use super::Style;
use super::style::Look;
use crate::settings::own::OwnSteps;
use crate::settings::{AXES, Axis};
use crate::spec::plan::Plan;
use crate::spec::{Decide, Experiment, Order, StepsPerVisit};
use crate::units::human;

/// Each axis with more than one value; the models and the sizes always.
fn axes(experiment: &Experiment) -> Vec<(String, String)> {
    let mut axes = vec![("model".to_string(), human::listed(&experiment.model.names))];
    let engines = experiment.engine.name.iter().map(ToString::to_string).collect();
    let values = |axis: &Axis| experiment.grid.values(axis).iter().map(|&value| axis.value_label(value)).collect();
    let lists = AXES.iter().map(|axis| (axis.label(), values(axis)));
    let varied = std::iter::once(("engine".to_string(), engines)).chain(lists);
    axes.extend(varied.filter(|(_, v): &(String, Vec<String>)| v.len() > 1).map(|(name, v)| (name, human::listed(&v))));
    let mut sizes = sizes(&experiment.batch_sizes);
    if let Some(executed) = experiment.executes {
        sizes.push_str(&format!("; A/A control: every cell executes {executed}"));
    }
    let x = match experiment.x() {
        OwnSteps::BATCH_SIZE => "batch size",
        other => other,
    };
    axes.push((x.to_string(), sizes));
    axes
}

/// `1 to 70`, `1 to 505 in steps of 8`, `64, 128 and 256`.
fn sizes(values: &[usize]) -> String {
    let step = values.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect::<Vec<_>>();
    match (values, &step[..]) {
        ([first, .., last], [step, rest @ ..]) if !rest.is_empty() && rest.iter().all(|s| s == step) => {
            let stride = if *step == 1 { String::new() } else { format!(" in steps of {step}") };
            format!("{first} to {last}{stride}")
        }
        _ => human::listed(&values.iter().map(ToString::to_string).collect::<Vec<_>>()),
    }
}

/// The plan of `experiment` for a terminal, each line with its end.
pub fn plan_summary(experiment: &Experiment, plan: &Plan, style: &Style) -> String {
    let measure = &experiment.measure;
    // On average, where the run decides on jumps.
    let (least, most) = (measure.complete_blocks(), measure.blocks.max);
    let blocks = if least == most { human::counted(most as u64, "block") } else { format!("{least} to {most} blocks") };
    let visit = visit_length(measure.steps_per_visit, plan.cells.len(), (least, most));
    let mut lines = axes(experiment);
    let mut add = |name: &str, text: String| lines.push((name.to_string(), text));
    let adapts = least < most && measure.decide == Decide::Jumps;
    let cells = human::count(plan.cells.len() as u64);
    if adapts {
        let first = human::counted(least as u64, "block");
        let later = "later ones only those beside undecided boundaries, each in a fresh random order";
        add("cells", format!("{cells}; the first {first} visit all, {later}"));
        add("visits", format!("{least} to {most} per cell on average, each of {visit}"));
    } else {
        let order = match measure.order {
            Order::Random => "in a fresh random order",
            Order::Ascending => "in ascending order",
        };
        add("cells", format!("{cells}, each visited once in each block, {order}"));
        add("blocks", format!("{blocks}, each visit of {visit}"));
    }
    let limit = human::duration(measure.time_limit_s);
    if least < most {
        let jump = human::limit(measure.smallest_jump);
        let stops = if adapts {
            format!(
                "when jumps of {jump} or more are shown or ruled out at every boundary, at the latest after {limit}"
            )
        } else {
            format!("a cell when a jump of {jump} would show; all after {limit}")
        };
        add("stops", stops);
    } else {
        add("stops", format!("after {limit} at the latest"));
    }
    add("seed", plan.seed.to_string());
    let mut text = format!("{}\n", style.paint(&format!("Plan of {}", experiment.name), Look::Bold));
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default() + 1;
    for (name, value) in lines {
        let line = style.wrap(&format!("  {name:<width$}{value}"), 2 + width);
        text.push_str(&line.replacen(&name, &style.paint(&name, Look::Faint), 1));
        text.push('\n');
    }
    text
}

/// `5 steps after warm-up: 5,600 to 42,000 steps`.
fn visit_length(steps_per_visit: StepsPerVisit, cells: usize, (least, most): (usize, usize)) -> String {
    match steps_per_visit {
        StepsPerVisit::Auto => {
            let first = human::counted(StepsPerVisit::FIRST as u64, "step");
            format!("{first} after warm-up in the first block, then of as many as its noise asks for")
        }
        StepsPerVisit::Fixed(steps) => {
            let total = |blocks: usize| human::count((cells * blocks * steps) as u64);
            let total = if least == most { total(most) } else { format!("{} to {}", total(least), total(most)) };
            format!("{} after warm-up: {total} steps", human::counted(steps as u64, "step"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Measure;

    /// The summary of four networks at 70 batch sizes, 280 cells in 3 to 30 blocks.
    fn summary(of_engine: &str, change: fn(&mut Measure)) -> String {
        let spec = format!(
            "version = 1\nname = \"vgg16\"\n[model]\nname = [\"vgg16\", \"vgg19\", \"mobilenet\", \"resnet50\"]\n\
             [sweep]\nbatch_size = \"1..=70\"\n[engine]\nname = \"cpu\"\n{of_engine}"
        );
        let mut experiment = Experiment::parse(&spec, "a.toml").expect("valid");
        let measure = &mut experiment.measure;
        (measure.decide, measure.steps_per_visit) = (Decide::Cells, StepsPerVisit::Fixed(5));
        change(measure);
        plan_summary(&experiment, &Plan::new(&experiment).expect("a plan"), &Style::PLAIN)
    }

    #[test]
    fn the_plan_says_how_much_and_when_it_stops() {
        // 280 cells x 5 steps x 3 blocks = 4,200; x 30 blocks = 42,000.
        let expected = "\
Plan of vgg16
  model      vgg16, vgg19, mobilenet and resnet50
  batch size 1 to 70
  cells      280, each visited once in each block, in a fresh random order
  blocks     3 to 30 blocks, each visit of 5 steps after warm-up: 4,200 to 42,000 steps
  stops      a cell when a jump of 1 % would show; all after 30 min 00 s
  seed       1
";
        assert_eq!(summary("", |_| {}), expected);
        type Change = fn(&mut Measure);
        let cases: [(&str, Change, &str); 6] = [
            (
                "",
                |measure| measure.decide = Decide::Jumps,
                "stops      when jumps of 1 % or more are shown or ruled out at every boundary, at the latest after 30 min 00 s\n",
            ),
            (
                "",
                |measure| (measure.decide, measure.steps_per_visit) = (Decide::Jumps, StepsPerVisit::Auto),
                "visits     4 to 30 per cell on average, each of 5 steps after warm-up in the first block, then of as many as its noise asks for\n",
            ),
            (
                "batch_padding = [1, 16]\n",
                |_| {},
                "  batch padding 1 and 16\n  batch size    1 to 70\n  cells         560, each",
            ),
            (
                "",
                |measure| measure.order = Order::Ascending,
                "280, each visited once in each block, in ascending order\n",
            ),
            (
                "",
                |measure| (measure.blocks.min, measure.blocks.max) = (1, 1),
                "1 block, each visit of 5 steps after warm-up: 1,400 steps\n",
            ),
            ("", |measure| (measure.blocks.min, measure.blocks.max) = (1, 1), "after 30 min 00 s at the latest\n"),
        ];
        for (of_engine, change, wanted) in cases {
            let text = summary(of_engine, change);
            assert!(text.contains(wanted), "{text}\nlacks: {wanted}");
        }
    }

    #[test]
    fn what_is_swept_is_named_as_the_step_names_it() {
        let spec = "version = 1\nname = \"s\"\n[engine]\nstep = \"s.py\"\n[sweep]\nx = \"seq_len\"\nseq_len = \"8..=128 step 8\"\n\
                    batch_size = 4\n";
        let experiment = Experiment::parse(spec, "s.toml").expect("valid");
        let named = ("seq_len".to_owned(), "8 to 128 in steps of 8".to_owned());
        assert_eq!(axes(&experiment).last(), Some(&named));
    }

    #[test]
    fn batch_sizes_read_as_ranges_where_they_are_one() {
        assert_eq!(sizes(&(1..=70).collect::<Vec<_>>()), "1 to 70");
        assert_eq!(sizes(&[1, 9, 17, 25]), "1 to 25 in steps of 8");
        assert_eq!(sizes(&[64, 128, 256]), "64, 128 and 256");
        assert_eq!(sizes(&[8]), "8");
        assert_eq!(sizes(&[8, 16]), "8 and 16");
    }
}
