//! The book in `docs/`: its table of contents is complete, its commands run, and its schema matches the code.

use std::path::{Path, PathBuf};
use std::process::Command;

use batchstep::store::{CellRow, LayerRow, Record, StepRow};
use batchstep::study::fit::{FitRow, SurfaceRow};
use batchstep::study::pipeline::PipelineRow;
use batchstep::study::training::{BatchRow, TrainingRow};

use crate::needs;
use crate::support::{Folder, root};

fn pages() -> Vec<PathBuf> {
    let entries = |folder: &str| std::fs::read_dir(root().join(folder)).expect("a folder");
    let all = entries("docs").chain(entries("docs/gallery"));
    let mut pages: Vec<PathBuf> = all.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("readable")
}

/// The mark before the output of a script.
const PRINTS: &str = "<!-- prints -->";

/// The marked blocks of a page, in order.
#[derive(Debug, PartialEq)]
enum Block {
    /// `<!-- tested -->` before a block: a script for bash.
    Script(String),
    /// `<!-- file: NAME -->`: its contents.
    File(String, String),
    /// `<!-- prints -->`: what the script before it prints.
    Output(String),
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let name = line.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->"));
        if line != "<!-- tested -->" && line != PRINTS && name.is_none() {
            continue;
        }
        let fence = lines.next().unwrap_or_default();
        assert!(fence.starts_with("```"), "no block follows `{line}`");
        let text: String =
            lines.by_ref().take_while(|line| !line.starts_with("```")).map(|line| format!("{line}\n")).collect();
        found.push(match name {
            Some(name) => Block::File(name.to_owned(), text),
            None if line == PRINTS => Block::Output(text),
            None => Block::Script(text),
        });
    }
    found
}

#[test]
fn blocks_are_found_with_their_marks() {
    let page = "a\n<!-- tested -->\n```sh\nls\ncd\n```\n```sh\nrm\n```\n<!-- file: x.toml -->\n```toml\ny = 1\n```\n";
    assert_eq!(blocks(page), [Block::Script("ls\ncd\n".into()), Block::File("x.toml".into(), "y = 1\n".into())]);
    assert_eq!(blocks("<!-- prints -->\n```text\na\n```"), [Block::Output("a\n".into())]);
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = read(&root().join("docs/SUMMARY.md"));
    for page in pages() {
        let name = page.strip_prefix(root().join("docs")).expect("a page").to_string_lossy().into_owned();
        assert!(name == "SUMMARY.md" || contents.contains(&format!("]({name})")), "SUMMARY.md lacks {name}");
    }
    for link in contents.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(root().join("docs").join(link).is_file(), "SUMMARY.md names {link}, which is not there");
    }
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn an_anchor_is_a_heading_in_small_letters() {
    assert_eq!(anchor("## `work`, or the clock?"), "work-or-the-clock");
}

