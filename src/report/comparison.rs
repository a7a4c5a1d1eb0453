//! The comparison of two runs.

use super::{Column, Style, Table, human};
use crate::analysis::compare::{Cell, Comparison, Decision, Overall};

/// The table of all cells, the number of cells with each decision, and a line for each series as a whole. `unit` is that of
/// the times.
pub fn comparison(found: &Comparison, unit: &str, style: &Style) -> String {
    let all = [Decision::Same, Decision::Faster, Decision::Slower, Decision::Ambiguous];
    let counts = all.map(|decision| format!("{} {}", found.count(decision), decision.name())).join(", ");
    let overall: String = found.overall.iter().map(whole).collect();
    let rate = "of equal runs, at most 5 % have a cell named FASTER or SLOWER";
    format!("{}\n{counts}; {rate}\n{overall}", table(&found.cells, unit).render(style))
}

/// The result for a series as a whole, in one line.
fn whole(one: &Overall) -> String {
    let name = if one.group.is_empty() { "all cells" } else { &one.group };
    let (cells, p) = (human::counted(one.cells as u64, "cell"), human::p_equals(one.p_value));
    let decision = one.decision.name();
    format!(
        "{name} as a whole, {cells}: {:.3} times the first, 95 % interval {:.3} to {:.3} ({p}): {decision}\n",
        one.ratio, one.low, one.high
    )
}

fn table(cells: &[Cell], unit: &str) -> Table {
    let columns = ["series", "batch size", "first", "second", "ratio", "95 % interval", "p", "decision"];
    let mut table =
        Table::new(columns.map(|name| if name == "series" { Column::left(name) } else { Column::right(name) }));
    for cell in cells {
        table.row(vec![
            cell.group.clone(),
            human::batch_size(cell.x),
            human::quantity(cell.first, unit),
            human::quantity(cell.second, unit),
            format!("{:.4}", cell.ratio),
            format!("{:.4} to {:.4}", cell.low, cell.high),
            human::p_value(cell.p_value),
            cell.decision.name().to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Series;
    use crate::analysis::compare::{Rules, runs};
    use crate::detect::Observation;
    use crate::error::Kind;

    /// One batch size with the same step time `y` in each of 10 blocks, to 0.1 %.
    fn series(y: f64) -> Vec<Series> {
        let seen = |i: u32| Observation { block: Some(i), ..Observation::new(8.0, y * (1.0 + 0.0001 * f64::from(i))) };
        vec![Series::planted(Vec::new(), (0..10).map(|i| seen(i).into()).collect())]
    }

    #[test]
    fn a_comparison_is_a_table_with_the_count_of_each_decision() {
        let found = runs(&series(0.010), &series(0.020), &Rules::default()).unwrap();
        let text = comparison(&found, "s", &Style::PLAIN);
        assert!(text.contains("ratio") && text.contains("2.0000") && text.contains("10.0 ms"), "{text}");
        assert!(text.contains("\n0 SAME, 0 FASTER, 1 SLOWER, 0 AMBIGUOUS; of equal runs"), "{text}");
    }

    #[test]
    fn runs_in_different_units_or_without_a_common_cell_are_refused() {
        let mut other = series(0.010);
        other[0].unit = "ms".into();
        let error = runs(&series(0.010), &other, &Rules::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::Data);
        assert!(error.to_string().contains("`s` and in `ms`"), "{error}");
        other[0].unit = "s".into();
        other[0].measurements.iter_mut().for_each(|one| one.observation.x = 9.0);
        let error = runs(&series(0.010), &other, &Rules::default()).unwrap_err().to_string();
        assert!(error.contains("no cell in common"), "{error}");
    }
}
