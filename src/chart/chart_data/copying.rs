//! The chart of the copies of batches, from stored series.

use std::path::Path;

use super::{Drawing, device, made_by, title};
use crate::analysis::Analysed;
use crate::analysis::mechanisms::Answers;
use crate::analysis::mechanisms::copying::{CopyTime, Copying};
use crate::chart::axis::ascending;
use crate::chart::{Chart, Line, LinePanel, LinePoint, Quantity, ReferenceLevel, Stacked, StackedPanel};
use crate::units::human;

/// How fast batches are copied, by batch size; `None` where no copy was measured.
pub fn copying(source: &Path, found: &[Analysed], answers: &[Answers]) -> Option<Drawing> {
    let copied = |(found, answers): (&Analysed, &Answers)| {
        let copying = answers.copying.clone().filter(|copying| copying.copies.len() > 1)?;
        Some((found.series.label(), copying))
    };
    let copied: Vec<(String, Copying)> = found.iter().zip(answers).filter_map(copied).collect();
    if copied.is_empty() {
        return None;
    }
    let title = title::of("Copies of the batch", source, found);
    let chart = stacked(title, vec![device(found), made_by(source, found)], &copied);
    let (summary, title) = (chart.summary.clone(), "The copies of the batch");
    Some(Drawing { name: "copying", title, summary, chart: Chart::Stacked(chart) })
}

fn stacked(title: String, caption: Vec<String>, copied: &[(String, Copying)]) -> Stacked {
    let panel = |name: &str, unit: &str, value: &dyn Fn(&CopyTime) -> f64| {
        let point = |copy: &CopyTime| LinePoint { x: copy.batch_size, y: value(copy), sd: 0.0 };
        let line = |(name, copying): &(String, Copying)| Line {
            name: name.clone(),
            points: copying.copies.iter().map(point).collect(),
            marked: None,
        };
        let (x, y) = (Quantity::new("Batch size", ""), Quantity::new(name, unit));
        LinePanel { x, y, lines: copied.iter().map(line).collect(), from_zero: unit != "s" }
    };
    let jumps = copied.iter().flat_map(|(_, copying)| &copying.jumps);
    let marks = ascending(jumps.map(|jump| 0.5 * (jump.after + jump.next)));
    let link = copied.iter().find_map(|(_, copying)| copying.link);
    let level = link.and_then(|link| {
        let name = format!("the most that {} lanes of generation {} carry (formula)", link.lanes, link.generation);
        Some(ReferenceLevel { y: link.rate()?, name })
    });
    let each = human::bytes(copied[0].1.example_bytes);
    Stacked {
        title,
        summary: format!("The copy of the batch in each step, at {each} an example."),
        point: "median of the steps".to_owned(),
        mark: "the step time of a series jumps".to_owned(),
        panels: vec![
            StackedPanel {
                lines: panel("Bytes over the time of the copy", "B/s", &|copy| copy.bytes_per_s),
                level,
                marks: marks.clone(),
            },
            StackedPanel { lines: panel("Time of the copy", "s", &|copy| copy.seconds), level: None, marks },
        ],
        caption,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::mechanisms::copying::{Copied, Link};
    use crate::chart::tests::assert_says;
    use crate::settings::DataPath;

    #[test]
    fn the_rate_of_the_copies_is_drawn_with_the_link_and_the_jumps() {
        let copy = |batch_size: f64| CopyTime { batch_size, seconds: batch_size * 50e-6, bytes_per_s: 12.04e9 };
        let jump = Copied { after: 16.0, next: 17.0, size_s: 4e-3, batch_s: None, longer_s: Some(50e-6) };
        let copying = Copying {
            data: DataPath::Pageable,
            example_bytes: 602_112,
            link: Some(Link::SIXTEEN_OF_GENERATION_3),
            jumps: vec![jump],
            period: None,
            copies: (14..20).map(f64::from).map(copy).collect(),
        };
        let chart = stacked("pcie".into(), vec!["a GPU".into()], &[("vgg16, pageable".into(), copying)]);
        let rate = &chart.panels[0];
        assert!(rate.lines.lines[0].points.iter().all(|point| point.y == 12.04e9) && rate.marks == [16.5]);
        // 15.754 GB/s by the link's formula.
        assert!(rate.level.as_ref().is_some_and(|level| (level.y / 15.754e9 - 1.0).abs() < 1e-3));
        assert!((chart.panels[1].lines.lines[0].points[2].y - 16.0 * 50e-6).abs() < 1e-12);
        assert!(chart.panels[1].level.is_none() && !chart.panels[1].lines.from_zero);
        let said =
            ["vgg16, pageable", "the most that 16 lanes", "the step time of a series", "Time of the copy", "a GPU"];
        assert_says(&Chart::Stacked(chart).scene(), &said);
    }
}
