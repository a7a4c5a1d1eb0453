//! Findings as text for a person: one line each, and below it what to do.

use super::{Finding, Status};
use crate::foreign;

/// The findings as text, ending with one line that counts what needs attention.
pub fn render(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let status = finding.status.name();
        text += &format!("{status:<7}  {:<width$}  {}\n", finding.subject, on_one_line(&finding.detail));
        if let Some(remedy) = &finding.remedy {
            text += &format!("{:<7}  {:<width$}  -> {}\n", "", "", on_one_line(remedy));
        }
    }
    let count = |status: Status| findings.iter().filter(|finding| finding.status == status).count();
    let parts = [(count(Status::Missing), "missing"), (count(Status::Warning), "to look at")].into_iter();
    let parts: Vec<String> =
        parts.filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let summary = if parts.is_empty() { "everything is in place".to_string() } else { parts.join(", ") };
    text + &format!("\n{summary}\n")
}

/// The text of a library or a program as a single harmless line.
pub(super) fn on_one_line(text: &str) -> String {
    foreign::line(&text.replace('\n', " ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::doctor::judge::missing;

    #[test]
    fn columns_line_up_and_the_end_counts() {
        let finding = |subject, status, remedy| Finding { status, ..missing(subject, "detail", remedy) };
        let text = render(&[finding("CPU", Status::Ok, None), finding("GPU driver", Status::Warning, Some("do this"))]);
        let expected = "ok       CPU         detail\n\
                        warning  GPU driver  detail\n                     -> do this\n\n1 to look at\n";
        assert_eq!(text, expected);
        assert_eq!(render(&[]), "\neverything is in place\n");
        let hostile =
            Finding { detail: "a\nb\u{1b}[2J".into(), ..finding("cuDNN", Status::Missing, Some("c\n\u{7}d")) };
        assert_eq!(render(&[hostile]), "missing  cuDNN  a b\\u001b[2J\n                -> c \\u0007d\n\n1 missing\n");
    }
}