/// The targets of the links of a page, outside its blocks of code.
fn links(page: &str) -> Vec<String> {
    let text: String = page.split("\n```").step_by(2).collect();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// Checks the pages at the top and in `docs/`.
#[test]
fn links_lead_to_files_and_headings() {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "DESIGN.md"];
    let mut wrong = Vec::new();
    for page in pages().into_iter().chain(top.map(|name| root().join(name))) {
        for link in links(&read(&page)) {
            let (file, place) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let is_heading = |line: &str| line.starts_with('#') && anchor(line) == place;
            if !target.exists() || !place.is_empty() && target.is_file() && !read(&target).lines().any(is_heading) {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

/// A chart of a stored run is drawn from its data, wherever one lies beside them; the rest of `plots/` is named in the script and in its table.
#[test]
fn every_picture_is_drawn_by_a_command() {
    let [script, table] = ["scripts/redraw-plots", "plots/README.md"].map(|name| read(&root().join(name)));
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages().into_iter().chain([root().join("README.md")]) {
        for link in links(&read(&page)).iter().filter(|link| link.ends_with(".png") || link.ends_with(".svg")) {
            seen += 1;
            let picture = page.parent().expect("a folder").join(link).canonicalize().expect("a picture");
            let [folder, name] = [picture.parent(), Some(&picture)].map(|path| path.expect("a folder").file_name());
            let [folder, name] = [folder, name].map(|name| name.expect("a name").to_str().expect("UTF-8"));
            let of_a_run = picture.with_file_name("spec.toml").is_file();
            let stem = name.split('.').next().expect("a name");
            let named = folder == "plots" && table.contains(name) && script.contains(stem);
            if !of_a_run && !named {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "neither of a stored run nor named in scripts/redraw-plots and plots/README.md: {wrong:#?}"
    );
    assert!(seen > 20, "{seen} pictures");
}

#[test]
fn the_citation_is_of_this_version() {
    assert!(read(&root().join("CITATION.cff")).contains(&format!("\nversion: {}\n", env!("CARGO_PKG_VERSION"))));
}

/// Runs all pages at once, each in its own folder, script after script, as a reader would, and compares what they print with the pages.
#[test]
#[ignore = "slow"]
fn the_commands_of_every_page_run_and_print_its_outputs() {
    let python = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !python {
        needs::missing("python", "python3 does not start");
    }
    let ran: Vec<(usize, Option<String>)> = std::thread::scope(|scope| {
        let pages: Vec<_> = pages().into_iter().map(|page| scope.spawn(move || follow(&page, python))).collect();
        pages.into_iter().map(|page| page.join().expect("its scripts succeed")).collect()
    });
    let others: Vec<String> = ran.iter().filter_map(|(_, other)| other.clone()).collect();
    assert!(others.is_empty(), "{}", others.join("\n"));
    assert!(ran.iter().map(|(scripts, _)| scripts).sum::<usize>() >= 10, "{ran:?}");
}

/// How many scripts of a page ran, and where its text of today is, if they print something else.
fn follow(page: &Path, python: bool) -> (usize, Option<String>) {
    let program = Path::new(env!("CARGO_BIN_EXE_batchstep")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let text = read(page);
    let (mut scripts, mut today, mut printed) = (0, text.clone(), String::new());
    let folder = Folder::new();
    std::os::unix::fs::symlink(root().join("experiments"), folder.join("experiments")).expect("a link");
    for block in blocks(&text) {
        let script = match block {
            Block::File(name, text) => {
                std::fs::write(folder.join(name), text).expect("writable");
                continue;
            }
            Block::Output(said) => {
                let fenced = |output: &str| format!("{PRINTS}\n```text\n{output}```");
                today = today.replacen(&fenced(&said), &fenced(&printed), 1);
                continue;
            }
            Block::Script(script) => script,
        };
        if script.contains("python3") && !python {
            break;
        }
        let done = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .current_dir(&folder)
            .env("PATH", &path)
            .env("COLUMNS", "100")
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}:\n{script}\n{said}", page.display());
        printed = String::from_utf8_lossy(&done.stdout).into_owned();
        scripts += 1;
    }
    let other = (today != text).then(|| {
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(page.file_name().expect("a name"));
        std::fs::write(&copy, today).expect("writable");
        format!("{}: today it prints {}", page.display(), copy.display())
    });
    (scripts, other)
}

fn table<R: Record>(file: &str, each: &str) -> String {
    let rows: String = R::columns()
        .iter()
        .map(|column| format!("| `{}` | {} | {} |\n", column.name, column.unit, column.meaning.replace('|', "\\|")))
        .collect();
    format!("## {file}\n\n{each}\n\n| column | unit | meaning |\n|---|---|---|\n{rows}")
}

#[test]
fn the_schema_in_the_docs_matches_the_code() {
    let expected = [
        table::<StepRow>("steps.parquet", "A row for each training step that was executed, or attempted."),
        table::<LayerRow>("layers.parquet", "A row for each layer of a cell in each direction."),
        table::<CellRow>("cells.parquet", "A row for each cell."),
        table::<TrainingRow>("epochs.parquet", "A row for each epoch; only for `kind = \"training\"`."),
        table::<BatchRow>("batches.parquet", "A row for each step of an epoch; only for `kind = \"training\"`."),
        table::<PipelineRow>(
            "pipeline.parquet",
            "A row for each stage of a visit, and one for all together; only for `kind = \"pipeline\"`.",
        ),
        table::<FitRow>(
            "fit.parquet",
            "A row for each update of a fit, and one for its beginning; only for `kind = \"fit\"`.",
        ),
        table::<SurfaceRow>(
            "surface.parquet",
            "A row for each point of a fitted surface (above 200 x 200, evenly spaced rows and columns); only for `kind = \"fit\"`.",
        ),
    ]
    .join("\n");
    let page = read(&root().join("docs/files.md"));
    let written = page.split("<!-- from the code -->\n").nth(1).unwrap_or_default();
    if written != expected {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("files.md");
        std::fs::write(&path, &expected).expect("writable");
        panic!(
            "the part of docs/files.md below `<!-- from the code -->` is not what the code says: {}",
            path.display()
        );
    }
}
