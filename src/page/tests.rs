//! A whole page: what it contains, and what it cannot contain.

use super::*;
use crate::chart::{ChartSeries, Quantity};
use crate::detect::{Findings, Jump, Point};
use crate::report::{self, Question};

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onload=\"alert(3)\u{2028}";

fn step_time(name: &str) -> StepTime {
    let point = |x: i32| {
        let center = f64::from(x) * 1e-3 + if x > 16 { 4e-3 } else { 0.0 };
        Point { x: f64::from(x), count: 5, center, low: 0.99 * center, high: 1.01 * center, fit: center, off: false }
    };
    let findings = Findings {
        points: (1..=32).map(point).collect(),
        jumps: vec![Jump::planted(16.0, 4e-3, 0.25)],
        ..Findings::default()
    };
    StepTime {
        title: name.to_owned(),
        x: Quantity::new("Batch size", ""),
        y: Quantity::new("Step time", "s"),
        item: Some("image".to_owned()),
        series: vec![ChartSeries { name: name.to_owned(), findings, ..ChartSeries::default() }],
        forecast: false,
        caption: vec![name.to_owned(), "Made by: batchstep".to_owned()],
    }
}

fn page_of(name: &str) -> String {
    let chart = step_time(name);
    let series = &chart.series[0];
    let mut analysed = Analysed {
        series: crate::analysis::Series::planted(vec![("model".to_owned(), name.to_owned())], Vec::new()),
        findings: series.findings.clone(),
    };
    analysed.series.size.item = name.to_owned();
    let question = Question {
        label: name,
        findings: &series.findings,
        y: "Step time",
        x: "Batch size",
        unit: "s",
        origin: "measured here",
        answers: None,
    };
    let table = report::JumpTable { label: name, found: &analysed, aa_rate: None }.document();
    let found = [analysed];
    let run = RunPage {
        source: Path::new("results/run"),
        title: Some(name),
        facts: vec![name.to_owned()],
        kind: "Jumps",
        charts: Charts::Sweep { found: &found, step_time: &chart, honesty: None },
        answers: vec![report::answer(&question)],
        advice: vec![],
        warnings: Vec::new(),
        tables: vec![table],
        why: Vec::new(),
        beside: Vec::new(),
        pictures: Vec::new(),
        documents: serde_json::json!({"name": name}),
        files: Files {
            spec: Some(format!("name = '{name}'")),
            environment: Some(serde_json::json!({"run_id": name}).to_string()),
        },
    };
    page(&[run])
}

/// What a browser would take for the elements of that name: each with its content.
fn elements<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    page.match_indices(&format!("<{name}")).map(|(at, _)| &page[at..]).collect()
}

#[test]
fn hostile_names_are_text() {
    let page = page_of(HOSTILE);
    let harmless = page_of("vgg16");
    // As many elements as with a harmless name.
    for name in ["script", "img", "svg", "style", "meta", "link", "a "] {
        assert_eq!(elements(&page, name).len(), elements(&harmless, name).len(), "{name}");
    }
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "the name is not shown");
    let body = page.split("<script type=\"application/json\"").next().expect("a part");
    assert!(!body.contains("<img") && !body.contains(" onload=\"") && !body.contains(" onerror=\""));
    assert!(!page.contains('\u{2028}') || !page.split("id=\"data\">").nth(1).expect("data").contains('\u{2028}'));
}

#[test]
fn only_the_pages_own_script_and_style_are_allowed() {
    let page = page_of("vgg16");
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1).and_then(|rest| rest.split('"').next());
    let policy = policy.expect("a policy").replace("&#39;", "'");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).expect("a style");
    assert!(policy.contains(&hash(style)), "the style is not allowed: {policy}");
    for script in page.split("<script>").skip(1) {
        let script = script.split("</script>").next().expect("an end");
        assert!(policy.contains(&hash(script)), "a script is not allowed: {policy}");
    }
    // `printf hello | openssl dgst -sha256 -binary | base64`.
    assert_eq!(hash("hello"), "sha256-LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=");
    // Attributes with style or script would need more than that.
    assert!(!page.contains(" style=\"") && !page.contains(" onclick="));
}

#[test]
fn the_library_matches_its_readme() {
    let readme = include_str!("assets/README.md");
    for (name, text) in [("uPlot.iife.min.js", UPLOT), ("uPlot.min.css", UPLOT_STYLE), ("uPlot.LICENSE", UPLOT_LICENSE)]
    {
        let sum: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(readme.contains(&format!("| `{name}` | `{sum}` |")), "{name}: {sum}");
        assert!(!text.contains("</script") && !text.contains("</style"), "{name} would end its element");
    }
    assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
}
