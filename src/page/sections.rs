//! The parts of the page, from the answer to the footer.

use std::path::Path;

use serde_json::Value;

use super::html::Html;
use super::{Charts, Picture, Reason, RunPage, UPLOT_LICENSE};
use crate::analysis::again;
use crate::chart::typeset;
use crate::report::{Answer, Block, Document, Table};
use crate::units::human;

/// Series that have a sentence of their own above the charts; the jump tables have one of each.
const MOST_ANSWERS: usize = 8;

/// What the run measured and where, or how many runs there are.
pub(super) fn title(runs: &[RunPage]) -> String {
    match runs {
        [one] => one.title.map_or_else(|| one.name(), str::to_owned),
        many => format!("{} runs: {}", many.len(), many.iter().map(RunPage::name).collect::<Vec<_>>().join(", ")),
    }
}

pub(super) fn body(html: &mut Html, runs: &[RunPage]) {
    html.literal("<a class=\"skip\" href=\"#answer\">Skip to the answer</a>\n");
    header(html, runs);
    html.literal("<main>\n");
    answers(html, runs);
    let several = |run: &RunPage| if runs.len() > 1 { format!("{}: ", run.name()) } else { String::new() };
    for run in runs {
        documents(html, &format!("{}Which size to use", several(run)), &run.advice);
    }
    warnings(html, runs);
    charts(html, runs);
    for (at, run) in runs.iter().enumerate() {
        let several = several(run);
        honesty(html, at, run, &several);
        pictures(html, &several, &run.pictures);
        documents(html, &format!("{several}{}", run.kind), &run.tables);
        reasons(html, &several, &run.why);
        documents(html, &format!("{several}Engines, threads and the device's peaks"), &run.beside);
        environment(html, run, &several);
        repeat(html, run, &several, runs.len() == 1);
    }
    if runs.len() > 1 {
        html.literal("<section><h2>Repeat</h2>\n");
        page_again(html, runs);
        html.literal("</section>\n");
    }
    html.literal("</main>\n");
    footer(html);
}

fn header(html: &mut Html, runs: &[RunPage]) {
    html.literal(
        "<header>\n<p class=\"brand\"><span class=\"mark\" aria-hidden=\"true\"></span>batchstep report</p>\n",
    );
    html.element("h1", &[], &title(runs));
    for run in runs {
        let name =
            if runs.len() > 1 || title(runs) != run.name() { format!("{}: ", run.name()) } else { String::new() };
        for fact in &run.facts {
            html.element("p", &[("class", "facts")], &format!("{name}{fact}"));
        }
    }
    html.literal("</header>\n");
}

fn answers(html: &mut Html, runs: &[RunPage]) {
    html.literal("<section id=\"answer\" aria-label=\"The answer\" tabindex=\"-1\">\n");
    let all: Vec<(&RunPage, &Answer)> =
        runs.iter().flat_map(|run| run.answers.iter().map(move |one| (run, one))).collect();
    let class = if all.len() > 3 { "answer small" } else { "answer" };
    for (run, one) in all.iter().take(MOST_ANSWERS) {
        html.open("div", &[("class", class)]);
        html.open("p", &[("class", "sentence")]);
        name_of(html, run, runs);
        html.text(&typeset(&one.sentence));
        html.close("p");
        for (at, ground) in one.grounds.iter().enumerate() {
            html.literal(if at == 0 { "<ul><li>" } else { "<li>" });
            html.element("span", &[("class", grade(&ground.grade))], &ground.grade);
            html.text(&typeset(&ground.text));
            html.literal("</li>");
        }
        html.literal(if one.grounds.is_empty() { "</div>\n" } else { "</ul></div>\n" });
    }
    if all.len() > MOST_ANSWERS {
        html.element("p", &[], &format!("{} more series are in the tables below.", all.len() - MOST_ANSWERS));
    }
    html.literal("</section>\n");
}

/// What puts the answer in doubt, right below it.
fn warnings(html: &mut Html, runs: &[RunPage]) {
    if runs.iter().all(|run| run.warnings.is_empty()) {
        return;
    }
    html.literal("<section class=\"warnings\" aria-label=\"Warnings\"><ul>\n");
    for (run, warning) in runs.iter().flat_map(|run| run.warnings.iter().map(move |warning| (run, warning))) {
        html.literal("<li><strong>Warning</strong> ");
        name_of(html, run, runs);
        html.text(&typeset(&sentence(run, &format!("{warning}."))));
        html.element("span", &[("class", "help")], &typeset(&human::capitalised(&format!("{}.", warning.remedy()))));
        html.literal("</li>\n");
    }
    html.literal("</ul></section>\n");
}

