//! Which variable of the environment would show the cause of a jump.

use super::Document;
use crate::analysis::switches::Switch;
use crate::units::human;

/// A remark for each, with the series that it is about where there are several. `run`: the folder of the run, to name it in the command.
pub fn switches(run: &str, series: &[(String, Vec<Switch>)]) -> Document {
    let mut document = Document::default();
    for (label, switches) in series {
        let of = if series.len() > 1 { format!("{label}: ") } else { String::new() };
        for Switch { after, sign, is_seen, env } in switches {
            let place = after.map_or_else(String::new, |after| format!("after {}, ", human::batch_size(after)));
            let (subject, grade) = if *is_seen { ("Likely", "consistent") } else { ("Try", "hypothesis") };
            document.remark(
                subject,
                format!(
                    "{of}{place}{sign} ({grade}; `batchstep explain {run} --intervene` tries it with `--env '{env}'`)"
                ),
            );
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;

    #[test]
    fn an_observed_sign_is_likely_and_a_known_property_of_a_library_is_worth_a_try() {
        let one = |after, is_seen| Switch { after, sign: "it".into(), is_seen, env: "A=1,0" };
        let text = |series: &[(String, Vec<Switch>)]| {
            switches("results/mine", series).render(&Style { color: false, width: 300 })
        };
        let alone = [("mlp".to_owned(), vec![one(Some(35.0), true)])];
        assert_eq!(
            text(&alone),
            "  Likely   after 35, it (consistent; `batchstep explain results/mine --intervene` tries it with `--env 'A=1,0'`)\n"
        );
        let two = [alone[0].clone(), ("cnn".to_owned(), vec![one(None, false)])];
        assert!(
            text(&two).ends_with("Try      cnn: it (hypothesis; `batchstep explain results/mine --intervene` tries it with `--env 'A=1,0'`)\n"),
            "{}",
            text(&two)
        );
    }
}
