//! What copying the batch in each step costs, as a table.

use super::comparison::interval;
use super::{Document, Table};
use crate::analysis::contrast::Contrast;
use crate::units::human;

/// For each series that copies: how much longer its step is at the smallest and at the largest size, and where it is most. Empty for nothing.
pub fn transfers(found: &[Contrast]) -> Document {
    if found.is_empty() {
        return Document::default();
    }
    let numbers = ["size", "step in place", "step with copy", "longer by", "95 % interval"];
    let mut table = Table::of(&["series", "data"], &numbers);
    for transfer in found {
        let (first, last) = (transfer.cells.first(), transfer.cells.last());
        let dearest = transfer.dearest().filter(|cell| ![first, last].contains(&Some(*cell)));
        let mut shown: Vec<_> = first.into_iter().chain(dearest).chain(last).collect();
        shown.dedup();
        for (place, cell) in shown.into_iter().enumerate() {
            let once = |text: &str| if place == 0 { text.to_owned() } else { String::new() };
            table.row([
                once(&transfer.name),
                once(&transfer.value),
                human::batch_size(cell.x),
                human::quantity(cell.first, &transfer.unit),
                human::quantity(cell.second, &transfer.unit),
                human::signed_percent(cell.ratio - 1.0),
                longer([cell.low, cell.high]),
            ]);
        }
        if let Some(all) = &transfer.overall {
            let by = human::signed_percent(all.ratio - 1.0);
            table.row(["", "", &format!("all {}", all.cells), "", "", &by, &longer([all.low, all.high])]);
        }
    }
    Document::of_table("Copying the batch in each step", table).with_text(
        "In place: data = resident, the batch lies in the memory that the step reads. Shown are the smallest and the largest size, between them the one at \
         which the copy provably makes the step longer by most, if there is one, and the geometric mean of all.",
    )
}

fn longer(ratios: [f64; 2]) -> String {
    interval(ratios, " %", |ratio| format!("{:+.1}", 100.0 * (ratio - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::contrast::transfer::{tests::run, transfers as analysed};
    use crate::report::{Style, tidy};

    #[test]
    fn each_series_that_copies_has_its_ends() {
        let text = transfers(&analysed(&Vec::from_iter(&run()))).render(&Style { width: 200, ..Style::PLAIN });
        let tidy = tidy(&text);
        // By hand: 1.02 and 1.03 ms at 10; 3 and 4 ms at 1000.
        assert!(tidy.iter().any(|line| line.starts_with("mlp, cpu pageable 10 1.02 ms 1.03 ms +")), "{text}");
        assert!(tidy.iter().any(|line| line.starts_with("1000 3.00 ms 4.00 ms +33")), "{text}");
        assert!(tidy.iter().any(|line| line.starts_with("all 3 +13") && line.ends_with(" %")), "{text}");
        assert!(transfers(&[]).is_empty());
    }
}