/// The run that a sentence is about, where there are several.
fn name_of(html: &mut Html, run: &RunPage, runs: &[RunPage]) {
    if runs.len() > 1 {
        html.element("span", &[("class", "of")], &format!("{}: ", run.name()));
    }
}

/// With a capital; the file of the run at its beginning keeps its name.
fn sentence(run: &RunPage, text: &str) -> String {
    let found = if let Charts::Sweep { found, .. } = run.charts { found } else { &[] };
    let mut sources = found.iter().map(|found| found.series.source.as_str());
    if sources.any(|source| !source.is_empty() && text.starts_with(source)) {
        return text.to_owned();
    }
    human::capitalised(text)
}

/// The look of a grade of evidence.
fn grade(grade: &str) -> &'static str {
    match grade {
        "shown by intervention" => "grade shown",
        "consistent" => "grade consistent",
        "contradicted" => "grade contradicted",
        _ => "grade measured",
    }
}

fn section(html: &mut Html, title: &str, content: impl FnOnce(&mut Html)) {
    html.literal("<section>");
    html.element("h2", &[], title);
    content(html);
    html.literal("</section>\n");
}

/// Content that is shown, or waits behind a button of the browser's own with a summary.
fn folded(html: &mut Html, summary: Option<&str>, content: impl FnOnce(&mut Html)) {
    if let Some(summary) = summary {
        html.literal("<details>");
        html.element("summary", &[], summary);
    }
    content(html);
    html.literal(if summary.is_some() { "</details>" } else { "" });
}

/// An entry of a list of terms.
fn entry(html: &mut Html, term: &str, text: &str) {
    html.literal("<div>");
    html.element("dt", &[], term);
    html.element("dd", &[], text);
    html.literal("</div>");
}

/// Places that the script fills with charts.
fn charts(html: &mut Html, runs: &[RunPage]) {
    if runs.iter().any(|run| matches!(run.charts, Charts::Sweep { .. })) {
        html.literal("<section aria-labelledby=\"steps-title\"><h2 id=\"steps-title\">The curve</h2>\n<div id=\"steps\"></div>\n");
        html.literal(
            "<noscript><p>The charts need JavaScript; the tables below hold the same jumps.</p></noscript></section>\n",
        );
    }
    for (at, run) in runs.iter().enumerate() {
        if !matches!(run.charts, Charts::Training(_)) {
            continue;
        }
        html.literal("<section aria-label=\"Epochs\">");
        html.element("h2", &[], &format!("Whole epochs of {}", run.name()));
        html.open("div", &[("class", "training"), ("data-run", &at.to_string())]);
        html.literal("</div></section>\n");
    }
}

fn honesty(html: &mut Html, at: usize, run: &RunPage, several: &str) {
    if !matches!(run.charts, Charts::Sweep { honesty: Some(_), .. }) {
        return;
    }
    section(html, &format!("{several}Every step, in the order of the run"), |html| {
        html.element(
            "p",
            &[("class", "note")],
            "Each dot is one executed step against the median of its batch size; nothing is left out. The line is what all batch sizes \
             shared at that time: heat, clocks and other programs.",
        );
        html.open("div", &[("class", "honesty"), ("data-run", &at.to_string())]);
        html.literal("</div>");
    });
}

fn pictures(html: &mut Html, several: &str, pictures: &[Picture]) {
    for picture in pictures {
        section(html, &format!("{several}{}", picture.drawing.title), |html| {
            let source = picture.source();
            html.open("img", &[("class", "picture"), ("alt", &picture.drawing.summary), ("src", &source)]);
        });
    }
}

fn documents(html: &mut Html, title: &str, documents: &[Document]) {
    if documents.iter().any(|document| !document.is_empty()) {
        section(html, title, |html| documents.iter().for_each(|document| blocks(html, document.blocks())));
    }
}

/// Up to this many reasons are shown open.
const MOST_REASONS: usize = 4;

fn reasons(html: &mut Html, several: &str, reasons: &[Reason]) {
    let reasons: Vec<&Reason> = reasons.iter().filter(|reason| !reason.document.is_empty()).collect();
    if reasons.is_empty() {
        return;
    }
    section(html, &format!("{several}Why: layers and mechanisms"), |html| {
        for reason in &reasons {
            let name = (reasons.len() > MOST_REASONS).then_some(reason.name.as_str());
            folded(html, name, |html| blocks(html, reason.document.blocks()));
        }
    });
}

