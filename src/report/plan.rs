//! What a run will do, before it does it.

use super::Style;
use super::style::Look;
use crate::settings::own::OwnSteps;
use crate::settings::{AXES, Axis};
use crate::spec::plan::Plan;
use crate::spec::{Decide, Experiment, Order, StepsPerVisit};
use crate::units::human;

/// The plan in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanFacts {
    pub name: String,
    pub cells: usize,
    /// What varies: the axis and its values, in words.
    pub axes: Vec<(String, String)>,
    /// Visits to a cell, at least and at most; on average, where the run decides on jumps.
    pub blocks: (usize, usize),
    pub decide: Decide,
    pub order: Order,
    pub steps_per_visit: StepsPerVisit,
    pub smallest_jump: f64,
    pub time_limit_s: f64,
    pub seed: u64,
}

impl PlanFacts {
    /// The facts of `plan`, made from `experiment`.
    pub fn new(experiment: &Experiment, plan: &Plan) -> Self {
        let measure = &experiment.measure;
        Self {
            name: experiment.name.clone(),
            cells: plan.cells.len(),
            axes: axes(experiment),
            blocks: (measure.complete_blocks(), measure.blocks.max),
            decide: measure.decide,
            order: measure.order,
            steps_per_visit: measure.steps_per_visit,
            smallest_jump: measure.smallest_jump,
            time_limit_s: measure.time_limit_s,
            seed: plan.seed,
        }
    }
}

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

/// The plan for a terminal, each line with its end.
pub fn plan_summary(facts: &PlanFacts, style: &Style) -> String {
    let (least, most) = facts.blocks;
    let blocks = if least == most { human::counted(most as u64, "block") } else { format!("{least} to {most} blocks") };
    let visit = visit_length(facts);
    let mut lines = facts.axes.clone();
    let mut add = |name: &str, text: String| lines.push((name.to_string(), text));
    let adapts = least < most && facts.decide == Decide::Jumps;
    let cells = human::count(facts.cells as u64);
    if adapts {
        let first = human::counted(least as u64, "block");
        let later = "later ones only those beside undecided boundaries, each in a fresh random order";
        add("cells", format!("{cells}; the first {first} visit all, {later}"));
        add("visits", format!("{least} to {most} per cell on average, each of {visit}"));
    } else {
        let order = match facts.order {
            Order::Random => "in a fresh random order",
            Order::Ascending => "in ascending order",
        };
        add("cells", format!("{cells}, each visited once in each block, {order}"));
        add("blocks", format!("{blocks}, each visit of {visit}"));
    }
    if least < most {
        let jump = human::limit(facts.smallest_jump);
        let enough = if adapts {
            format!("when jumps of {jump} or more are shown or ruled out at every boundary")
        } else {
            format!("a cell when a jump of {jump} would show; all")
        };
        let limit = human::duration(facts.time_limit_s);
        add(
            "stops",
            if adapts { format!("{enough}, at the latest after {limit}") } else { format!("{enough} after {limit}") },
        );
    } else {
        add("stops", format!("after {} at the latest", human::duration(facts.time_limit_s)));
    }
    add("seed", facts.seed.to_string());
    let mut text = format!("{}\n", style.paint(&format!("Plan of {}", facts.name), Look::Bold));
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default() + 1;
    for (name, value) in lines {
        let line = style.wrap(&format!("  {name:<width$}{value}"), 2 + width);
        text.push_str(&line.replacen(&name, &style.paint(&name, Look::Faint), 1));
        text.push('\n');
    }
    text
}

/// `5 steps after warm-up: 5,600 to 42,000 steps`.
fn visit_length(facts: &PlanFacts) -> String {
    let (least, most) = facts.blocks;
    match facts.steps_per_visit {
        StepsPerVisit::Auto => {
            let first = human::counted(StepsPerVisit::FIRST as u64, "step");
            format!("{first} after warm-up in the first block, then of as many as its noise asks for")
        }
        StepsPerVisit::Fixed(steps) => {
            let total = |blocks: usize| human::count((facts.cells * blocks * steps) as u64);
            let total = if least == most { total(most) } else { format!("{} to {}", total(least), total(most)) };
            format!("{} after warm-up: {total} steps", human::counted(steps as u64, "step"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> PlanFacts {
        PlanFacts {
            name: "vgg16".into(),
            cells: 280,
            axes: vec![
                ("model".into(), "vgg16, vgg19, mobilenet and resnet50".into()),
                ("batch size".into(), "1 to 70".into()),
            ],
            blocks: (3, 30),
            decide: Decide::Cells,
            order: Order::Random,
            steps_per_visit: StepsPerVisit::Fixed(5),
            smallest_jump: 0.01,
            time_limit_s: 1800.0,
            seed: 1,
        }
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
        assert_eq!(plan_summary(&facts(), &Style::PLAIN), expected);
        let adaptive = plan_summary(&PlanFacts { decide: Decide::Jumps, ..facts() }, &Style::PLAIN);
        let line = "stops      when jumps of 1 % or more are shown or ruled out at every boundary, at the latest after 30 min 00 s";
        assert!(adaptive.contains(line), "{adaptive}");
        let auto = PlanFacts { steps_per_visit: StepsPerVisit::Auto, decide: Decide::Jumps, ..facts() };
        let line = "visits     3 to 30 per cell on average, each of 5 steps after warm-up in the first block, then of as many as its noise asks for";
        let text = plan_summary(&auto, &Style::PLAIN);
        assert!(text.contains(line), "{text}");
        let longer = PlanFacts { axes: vec![("batch padding".into(), "1 and 16".into())], ..facts() };
        let text = plan_summary(&longer, &Style::PLAIN);
        assert!(text.contains("  batch padding 1 and 16\n  cells         280, each"), "{text}");
        let along = plan_summary(&PlanFacts { order: Order::Ascending, ..facts() }, &Style::PLAIN);
        assert!(along.contains("280, each visited once in each block, in ascending order\n"), "{along}");
        let fixed = PlanFacts { blocks: (1, 1), ..facts() };
        let text = plan_summary(&fixed, &Style::PLAIN);
        assert!(text.contains("1 block, each visit of 5 steps after warm-up: 1,400 steps"), "{text}");
        assert!(text.contains("after 30 min 00 s at the latest"), "{text}");
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
