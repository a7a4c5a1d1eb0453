//! The order of the detector's files: each uses only those before it, and a new file must be added to the list.

use std::path::Path;

/// Every file of `src/detect`, room by room; after its files comes the room's `mod.rs`, and last that of all.
const ORDER: [(&str, &str); 9] = [
    ("", "input rates machines rejection findings reciprocal logarithms unexplained score"),
    ("prepare", "visits units spikes reduce first prepared node_means nodes factor scaled unfitted"),
    ("model", "simd grid shapes basis candidates problem fit moves boundary neighbourhood place"),
    ("search", "descent segment cliffs levels staircase doubt ramps"),
    ("verify", "threshold p_value autoregressive examination power"),
    ("size", "sizes blocks interval"),
    ("interpret", "coincidence period slope verdict"),
    ("baseline", "medians differences pelt e_divisive"),
    ("", "explain windows passes"),
];

/// The modules in that order.
fn order() -> Vec<String> {
    let of = |(room, files): (&str, &str)| -> Vec<String> {
        let file = |file: &str| if room.is_empty() { file.to_string() } else { format!("{room}::{file}") };
        files.split(' ').map(file).chain((!room.is_empty()).then(|| room.to_string())).collect()
    };
    ORDER.into_iter().flat_map(of).chain([String::new()]).collect()
}

/// The modules below `folder`, with their code: no comments, no tests.
fn modules(folder: &Path, room: &str, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let module = if room.is_empty() { name.clone() } else { format!("{room}::{name}") };
        if name == "tests" {
            continue;
        } else if path.is_dir() {
            modules(&path, &module, found);
        } else {
            let text = std::fs::read_to_string(&path).expect("readable");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            found.push((if name == "mod" { room.into() } else { module }, code));
        }
    }
}

/// The paths that begin with `text`, braces multiplied out; the last name of each may be an item.
fn paths(text: &str, before: &str, found: &mut Vec<String>) {
    let text = text.trim_start();
    if let Some(list) = text.strip_prefix('{') {
        let (mut depth, mut start) = (0, 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    paths(&list[start..at], before, found);
                    start = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let path = if before.is_empty() { text[..end].to_string() } else { format!("{before}::{}", &text[..end]) };
    match text[end..].strip_prefix("::") {
        Some(rest) => paths(rest, &path, found),
        None => found.push(path),
    }
}

/// The place in the order of the file that `path` leads to.
fn place(order: &[String], path: &str) -> usize {
    let leads = |module: &&String| path == *module || path.starts_with(&format!("{module}::"));
    let longest = order.iter().filter(leads).max_by_key(|module| module.len());
    order.iter().position(|module| Some(module) == longest).unwrap_or(order.len() - 1)
}

#[test]
fn each_file_of_the_detector_uses_only_those_before_it() {
    let mut found = Vec::new();
    modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/detect"), "", &mut found);
    let mut names: Vec<&str> = found.iter().map(|(module, _)| module.as_str()).collect();
    let order = order();
    let mut listed: Vec<&str> = order.iter().map(String::as_str).collect();
    names.sort_unstable();
    listed.sort_unstable();
    assert_eq!(names, listed, "files and the list of them");
    let (mut arrows, mut wrong) = (0, Vec::new());
    for (module, code) in &found {
        let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
        for (start, room) in [("crate::detect::", ""), ("super::", parent)] {
            for (at, _) in code.match_indices(start).filter(|(at, _)| !code[..*at].ends_with("pub(")) {
                let mut used = Vec::new();
                paths(&code[at + start.len()..], room, &mut used);
                arrows += used.len();
                let own = order.iter().position(|name| name == module).expect("listed");
                wrong.extend(
                    used.iter().filter(|path| place(&order, path) >= own).map(|path| format!("{module} uses {path}")),
                );
            }
        }
    }
    assert!(arrows > 100, "the uses were not found");
    assert!(wrong.is_empty(), "against the order:\n{}", wrong.join("\n"));
}
