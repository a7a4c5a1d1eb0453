//! The command that makes a figure or a page again from the same data.

use std::path::Path;

use super::{Analysed, Query};

/// The command that repeats an analysis, quoted for a shell: `batchstep plot mine.csv --x batch`, with the options that gave `found`; empty for a
/// study without columns.
pub fn again(command: &str, sources: &[&Path], found: &[Analysed]) -> String {
    let query = found.first().map(|found| found.series.asked.clone()).unwrap_or_default();
    let Query { x, y, kind, group } = query;
    let options = [
        ("--x", x),
        ("--y", y),
        ("--y-kind", kind.map(|kind| kind.name().to_owned())),
        ("--group", group.map(|columns| columns.join(","))),
    ];
    let sources = sources.iter().map(|source| quoted(&source.display().to_string()));
    // With `=`, a value that begins with a hyphen is a value.
    let options = options.into_iter().filter_map(|(name, value)| {
        value.map(|value| format!("{name}{}{}", if value.starts_with('-') { '=' } else { ' ' }, quoted(&value)))
    });
    ["batchstep".to_owned(), command.to_owned()].into_iter().chain(sources).chain(options).collect::<Vec<_>>().join(" ")
}

/// A text for a shell: unchanged if it is plain, else in single quotes.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Series, TimeOrRate};
    use crate::detect::Findings;

    #[test]
    fn a_command_keeps_the_options_quoted_for_a_shell() {
        let mut series = Series::planted(Vec::new(), Vec::new());
        series.asked = Query {
            x: Some("batch".into()),
            y: Some("GB per s".into()),
            kind: Some(TimeOrRate::Rate),
            group: Some(vec!["gpu".into(), "model".into()]),
        };
        let found = [Analysed { series, findings: Findings::default() }];
        let sources = [Path::new("mine.csv"), Path::new("it's/a run")];
        assert_eq!(
            again("plot", &sources, &found),
            r"batchstep plot mine.csv 'it'\''s/a run' --x batch --y 'GB per s' --y-kind rate --group gpu,model"
        );
        assert_eq!(again("report", &sources[..1], &[]), "batchstep report mine.csv");
    }
}
