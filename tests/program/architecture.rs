//! The rooms, and which rooms each of them may use: an outside crate is used in one place, and data flow one way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::root;

/// Each outside crate, and the only places that may use it.
const CRATES: &[(&str, &[&str])] = &[
    ("candle_core", &["engine/candle/"]),
    ("candle_nn", &["engine/candle/"]),
    ("gemm", &["engine/cpu/"]),
    ("pulp", &["engine/cpu/"]),
    ("cudarc", &["engine/cudnn/", "device/cuda/", "measure/"]),
    ("nvml_wrapper", &["device/"]),
    ("polars", &["store/"]),
    ("polars_parquet_format", &["store/"]),
    ("plotters", &["chart/"]),
    ("pdf_writer", &["chart/"]),
    ("notosans", &["chart/"]),
    ("comfy_table", &["report/"]),
    ("clap", &["cli.rs", "main.rs", "commands/generate.rs"]),
    ("clap_complete", &["cli.rs", "commands/generate.rs"]),
    ("clap_mangen", &["commands/generate.rs"]),
    ("sha2", &["page/", "engine/own/"]),
    ("base64", &["page/"]),
    ("indicatif", &["commands/"]),
    ("rustix", &["os/", "engine/"]),
    ("statrs", &["stats/"]),
    ("toml", &["spec/"]),
    ("flate2", &["chart/", "data/", "table/"]),
    ("png", &["chart/", "data/", "study/pipeline/"]),
    ("jpeg_encoder", &["study/pipeline/"]),
    ("zune_jpeg", &["data/"]),
    ("perf_event_open_sys", &["device/counters/"]),
    ("csv", &["table/"]),
    // The rooms of the crate have their own names everywhere else.
    ("batchstep_cpu", &["lib.rs", "engine/mod.rs", "device/mod.rs"]),
    ("batchstep_detect", &["lib.rs"]),
];

/// Every room, and what it uses: exactly that, and only rooms above it in this list. So there are no cycles between
/// rooms, and a new room must be added to this list. The program (`main`, `cli`, `commands`) may use everything, and
/// nothing uses it.
const ROOMS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("foreign", &[]),
    ("random", &[]),
    ("units", &[]),
    ("settings", &["units"]),
    ("kinds", &["settings"]),
    ("network", &["error", "random", "settings"]),
    ("os", &["error"]),
    ("stats", &["random"]),
    ("table", &["error", "foreign", "settings"]),
    ("detect", &["random", "stats"]),
    ("device", &["error", "os"]),
    ("measure", &["stats"]),
    ("sequential", &["random", "stats"]),
    ("engine", &["device", "error", "foreign", "network", "os", "random", "settings", "stats", "units"]),
    ("shapes", &["detect", "random", "stats"]),
    ("store", &["device", "error", "kinds", "os", "settings", "table"]),
    ("spec", &["engine", "error", "kinds", "network", "random", "settings", "units"]),
    (
        "analysis",
        &[
            "detect", "engine", "error", "foreign", "measure", "network", "os", "random", "settings", "spec", "stats",
            "store", "table", "units",
        ],
    ),
    ("words", &["analysis", "detect", "stats", "units"]),
    ("check", &["device", "engine", "error", "foreign", "network", "os", "settings", "spec"]),
    ("data", &["device", "error", "network", "os", "random", "spec", "store", "units"]),
    (
        "run",
        &[
            "detect",
            "device",
            "engine",
            "error",
            "measure",
            "network",
            "random",
            "sequential",
            "settings",
            "spec",
            "stats",
            "store",
            "units",
        ],
    ),
    ("fleet", &["error", "kinds", "measure", "os", "run", "settings", "spec", "stats", "store"]),
    ("predict", &["analysis", "error", "kinds", "network", "os", "random", "settings", "spec", "stats", "store"]),
    (
        "report",
        &[
            "analysis", "detect", "error", "foreign", "os", "predict", "run", "settings", "spec", "stats", "store",
            "units", "words",
        ],
    ),
    ("chart", &["analysis", "detect", "error", "foreign", "os", "predict", "settings", "stats", "units", "words"]),
    ("page", &["analysis", "chart", "detect", "error", "foreign", "os", "report", "store", "units"]),
    (
        "study",
        &[
            "chart", "data", "device", "engine", "error", "kinds", "network", "page", "random", "report", "run",
            "settings", "spec", "stats", "store", "units", "words",
        ],
    ),
];