fn blocks(html: &mut Html, blocks: &[Block]) {
    let mut remarks = false;
    let mut heading = "";
    for block in blocks {
        let is_remark = matches!(block, Block::Remark { .. });
        if remarks != is_remark {
            html.literal(if is_remark { "<dl class=\"remarks\">" } else { "</dl>" });
            remarks = is_remark;
        }
        match block {
            Block::Heading(text) => {
                heading = text;
                html.element("h3", &[], &typeset(text));
            }
            Block::Table(found) => table(html, found, heading),
            Block::Remark { subject, text } => entry(html, subject, &typeset(text)),
            Block::Text(text) => html.element("p", &[("class", "note")], &typeset(text.trim())),
            Block::Break => {}
        }
    }
    if remarks {
        html.literal("</dl>");
    }
}

/// Rows beyond that wait behind a button of the browser's own.
const MOST_ROWS: usize = 30;
/// Rows of one table in the page; a table of a million cells is no table to read.
const ALL_ROWS: usize = 1000;

fn table(html: &mut Html, found: &Table, name: &str) {
    let rows = (found.rows().len() > MOST_ROWS).then(|| format!("{} rows", found.rows().len()));
    folded(html, rows.as_deref(), |html| whole_table(html, found, name));
}

fn whole_table(html: &mut Html, found: &Table, name: &str) {
    html.open("div", &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", name)]);
    html.literal("<table><thead><tr>");
    for column in found.columns() {
        html.element("th", &[("scope", "col"), ("class", side(column.right))], &column.heading);
    }
    html.literal("</tr></thead><tbody>");
    for row in found.rows().iter().take(ALL_ROWS) {
        html.literal("<tr>");
        for (cell, column) in row.iter().zip(found.columns()) {
            let short = !column.right && cell.chars().count() <= SHORT;
            let class = if short { "words short" } else { side(column.right) };
            html.open("td", &[("class", class)]);
            match verdict(cell) {
                Some((grade, rest)) => {
                    html.element("span", &[("class", self::grade(grade))], grade);
                    html.text(rest.trim_start_matches(':'));
                }
                None => html.text(&typeset(cell)),
            }
            html.literal("</td>");
        }
        html.literal("</tr>");
    }
    html.literal("</tbody></table></div>");
    if found.rows().len() > ALL_ROWS {
        let more = found.rows().len() - ALL_ROWS;
        html.element("p", &[("class", "note")], &format!("and {more} more rows; the command's own table has them all"));
    }
}

/// A text of up to this many characters stays on one line.
const SHORT: usize = 24;

fn side(right: bool) -> &'static str {
    if right { "number" } else { "words" }
}

/// A cell that begins with a verdict on a mechanism, and what follows it.
fn verdict(cell: &str) -> Option<(&'static str, &str)> {
    ["shown by intervention", "consistent", "contradicted"]
        .into_iter()
        .find_map(|grade| cell.strip_prefix(grade).map(|rest| (grade, rest)))
}

fn environment(html: &mut Html, run: &RunPage, several: &str) {
    if run.files.environment.is_none() && run.files.spec.is_none() {
        return;
    }
    section(html, &format!("{several}Where and how it was measured"), |html| {
        if let Some(text) = &run.files.environment {
            html.literal("<dl class=\"machine\">");
            let facts = facts(&serde_json::from_str(text).unwrap_or_default());
            facts.iter().for_each(|(name, fact)| entry(html, name, fact));
            html.literal("</dl>");
            file(html, "environment.json, all that was read of the machine", text);
        }
        if let Some(text) = &run.files.spec {
            file(html, "spec.toml, as resolved", text);
        }
    });
}

fn file(html: &mut Html, name: &str, text: &str) {
    folded(html, Some(name), |html| {
        html.element("pre", &[("tabindex", "0"), ("role", "region"), ("aria-label", name)], text);
    });
}