/// The circles of modules that are left inside a folder. No other modules of one folder may use each other, directly or through others.
const CIRCLES: &[(&str, &[&str])] = &[
    ("commands", &["run", "study"]),
    ("spec", &["decode", "encode", "keys", "layers", "own"]),
    ("study", &["fit", "pipeline", "spec", "told", "training"]),
];

/// The folders of the rooms: the program's library, and the crates of the CPU engine and the detector, whose rooms the library re-exports under the
/// same names.
const SOURCES: &[&str] = &["src", "crates/batchstep-cpu/src", "crates/batchstep-detect/src"];

/// Part of the program, not of the library.
const PROGRAM: &[&str] = &["main", "cli", "commands", "lib"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for source in SOURCES {
        let before = paths.len();
        sources(&root().join(source), &mut paths);
        assert!(paths.len() > before + 30, "{source}: the sources were not found");
    }
    paths
}

/// The modules that are declared for tests only, as paths without an ending.
fn modules_of_tests() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in all_sources() {
        let is_of_folder = ["mod.rs", "lib.rs"].iter().any(|name| path.ends_with(name));
        let folder = if is_of_folder { path.with_file_name("") } else { path.with_extension("") };
        let text = std::fs::read_to_string(&path).expect("readable");
        for declared in text.split("#[cfg(test)]\n").skip(1) {
            let line = declared.lines().next().unwrap_or_default();
            let name = line.strip_suffix(';').and_then(|line| line.split_once("mod ")).map(|(_, name)| name);
            found.extend(name.map(|name| folder.join(name)));
        }
    }
    found
}

/// The lines of code, without comments and without tests, which may use and print anything.
fn each_line(mut see: impl FnMut(&str, usize, &str)) {
    let of_tests = modules_of_tests();
    for path in all_sources() {
        if of_tests.iter().any(|module| path.with_extension("").starts_with(module)) {
            continue;
        }
        let room = SOURCES.iter().find_map(|source| path.strip_prefix(root().join(source)).ok());
        let room = room.expect("inside").to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(&path).expect("readable");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            if !line.trim_start().starts_with("//") {
                see(&room, number + 1, line);
            }
        }
    }
}

/// Fails where a line of code is wrong, given with its file in its room.
fn refuse(why: &str, is_wrong: impl Fn(&str, &str) -> bool) {
    let mut wrong = Vec::new();
    each_line(|room, number, line| {
        if is_wrong(room, line) {
            wrong.push(format!("src/{room}:{number}: {}", line.trim()));
        }
    });
    assert!(wrong.is_empty(), "{why}:\n{}", wrong.join("\n"));
}

#[test]
fn an_outside_crate_lives_in_one_place() {
    refuse("outside crates in the wrong room", |room, line| {
        CRATES.iter().any(|(name, homes)| {
            let used = line.contains(&format!("{name}::")) && !line.contains(&format!("crate::{name}::"));
            let path = line.find(&format!("{name}::")).is_some_and(|at| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
            });
            used && path && !homes.iter().any(|home| room.starts_with(home))
        })
    });
}

/// The code of each file.
fn texts() -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    each_line(|path, _, line| {
        let text = texts.entry(path.to_string()).or_default();
        text.push_str(line);
        text.push('\n');
    });
    texts
}

/// The module of a file, from the crate on.
fn module(path: &str) -> Vec<&str> {
    path.trim_end_matches(".rs").trim_end_matches("/mod").split('/').collect()
}

/// The rooms that each room uses, from every path that begins at the crate or leaves the room by `super`.
fn arrows() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut arrows: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, text) in &texts() {
        let module = module(path);
        let room = arrows.entry(module[0].to_string()).or_default();
        for used in names_after(&["crate::", &"super::".repeat(module.len())], text) {
            // The place where tests record what they could not find.
            if used != module[0] && used != "needs" {
                room.insert(used, path.clone());
            }
        }
    }
    arrows
}