/// The facts of an environment that readers want first; the rest is in the file.
fn facts(environment: &Value) -> Vec<(&'static str, String)> {
    let text = |pointer: &str| match environment.pointer(pointer) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let each = |pointer: &str, names: [&str; 2]| -> Option<String> {
        let one = |entry: &Value| {
            let parts: Vec<&str> = names.iter().filter_map(|name| entry.get(name)?.as_str()).collect();
            parts.join(" ")
        };
        let all: Vec<String> = environment.pointer(pointer)?.as_array()?.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    let cores = text("/machine/cpu/logical_cores").map(|cores| format!(", {cores} logical cores")).unwrap_or_default();
    let memory = environment.pointer("/machine/memory/total_bytes").and_then(Value::as_u64).map(human::bytes);
    let load = environment.pointer("/machine/load_average/0").and_then(Value::as_f64).map(|load| format!("{load:.2}"));
    let commit = text("/machine/commit").map(|commit| format!(" ({commit})")).unwrap_or_default();
    let build = if text("/machine/build").as_deref() == Some("debug") { ", a debug build" } else { "" };
    let facts = [
        ("Started", text("/machine/started")),
        ("Engine", each("/engines", ["name", "version"])),
        ("Device", each("/engines", ["device", "device_name"])),
        ("GPUs", each("/machine/gpus", ["name", "uuid"])),
        ("Driver", text("/machine/driver/version")),
        ("CUDA", text("/machine/driver/cuda_version")),
        ("Processor", text("/machine/cpu/model").map(|model| model + &cores)),
        ("Memory", memory),
        ("System", text("/machine/os")),
        ("Kernel", text("/machine/kernel")),
        ("Container", text("/machine/container")),
        ("Load at the start", load),
        ("batchstep", text("/machine/batchstep").map(|version| version + &commit + build)),
        ("Run", text("/run_id")),
    ];
    let known = facts.into_iter().filter_map(|(name, fact)| Some((name, fact?)));
    known.filter(|(_, fact)| !fact.trim().is_empty()).collect()
}

/// The command that makes the page again.
fn page_again(html: &mut Html, runs: &[RunPage]) {
    html.literal("<p>Make this page again from the stored data:</p>");
    let sources: Vec<&Path> = runs.iter().map(|run| run.source).collect();
    // All were read with the same options.
    let found =
        runs.iter().find_map(|run| if let Charts::Sweep { found, .. } = run.charts { Some(found) } else { None });
    command(html, &again("report", &sources, found.unwrap_or_default()));
}

/// The commands that measure and draw again, and how to cite; `alone`: the page is about this run only.
fn repeat(html: &mut Html, run: &RunPage, several: &str, alone: bool) {
    html.literal("<section>");
    html.element("h2", &[], &format!("{several}Repeat and cite"));
    let environment: Value =
        run.files.environment.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let field = |pointer: &str| environment.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    if run.files.spec.is_some() {
        html.literal("<p>Measure again, with <code>spec.toml</code> as above (it holds the seed, so the order of the visits is the same):</p>");
        let device =
            field("/engines/0/device").filter(|device| !device.is_empty() && !device.contains(char::is_whitespace));
        let device = device.map(|device| format!(" --device {device}")).unwrap_or_default();
        command(html, &format!("batchstep run spec.toml{device}"));
    }
    if alone {
        page_again(html, std::slice::from_ref(run));
    }
    let version = field("/machine/batchstep").unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
    let started = field("/machine/started").unwrap_or_default();
    let (date, year) = (started.get(..10).unwrap_or_default(), started.get(..4).unwrap_or_default());
    let device = field("/engines/0/device_name").map(|name| format!(" on {name}")).unwrap_or_default();
    let measured = if date.is_empty() { String::new() } else { format!(", measured {date}") };
    let id = field("/run_id").map(|id| format!(", run {id}")).unwrap_or_default();
    html.literal("<p>Cite:</p>");
    let note = match id.is_empty() {
        true => String::new(),
        false => format!("  note   = {{{}{device}{measured}{id}}},\n", run.name()),
    };
    let year = if year.is_empty() { String::new() } else { format!("  year   = {{{year}}},\n") };
    let author = "  author = {{The batchstep developers}},\n";
    command(html, &format!("@misc{{batchstep,\n{author}  title  = {{batchstep {version}}},\n{year}{note}}}"));
    html.literal("</section>\n");
}

fn command(html: &mut Html, text: &str) {
    html.element("pre", &[("class", "command"), ("tabindex", "0")], text);
}

fn footer(html: &mut Html) {
    html.literal("<footer><p>Written by ");
    html.text(&format!("batchstep {}", env!("CARGO_PKG_VERSION")));
    html.literal(
        ". This page is one file and loads nothing; its data are embedded as JSON (<code>script#data</code>).</p>",
    );
    html.literal("<details><summary>Charts by uPlot 1.6.32, MIT licence</summary>");
    html.element("pre", &[("tabindex", "0"), ("role", "region"), ("aria-label", "Licence of uPlot")], UPLOT_LICENSE);
    html.literal("</details></footer>\n");
}