/// The names after the paths that lead to one place: one name, or all names of a group.
fn names_after(paths: &[&str], text: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for start in paths {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            let rest = &text[at + start.len()..];
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') || rest.starts_with("super::") {
                continue;
            }
            match rest.strip_prefix('{') {
                Some(group) => rooms.extend(members(group)),
                None => rooms.push(first_name(rest)),
            }
        }
    }
    rooms
}

fn first_name(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first names of the members of a group of imports, whose opening brace is gone.
fn members(group: &str) -> Vec<String> {
    let (mut depth, mut begins, mut names) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && (c.is_alphabetic() || c == '_') => {
                names.push(first_name(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn no_import_hides_its_room() {
    refuse("these imports hide their room", |_, line| {
        let renamed = line.contains("use crate as") || line.contains("use super as");
        let nested = line.contains("{super::") || line.contains(", super::");
        renamed || line.trim_start().starts_with("use ") && nested
    });
}

#[test]
fn imports_are_read_whatever_their_form() {
    let text =
        "use crate::{a::{b, c}, d};\npub use crate::e::F;\nlet x = super::super::g::H;\nuse super::own;\nmycrate::no";
    assert_eq!(names_after(&["crate::", "super::super::"], text), ["a", "d", "e", "g"]);
}

#[test]
fn every_room_uses_the_rooms_in_its_list_and_nothing_below_it() {
    let mut wrong = Vec::new();
    for (place, (room, uses)) in ROOMS.iter().enumerate() {
        let above: Vec<&str> = ROOMS[..place].iter().map(|(room, _)| *room).collect();
        wrong.extend(
            uses.iter().filter(|used| !above.contains(used)).map(|used| format!("{room}: {used} is not above it")),
        );
    }
    for (room, used) in arrows() {
        if PROGRAM.contains(&room.as_str()) {
            continue;
        }
        let Some((_, said)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{room}: say in ROOMS what this room uses"));
            continue;
        };
        let unsaid = used.iter().filter(|(name, _)| !said.contains(&name.as_str()));
        wrong.extend(unsaid.map(|(name, path)| format!("{room} uses {name}: src/{path}")));
        let unused = said.iter().filter(|name| !used.contains_key(**name));
        wrong.extend(unused.map(|name| format!("{room} does not use {name} any more: take it out of ROOMS")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// By folder, which of its modules uses which: named itself, or by a name that the folder's own file takes from it.
fn uses_within() -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let texts = texts();
    let mut uses: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for module in texts.keys().map(|path| module(path)) {
        for depth in 1..module.len() {
            uses.entry(module[..depth].join("/")).or_default().entry(module[depth].to_string()).or_default();
        }
    }
    for (folder, uses) in &mut uses {
        let parts: Vec<String> = uses.keys().cloned().collect();
        let own = texts.get(&format!("{folder}/mod.rs")).or(texts.get(&format!("{folder}.rs")));
        let taken = |part: &String| own.map(|text| names_after(&[&format!("use {part}::")], text)).unwrap_or_default();
        let homes: BTreeMap<String, &String> =
            parts.iter().flat_map(|part| taken(part).into_iter().map(move |name| (name, part))).collect();
        let (path_of_it, depth) = (format!("crate::{}::", folder.replace('/', "::")), folder.split('/').count());
        for (path, text) in texts.iter().filter(|(path, _)| path.starts_with(&format!("{folder}/"))) {
            let module = module(path);
            let Some(part) = module.get(depth).and_then(|part| uses.get_mut(*part)) else { continue };
            let used = names_after(&[&path_of_it, &"super::".repeat(module.len() - depth)], text);
            let used = used.into_iter().filter(|name| name != "self" && !name.is_empty());
            let used = used.map(|name| homes.get(&name).map_or(name, |part| (*part).clone()));
            part.extend(used.filter(|used| used != module[depth] && parts.contains(used)));
        }
    }
    uses
}

/// The modules that a module uses, and those that these use.
fn reached<'a>(uses: &'a BTreeMap<String, BTreeSet<String>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        open.extend(uses[next].iter().map(String::as_str).filter(|used| reached.insert(*used)));
    }
    reached
}

#[test]
fn no_modules_of_a_folder_use_each_other_in_a_circle_but_these() {
    let mut wrong = Vec::new();
    for (folder, uses) in uses_within() {
        let is_in_one = |part: &&String| reached(&uses, part).contains(part.as_str());
        let allowed = CIRCLES.iter().find(|(name, _)| *name == folder).map_or(&[][..], |(_, allowed)| allowed);
        wrong.extend(uses.keys().filter(is_in_one).filter(|part| !allowed.contains(&part.as_str())).map(|part| {
            let around = reached(&uses, part).into_iter().filter(|other| reached(&uses, other).contains(part.as_str()));
            format!("{folder}: {part} in {:?}", around.collect::<Vec<_>>())
        }));
    }
    assert!(wrong.is_empty(), "move what both need to a file that uses neither:\n{}", wrong.join("\n"));
}

#[test]
fn the_library_does_not_print_or_exit_and_the_program_prints_in_one_place() {
    refuse("print in `commands/output.rs`", |room, line| {
        let program = room == "main.rs" || room.starts_with("commands/");
        // These macros panic where the stream cannot be written.
        let panics = ["println!", "print!(", "dbg!("].iter().any(|word| line.contains(word));
        let writes = ["stdout().write", "stderr().write", "stdout().lock", "stderr().lock"];
        let writes = room != "commands/output.rs" && writes.iter().any(|word| line.contains(word));
        panics || writes || !program && line.contains("process::exit")
    });
}

/// `ARCHITECTURE.md` has each room, and what it names in the repository is there.
#[test]
fn the_page_of_the_architecture_has_every_room_and_names_files_that_are_there() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("readable");
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let lacking: Vec<&str> = ROOMS.iter().map(|(room, _)| *room).filter(|room| !named.contains(room)).collect();
    assert!(lacking.is_empty(), "ARCHITECTURE.md does not name {}", lacking.join(", "));
    let gone: Vec<&&str> = named
        .iter()
        .filter(|name| name.starts_with("src/") || name.starts_with("tests/"))
        .filter(|name| !root().join(name).exists())
        .collect();
    assert!(gone.is_empty(), "ARCHITECTURE.md names what is not there: {gone:?}");
}

/// The error in a documentation block: a heading that is directly followed by text, which becomes part of the heading,
/// or a code fence that is not closed, which makes the rest code.
fn broken(block: &[&str]) -> Option<&'static str> {
    let mut open = false;
    for line in block.iter().map(|line| line.trim()) {
        if let Some(info) = line.strip_prefix("```") {
            if info.contains(' ') || open && !info.is_empty() {
                return Some("a fence with text in its line");
            }
            open = !open;
        }
        let heading = ["# Errors", "# Panics", "# Safety", "# Examples", "# Example"];
        if !open && heading.iter().any(|heading| line.strip_prefix(heading).is_some_and(|rest| rest.starts_with(' '))) {
            return Some("a heading with text in its line");
        }
    }
    open.then_some("a fence that is not closed")
}

#[test]
fn headings_and_code_fences_of_the_documentation_are_whole() {
    assert_eq!(broken(&[" # Errors", " Where it fails.", " ```text", " # Errors 5", " ```"]), None);
    assert!(broken(&[" # Errors Where it fails."]).is_some());
    assert!(broken(&[" ```text", " a -> b", " ``` What follows."]).is_some());
    assert!(broken(&[" ```", " a -> b"]).is_some());
    let mut wrong = Vec::new();
    for path in all_sources() {
        let text = std::fs::read_to_string(&path).expect("readable");
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        for prefix in ["///", "//!"] {
            for block in lines.split(|line| !line.starts_with(prefix)) {
                let block: Vec<&str> = block.iter().map(|line| &line[prefix.len()..]).collect();
                let place = |what| format!("{}: {what}, in `{}`", path.display(), block[0].trim());
                wrong.extend(broken(&block).map(place));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rooms that read and remove measurements access the file system only through [`batchstep::os::look`]: `Path::is_file`
/// returns false if a disk fails, and a file that seems missing would be overwritten.
#[test]
fn what_cannot_be_read_is_not_taken_for_missing() {
    let rooms = ["store/", "merge/", "database/", "data/", "status.rs", "published/"];
    let blind = [".is_file()", ".is_dir()", ".exists()", "read_dir(", "entries.flatten()"];
    refuse("use `look`", |file, line| {
        let code = line.split("//").next().unwrap_or_default();
        rooms.iter().any(|room| file.starts_with(room)) && blind.iter().any(|word| code.contains(word))
    });
}
